"""The export of heads from a table or a list, in headscope's format, in other tools' formats, or as a model card."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from headscope.commands.export.request import HEADS, MODEL_CARD, Export
from headscope.commands.progress import Progress
from headscope.commands.tables import find_table, name_source
from headscope.errors import HeadscopeError, TableError
from headscope.files import expand_home, write_text
from headscope.headlists import HeadList, alignment_heads, write_head_list
from headscope.headlists.list_formats import FOREIGN, read_heads, render_heads
from headscope.own_files import refuse_foreign
from headscope.view.listed_heads import list_all_heads, list_heads
from headscope.view.model_card import render_model_card


def run(request: Export, progress: Progress) -> HeadList:
    """List the heads that a source reports, and write them to a file if one is named."""
    format, out = request.format, request.file
    heads = _list(request)
    if request.row is not None or format in FOREIGN:
        heads = heads.select(request.row)
    text = render_heads(heads, format, request.key_value_heads) if format in FOREIGN else None
    if out is not None:
        refuse_foreign(out, text)
        if format == HEADS:
            write_head_list(heads, out)
        else:
            write_text(text or render_model_card(heads), out)
    return heads


def _list(request: Export) -> HeadList:
    """Return the heads of a source; for a table, select the heads that the format needs."""
    source, format = request.source, request.format
    if isinstance(source, HeadList):
        return source
    table = find_table(source)
    if table is None:
        if not isinstance(source, str | Path):
            raise HeadscopeError(
                f"`source` is of type {type(source).__name__}; give an atlas, a head table or a list of heads."
            )
        return read_heads(expand_home(source))
    try:
        if format in FOREIGN and format != alignment_heads.NAME:
            return list_all_heads(table, request.row)
        return list_heads(table, 0 if format == MODEL_CARD else request.top)
    except TableError as error:
        sentence = str(error).replace("the head table", name_source(table), 1)
        raise HeadscopeError(sentence) from error


def show(request: Export, heads: HeadList, console: Console) -> None:
    """Print the name of the file, and the numbers of heads and rows in it."""
    rows, count = len(heads.keys), len(heads.entries)
    written = f"{count} heads of {rows} row{'' if rows == 1 else 's'}"
    console.print(f"Wrote {escape(str(request.file))}: {written}.", soft_wrap=True, highlight=False)
