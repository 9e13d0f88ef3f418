"""Documents as padded batches of tokens, with the word of each token."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.modality import count_embeddings
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Aligned
from headscope.capture.tokens.assign import SPECIAL
from headscope.capture.tokens.distance import Rulers
from headscope.capture.tokens.questions import Questions
from headscope.corpora.document import Document
from headscope.errors import ModelError


@dataclass(frozen=True, eq=False)
class Tokens:
    """One side of a batch: the tokens that an encoder or a decoder reads, padded on the right.

    Attributes:
        ids: The vocabulary ids.
        real: False for padding.
        word: The word (or the unit of several words) that each token is part of; -1 for special tokens and padding, -2
            for tokens of the text outside words, such as white space.
        position: The position of each token in the text. A decoder's start token has -1, so that a token has the same
            position on both sides, and offsets mean the same everywhere.
        cls: True for the tokenizer's classification token.
        sep: True for the tokenizer's separator.
        punctuation: True for a full stop or a comma (Clark et al. 2019, section 3.2).
    """

    ids: Int[Tensor, "batch token"]
    real: Bool[Tensor, "batch token"]
    word: Int[Tensor, "batch token"]
    position: Int[Tensor, "batch token"]
    cls: Bool[Tensor, "batch token"]
    sep: Bool[Tensor, "batch token"]
    punctuation: Bool[Tensor, "batch token"]

    @cached_property
    def padding(self) -> Bool[Tensor, "batch 1 token"]:
        """True for padding, with an axis for heads."""
        return ~self.real[:, None]

    @property
    def length(self) -> int:
        """The number of tokens in each row, padding included."""
        return self.ids.shape[1]

    @cached_property
    def first(self) -> int:
        """The position of the first token of each row; the positions of the others follow."""
        return int(self.position[0, 0])

    def list_words(self) -> list[frozenset[int]]:
        """Return the words that have a token, for each row."""
        return [frozenset(word for word in row if word >= 0) for row in self.word.tolist()]

    def select(self, rows: Int[Tensor, " row"]) -> "Tokens":
        """Return the same tokens for only some rows, by their indices."""
        return Tokens(*(getattr(self, each.name)[rows] for each in fields(self)))

    @cached_property
    def is_padded(self) -> bool:
        """True if there is padding."""
        return not bool(self.real.all())

    def on(self, device: torch.device) -> "Tokens":
        """Return the same tokens on a device; all tensors of a type are copied together."""
        tensors = {each.name: getattr(self, each.name) for each in fields(self)}
        copies: dict[str, Tensor] = {}
        for dtype in {tensor.dtype: None for tensor in tensors.values()}:
            alike = {name: tensor for name, tensor in tensors.items() if tensor.dtype == dtype}
            copies |= zip(alike, torch.stack([*alike.values()]).to(device), strict=True)
        tokens = Tokens(**copies)
        # These numbers are copied, since reading them from a GPU would wait for its work.
        vars(tokens).update(first=self.first, is_padded=self.is_padded)
        return tokens


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents as one forward pass reads them.

    Attributes:
        documents: The documents, in the order of the batch axis.
        encoder: The tokens that the model (or its encoder) reads.
        decoder: The tokens that the decoder of an encoder-decoder reads: a start token, then the same text again, so
            that every word has a row and a column on both sides. If a document has a translation, the decoder reads
            that.
        words: The number of words (or units) of the longest document.
        inputs: The arguments with which the model is called.
        rulers: The distances from queries to keys, which layers share.
        questions: The statistics that reducers have asked of layers, since they ask the next layer for the same.
        copies: The same batch on other devices whose layers have asked for it.
    """

    documents: tuple[Document, ...]
    encoder: Tokens
    decoder: Tokens | None
    words: int
    inputs: dict[str, Tensor]
    rulers: Rulers = field(default_factory=Rulers, repr=False)
    questions: Questions = field(default_factory=Questions, repr=False)
    copies: dict[torch.device, "Batch"] = field(default_factory=dict, init=False, repr=False)

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.encoder.ids.device

    @cached_property
    def blocks(self) -> BlockSizes:
        """The sizes of blocks of work on the device of the batch."""
        return BlockSizes.measure(self.device)

    @property
    def output_tokens(self) -> Tokens:
        """The tokens of the model's outputs: the decoder's tokens in an encoder-decoder, or else the only tokens."""
        return self.encoder if self.decoder is None else self.decoder

    def queries(self, attention_type: str) -> Tokens:
        """Return the tokens that attend in `attention_type`."""
        return self.encoder if attention_type == "encoder" else self.output_tokens

    def keys(self, attention_type: str) -> Tokens:
        """Return the tokens that are attended to in `attention_type`."""
        return self.output_tokens if attention_type == "decoder" else self.encoder

    def is_causal(self, attention_type: str) -> bool:
        """Return whether an attention type counts as causal, which it does only in a model with a decoder alone.

        In an encoder-decoder, all attention types count the same items, so its decoder is scored on the same items as
        its encoder.
        """
        return self.decoder is None and attention_type == "decoder"

    def on(self, device: torch.device) -> "Batch":
        """Return the batch on a device; it is copied there once for all layers."""
        if device == self.device:
            return self
        if device not in self.copies:
            with torch.inference_mode(False):  # a layer may ask during a pass
                decoder = None if self.decoder is None else self.decoder.on(device)
                inputs = {name: values.to(device) for name, values in self.inputs.items()}
                self.copies[device] = Batch(self.documents, self.encoder.on(device), decoder, self.words, inputs)
        return self.copies[device]

    def select(self, rows: Int[Tensor, " row"]) -> "Batch":
        """Return the batch with only some documents, by their indices, and with the same padding."""
        documents = tuple(self.documents[row] for row in rows.tolist())
        decoder = None if self.decoder is None else self.decoder.select(rows)
        inputs = {name: values[rows] for name, values in self.inputs.items()}
        return Batch(documents, self.encoder.select(rows), decoder, max(len(d.words) for d in documents), inputs)


def collate(model: Model, aligned: Sequence[Aligned]) -> Batch:
    """Make one batch of all texts, padded on the right to the longest.

    Raises:
        ModelError: A text has a token without an embedding in the model.
    """
    tokenizer, device = model.tokenizer, model.device
    _refuse_unknown_tokens(model, [text.ids for text in aligned])
    encoder = _tokens(model, [(text.ids, text.word) for text in aligned], first_position=0).on(device)
    inputs = {"input_ids": encoder.ids, "attention_mask": encoder.real.long()}
    if "token_type_ids" in tokenizer.model_input_names:
        inputs["token_type_ids"] = _padded([text.segment for text in aligned], 0).to(device)
    if model.saved is not None:
        inputs["places"] = _padded([text.places or [] for text in aligned], -1).to(device)
    decoder = None
    if model.start_id is not None:
        read = [text.translation or text for text in aligned]
        rows = [([model.start_id, *side.ids], [SPECIAL, *side.word]) for side in read]
        # The seam tells encoder, decoder and cross-attention apart by their lengths, so the two must differ. Padding
        # after the last token does not change a decoder, whose tokens see only earlier tokens.
        same = max(len(ids) for ids, _ in rows) == encoder.length
        decoder = _tokens(model, rows, first_position=-1, padding=int(same)).on(device)
        inputs["decoder_input_ids"] = decoder.ids
        inputs["decoder_attention_mask"] = decoder.real.long()
    documents = tuple(text.document for text in aligned)
    return Batch(documents, encoder, decoder, max(len(d.words) for d in documents), inputs)


def _tokens(model: Model, rows: list[tuple[list[int], list[int]]], *, first_position: int, padding: int = 0) -> Tokens:
    """Make the tokens of one side on the processor, with `padding` tokens after the longest row."""
    tokenizer = model.tokenizer
    ids = _padded([ids for ids, _ in rows], _choose_padding(model, [ids for ids, _ in rows]), padding)
    lengths = torch.tensor([len(ids) for ids, _ in rows])
    index = torch.arange(ids.shape[1]).expand_as(ids)
    real = index < lengths[:, None]
    position = index + first_position
    word = _padded([word for _, word in rows], SPECIAL, padding)
    text = real & (position >= 0)
    # A word of the text may be spelt like a special token, but it is not special.
    special = text & (word == SPECIAL)
    known = (-1 if number is None else number for number in (tokenizer.cls_token_id, tokenizer.sep_token_id))
    cls, sep = (special & (ids == number) for number in known)
    return Tokens(ids, real, word, position, cls, sep, text & torch.isin(ids, model.punctuation_ids))


def _choose_padding(model: Model, rows: list[list[int]]) -> int:
    """Choose the id of the padding token, one for which the model has an embedding.

    The model's own padding token is preferred, since classifiers find the end of a text by it. If the model has none,
    the id is one with which no text ends.
    """
    known, own = _count_tokens(model), getattr(model.module.config.get_text_config(), "pad_token_id", None)
    if isinstance(own, int) and 0 <= own < known:
        return own
    ends, first = {row[-1] for row in rows}, model.tokenizer.pad_token_id
    candidates = chain([] if first is None else [first], range(known))
    return next((number for number in candidates if number < known and number not in ends), 0)


def _count_tokens(model: Model) -> int:
    """Count the tokens that a model has embeddings for; for saved attention, the tokens that its tokenizer knows."""
    return count_embeddings(model.module) or len(model.tokenizer)


def _refuse_unknown_tokens(model: Model, rows: list[list[int]]) -> None:
    known, last = _count_tokens(model), max(map(max, rows))
    if last >= known:
        token = model.tokenizer.convert_ids_to_tokens(last)
        raise ModelError(
            f"the token {token!r} has the number {last:,}, and {model.name!r} has embeddings of {known:,} tokens; call "
            "resize_token_embeddings and train those that were added, or give the tokenizer that it was trained with."
        )


def _padded(rows: Sequence[Sequence[int]], filler: int, padding: int = 0) -> Int[Tensor, "batch token"]:
    together = np.full((len(rows), max(map(len, rows)) + padding), filler, dtype=np.int64)
    for numbers, row in zip(together, rows, strict=True):
        numbers[: len(row)] = row
    return torch.from_numpy(together)
