"""A class of words: a list of them, or a function that finds them in a document."""

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
        name: what the table calls it.
        words: these words, in any mixture of upper and lower case; or a function that gives the indices of the words
            of a document, from 0. It must give the same for the same document.

    Raises:
        HeadscopeError: there are no words.
    """

    name: str
    words: Sequence[str] | Callable[[Document], Iterable[int]]

    def __post_init__(self) -> None:
        """Refuse a word in place of words; take any sequence of them."""
        if callable(self.words):
            return
        if isinstance(self.words, str) or not isinstance(self.words, Iterable) or not tuple(self.words):
            raise HeadscopeError(
                f"the class {self.name!r} has {self.words!r} for words; give a list of at least one, or a function "
                "from a document to the indices of its words."
            )
        object.__setattr__(self, "words", tuple(self.words))

    def __repr__(self) -> str:
        """The name and the words; a function by its name, since its address is another in every run."""
        words = self.words
        if callable(words):
            return f"WordClass(name={self.name!r}, words={name_function(words)})"
        return f"WordClass(name={self.name!r}, words={words!r})"

    def find(self, document: Document) -> list[int]:
        """Return the indices of its words in a document, in order; of units those that have one of its words.

        Raises:
            HeadscopeError: the function gives something else, or an index outside of the document.
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
    """The name of a function and its module; of an object that can be called, those of its class."""
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
