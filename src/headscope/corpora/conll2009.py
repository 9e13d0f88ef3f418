"""The columns of CoNLL-2009, a format that headscope does not read; readers of treebanks name it in their error."""

from collections.abc import Sequence

_COLUMNS = (
    "ID", "FORM", "LEMMA", "PLEMMA", "POS", "PPOS", "FEAT", "PFEAT", "HEAD", "PHEAD", "DEPREL", "PDEPREL", "FILLPRED",
    "PRED",
)  # fmt: skip
_HEAD, _PHEAD, _FILLPRED = map(_COLUMNS.index, ("HEAD", "PHEAD", "FILLPRED"))


def recognise(cells: Sequence[str]) -> bool:
    """Return whether the cells of a line are CoNLL-2009: 14 or more, with a head as a number in column 9 or 10.

    CoNLL-U has no number in these columns.
    """
    return (
        len(cells) >= len(_COLUMNS)
        and cells[_FILLPRED] in ("_", "Y")
        and (cells[_HEAD].isdigit() or cells[_PHEAD].isdigit())
    )
