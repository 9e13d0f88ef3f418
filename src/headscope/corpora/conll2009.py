"""The columns of CoNLL-2009, which headscope does not read; treebank readers refuse such files by name."""

from collections.abc import Sequence

_COLUMNS = (
    "ID", "FORM", "LEMMA", "PLEMMA", "POS", "PPOS", "FEAT", "PFEAT", "HEAD", "PHEAD", "DEPREL", "PDEPREL", "FILLPRED",
    "PRED",
)  # fmt: skip
_HEAD, _PHEAD, _FILLPRED = map(_COLUMNS.index, ("HEAD", "PHEAD", "FILLPRED"))


def recognise(cells: Sequence[str]) -> bool:
    """Return true if a line is of CoNLL-2009: a number as head in column 9 or 10, where CoNLL-U never has one alone."""
    return (
        len(cells) >= len(_COLUMNS)
        and cells[_FILLPRED] in ("_", "Y")
        and (cells[_HEAD].isdigit() or cells[_PHEAD].isdigit())
    )
