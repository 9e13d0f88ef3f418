"""A folder of saved attention: the queries, keys and values of each text (`headscope.capture.model.saved_text`)."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from headscope.capture.model.saved_text import SavedText, Settings, open_text
from headscope.corpora.document import Document
from headscope.errors import ModelError
from headscope.files import hash_lines, sha256


@dataclass(frozen=True, eq=False)
class SavedTexts:
    """A folder of texts with saved attention.

    Attributes:
        folder: The name of the folder.
        texts: Each text, by the id of its document.
    """

    folder: str
    texts: Mapping[str, SavedText]

    @classmethod
    def open(cls, folder: Path) -> "SavedTexts":
        """Read the headers of all files of a folder, and check headers and shapes.

        Raises:
            ModelError: A file is damaged or incomplete, or contradicts itself or another file.
        """
        texts: dict[str, SavedText] = {}
        for file in sorted(folder.glob("*.safetensors")):
            name, text = open_text(file)
            if name in texts:
                raise ModelError(f"{texts[name].file} and {file} are both of the text {name!r}; keep one of them.")
            first = next(iter(texts.values()), text)
            if text.settings != first.settings:
                ours, theirs = (vars(each.settings) for each in (text, first))
                what = next(key for key in ours if ours[key] != theirs[key])
                raise ModelError(
                    f"{file} and {first.file} are not of one model: {what} is {ours[what]!r} in one and "
                    f"{theirs[what]!r} in the other; put each model into a folder of its own."
                )
            texts[name] = text
        return cls(str(folder), texts)

    @property
    def settings(self) -> Settings:
        """The settings, which are the same for all texts."""
        return next(iter(self.texts.values())).settings

    @cached_property
    def spellings(self) -> dict[str, int]:
        """The id of each token, by the spelling of the token."""
        spelt = sorted({token for text in self.texts.values() for token in text.tokens})
        return {token: number for number, token in enumerate(spelt)}

    @cached_property
    def first_tokens(self) -> dict[str, int]:
        """The index of the first token of each text among all tokens of the folder, by the id of its document."""
        counts = [len(text.tokens) for text in self.texts.values()]
        return dict(zip(self.texts, accumulate(counts, initial=0), strict=False))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the names and hashes of all files."""
        return hash_lines(f"{text.file.name} {sha256(text.file)}" for text in self.texts.values())

    def check(self, documents: Iterable[Document]) -> None:
        """Raise an error if the saved texts do not match the documents of a corpus.

        Raises:
            ModelError: A text has other words than its document, or no document has a text.
        """
        first, count = "", 0
        for document in documents:
            first = first or document.id
            count += self.find(document) is not None
        if not count:
            name = next(iter(self.texts))
            raise ModelError(
                f"{self.folder} has no text of this corpus: the first of its {len(self.texts):,} texts is {name!r}, "
                f"and the first document is {first!r}; save each text under the id of its document."
            )

    def find(self, document: Document) -> SavedText | None:
        """Find the saved text with the id of a document; None if there is none.

        The text may be longer than the document, if it begins with the words of the document.

        Raises:
            ModelError: The text has other words than the document.
        """
        text = self.texts.get(document.id)
        if text is None or text.words[: len(document.words)] == tuple(document.words):
            return text
        pairs = zip(document.words, (*text.words, *[None] * len(document.words)), strict=False)
        place, (ours, theirs) = next((n, pair) for n, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
        there = "is not there" if theirs is None else f"is {theirs!r} there"
        raise ModelError(
            f"{text.file} was saved for another text than {document.id!r}: word {place} {there} and {ours!r} in the "
            "corpus; give the corpus whose texts were saved."
        )

    def locate(self, places: Sequence[int]) -> tuple[SavedText, list[int]]:
        """Find the text that a row of tokens belongs to; return the text, and the indices of the tokens in it.

        Args:
            places: The indices of the tokens among all tokens of the folder. -1 is padding, and is left out; the first
                index is not padding.
        """
        number = bisect_right(self._starts, places[0]) - 1
        return self._in_order[number], [place - self._starts[number] for place in places if place >= 0]

    @cached_property
    def _starts(self) -> list[int]:
        return [*self.first_tokens.values()]

    @cached_property
    def _in_order(self) -> list[SavedText]:
        return [*self.texts.values()]
