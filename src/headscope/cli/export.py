"""`headscope export`: heads in a file to hand on."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli.options import MEASURED, OUTPUT, argument, option
from headscope.cli.terminal import console


def export(
    source: Annotated[
        Path,
        argument("SOURCE", "Folder of an atlas, head table such as heads.nc, or list of heads: heads.json, a .tsv of "
                 "DuoAttention, the JSON of Retrieval_Head, or Whisper's generation_config.json."),
    ],
    format: Annotated[
        str,
        option(OUTPUT, "Format to write, such as model-card (Markdown); also heads (JSON of headscope), duo-attention "
               "(TSV), retrieval-heads (JSON) and alignment-heads (JSON of Whisper). Default: heads.", "--as",
               metavar="FORMAT"),
    ] = "heads",
    row: Annotated[
        str | None,
        option(MEASURED, "Take one row, such as obj, or relation_accuracy:obj where several scores have it; the "
               "formats of others hold one. Default: all rows.", metavar="ROW"),
    ] = None,
    top: Annotated[
        int,
        option(MEASURED, "Further heads of each row beside the reported one, such as 11; duo-attention and "
               "retrieval-heads get all heads. Default: 5.", metavar="N", min=0),
    ] = 5,
    key_value_heads: Annotated[
        int | None,
        option(MEASURED, "For duo-attention: number of key/value heads of a layer, such as 8, of which each gets the "
               "largest score of its query heads. Default: those of the model, if query heads share them.",
               metavar="N", min=1),
    ] = None,
    out: Annotated[
        Path | None,
        option(OUTPUT, "File to write, such as heads.json. Default: heads.json, full_attention_heads.tsv, "
               "retrieval_heads.json, alignment_heads.json or heads.md, as the format has it.", "--out", "-o",
               metavar="FILE"),
    ] = None,
) -> None:  # fmt: skip
    """Write the reported heads with their scores and intervals to a file, as a list to hand on.

    A list of other tools is read and written too. Such a file holds the heads of one row, and no intervals.
    """
    from headscope.jobs.arguments import check_output_file
    from headscope.jobs.export import FILES, check_export
    from headscope.jobs.export import export as run

    check_export(format, top, key_value_heads)
    path = out or Path(FILES[format])
    check_output_file(path)
    heads = run(source, out=path, format=format, row=row, top=top, key_value_heads=key_value_heads)
    rows, count = len(heads.keys), len(heads.entries)
    written = f"{count} heads of {rows} row{'' if rows == 1 else 's'}"
    console.print(f"Wrote {escape(str(path))}: {written}.", soft_wrap=True, highlight=False)
