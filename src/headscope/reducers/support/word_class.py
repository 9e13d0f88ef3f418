"""A class of words: a list of words, or a function that finds the words in a document."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.corpora.document import Document
from headscope.errors import HeadscopeError


@dataclass(frozen=True, repr=False)
class WordClass:
    """Words whose tokens are counted together.

    Attributes:
        name: The name of the class in the table.
        words: These words, in any mixture of upper and lower case; or a function that returns the indices of the words
            of a document, from 0. It must return the same for the same document.

    Raises:
        HeadscopeError: `words` is empty, a string, or neither a function nor iterable.
    """

    name: str
    words: Sequence[str] | Callable[[Document], Iterable[int]]

    def __post_init__(self) -> None:
        """Raise an error if `words` is empty, a string or not iterable; store words as a tuple. A function is kept."""
        if callable(self.words):
            return
        if isinstance(self.words, str) or not isinstance(self.words, Iterable) or not tuple(self.words):
            raise HeadscopeError(
                f"the class {self.name!r} has {self.words!r} for words; give a list of at least one, or a function "
                "from a document to the indices of its words."
            )
        object.__setattr__(self, "words", tuple(self.words))

    def __repr__(self) -> str:
        """Return the name and the words; a function by its name, since its address differs in every run."""
        words = self.words
        if callable(words):
            return f"WordClass(name={self.name!r}, words={name_function(words)})"
        return f"WordClass(name={self.name!r}, words={words!r})"

    def find(self, document: Document) -> list[int]:
        """Return the sorted indices of the words of a document (or of their units) that belong to the class.

        Raises:
            HeadscopeError: The function returns something else, or an index outside of the document.
        """
        units = document.unit_numbers
        return sorted({units[word] for word in self._find_words(document.original)})

    def _find_words(self, document: Document) -> list[int]:
        if not callable(self.words):
            wanted = {word.casefold() for word in self.words}
            return [index for index, word in enumerate(document.words) if word.casefold() in wanted]
        indices: Any = self.words(document)
        if not isinstance(indices, Iterable):
            raise self._refusal(document, repr(indices))
        for index in (indices := list(indices)):
            if not isinstance(index, int | np.integer) or isinstance(index, bool):
                raise self._refusal(document, repr(indices))
            if not 0 <= index < len(document.words):
                raise HeadscopeError(
                    f"the function of the class {self.name!r} gave the word {index} of the document {document.id!r}, "
                    f"which has {len(document.words)} words; return indices from 0 to {len(document.words) - 1}."
                )
        return [int(index) for index in indices]

    def _refusal(self, document: Document, shown: str) -> HeadscopeError:
        return HeadscopeError(
            f"the function of the class {self.name!r} gave {shown} for the document {document.id!r}; return the "
            "indices of words, such as [0, 4], or [] for none."
        )


def name_function(function: Callable[..., Any]) -> str:
    """Return the module and the name of a function; for another callable object, of its class."""
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
