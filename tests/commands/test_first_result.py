"""A first result soon: parts of a corpus by both commands, the page before the figures, which are drawn on demand."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from matplotlib.figure import Figure

import headscope
import tiny
from headscope import heads
from headscope.commands.atlas.atlas_result import AtlasResult
from headscope.examples import read_examples
from headscope.view.figures import draw_atlas
from headscope.view.page import render_page
from view.parsed import Page

LITTLE = ("--permutations", 0, "--map-documents", 0, "--examples", 0)
"""An atlas of what a test looks at."""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A tiny model on disk."""
    return tiny.save(tmp_path_factory.mktemp("model"))


def assert_same_scores(table: xr.Dataset, other: xr.Dataset) -> None:
    """The variables are equal; where they came from is another matter."""
    assert {*table.data_vars} == {*other.data_vars}
    xr.testing.assert_equal(table.drop_attrs(), other.drop_attrs())


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "part", "title"),
    [
        (("--limit", 53), {"limit": 53}, "grammar:97 (first 53 documents)"),
        (("--sample", 53, "--seed", 5), {"sample": 53, "seed": 5}, "grammar:97 (53 documents at random, seed 5)"),
        (("--sample", 5000), {}, "grammar:97"),
    ],
)
def test_a_part_of_a_corpus_is_measured_as_if_it_were_all(run, model, tmp_path, options, part, title) -> None:
    out = tmp_path / "heads.nc"
    code, said, _ = run("measure", model, "grammar:97", "-r", "relations", "--permutations", 7, *options, "-o", out)
    assert code == 0
    table = heads.read_table(out)
    assert table.attrs["corpus"] == title
    assert table.attrs["corpus_sha256"] == headscope.read("grammar:97", **part).sha256
    assert f"{Path(model).name} on {title}" in said
    documents = list(headscope.read("grammar:97", **part))
    assert_same_scores(table, headscope.measure(model, documents, "relations", permutations=7))


@pytest.mark.full
def test_an_atlas_of_a_part_says_so_takes_the_same_part_of_the_other_corpus_and_may_have_no_figures(
    run, model, tmp_path
) -> None:
    out = tmp_path / "atlas"
    code, said, _ = run("atlas", model, "grammar:97", "--limit", 53, "--replicate", "grammar:97:5", "--permutations", 0,
                     "--map-documents", 7, "--examples", 3, "-o", out)  # fmt: skip
    assert code == 0
    assert said.count("2 layers of 5 heads") == 1
    attrs = heads.read_table(out / "heads.nc").attrs
    assert attrs["corpus"] == "grammar:97 (first 53 documents)"
    assert attrs["replication_corpus"] == "grammar:97:5 (first 53 documents)"
    assert "corpus='grammar:97', " in attrs["call"]
    assert "limit=53, sample=None, " in attrs["call"]
    assert "replicate='grammar:97:5'" in attrs["call"]
    page = (out / "atlas.html").read_text()
    assert "grammar:97 (first 53 documents)" in page
    examples = read_examples(out / "examples.nc")
    table, distances = (heads.read_table(out / f"{name}.nc") for name in ("heads", "head-distances"))
    assert page == render_page(table, figures={}, examples=examples, distances=distances)
    assert not (out / "figures").exists()


def test_a_limit_of_nothing_is_refused_in_a_sentence(run, model, tmp_path) -> None:
    code, _, complaint = run("atlas", model, "grammar:7", "--limit", 0, "-o", tmp_path / "atlas")
    assert code == 2
    assert complaint == "headscope: --limit is 0; give 1 or more.\n"


@pytest.mark.full
def test_the_result_is_shown_when_the_page_is_there_and_nothing_is_drawn(model, tmp_path, monkeypatch) -> None:
    events: list[Any] = []

    def show(result: AtlasResult) -> None:
        events.append(("shown", result.table.attrs["corpus"], (tmp_path / "atlas.html").exists(), len(result.files)))

    def list_two(table: xr.Dataset) -> dict[str, Any]:
        return {name: (name, lambda name=name: events.append(f"{name} drawn") or Figure()) for name in ("one", "two")}

    monkeypatch.setattr(draw_atlas, "list_figures", list_two)
    result = headscope.atlas(model, "grammar:53", tmp_path, permutations=0, map_documents=0, examples=0, figures=True,
                             show=show, progress=lambda *step: events.append(step))  # fmt: skip
    files = len(result.files) - 4  # two figures, as PNG and SVG
    drawing = [("drawing 2 figures", 0, 2), "one drawn", ("drawing 2 figures", 1, 2), "two drawn"]
    assert events[-6:] == [("writing", 0, 0), ("shown", "grammar:53", True, files), *drawing]


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder that are no sums or locks, by name."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".")}


def read_hashes(folder: Path) -> dict[str, str]:
    return json.loads((folder / "manifest.json").read_text())["sha256"]


LAST = "measuring the untrained model"


class Killed(KeyboardInterrupt):
    """The process ends when the untrained model is about to be measured."""


def kill(step: str, done: int, total: int) -> None:
    if step == LAST:
        raise Killed


@pytest.mark.full
def test_the_page_can_be_opened_before_the_untrained_model_is_measured_and_says_so(model, tmp_path) -> None:
    shown: list[tuple[str, AtlasResult]] = []
    steps: list[str] = []

    def show(result: AtlasResult) -> None:
        assert {name: sha256(content).hexdigest() for name, content in read_folder(tmp_path).items()
                if name != "manifest.json"} == read_hashes(tmp_path)  # fmt: skip
        shown.append(((tmp_path / "atlas.html").read_text(), result))
        steps.append("shown")

    headscope.atlas(model, "grammar:53", tmp_path, permutations=0, map_documents=0, examples=3, show=show,
                    progress=lambda step, *_: steps.append(step))  # fmt: skip
    assert steps.index("shown") < steps.index(LAST)
    (first, draft), (last, result) = shown
    assert first == render_page(draft.table, figures={}, examples=draft.examples)
    assert "stands_out" not in {row["verdict"] for row in Page(first).data()["rows"]}
    assert "The untrained model is still to be measured" in first
    assert not [rival for row in Page(first).data()["rows"] for rival in row["rivals"] if not rival["is_rule"]]
    assert read_examples(tmp_path / "examples.nc").equals(draft.examples)
    assert "The untrained model is still to be measured" not in last
    assert [rival for row in Page(last).data()["rows"] for rival in row["rivals"] if not rival["is_rule"]]
    assert "awaited" not in result.table.attrs
    again = headscope.atlas(model, "grammar:53", permutations=0, map_documents=0, examples=0)
    assert_same_scores(result.table, again.table)


@pytest.mark.full
def test_an_atlas_that_is_killed_in_between_is_known_to_be_incomplete_and_goes_on(run, model, tmp_path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    settings: dict[str, Any] = {"permutations": 7, "map_documents": 0, "examples": 3}
    with pytest.raises(Killed):
        headscope.atlas(model, "grammar:53", killed, **settings, progress=kill)
    assert {*read_folder(killed)} == {"atlas.html", "manifest.json"}
    assert json.loads((killed / "manifest.json").read_text())["about"]["awaited"] == "the untrained model"
    sentence = (
        f"the atlas in {killed} is not complete; wait until `headscope atlas` has ended, or if it was interrupted, run "
        "it again with --resume."
    )
    for command in ("explore", "export"):
        assert run(command, killed) == (2, "", f"headscope: {sentence}\n")
    headscope.atlas(model, "grammar:53", killed, **settings, resume=True, progress=False)
    headscope.atlas(model, "grammar:53", whole, **settings, progress=False)
    tables = [heads.read_table(folder / "heads.nc") for folder in (killed, whole)]
    assert_same_scores(*tables)
    assert {*read_folder(killed)} == {*read_folder(whole)}
    assert [{*read_hashes(folder)} for folder in (killed, whole)] == [{*read_folder(whole)} - {"manifest.json"}] * 2


@pytest.mark.full
def test_a_complete_atlas_stays_until_the_new_one_is_complete(model, tmp_path) -> None:
    settings: dict[str, Any] = {"permutations": 0, "map_documents": 0, "examples": 0}
    headscope.atlas(model, "grammar:53", tmp_path, **settings, progress=False)
    before, shown = read_folder(tmp_path), []
    with pytest.raises(Killed):
        headscope.atlas(model, "grammar:59", tmp_path, **settings, show=shown.append, progress=kill)
    assert read_folder(tmp_path) == before
    assert shown == []


@pytest.mark.full
def test_the_terminal_prints_the_address_twice_and_what_is_still_to_come(run, model, tmp_path) -> None:
    code, said, _ = run("atlas", model, "grammar:53", *LITTLE, "-o", tmp_path)
    assert code == 0
    opened = [line for line in said.splitlines() if line.startswith(f"Open {tmp_path / 'atlas.html'}")]
    assert [("The untrained model is still to be measured" in line) for line in opened] == [True, False]
    assert said.count("2 layers of 5 heads") == 1


@pytest.mark.full
def test_figures_are_written_as_pdf_where_one_asks_for_it(run, model, tmp_path, draw_only) -> None:
    draw_only("special-tokens", "entropies")
    code, _, _ = run("atlas", model, "grammar:53", *LITTLE, "--pdf", "-o", tmp_path)
    assert code == 0
    figures = {path.suffix: path.read_bytes() for path in (tmp_path / "figures").glob("special-tokens.*")}
    assert sorted(figures) == [".pdf", ".png", ".svg"]
    assert figures[".pdf"].startswith(b"%PDF")
