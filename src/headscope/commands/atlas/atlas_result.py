"""The results of an atlas. This module needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.capture.passes.views import VIEWS
from headscope.commands.output import FIGURES, Contents
from headscope.errors import TableError
from headscope.results import Facts, write_line, write_table

if TYPE_CHECKING:
    import xarray as xr

    from headscope.capture.model.model import Model
    from headscope.view.notebook import Cell
    from headscope.view.page import Live

TABLE, DISTANCES, PROBES = "heads.nc", "head-distances.nc", "probe.nc"
"""The names of three tables in the folder of an atlas: the head table, the distances between heads, and the probes."""

EXAMPLES = "examples.nc"

PAGE = "atlas.html"

ATLAS_FOLDER = Contents("the atlas", "manifest.json")
"""The folder of a complete atlas, for which nothing is left to measure."""


def refuse_incomplete(folder: Path) -> None:
    """Raise an error for the folder of an atlas that is not complete, since the untrained model is not measured yet.

    Raises:
        TableError: The folder has the page but no head table.
    """
    if (folder / PAGE).is_file() and not (folder / TABLE).is_file():
        raise TableError(
            f"the atlas in {folder} is not complete; wait until `headscope atlas` has ended, or if it was interrupted, "
            "run it again with --resume."
        )


@dataclass(frozen=True, repr=False)
class AtlasResult:
    """The results of `headscope.atlas`.

    Attributes:
        table: The head table, which is also in ``heads.nc``.
        tables: Further head tables, by file name.
        examples: The example texts with the attention of all heads; None if there are none.
        folder: The folder; None if nothing was written.
        files: The names of all files, relative to `folder`.
        model: The measured model, if it was given in memory; `headscope.explore` runs it.
    """

    table: "xr.Dataset"
    tables: "Mapping[str, xr.Dataset]"
    examples: "xr.Dataset | None"
    folder: Path | None
    files: tuple[str, ...]
    model: "Model | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise an error for a table of several runs.

        Raises:
            TableError: The table has the dimension `run`.
        """
        if "run" in self.table.dims:
            names = ", ".join(map(str, self.table["run"].values.tolist()))
            raise TableError(
                f"the table is of {self.table.sizes['run']} runs ({names}), and an atlas is of one; select it with "
                'table.sel(run="..."), or give headscope compare the table before and this one.'
            )

    @classmethod
    def read(cls, source: str | Path) -> "AtlasResult":
        """Read an atlas from its folder, or from a head table (``.nc``) and the files next to it.

        Files next to a table of another name than ``heads.nc`` are ignored if they are of another model or corpus.

        Raises:
            TableError: A file is missing or damaged, or a file in the folder is of another model or corpus than its
                ``heads.nc``.
        """
        from headscope.examples import read_examples
        from headscope.heads import read_table

        path = Path(source)
        folder, main = (path.parent, path) if path.suffix == ".nc" else (path, path / TABLE)
        others = [folder / DISTANCES, folder / PROBES, *(folder / f"heads-{view}.nc" for view in VIEWS)]
        table, parts = read_table(main), {file.name: read_table(file) for file in others if file.is_file()}
        if (file := folder / EXAMPLES).is_file():
            parts[EXAMPLES] = read_examples(file)
        for name in [*parts]:
            if difference := _find_difference(table, parts[name], name):
                if main.name == TABLE:
                    raise TableError(
                        f"{folder / name} {difference} {main}; keep the files of one atlas in a folder of their own, "
                        "or run `headscope atlas` again."
                    )
                del parts[name]
        examples = parts.pop(EXAMPLES, None)
        return cls(table, parts, examples, None, ())

    def render(self, live: "Live | None" = None) -> str:
        """Return the page as HTML.

        If the atlas was written to a folder and `live` is not given, this is the written page with its figures.
        Otherwise the page is rendered anew, without figures.
        """
        from headscope.view.page import render_page

        if self.folder is not None and live is None:
            return (self.folder / PAGE).read_text(encoding="utf-8")
        return render_page(self.table, figures={}, live=live, **self.parts)

    @property
    def parts(self) -> "dict[str, Any]":
        """The data that the page shows in addition to the head table and the figures, as arguments of `write_page`."""
        distances, probes = self.tables.get(DISTANCES), self.tables.get(PROBES)
        return {"views": self.views, "probes": probes, "examples": self.examples, "distances": distances}

    @property
    def views(self) -> "Mapping[str, xr.Dataset]":
        """The head tables that were measured through views, by the name of the view."""
        names = {name: name.removesuffix(".nc").removeprefix("heads-") for name in self.tables}
        return {view: self.tables[name] for name, view in names.items() if view in VIEWS}

    @property
    def facts(self) -> Facts:
        """The model and its size, the corpus, the number of documents, and the folder."""
        attrs, sizes = self.table.attrs, self.table.sizes
        about = {"model": attrs["model"], "layers": sizes["layer"], "heads": sizes["head"], "corpus": attrs["corpus"]}
        return {**about, "documents": int(attrs["documents"]), "folder": self.folder}

    @property
    def title(self) -> str:
        """The title of the page."""
        from headscope.view.headings import name_model

        return f"Head atlas of {name_model(self.table.attrs['model'])}"

    def show(self, *, whole: bool = False) -> "Cell":
        """Return the page for the output cell of a notebook.

        Args:
            whole: Return the page with all texts and figures, however large it is. By default the cell has at most 1
                MB: a larger page loses its figures, and then its longest texts.
        """
        source = "atlas" if self.folder is None else f'"{self.folder}"'
        return self.make_cell(whole=whole, live=f"headscope.explore({source}).widget()")

    def make_cell(self, *, whole: bool, live: str) -> "Cell":
        """Return the same cell as `show`; its note names `live`, Python code that adds a running model."""
        from headscope.view.notebook import LIMIT, Cell, frame_page

        notes = [f"`{live}` is this page with the model behind it: type texts of your own there."]
        content = frame_page(self.render(), self.title)
        if not whole and (size := len(content.encode())) > LIMIT:
            content, without = self._fit(LIMIT)
            file = f", as {self.folder / PAGE} does" if self.folder else ""
            notes = [f"{without} `.show(whole=True)` shows all of it{file}: {size / 1e6:.1f} MB.", *notes]
        return Cell(self.title, content, tuple(notes))

    def _fit(self, limit: int) -> tuple[str, str]:
        """Shorten the page to at most `limit` bytes; return its HTML and a sentence that names the omitted parts."""
        from headscope.examples import select_texts
        from headscope.view.notebook import frame_page
        from headscope.view.page import measure_texts

        def frame(examples: "xr.Dataset | None") -> str:
            return frame_page(replace(self, folder=None, examples=examples).render(), self.title)

        content = frame(self.examples)
        if len(content.encode()) <= limit:
            return content, "Without figures, so that the notebook stays small."
        bare = frame(None)
        room = limit - len(bare.encode())
        if room < 0:
            return write_table(self.title, self.facts), "The page is too large for a notebook."
        sizes = [] if self.examples is None else measure_texts(self.examples)
        shortest = sorted(range(len(sizes)), key=lambda place: sizes[place])
        count = sum(total <= room for total in accumulate(sizes[place] for place in shortest))
        while count and self.examples is not None:
            content = frame(select_texts(self.examples, sorted(shortest[:count])))
            if len(content.encode()) <= limit:
                left = len(sizes) - count
                return content, f"Without figures and {left} of {len(sizes)} texts, so that the notebook stays small."
            count -= max(1, count // 10)  # the examples that name the texts take room too
        return bare, "Without figures and texts, so that the notebook stays small."

    def __repr__(self) -> str:
        """Return the facts about the atlas (model, corpus, folder) on one line."""
        return write_line("AtlasResult", self.facts)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return self.show()._repr_html_()


def _find_difference(table: "xr.Dataset", part: "xr.Dataset", name: str) -> str:
    """Return how a file of an atlas disagrees with its head table, as part of a sentence; empty if it does not.

    Reasons are another kind of table, more layers or heads, other weights, or another corpus.
    """
    wanted = {DISTANCES: "js_distance", PROBES: "probe_count", EXAMPLES: "examples"}.get(name)
    view = name.removesuffix(".nc").removeprefix("heads-")
    if part.attrs.get("view") != view if wanted is None else wanted not in part:
        return "is not the file of its name in the atlas of"
    for dim in ("layer", "head"):
        numbers = {int(each) for own in part.dims if str(own).endswith(dim) for each in part[own].values}
        if not numbers <= {*table[dim].values.tolist()}:
            return f"has a {dim} {max(numbers)}, more than"
    kinds = [] if name == PROBES else ["model"] if name == DISTANCES else ["model", "corpus"]
    for kind, digest in zip(kinds, ("weights_sha256", "corpus_sha256"), strict=False):
        if part.attrs.get(digest) != table.attrs[digest]:
            return f"is of another {kind} ({part.attrs.get(kind)!r}) than"
    return ""


def write_atlas_page(atlas: AtlasResult, figures: Mapping[str, str], path: Path) -> None:
    """Write the page of an atlas with its figures; `figures` maps titles to file names without suffix."""
    from headscope.view.page import write_page

    pictures = {title: (path.parent / FIGURES / f"{name}.svg").read_text("utf-8") for title, name in figures.items()}
    write_page(atlas.table, path, figures=pictures, **atlas.parts)
