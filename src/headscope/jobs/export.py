"""The heads of a table, or of a list of heads, in a file to hand on: our own format, those of others, a model card."""

from pathlib import Path

import xarray as xr

from headscope.errors import HeadscopeError, TableError
from headscope.files import expand_home, write_text
from headscope.headlists import HeadList, alignment_heads, duo_attention, retrieval_heads, write_head_list
from headscope.headlists.formats import FOREIGN, read_heads, render_heads
from headscope.jobs.arguments import check_output_file
from headscope.jobs.tables import find_table, name_source
from headscope.view.head_list import TOP, list_all_heads, list_heads
from headscope.view.model_card import render_model_card

HEADS, MODEL_CARD = "heads", "model-card"

FILES = {
    HEADS: "heads.json",
    duo_attention.NAME: "full_attention_heads.tsv",
    retrieval_heads.NAME: "retrieval_heads.json",
    alignment_heads.NAME: "alignment_heads.json",
    MODEL_CARD: "heads.md",
}
"""The formats in which heads can be exported, and the file of each by default."""

Source = str | Path | xr.Dataset | HeadList
"""What can be exported: the folder of an atlas, a head table or its file, a list of heads or its file."""


def export(
    source: Source, *, out: str | Path | None = None, format: str = "heads", row: str | None = None, top: int = TOP,
    key_value_heads: int | None = None,
) -> HeadList:  # fmt: skip
    """The heads that a source reports, and with ``out`` a file of them.

    Args:
        source: the folder of an atlas, a head table or its file, or a list of heads: ``heads.json``, a ``.tsv`` of
            DuoAttention, the JSON of Retrieval_Head, Whisper's alignment heads, or a list in memory.
        out: the file to write, whole or not at all. Default: none; the list is returned only.
        format: ``heads`` for our own JSON, ``duo-attention``, ``retrieval-heads`` or ``alignment-heads`` for those of
            others, which hold one row, or ``model-card`` for a section in Markdown.
        row: take one row, such as ``obj``. Default: all; of a format that holds one, the only row.
        top: further heads of each row beside the reported one, of a head table. DuoAttention and Retrieval_Head get all
            heads of it, each as scored on all documents.
        key_value_heads: for DuoAttention, the number of key/value heads of a layer, of which each gets the largest
            score of the query heads that share it. Default: those of the model, where query heads share them; otherwise
            each head has a number of its own.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the source, the format, the row or the file.
    """
    check_export(format, top, key_value_heads)
    if out is not None:
        check_output_file(Path(out))
        _refuse_source(source, Path(out))
    heads = _list(source, format, row, top)
    if row is not None or format in FOREIGN:
        heads = heads.select(row)
    if out is not None:
        if format == HEADS:
            write_head_list(heads, out)
        elif format in FOREIGN:
            write_text(render_heads(heads, format, key_value_heads), Path(out))
        else:
            write_text(render_model_card(heads), Path(out))
    elif format in FOREIGN:
        render_heads(heads, format, key_value_heads)
    return heads


def check_export(format: str, top: int, key_value_heads: int | None = None) -> None:
    """Refuse a format that there is not, and numbers of heads that cannot be.

    Raises:
        HeadscopeError: one of these, or key/value heads of a format that has none.
    """
    if format not in FILES:
        raise HeadscopeError(f"heads cannot be exported as {format!r}; name one of {', '.join(FILES)}.")
    if top < 0:
        raise HeadscopeError(f"{top} further heads were asked for; ask for 0 or more, such as 5.")
    if key_value_heads is not None and format != duo_attention.NAME:
        raise HeadscopeError(
            f"the format {format!r} is of query heads; leave out the number of key/value heads, or name duo-attention."
        )


def _refuse_source(source: Source, out: Path) -> None:
    """Refuse to write a file over the one that is read, of which only a part may be exported.

    Raises:
        HeadscopeError: both are the same file.
    """
    if isinstance(source, str | Path) and out.exists() and expand_home(source).resolve() == out.resolve():
        raise HeadscopeError(f"{out} is read, and would be overwritten; name another file with --out.")


def _list(source: Source, format: str, row: str | None, top: int) -> HeadList:
    """The heads of a source; of a table, those that a format needs."""
    if isinstance(source, HeadList):
        return source
    table = source if isinstance(source, xr.Dataset) else find_table(source)
    if table is None:
        assert not isinstance(source, xr.Dataset)
        return read_heads(expand_home(source))
    try:
        if format in FOREIGN and format != alignment_heads.NAME:
            return list_all_heads(table, row)
        return list_heads(table, 0 if format == MODEL_CARD else top)
    except TableError as error:
        sentence = str(error).replace("the head table", name_source(table), 1)
        raise HeadscopeError(sentence) from error
