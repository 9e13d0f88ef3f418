"""`headscope draw`: the figures of an atlas that is there, for its page and for a paper."""

import shutil
from pathlib import Path

import pytest

import headscope
import tiny

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
