"""Dependencies in the format of attention-analysis (Clark et al. 2019): a word a line, with head and relation.

An empty line ends a sentence. The words are counted from 1, and the root has the head 0::

    the 2-det
    dog 3-nsubj
    saw 0-root
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from headscope.corpora.document import Document, Link
from headscope.corpora.text import read_blocks
from headscope.corpora.trees import find_fault
from headscope.errors import CorpusError, quote

EXAMPLE = "'dog 3-nsubj'"

_RECOGNISED = 3
"""The number of lines that are checked. No plain text begins with three lines of this form."""


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """Yield the sentences of one file, with a dependency link for each word that is not a root.

    The file does not say which sentences are of one text, nor how the text was written.

    Raises:
        CorpusError: a line is not a word with its head and relation, a head is not another word of the sentence, or the
            file holds no sentence or is not UTF-8.
    """
    prefix, empty = name or path.name, True
    for block in read_blocks(path, blank=None):
        empty = False
        words, heads, links = [], [], []
        for i, (number, line) in enumerate(block):
            word, head, label = _parse_line(f"{path}:{number}", line)
            if head == i + 1 or head > len(block):
                raise CorpusError(
                    f"{path}:{number} gives word {i + 1} of {len(block)} the head {head}; a head is 0 for the root or "
                    f"the number of another word of the sentence, counted from 1: correct it."
                )
            words.append(word)
            heads.append(head)
            if head:
                links.append(Link(i, head - 1, label))
        identity = f"{prefix}:{block[0][0]}"
        faults = tuple(filter(None, [find_fault(heads)]))
        yield Document(identity, tuple(words), tuple(links), group=identity, tree_faults=faults)
    if empty:
        raise CorpusError(f"{path} has no sentence; expected a word a line, such as {EXAMPLE}: check that it is whole.")


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether each of the first two or three nonempty lines is a word with its head and its relation."""
    first = [*islice(filter(str.strip, beginning), _RECOGNISED)]
    return len(first) > 1 and all(map(_match, first))


def _match(line: str) -> re.Match[str] | None:
    return re.fullmatch(r"\s*(\S+)\s+([0-9]{1,9})-(\S+)\s*", line)


def _parse_line(where: str, line: str) -> tuple[str, int, str]:
    """Return the word of a line, its head and its relation."""
    if (match := _match(line)) is None:
        raise CorpusError(
            f"{where} has {quote(line.strip())}; expected a word, a space, and its head and relation with - between "
            f"them, as in {EXAMPLE}: correct the line."
        )
    return match[1], int(match[2]), match[3]
