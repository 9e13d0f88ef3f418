"""Words <-> tokens, for any fast tokenizer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from headscope.capture.model import Model
from headscope.corpora.document import Document

PAIR_TOKENS = 128
"""Pairs of segments are cut to this many tokens (Clark et al. 2019, section 3)."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """A document as tokens.

    Attributes:
        document: where the tokens come from.
        ids: vocabulary ids, special tokens included.
        word: the word each token is part of, -1 for special tokens.
        segment: 0 for the first segment of a pair and 1 for the second.
    """

    document: Document
    ids: list[int]
    word: list[int]
    segment: list[int]


@dataclass(frozen=True)
class Alignment:
    """How the documents of one run are turned into tokens.

    Attributes:
        tokenizer: is given the words one by one, as the corpus has them.
        max_tokens: what a single text may have; a longer one is skipped or cut, and counted.
        cut: a longer one is cut behind the last word that fits.
        pair_tokens: what a pair of segments may have; a longer one is cut, the longer side first.
    """

    tokenizer: PreTrainedTokenizerFast
    max_tokens: int | None
    cut: bool
    pair_tokens: int

    @classmethod
    def of(
        cls, model: Model, *, max_tokens: int | None = None, cut: bool = False, pair_tokens: int = PAIR_TOKENS
    ) -> "Alignment":
        """The alignment for `model`, whose limits can be lowered but not raised."""
        limits = [limit for limit in (model.max_tokens, max_tokens) if limit is not None]
        return cls(model.tokenizer, min(limits, default=None), cut, min(pair_tokens, *limits))

    def align(self, documents: Sequence[Document], skipped: Counter[str]) -> Iterator[Aligned]:
        """The documents that the model can take, as tokens.

        Nothing is guessed: a word to which the tokenizer gives no token stays without one, and is
        counted in `skipped` with the links that it loses.
        """
        readable = [document for document in documents if document.words]
        skipped["documents without words"] += len(documents) - len(readable)
        for pairs in (False, True):
            chosen = [document for document in readable if (document.boundary is not None) == pairs]
            if chosen:
                yield from self._align(chosen, skipped, pairs=pairs)

    def _align(self, documents: list[Document], skipped: Counter[str], *, pairs: bool) -> Iterator[Aligned]:
        words = [list(document.words) for document in documents]
        if pairs:
            first = [list(document.words[: document.boundary]) for document in documents]
            second = [list(document.words[document.boundary :]) for document in documents]
            encoded = self.tokenizer(
                first, second, is_split_into_words=True, truncation="longest_first", max_length=self.pair_tokens
            )
        else:
            encoded = self.tokenizer(words, is_split_into_words=True, verbose=False)
        for index, document in enumerate(documents):
            ids, one = encoded["input_ids"][index], encoded.encodings[index]
            if not pairs and self.max_tokens is not None and len(ids) > self.max_tokens:
                fit = words_that_fit(one.word_ids, self.max_tokens) if self.cut else 0
                if fit == 0:
                    skipped[f"documents longer than {self.max_tokens} tokens"] += 1
                    continue
                skipped[f"documents cut to {self.max_tokens} tokens (the rest is used)"] += 1
                skipped["words behind the cut"] += len(document.words) - fit
                yield from self._align([document.beginning(fit)], skipped, pairs=False)
                continue
            sides = one.sequence_ids
            boundary = document.boundary or 0
            word = [
                -1 if w is None else w + boundary * (side or 0) for w, side in zip(one.word_ids, sides, strict=True)
            ]
            if one.overflowing:
                skipped[f"pairs of segments cut to {self.pair_tokens} tokens (the rest is used)"] += 1
            else:
                self._count_lost_words(document, word, skipped)
            yield Aligned(document, ids, word, one.type_ids)

    @staticmethod
    def _count_lost_words(document: Document, word: list[int], skipped: Counter[str]) -> None:
        lost = set(range(len(document.words))) - set(word)
        if lost:
            skipped["words without a token"] += len(lost)
            skipped["links of a word without a token"] += sum(
                link.source in lost or link.target in lost for link in document.links
            )


def words_that_fit(word: Sequence[int | None], max_tokens: int) -> int:
    """How many words a text that is too long may have, from the word of each of its tokens."""
    of_words = [one for one in word if one is not None]
    room = max_tokens - (len(word) - len(of_words))
    # The first token without room takes its whole word along.
    return of_words[room] if room > 0 else 0
