"""The minimal pairs of a whole file or folder, or of some of its paradigms."""

from collections.abc import Collection
from pathlib import Path

from headscope.corpora.blimp import MinimalPair, read_pairs
from headscope.corpora.corpus import read
from headscope.errors import CorpusError, quote


def read_minimal_pairs(path: str | Path, *, paradigms: Collection[str] | None = None) -> list[MinimalPair]:
    """Return the minimal pairs in a file or folder, in the order of the files and of their lines.

    In a folder, files without minimal pairs are left out, such as BLiMP's ``models_summary.jsonl``;
    ``read(path, format="blimp").ignored`` lists them.

    Args:
        path: a file in the format ``blimp``, or a folder, which is searched with all its subfolders.
        paradigms: the paradigms to read. Default: all.

    Raises:
        CorpusError: the file or folder does not exist, it holds no minimal pair or none of a named paradigm, two
            files hold the same pair, or a line is malformed (`headscope.corpora.blimp.read_pairs`).
    """
    pairs: dict[str, MinimalPair] = {}
    files: dict[str, Path] = {}
    for file in read(path, format="blimp").files:
        for pair in read_pairs(file):
            if pair.id in pairs:
                raise CorpusError(
                    f"{file} has the pair {quote(pair.id)}, as {files[pair.id]} has; it would count twice: leave one "
                    "of the two files out."
                )
            pairs[pair.id], files[pair.id] = pair, file
    known = dict.fromkeys(pair.paradigm for pair in pairs.values())
    wanted = known if paradigms is None else paradigms
    if missing := [paradigm for paradigm in wanted if paradigm not in known]:
        raise CorpusError(
            f"{str(path)!r} has no paradigm {quote(missing[0])}; there are {', '.join(known)}: name one of them."
        )
    return [pair for pair in pairs.values() if pair.paradigm in wanted]
