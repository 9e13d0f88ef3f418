"""Encoding of examples as tokens, with a label for each word piece or for the whole example."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizerBase

from headscope.capture.tokens.align import words_that_fit
from headscope.capture.tokens.assign import Assigned, assign_sides, find_lead
from headscope.corpora.written_text import join_words
from headscope.learn.task import Example, Task

IGNORED = -100
"""The label of tokens that are neither trained on nor scored: special tokens, and words without a tag."""

Features = dict[str, Any]
"""The model inputs for one example: ``input_ids``, ``attention_mask``, ``labels`` and others."""


def encode(
    task: Task,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int | None,
    skipped: Counter[str],
) -> list[Features]:
    """Encode examples as tokens, with their labels.

    All pieces of a word have the tag of the word. An example that is too long is cut: words at the end, or the end of
    the longer text of a pair, are removed. Examples that are cut or left out are counted in `skipped`, by reason.
    """
    if task.kind == "tagging":
        lead = find_lead(tokenizer)
        encoded = [_encode_tagged(task, example, tokenizer, lead, max_tokens, skipped) for example in examples]
    else:
        encoded = [_encode_labelled(task, example, tokenizer, max_tokens, skipped) for example in examples]
    tokenizer.backend_tokenizer.no_truncation()  # a truncation would be saved with the runs
    return [features for features in encoded if features is not None]


def _encode_tagged(
    task: Task,
    example: Example,
    tokenizer: PreTrainedTokenizerBase,
    lead: str,
    max_tokens: int | None,
    skipped: Counter[str],
) -> Features | None:
    words = example.words
    encoded, assigned = _read_words(words, tokenizer, lead)
    if max_tokens is not None and len(assigned.tokens) > max_tokens:
        fit = words_that_fit(assigned, max_tokens)
        skipped[f"examples cut to {max_tokens} tokens (the rest is used)"] += 1
        skipped["words after the cut"] += len(words) - fit
        encoded, assigned = _read_words(words[:fit], tokenizer, lead)
    tags = [None if word < 0 else example.tags[word] for word in assigned.tokens]
    if not any(tag is not None for tag in tags):
        skipped["examples without a token that is tagged"] += 1
        return None
    return dict(encoded) | {"labels": [IGNORED if tag is None else task.labels.index(tag) for tag in tags]}


def _read_words(words: Sequence[str], tokenizer: PreTrainedTokenizerBase, lead: str) -> tuple[BatchEncoding, Assigned]:
    """Tokenize words, joined by spaces, after the text `lead`; return the encoding, and the word of each token."""
    text = join_words(words, before=lead)
    encoded = tokenizer(text.content, verbose=False)
    return encoded, assign_sides(tokenizer, [text], encoded.encodings[0])


def _encode_labelled(
    task: Task, example: Example, tokenizer: PreTrainedTokenizerBase, max_tokens: int | None, skipped: Counter[str]
) -> Features:
    encoded = tokenizer(
        *example.texts, truncation="longest_first" if max_tokens else False, max_length=max_tokens, verbose=False
    )
    if encoded.encodings[0].overflowing:
        skipped[f"examples cut to {max_tokens} tokens (the rest is used)"] += 1
    assert example.label is not None
    label = float(example.label) if task.kind == "regression" else task.labels.index(str(example.label))
    return dict(encoded) | {"labels": label}
