"""The tokens that a language model predicts in a text, and the rows of a batch in which it predicts them.

text --align--> tokens --make_rows--> `Row`: tokens that the model reads, positions that predict, and their targets
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.models.auto import modeling_auto

from headscope.capture.forward.loss import choose_masked
from headscope.capture.model.dtypes import widen
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import DROPPED, Aligned, Alignment, begin_text, find_front, spell_token
from headscope.capture.tokens.assign import SPECIAL
from headscope.capture.tokens.companions import divide, list_thresholds
from headscope.corpora.document import Document
from headscope.corpora.written_text import split_text
from headscope.errors import CorpusError, ModelError, quote
from headscope.text_forms import GIVEN, SPACED, WRITTEN

HELD_LOGITS = 1 << 26
"""The maximum number of logits in memory at once (256 MiB), unless a single text has more.

This is enough for 512 tokens of a vocabulary of 131,072.
"""


TEXT_END = "<|endoftext|>"
"""The token after each text in the training of many decoders."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A text as the model reads it, with the tokens that are predicted in it.

    Attributes:
        sentence: The token ids of the original sentence.
        text: The text that the model reads, perhaps with a mask.
        places: The positions in the text whose logits predict the targets.
        targets: The ids of the tokens that are right, one for each of `places`.
    """

    sentence: tuple[int, ...]
    text: Aligned
    places: list[int]
    targets: list[int]


def find_mask(model: Model) -> int | None:
    """Return the id of the mask that a masked model reads in place of a predicted token; None for a causal model.

    Raises:
        ModelError: The model is neither masked nor causal, sees the tokens that it should predict, or is in training
            mode; or its tokenizer has no mask.
    """
    kind, attention_types = type(model.module).__name__, set(model.layers)
    advice = "load a language model with its task head, as in headscope.load(..., task='causal-lm')"
    if model.module.training:
        raise ModelError(
            f"{model.name!r} is in training mode, where dropout changes scores; call `.eval()` on it first."
        )
    if model.module.get_output_embeddings() is None or len(attention_types) > 1:
        raise ModelError(f"{model.name!r} ({kind}) gives a sentence no probability; {advice}.")
    if attention_types == {"decoder"}:
        return None
    # BERT with a causal head but without a causal mask sees what it predicts, and XLNet needs an order of tokens.
    if kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        raise ModelError(f"{model.name!r} ({kind}) sees the token that it is to predict next; load the task masked-lm.")
    mask: int | None = model.tokenizer.mask_token_id
    if mask is None:
        raise ModelError(f"the tokenizer of {model.name!r} has no mask; give the one that the model was trained with.")
    return mask


def find_start(model: Model, start: str | None, *, causal: bool) -> int | None:
    """Return the id of the token `start`; None without `start`, when the tokenizer decides how a text begins.

    Raises:
        ModelError: There is a `start`, but the model is not causal, or its tokenizer has no such token.
    """
    if start is None:
        return None
    if not causal:
        raise ModelError(
            f"{model.name!r} is a masked model, which predicts no token from {start!r}; leave `start` out."
        )
    vocabulary = model.tokenizer.get_vocab()
    if start not in vocabulary:
        raise ModelError(
            f"the tokenizer of {model.name!r} has no token {quote(start)}; name as `start` a token of its vocabulary, "
            "or leave it out."
        )
    return int(vocabulary[start])


def find_known_start(model: Model) -> str | None:
    """Return `TEXT_END` if a decoder has this token and its tokenizer puts nothing in front of a text; else None.

    This token separated the training texts of models from GPT-2 on, so the models know it as the beginning of a text.
    Other models get None: another token that a tokenizer calls the beginning of a text may be the beginning of a turn
    of a conversation.
    """
    if model.saved is not None or {*model.layers} != {"decoder"} or TEXT_END not in model.tokenizer.get_vocab():
        return None
    aligned, _ = Alignment.for_model(model).align([Document("", ("a",))])
    return None if any(map(find_front, aligned)) else TEXT_END


@dataclass(frozen=True, eq=False)
class SentenceReader:
    """A reader that turns texts into the tokens that a language model reads and predicts.

    Attributes:
        model: A model that was loaded with the task ``causal-lm`` or ``masked-lm``.
        text: `WRITTEN` or `SPACED` (`headscope.capture.tokens.align`).
        start: The token from which a causal model predicts the first token of a text, in place of the tokens that the
            tokenizer puts there. Without it, and if the tokenizer puts nothing there, the first token is not predicted.
            In `SPACED` texts it is predicted from the token for the beginning of a text, if the tokenizer has one.
    """

    model: Model
    text: str = WRITTEN
    start: str | None = None

    @cached_property
    def mask(self) -> int | None:
        """The id of the mask that a masked model reads in place of a predicted token; None for a causal model.

        Raises:
            ModelError: The model cannot predict tokens, as described for `find_mask`.
        """
        return find_mask(self.model)

    @property
    def causal(self) -> bool:
        """Whether the model predicts each token from the tokens before it."""
        return self.mask is None

    @cached_property
    def first(self) -> int | None:
        """The id of the token `start`; None without `start`, when the tokenizer decides how a text begins.

        Raises:
            ModelError: There is a `start`, but the model is not causal, or its tokenizer has no such token.
        """
        return None if self.start is None else find_start(self.model, self.start, causal=self.causal)

    def begin(self, text: Aligned) -> Aligned:
        """Put `start` in front of a text, so that a causal model can predict the first token of the text.

        Without `start`, a spaced text that has nothing in front gets the tokenizer's token for the beginning of a text.
        Other texts are returned unchanged.
        """
        first, has_front = self.first, bool(find_front(text) or text.document.messages)  # a chat template has its own
        if first is None and not has_front and self.text == SPACED and self.causal:
            first = self.model.tokenizer.bos_token_id
        return text if first is None else begin_text(text, first)

    def align(
        self, documents: Sequence[Document], *, max_tokens: int | None, cut: bool
    ) -> tuple[list[Aligned], Counter[str]]:
        """Turn documents into tokens; return them with the counts of skipped and of cut documents.

        Documents with more tokens than `max_tokens` or than the model's limit are cut if `cut` is True, else skipped.
        """
        _ = self.first
        # Leave room for the token that is put in front of some texts.
        limits = [
            limit for limit in (max_tokens, self.model.max_tokens and self.model.max_tokens - 1) if limit is not None
        ]
        alignment = Alignment.for_model(self.model, max_tokens=min(limits, default=None), cut=cut, text=self.text)
        aligned, skipped = alignment.align(documents)
        return [self.begin(each) for each in aligned], skipped

    def tokenize(self, sentences: Sequence[str]) -> list[Aligned]:
        """Turn each sentence into tokens.

        Raises:
            CorpusError: A sentence has no token that could be scored, or more tokens than the model's limit.
        """
        model, split = self.model, [split_text(sentence) for sentence in sentences]
        documents = [Document(str(number), words, written=written) for number, (words, written) in enumerate(split)]
        alignment = Alignment(model.tokenizer, None, cut=False, pair_tokens=1, text=self.text)
        aligned, skipped = alignment.align(documents)
        texts = [self.begin(each) for each in aligned]
        scored = {int(each.document.id) for each in texts if find_scored(each, causal=self.causal)}
        for number, sentence in enumerate(sentences):
            if number not in scored and DROPPED in skipped:
                raise CorpusError(
                    f"the tokenizer of {model.name!r} drops characters of the sentence {quote(sentence)}; leave it out."
                )
            if number not in scored:
                raise CorpusError(
                    f"the sentence {quote(sentence)} has no token that the model could predict; leave it out, or add "
                    "words."
                )
        for each in texts:
            if model.max_tokens is not None and len(each.ids) > model.max_tokens:
                raise CorpusError(
                    f"the sentence {quote(sentences[int(each.document.id)])} has {len(each.ids)} tokens, and the model "
                    f"takes {model.max_tokens}; leave it out, or shorten it."
                )
        return texts

    def describe(self, texts: Sequence[Aligned]) -> dict[str, str | int]:
        """Return attributes of a table that describe how texts were read.

        These are ``text``, ``documents_without_text`` and, for a causal model that reads the same tokens in front of
        all texts, ``start``: these tokens. ``start`` is empty if nothing is in front of the first token of a text,
        which is then not predicted.
        """
        originals = [text.document.original for text in texts]
        form = GIVEN if all(each.has_given_tokens for each in originals) else self.text
        without = sum(each.lacks_text for each in originals)
        about: dict[str, str | int] = {"text": form, "documents_without_text": without}
        starts = {spell_front(self.model, text) for text in texts if not text.document.messages}
        return about | ({"start": starts.pop()} if self.causal and len(starts) == 1 else {})


def spell_front(model: Model, text: Aligned) -> str:
    """Return the special tokens in front of a text, joined to one string."""
    return "".join(spell_token(model.tokenizer, number) for number in text.ids[: find_front(text)])


def find_scored(text: Aligned, *, causal: bool) -> list[int]:
    """Return the positions of the tokens that a model can predict: all but special tokens.

    A causal model cannot predict the token at position 0.
    """
    return [place for place, word in enumerate(text.word) if word != SPECIAL and not (causal and place == 0)]


def make_rows(text: Aligned, mask: int | None, scored: Sequence[int] | None = None) -> Iterator[Row]:
    """Yield the rows in which tokens of a text are predicted: a single row for a causal model, else one for each token.

    Args:
        text: The text.
        mask: The id of the mask of a masked model; None for a causal model.
        scored: The positions of the predicted tokens. Default: the result of `find_scored`.
    """
    sentence, scored = tuple(text.ids), find_scored(text, causal=mask is None) if scored is None else scored
    if mask is None:
        yield Row(sentence, text, [place - 1 for place in scored], [text.ids[place] for place in scored])
        return
    for place in scored:
        masked = replace(text, ids=[*text.ids[:place], mask, *text.ids[place + 1 :]])
        yield Row(sentence, masked, [place], [text.ids[place]])


def mask_some(text: Aligned, mask: int) -> Row:
    """Return a row in which 15 % of the tokens are predicted, all of them replaced by masks (`choose_masked`)."""
    places = choose_masked(text.ids, find_scored(text, causal=False))
    masked = [mask if place in places else number for place, number in enumerate(text.ids)]
    return Row(tuple(text.ids), replace(text, ids=masked), places, [text.ids[place] for place in places])


def batch_rows(model: Model, rows: Iterable[Row], batch_tokens: int) -> Iterator[list[Row]]:
    """Yield the rows in batches of at most `batch_tokens` tokens, including padding; fewer if the vocabulary is large.

    The longest row must come first. A row with more tokens is a batch of its own.
    """
    tokens = min(batch_tokens, HELD_LOGITS // model.module.config.get_text_config().vocab_size)
    rest = iter(rows)
    thresholds = list_thresholds(model.module)
    for longest in rest:
        batch = [longest, *islice(rest, max(1, tokens // len(longest.text.ids)) - 1)]
        yield from divide(batch, thresholds, lambda row: len(row.text.ids))


def score_rows(logits: Float[Tensor, "row token vocabulary"], rows: Sequence[Row]) -> Float[Tensor, " row"]:
    """Return for each row the sum of the log-probabilities of its targets, in nats."""
    sums = []
    # Row by row, because the logarithms take the same memory as the logits.
    for row, row_logits in zip(rows, logits, strict=True):
        targets = torch.tensor(row.targets, device=logits.device)[:, None]
        sums.append(widen(row_logits[row.places]).log_softmax(-1).gather(-1, targets).double().sum())
    return torch.stack(sums)
