"""The request of `headscope export`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from headscope.commands.function import make_function
from headscope.commands.option import MEASURED, OUTPUT, argument, option, output_file
from headscope.commands.progress import Progress
from headscope.commands.record import Request
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.headlists import HeadList
else:
    HeadList = "HeadList"  # a request imports nothing that takes time

ExportFormat: TypeAlias = Literal["heads", "duo-attention", "retrieval-heads", "alignment-heads", "model-card"]
HEADS: ExportFormat = "heads"
DUO_ATTENTION: ExportFormat = "duo-attention"
MODEL_CARD: ExportFormat = "model-card"

FILES: Mapping[ExportFormat, str] = {
    HEADS: "heads.json",
    DUO_ATTENTION: "full_attention_heads.tsv",
    "retrieval-heads": "retrieval_heads.json",
    "alignment-heads": "alignment_heads.json",
    MODEL_CARD: "heads.md",
}
"""The formats in which heads can be exported, and the default file name of each format."""


class Export(Request[HeadList], function="export", loading=""):
    """Write the reported heads with their scores and intervals to a file, as a list to hand on.

    A list of other tools is read and written too. Such a file holds the heads of one row, and no intervals.

    Returns:
        The heads that the file holds.
    """

    usage = (
        "headscope export atlas -o heads.json",
        "headscope export atlas --as model-card -o heads.md",
        "headscope export atlas --as duo-attention --row obj -o full_attention_heads.tsv",
    )
    example = ('heads = headscope.export("atlas", out="heads.json")', "heads.entries[0]")
    source: "str | Path | xr.Dataset | HeadList" = argument(
        "SOURCE",
        "Folder of an atlas, head table such as heads.nc, or list of heads: heads.json, a .tsv of DuoAttention, the "
        "JSON of Retrieval_Head, or Whisper's generation_config.json.",
        kw_only=False,
        typed=Path,
        python="Or a head table or a list of heads in memory.",
    )
    out: str | Path | None = output_file("heads.json", default=None)
    format: ExportFormat = option(
        OUTPUT,
        "Format to write, such as model-card (Markdown); also heads (JSON of headscope), duo-attention (TSV), "
        "retrieval-heads (JSON) and alignment-heads (JSON of Whisper).",
        "--as",
        default=HEADS,
        metavar="FORMAT",
        basic=True,
    )
    row: str | None = option(
        MEASURED,
        "Take one row, such as obj, or relation_accuracy:obj where several scores have it; the formats of others hold "
        "one.",
        default=None,
        unset="all rows",
        metavar="ROW",
        basic=True,
    )
    top: int = option(
        MEASURED,
        "Further heads of each row besides the reported one, such as 11; duo-attention and retrieval-heads get all "
        "heads, each as scored on all documents.",
        default=5,
        at_least=0,
        basic=True,
    )
    key_value_heads: int | None = option(
        MEASURED,
        "For duo-attention: number of key/value heads of a layer, such as 8, of which each gets the largest score of "
        "its query heads.",
        default=None,
        unset="those of the model, if query heads share them",
        at_least=1,
    )

    @property
    def file(self) -> Path | None:
        """The file to write; None if no file is named."""
        return None if self.out is None else Path(self.out)

    def check(self, progress: Progress) -> None:
        """Raise an error for an option that the format does not have, or for a file that cannot be written.

        Raises:
            HeadscopeError: `key_value_heads` is given for a format of query heads; the file cannot be written to; or
                the file is the one that is read, and would be overwritten.
        """
        from headscope.files import expand_home, writable

        if self.key_value_heads is not None and self.format != DUO_ATTENTION:
            raise HeadscopeError(
                f"the format {self.format!r} is of query heads; leave out `key_value_heads`, or name {DUO_ATTENTION}."
            )
        out, source = self.file, self.source
        if out is None:
            return
        writable(out)
        if isinstance(source, str | Path) and out.exists() and expand_home(source).resolve() == out.resolve():
            raise HeadscopeError(f"{out} is read, and would be overwritten; name another file as `out`.")


class TypedExport(Export, command="export", loading=""):
    """The file is written even if it is not named."""

    out: str | Path | None = output_file(
        "heads.json",
        default=None,
        unset="heads.json, full_attention_heads.tsv, retrieval_heads.json, alignment_heads.json or heads.md, as the "
        "format has it",
    )

    @property
    def file(self) -> Path:
        """The file to write; by default, a name that depends on the format."""
        return Path(FILES[self.format] if self.out is None else self.out)


export = make_function(Export)
