"""`headscope draw`: the figures of an atlas that is there, for its page and for a paper."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope
import tiny
from analyse.run_tables import scope_table
from headscope.commands.atlas.atlas_result import AtlasResult
from headscope.errors import TableError
from headscope.examples import read_examples, write_examples
from headscope.heads import read_table, write_table

MEASURED = {"corpus": "grammar:53", "permutations": 0, "map_documents": 0, "examples": 3, "progress": False}
DRAWN = ("special-tokens", "entropies")


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def measured(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    headscope.atlas(model, out=folder, **MEASURED)
    return folder


@pytest.fixture
def atlas(draw_only, measured: Path, tmp_path: Path) -> Path:
    """The folder of an atlas without figures."""
    draw_only(*DRAWN)
    return shutil.copytree(measured, tmp_path / "atlas")


@pytest.mark.full
def test_the_atlas_is_what_it_is_when_its_figures_are_drawn_at_once(run, model: Path, atlas: Path) -> None:
    sums = atlas / ".heads.partial.npz"
    sums.write_bytes(b"of a killed run that goes on later")
    code, printed, complaint = run("draw", atlas, "--pdf")
    assert (code, printed) == (0, f"2 figures are drawn, in {atlas / 'figures'}, and on the page.\n"), complaint
    assert sums.is_file()
    sums.unlink()
    at_once = atlas.with_name("at-once")
    headscope.atlas(model, out=at_once, pdf=True, **MEASURED)
    first, second = read_folder(atlas), read_folder(at_once)
    assert {*first} == {*second}
    assert {f"figures/{name}.{suffix}" for name in DRAWN for suffix in ("png", "svg", "pdf")} < {*first}
    dated = {"manifest.json", "heads.nc", "untrained.nc", "atlas.html"}  # or of the arguments of the call
    assert {name for name in first if first[name] != second[name]} <= dated
    assert first["atlas.html"].count(b"<figure") == second["atlas.html"].count(b"<figure") > 0


def test_some_figures_are_drawn_for_a_paper_and_the_atlas_stays_as_it_is(run, atlas: Path) -> None:
    before, paper = read_folder(atlas), atlas.with_name("paper")
    code, printed, complaint = run("draw", atlas, "--figure", "entropies", "-o", paper)
    assert (code, printed) == (0, f"1 figure is drawn, in {paper / 'figures'}.\n"), complaint
    assert {*read_folder(paper)} == {"figures.json", "figures/entropies.png", "figures/entropies.svg"}
    assert b"Entropy" in read_folder(paper)["figures/entropies.svg"]
    mine = paper / "figures" / "mine.png"
    mine.touch()
    assert run("draw", atlas / "heads.nc", "--figure", "special-tokens", "--bare", "--pdf", "-o", paper)[0] == 0
    drawn = {f"figures/special-tokens.{suffix}" for suffix in ("png", "svg", "pdf")}
    assert {*read_folder(paper)} == {"figures.json", "figures/mine.png", *drawn}
    assert read_folder(atlas) == before


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("atlas", ("--figure", "entropies"), "the page of an atlas shows all figures with their titles; name a folder"),
        ("atlas", ("--bare",), "the page of an atlas shows all figures with their titles; name a folder as --out to"),
        ("atlas/heads.nc", (), "the page of an atlas shows all figures with their titles; name a folder as --out to"),
        ("atlas", ("--figure", "entropy", "-o", "paper"), "there is no figure 'entropy' (did you mean entropies?); "
         "this atlas has special-tokens, entropies."),
        ("atlsa", (), "there is no atlas in atlsa (did you mean atlas?); give a folder that `headscope atlas` wrote."),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(
    run, atlas: Path, monkeypatch, source: str, options: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(atlas.parent)
    before = read_folder(atlas.parent)
    code, printed, complaint = run("draw", source, *options)
    assert (code, printed) == (2, "")
    assert complaint.splitlines()[-1].startswith(f"headscope: {sentence}"), complaint
    assert read_folder(atlas.parent) == before


def change(path: Path, **attributes: str) -> None:
    """Write a table or examples again with other attributes."""
    read, write = (read_examples, write_examples) if path.name == "examples.nc" else (read_table, write_table)
    write(read(path).assign_attrs(attributes), path)


@pytest.mark.parametrize(
    ("changed", "attributes", "difference"),
    [
        ("examples.nc", {"weights_sha256": "0" * 64, "model": "other"}, "{0} is of another model ('other') than {1}"),
        ("examples.nc", {"corpus_sha256": "0" * 64}, "{0} is of another corpus ('grammar:53') than {1}"),
        ("heads-norm.nc", {"corpus_sha256": "", "view": "norm"}, "{0} is of another corpus ('grammar:53') than {1}"),
        ("heads-norm.nc", {}, "{0} is not the file of its name in the atlas of {1}"),
        *(
            pytest.param(name, {}, "{0} is not the file of its name in the atlas of {1}", marks=pytest.mark.full)
            for name in ("head-distances.nc", "probe.nc")
        ),
    ],
)  # fmt: skip
def test_a_file_of_another_atlas_is_refused(run, atlas: Path, changed: str, attributes: dict, difference: str) -> None:
    table, path = atlas / "heads.nc", atlas / changed
    if not path.exists():
        shutil.copy(table, path)
    change(path, **attributes)
    code, _, complaint = run("draw", atlas)
    told = f"{difference}; keep the files of one atlas in a folder of their own, or run `headscope atlas` again."
    assert (code, complaint.splitlines()[-1]) == (2, f"headscope: {told.format(path, table)}")
    moved = table.rename(atlas / "mine.nc")  # a table by itself is drawn without what is beside it
    atlas_of_table = AtlasResult.read(moved)
    assert atlas_of_table.examples is None or changed != "examples.nc"
    assert changed not in atlas_of_table.tables


def test_examples_of_more_heads_are_refused(atlas: Path) -> None:
    path = atlas / "examples.nc"
    examples = read_examples(path)
    size = examples.sizes["encoder_layer"]
    more = xr.concat([examples, examples], "encoder_layer", data_vars="minimal", coords="minimal", compat="override")
    write_examples(more.assign_coords(encoder_layer=np.arange(1, 2 * size + 1)), path)
    with pytest.raises(TableError) as refused:
        AtlasResult.read(atlas)
    assert str(refused.value) == (
        f"{path} has a layer {2 * size}, more than {atlas / 'heads.nc'}; keep the files of one atlas in a folder of "
        "their own, or run `headscope atlas` again."
    )


def test_a_table_is_drawn_as_far_as_it_goes(run, model: Path, tmp_path: Path, draw_only) -> None:
    draw_only("relation-reported", "relation-all", *DRAWN)
    headscope.measure(
        model, "grammar:53", reducers=["relations"], out=tmp_path / "relations.nc", permutations=0, progress=False
    )
    headscope.measure(model, "grammar:7", reducers=["average_map"], out=tmp_path / "maps.nc", progress=False)
    assert run("draw", tmp_path / "relations.nc", "-o", tmp_path / "paper")[0] == 0
    names = {path.stem for path in (tmp_path / "paper" / "figures").iterdir()}
    assert names == {"relation-reported", "relation-all"}
    code, _, complaint = run("draw", tmp_path / "maps.nc", "-o", tmp_path / "none")
    assert (code, complaint.splitlines()[-1]) == (
        2,
        f"headscope: {tmp_path / 'maps.nc'} has nothing that the figures of an atlas show; other commands draw theirs "
        "when they are run with `--figures`.",
    )
    assert not (tmp_path / "none").exists()
    hits, gold = np.ones((2, 3, 5, 7)), np.full(7, 11)
    write_table(scope_table(hits, hits, gold, seeds=[1, 2]), tmp_path / "runs.nc")
    complaint = run("draw", tmp_path / "runs.nc", "-o", tmp_path / "none")[2]
    assert "the table is of 2 runs (seed-1, seed-2), and an atlas is of one; select it" in complaint
