"""The figures of an atlas, drawn from its tables. Importing this module loads matplotlib, which takes seconds."""

from functools import partial

from headscope.commands.atlas.atlas_result import PAGE, PROBES, AtlasResult, write_atlas_page
from headscope.commands.folder import OutputFolder
from headscope.view.figures import draw_atlas
from headscope.view.figures.draw_probes import list_probe_figures
from headscope.view.figures.style import file_stem


def list_atlas_figures(atlas: AtlasResult) -> dict[str, tuple[str, draw_atlas.Drawing]]:
    """Map the title of each figure of an atlas to its file name and to the function that draws it."""
    probes = atlas.tables.get(PROBES)
    listed = draw_atlas.list_figures(atlas.table) | ({} if probes is None else list_probe_figures(probes))
    return {title: (file_stem(name), draw) for title, (name, draw) in listed.items()}


def draw_page_figures(folder: OutputFolder, atlas: AtlasResult, *, pdf: bool) -> tuple[str, ...]:
    """Draw all figures of an atlas into its folder, add them to the page, and return the names of the files."""
    listed = list_atlas_figures(atlas)
    names = {title: name for title, (name, _) in listed.items()}
    return folder.draw(dict(listed.values()), {PAGE: partial(write_atlas_page, atlas, names)}, pdf=pdf)
