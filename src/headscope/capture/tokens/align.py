"""Words <-> tokens, for any fast tokenizer."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, pairwise

from transformers import PreTrainedTokenizerFast

from headscope.capture.model.model import Model
from headscope.capture.model.saved import SavedTexts
from headscope.capture.tokens.assign import SPECIAL, Assigned, assign_sides, find_lead
from headscope.capture.tokens.chat import write_conversation
from headscope.corpora.document import Document
from headscope.corpora.units import unite_words
from headscope.corpora.written_text import WrittenText, join_words
from headscope.errors import HeadscopeError
from headscope.text_forms import GIVEN, SPACED, WRITTEN

PAIR_TOKENS = 128
"""The number of tokens to which pairs of segments are cut (Clark et al. 2019, section 3)."""

TOO_LONG, CUT_DOCUMENTS, CUT_PAIRS = "documents longer than", "documents cut to", "pairs of segments cut to"
DROPPED = "documents with characters that the tokenizer drops"
TRANSLATION_DROPPED = "documents whose translation has characters that the tokenizer drops"
TRANSLATION_TOO_LONG, CUT_TRANSLATIONS = "documents with translations longer than", "translations cut to"
BEHIND_CUT = "words after the cut"
"""The beginnings of the reasons for which a text, or its end, is left out."""


@dataclass(frozen=True, slots=True)
class TranslationTokens:
    """The translation of a document as tokens.

    Attributes:
        ids: The vocabulary ids, special tokens included.
        word: The word that each token is part of; -1 for special tokens. The numbers of the translation's words follow
            those of the document's words, so that the two are not confused.
    """

    ids: list[int]
    word: list[int]


@dataclass(frozen=True, slots=True)
class Aligned:
    """A document as tokens.

    Attributes:
        document: The document; its words are units if words share tokens.
        ids: The vocabulary ids, special tokens included.
        word: The word that each token is part of; -1 for special tokens, -2 for text outside words, such as white
            space.
        segment: 0 for the first segment of a pair, and 1 for the second.
        translation: The translation, which a decoder reads in place of the text. It is None if the model is not an
            encoder-decoder, or the document has no translation.
        places: The indices of the tokens among all tokens with saved attention; None if a model computes attention.
    """

    document: Document
    ids: list[int]
    word: list[int]
    segment: list[int]
    translation: TranslationTokens | None = None
    places: list[int] | None = None

    @property
    def length(self) -> int:
        """The number of tokens on the longer side, encoder or decoder, without a start token."""
        return max(len(self.ids), 0 if self.translation is None else len(self.translation.ids))


@dataclass(frozen=True)
class Alignment:
    """The settings for turning documents into tokens.

    Attributes:
        tokenizer: The tokenizer; it reads each text as one string.
        max_tokens: The most tokens of a single text; a longer text is skipped or cut, and counted.
        cut: Cut longer texts after the last word that fits.
        pair_tokens: The most tokens of a pair of segments; a longer pair is cut, the longer side first.
        text: `WRITTEN` or `SPACED`; for saved tokens `GIVEN`.
        reads_translation: Also align translations; otherwise they are ignored.
        saved: The texts whose tokens another engine saved; these tokens are used unchanged.
        first: The id of the token before a text, in place of the tokenizer's own; None for the tokenizer's own.
    """

    tokenizer: PreTrainedTokenizerFast
    max_tokens: int | None
    cut: bool
    pair_tokens: int
    text: str = WRITTEN
    reads_translation: bool = False
    saved: SavedTexts | None = None
    first: int | None = None

    def __post_init__(self) -> None:
        """Raise an error for an unknown form of texts."""
        if self.saved is None:
            check_text(self.text)

    @classmethod
    def for_model(
        cls,
        model: Model,
        *,
        max_tokens: int | None = None,
        cut: bool = False,
        pair_tokens: int = PAIR_TOKENS,
        text: str = WRITTEN,
        first: int | None = None,
    ) -> "Alignment":
        """Make the alignment for `model`; `max_tokens`, which includes the token `first`, can only lower its limit."""
        limits = [limit - (first is not None) for limit in (model.max_tokens, max_tokens) if limit is not None]
        longest = min(limits, default=None)
        pairs, translates = min([pair_tokens, *limits]), model.start_id is not None
        text = text if model.saved is None else GIVEN
        return cls(model.tokenizer, longest, cut, pairs, text, translates, model.saved, first)

    def align(self, documents: Sequence[Document]) -> tuple[list[Aligned], Counter[str]]:
        """Turn documents into tokens; return the documents that the model can read, and counts of what is left out.

        Nothing is guessed: a word without a token is counted, with the links that it loses. A text is left out if the
        tokenizer drops visible characters of it.
        """
        aligned: list[Aligned] = []
        readable = [document for document in documents if document.words]
        skipped = Counter({"documents without words": len(documents) - len(readable)})
        if self.saved is not None:
            for text, losses in (self._take_saved(self.saved, document) for document in readable):
                aligned += [] if text is None else [text]
                skipped += losses
            return aligned, +skipped
        written = [document for document in readable if not document.random_tokens and not document.messages]
        parts: list[Iterable[tuple[Aligned | None, Counter[str]]]] = [
            map(self._look_up, (document for document in readable if document.random_tokens)),
            map(self._align_conversation, (document for document in readable if document.messages)),
        ]
        for pairs in (False, True):
            chosen = [document for document in written if (document.boundary is not None) == pairs]
            parts += [self._align(chosen, pairs=pairs)] if chosen else []
        for tokens, losses in chain.from_iterable(parts):
            skipped += losses
            aligned += [] if tokens is None else [tokens]
        if self.first is not None:
            aligned = [begin_text(each, self.first) for each in aligned]
        if self.reads_translation:
            aligned, losses = self._align_translations(aligned)
            skipped += losses
        return aligned, +skipped

    def _align(self, documents: list[Document], *, pairs: bool) -> Iterator[tuple[Aligned | None, Counter[str]]]:
        """Yield each document as tokens (None if it is left out), and the counts of what is left out, by reason."""
        sides = [self._divide(document) for document in documents]
        columns = [[side.content for side in column] for column in zip(*sides, strict=True)]
        cut = {"truncation": "longest_first", "max_length": self.pair_tokens} if pairs else {}
        encoded = self.tokenizer(*columns, **cut, verbose=False)
        for document, texts, ids, encoding in zip(
            documents, sides, encoded["input_ids"], encoded.encodings, strict=True
        ):
            assigned = assign_sides(self.tokenizer, texts, encoding)
            if assigned.dropped:
                yield None, Counter({DROPPED: 1})
                continue
            if not pairs and self.max_tokens is not None and len(ids) > self.max_tokens:
                yield self._shorten(
                    document, assigned, self.max_tokens, lambda short: next(self._align([short], pairs=False))
                )
                continue
            united, losses = unite_words(document, assigned.units, texts)
            if encoding.overflowing:
                losses[f"{CUT_PAIRS} {self.pair_tokens} tokens (the rest is used)"] += 1
            else:
                losses += _count_lost_words(united, assigned.tokens)
            yield Aligned(united, ids, assigned.tokens, encoding.type_ids), losses

    def _divide(self, document: Document) -> list[WrittenText]:
        """Return the text of a document for the tokenizer, or the two texts of a pair of segments."""
        words, boundary = document.words, document.boundary
        edges = [0, len(words)] if boundary is None else [0, boundary, len(words)]
        if self.text == WRITTEN:
            return [document.text] if boundary is None else [document.text.cut(*edge) for edge in pairwise(edges)]
        return [join_words(words[first:end], before=self._lead) for first, end in pairwise(edges)]

    @cached_property
    def _lead(self) -> str:
        return find_lead(self.tokenizer)

    def _align_conversation(self, document: Document) -> tuple[Aligned | None, Counter[str]]:
        """Return a conversation in the chat template as tokens (None if left out), and counts of what is left out.

        The template writes its own special tokens. For a document that was cut, it writes all messages, and the tokens
        end with the last word of the document; so do the tokens of a document that is cut here.
        """
        conversation = write_conversation(self.tokenizer, document)
        if isinstance(conversation, str):
            return None, Counter({conversation: 1})
        encoding = self.tokenizer(conversation.text.content, add_special_tokens=False, verbose=False).encodings[0]
        whole, words = assign_sides(self.tokenizer, [conversation.text], encoding), len(document.words)
        if whole.dropped:
            return None, Counter({DROPPED: 1})
        end = len(whole.tokens)
        is_long = self.max_tokens is not None and end > self.max_tokens
        if words < len(whole.units) or (is_long and self.cut):
            last = whole.units[words - 1]
            end = max((place for place, unit in enumerate(whole.tokens, start=1) if 0 <= unit <= last), default=1)
        assigned = Assigned(whole.units[:words], whole.tokens[:end])
        if self.max_tokens is not None and end > self.max_tokens:
            return self._shorten(document, assigned, self.max_tokens, self._align_conversation)
        marked = conversation.mark_template(assigned, encoding.offsets[:end])
        united, losses = unite_words(document, marked.units, [conversation.text.truncate(words)])
        losses += _count_lost_words(united, marked.tokens)
        if words == len(whole.units) and end < len(whole.tokens):
            losses[f"{CUT_DOCUMENTS} {self.max_tokens} tokens (the rest is used)"] += 1
        return Aligned(united, encoding.ids[:end], marked.tokens, [0] * end), losses

    def _align_translations(self, aligned: Sequence[Aligned]) -> tuple[list[Aligned], Counter[str]]:
        """Return documents with the tokens of their translations, and the counts of what is left out, by reason.

        Documents with translations that are too long are left out. If documents are cut, a translation is cut too,
        after the last word that fits.
        """
        words = [text.document.translation for text in aligned if text.document.translation]
        if not words:
            return list(aligned), Counter()
        read, kept, skipped = iter(self._read_targets(words)), [], Counter[str]()
        for text in aligned:
            if not (translation := text.document.translation):
                kept.append(text)
                continue
            ids, assigned = next(read)
            if assigned.dropped:
                skipped[TRANSLATION_DROPPED] += 1
                continue
            if self.max_tokens is not None and len(ids) > self.max_tokens:
                fit = words_that_fit(assigned, self.max_tokens) if self.cut else 0
                if fit == 0:
                    skipped[f"{TRANSLATION_TOO_LONG} {self.max_tokens} tokens"] += 1
                    continue
                skipped[f"{CUT_TRANSLATIONS} {self.max_tokens} tokens (the rest is used)"] += 1
                translation = translation[:fit]
                ((ids, assigned),) = self._read_targets([translation])
            first = len(text.document.words)
            word = [number if number < 0 else first + number for number in assigned.tokens]
            if lost := len(translation) - len({number for number in word if number >= 0}):
                skipped["words of translations without a token"] += lost
            kept.append(replace(text, translation=TranslationTokens(ids, word)))
        return kept, skipped

    def _read_targets(self, translations: Sequence[Sequence[str]]) -> Iterator[tuple[list[int], Assigned]]:
        """Yield the token ids of each translation, which is a list of words, and the word of each token."""
        texts = [join_words(words, before=self._lead) for words in translations]
        # They are read as targets, since a multilingual tokenizer adds another special token to targets.
        encoded = self.tokenizer(text_target=[text.content for text in texts], verbose=False)
        for text, ids, encoding in zip(texts, encoded["input_ids"], encoded.encodings, strict=True):
            yield ids, assign_sides(self.tokenizer, [text], encoding)

    def _look_up(self, document: Document) -> tuple[Aligned | None, Counter[str]]:
        """Return random tokens between special tokens (None if they are too long), and counts of what is left out.

        The tokens are used as ids: spelt out and read again, most would change. If the tokenizer puts no special token
        before a text, its token for the beginning is put there, if it has one (Olsson et al. 2022).
        """
        before, after, ordinary = self._vocabulary
        ids = [*before, *(ordinary[int(place * len(ordinary))] for place in document.random_tokens), *after]
        if self.max_tokens is not None and len(ids) > self.max_tokens:
            return None, Counter({f"{TOO_LONG} {self.max_tokens} tokens": 1})
        word = [*(SPECIAL for _ in before), *range(len(document.words)), *(SPECIAL for _ in after)]
        return Aligned(document, ids, word, [0] * len(ids)), Counter()

    def _take_saved(self, saved: SavedTexts, document: Document) -> tuple[Aligned | None, Counter[str]]:
        """Return the saved tokens of a document (None if it is left out), and the counts of what is left out.

        Tokens of words after the end of the document are left out.
        """
        text = saved.find(document)
        if text is None:
            return None, Counter({"documents without saved attention": 1})
        own = [place for place, word in enumerate(text.word) if word < len(document.words)]
        word = [text.word[place] for place in own]
        if not any(number >= 0 for number in word):
            return None, Counter({"documents without a token": 1})
        if self.max_tokens is not None and len(own) > self.max_tokens:
            of_text = Assigned([*range(len(document.words))], word)
            return self._shorten(document, of_text, self.max_tokens, partial(self._take_saved, saved))
        ids, first = [saved.spellings[text.tokens[place]] for place in own], saved.first_tokens[document.id]
        places = [first + place for place in own]
        return Aligned(document, ids, word, [0] * len(ids), places=places), _count_lost_words(document, word)

    @cached_property
    def _vocabulary(self) -> tuple[list[int], list[int], list[int]]:
        """The ids of the special tokens before a text, of those after it, and of all tokens that are not special."""
        encoded = self.tokenizer("a")
        places = [place for place, side in enumerate(encoded.encodings[0].sequence_ids) if side is not None]
        ids = encoded["input_ids"]
        before, after = ids[: places[0]], ids[places[-1] + 1 :]
        if not before and self.tokenizer.bos_token_id is not None:
            before = [self.tokenizer.bos_token_id]
        special = {*self.tokenizer.all_special_ids}
        return before, after, [token for token in range(self.tokenizer.vocab_size) if token not in special]

    def _shorten(
        self,
        document: Document,
        assigned: Assigned,
        max_tokens: int,
        read: Callable[[Document], tuple[Aligned | None, Counter[str]]],
    ) -> tuple[Aligned | None, Counter[str]]:
        """Return the beginning of a document that is too long, as `read` aligns it, and counts of what is left out.

        It is None if documents are not cut, or if no word fits.
        """
        fit = words_that_fit(assigned, max_tokens) if self.cut else 0
        if fit == 0:
            return None, Counter({f"{TOO_LONG} {max_tokens} tokens": 1})
        losses = Counter({f"{CUT_DOCUMENTS} {max_tokens} tokens (the rest is used)": 1})
        losses[BEHIND_CUT] = len(document.words) - fit
        aligned, losses_inside = read(document.truncate(fit))
        return aligned, losses + losses_inside


def check_text(text: str) -> None:
    """Raise an error for an unknown form of texts.

    Raises:
        HeadscopeError: `text` is neither `WRITTEN` nor `SPACED`.
    """
    if text not in (WRITTEN, SPACED):
        raise HeadscopeError(f"texts were to be read as {text!r}; give {WRITTEN!r} or {SPACED!r}.")


def _count_lost_words(document: Document, word: list[int]) -> Counter[str]:
    lost = set(range(len(document.words))) - set(word)
    if not lost:
        return Counter()
    links = sum(link.source in lost or link.target in lost for link in document.links)
    return Counter({"words without a token": len(lost), "links of a word without a token": links})


def words_that_fit(assigned: Assigned, max_tokens: int) -> int:
    """Count the words of a longer text that fit into a limit of tokens, without dividing a unit."""
    of_text = [unit for unit in assigned.tokens if unit != SPECIAL]
    room = max_tokens - (len(assigned.tokens) - len(of_text))
    if room <= 0:
        return 0
    # The first word token beyond the limit excludes its whole unit; if there is none, the last unit is excluded.
    last = next((unit for unit in of_text[room:] if unit >= 0), assigned.units[-1])
    return bisect_left(assigned.units, last)


def begin_text(text: Aligned, first: int) -> Aligned:
    """Return a text with the token `first` before it, in place of the special tokens that the tokenizer put there.

    A chat template is not replaced, but begins after `first`.
    """
    front = 0 if text.document.messages else find_front(text)
    return replace(
        text, ids=[first, *text.ids[front:]], word=[SPECIAL, *text.word[front:]], segment=[0, *text.segment[front:]]
    )


def find_front(text: Aligned) -> int:
    """Count the special tokens before a text."""
    return next((place for place, word in enumerate(text.word) if word != SPECIAL), len(text.word))


def is_cut(skipped: Mapping[str, int]) -> bool:
    """Return whether the end of a text was cut, by the counts of what `Alignment.align` left out."""
    return any(reason.startswith((CUT_DOCUMENTS, CUT_PAIRS, CUT_TRANSLATIONS)) for reason in skipped)


def explain_cut(skipped: Mapping[str, int]) -> str:
    """Return a sentence on how much of a text `Alignment.align` cut, from its counts; empty if nothing was cut."""
    if words := skipped.get(BEHIND_CUT, 0):
        return f"The text is too long: its last {words:,} word{'s are' if words > 1 else ' is'} left out."
    return "The text is too long: its end is left out." if is_cut(skipped) else ""


def explain_unread(name: str, skipped: Mapping[str, int]) -> str:
    """Return a sentence on why the model `name` cannot read a text, from the counts of `Alignment.align`."""
    if DROPPED in skipped:
        return f"the tokenizer of {name} drops characters of this text; type one without them."
    if any(reason.startswith(TOO_LONG) for reason in skipped):
        return "the first word of this text has more tokens than the model reads here; put spaces between its words."
    return f"{name} has no tokens for this text; type another."


def spell_token(tokenizer: PreTrainedTokenizerFast, token: int) -> str:
    """Return the readable spelling of a token; if it is blank or a part of a letter, the vocabulary's spelling."""
    piece = str(tokenizer.convert_ids_to_tokens(token))
    text = str(tokenizer.convert_tokens_to_string([piece]))
    return piece if not text.strip() or "\ufffd" in text else text
