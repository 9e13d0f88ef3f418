"""Examples as tokens, with a label for each word piece or for the whole."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from headscope.capture.tokens.align import words_that_fit
from headscope.learn.task import Example, Task

IGNORED = -100
"""The label of tokens that are neither learnt nor scored: special tokens, and words without a tag."""

Features = dict[str, Any]
"""One example as the input of a model: ``input_ids``, ``attention_mask``, ``labels`` and others."""


def encode(
    task: Task,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int | None,
    skipped: Counter[str],
) -> list[Features]:
    """The examples as tokens.

    All pieces of a word have its tag. An example that is too long is cut, and counted: the words behind the last one
    that fits, or the end of the longer text of a pair. What is cut or left out is added to `skipped`, by reason.
    """
    encode_example = _encode_tagged if task.kind == "tagging" else _encode_labelled
    encoded = [encode_example(task, example, tokenizer, max_tokens, skipped) for example in examples]
    tokenizer.backend_tokenizer.no_truncation()  # it would be written with the runs
    return [features for features in encoded if features is not None]


def _encode_tagged(
    task: Task, example: Example, tokenizer: PreTrainedTokenizerBase, max_tokens: int | None, skipped: Counter[str]
) -> Features | None:
    words = list(example.words)
    encoded = tokenizer(words, is_split_into_words=True, verbose=False)
    pieces = encoded.encodings[0].word_ids
    if max_tokens is not None and len(pieces) > max_tokens:
        fit = words_that_fit(pieces, max_tokens)
        skipped[f"examples cut to {max_tokens} tokens (the rest is used)"] += 1
        skipped["words behind the cut"] += len(words) - fit
        encoded = tokenizer(words[:fit], is_split_into_words=True, verbose=False)
        pieces = encoded.encodings[0].word_ids
    tags = [None if word is None else example.tags[word] for word in pieces]
    if not any(tag is not None for tag in tags):
        skipped["examples without a token that is tagged"] += 1
        return None
    return dict(encoded) | {"labels": [IGNORED if tag is None else task.labels.index(tag) for tag in tags]}


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
