"""`headscope rerun`: a table is measured again as it records, and every number is compared to the last bit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import xarray as xr

import headed
import headscope
import planted_decoder
import planted_translator
import study_corpora
import tiny
from analyse.run_tables import simulate
from headscope.cli.command_list import COMMANDS
from headscope.commands.disable.request import Disable
from headscope.commands.recorded_request import record_request, restore_request
from headscope.errors import HeadscopeError, TableError

SENTENCES = (
    "the dog sees a cat .\n\na cat sleeps .\n\nthe cats see the dogs .\n\nshe sleeps here .\n\nthe dog barks .\n"
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny models and corpora on disk."""
    folder = tmp_path_factory.mktemp("places")
    for name, parts in {
        "decoder": headed.make("llama", "causal-lm"),
        "translator": planted_translator.plant(),
        "reader": planted_decoder.plant(),
    }.items():
        for part in parts:
            part.save_pretrained(folder / name)
    tiny.save(folder / "encoder")
    study_corpora.write(folder / "corpora")
    (folder / "texts.txt").write_text(SENTENCES)
    (folder / "pairs.txt").write_text(planted_translator.write(planted_translator.pairs(60)))
    records = [prompt if isinstance(prompt, dict) else vars(prompt) for prompt in planted_decoder.prompts(2)]
    (folder / "prompts.jsonl").write_text("".join(f"{json.dumps(record, default=list)}\n" for record in records))
    return {path.stem: path for path in folder.iterdir()}


MEASURE: dict[str, Callable[[dict[str, Path]], xr.Dataset]] = {
    "align": lambda p: headscope.align(p["translator"], p["pairs"], permutations=9, seed=3, top=1),
    "atlas": lambda p: (
        headscope.atlas(
            p["encoder"],
            "grammar:23",
            permutations=9,
            seed=5,
            map_documents=7,
            examples=0,
            views="norm",
        ).table
    ),
    "disable": lambda p: headscope.measure_effects(
        p["decoder"], str(p["texts"]), heads="1-1,2-2", layers=2, how="mean", placebos=2, seed=7
    ),
    "ledger": lambda p: headscope.ledger(p["reader"], p["prompts"], tokens=3),
    "lesions": lambda p: headscope.lesions(
        p["decoder"], str(p["texts"]), {"first": ["1-1"], "second": ["2-1", "2-2"]}, random=4, match="size", seed=3
    ),
    "measure": lambda p: headscope.measure(p["encoder"], "grammar:29", ["surface", "relations"], permutations=7),
    "measure with settings": lambda p: headscope.measure(
        p["encoder"], "grammar:29", ["surface:offsets=-2|3,words.no=not|never", "average_map:bins=7", "relations"]
    ),
    "study": lambda p: headscope.study("clark2019", p["encoder"], p["corpora"]).tables["treebank"],
    "profile": lambda p: headscope.profile(p["decoder"], repeats=31, needles=2, seed=3),
    "probe": lambda p: headscope.probe(p["encoder"], "grammar:67", seeds=1, without=["control", "code-length"], rank=3),
}


def refuse_to_draw(*sizes: float) -> NoReturn:
    raise AssertionError("a figure is drawn that nobody keeps")


@pytest.mark.full
@pytest.mark.parametrize("command", MEASURE)
def test_a_table_is_measured_again_to_the_last_bit(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headscope.view.figures.style.make_figure", refuse_to_draw)
    monkeypatch.setattr("headscope.learn.probe_training.MAX_EPOCHS", 3)
    table = MEASURE[command](places)
    assert [*tmp_path.iterdir()] == []  # no folder is named, so that none is written, and nothing drawn
    headscope.write_table(table, tmp_path / "table.nc")
    result = headscope.rerun(tmp_path / "table.nc", progress=False)
    assert (result.differing, result.versions) == ((), ())
    assert result.compared > 5
    assert result.is_same


@pytest.fixture(scope="module")
def table(places: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "heads.nc"
    headscope.write_table(headscope.measure(places["encoder"], str(places["texts"]), "surface"), path)
    return path


def test_the_terminal_says_that_all_is_the_same(run, table: Path) -> None:
    code, printed, complaint = run("rerun", table)
    assert code == 0, complaint
    assert printed.endswith(" variables of measure are the same to the last bit.\n")


def test_a_changed_number_and_another_version_are_seen(run, table: Path, tmp_path: Path) -> None:
    changed = headscope.read_table(table).load()
    versions = json.loads(changed.attrs["versions"]) | {"numpy": "1.2.3"}
    values = changed["mass_previous"].values.copy()
    values[1, 2] *= 1 + 2**-52
    changed["mass_previous"] = changed["mass_previous"].copy(data=values)
    changed.attrs["versions"] = json.dumps(versions)
    headscope.write_table(changed, tmp_path / "changed.nc")
    code, printed, _ = run("rerun", tmp_path / "changed.nc")
    assert code == 3
    assert "1 of " in printed
    assert " variables differ: mass_previous." in printed
    assert "Other versions: numpy 1.2.3, now " in printed


def test_what_has_moved_is_given_anew(run, table: Path, places: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "moved.txt").write_text(SENTENCES)
    assert run("rerun", table, "--with", f"corpus={tmp_path / 'moved.txt'}")[0] == 0
    (tmp_path / "moved.txt").write_text(SENTENCES.replace("barks", "sleeps"))
    assert run("rerun", table, "--with", f"corpus={tmp_path / 'moved.txt'}")[0] == 3


WRONG = {
    "none": ({"request": None}, "records no request"),
    "no JSON": ({"request": "{"}, "the recorded request cannot be read"),
    "no object": ({"request": "[1]"}, "the recorded request cannot be read"),
    "another command": ({"request": '{"command": "look"}'}, "which this version does not have"),
    "a function without a request": ({"request": '{"command": "read"}'}, "which this version does not have"),
    "an unknown field": ({"gaze": 3}, "has 'gaze', which measure does not have; it was written by another version"),
    "a missing field": ({"corpus": ...}, "the recorded request cannot be run: "),
    "a path that is gone": ({"corpus": "gone.txt"}, "the corpus 'gone.txt' does not exist"),
    "a wrong value": ({"hops": "x"}, "`hops` is 'x'; give a whole number."),
    "an object": ({"model": {"in_memory": "my-model"}}, "with 'my-model' in memory as `model`; give it again"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_request_that_cannot_be_run_is_one_sentence(table: Path, case: str) -> None:
    changes, sentence = WRONG[case]
    damaged = headscope.read_table(table)
    if "request" in changes:
        damaged.attrs["request"] = changes["request"]
        damaged.attrs = {name: value for name, value in damaged.attrs.items() if value is not None}
    else:
        recorded = json.loads(damaged.attrs["request"]) | changes
        damaged.attrs["request"] = json.dumps({name: value for name, value in recorded.items() if value is not ...})
    with pytest.raises(HeadscopeError) as caught:
        headscope.rerun(damaged, progress=False)
    assert sentence in str(caught.value)


def test_a_request_is_restored_as_it_was() -> None:
    request = Disable("my-model", "wiki.txt", heads=["1-2"], how=["zero", "mean"], top=3, limit=7)
    text = record_request(request)["request"]
    restored = restore_request(Disable, text)
    recorded = {name for name, each in Disable.options.items() if each.recorded}
    for name in recorded - {"heads", "layers"}:
        assert getattr(restored, name) == getattr(request, name), name
    assert restored.names == request.names == ["1-2"]
    with pytest.raises(TableError, match="is not one of"):
        restore_request(headscope.atlas.record, text)


def test_what_an_older_table_records_of_its_figures_changes_nothing() -> None:
    atlas = headscope.atlas.record
    text = record_request(atlas("my-model", "wiki.txt", seed=3))["request"]
    older = json.dumps(json.loads(text) | {"figures": "reported"})
    assert not restore_request(atlas, older).figures
    assert record_request(restore_request(atlas, older))["request"] == text


def simulate_runs() -> tuple[xr.Dataset, xr.Dataset]:
    """Tables before and after fine-tuning."""
    draw = np.random.default_rng(5)
    return simulate(draw, np.full((2, 3), 0.4)), simulate(draw, np.full((5, 2, 3), 0.6), seeds=[1, 2, 3, 4, 5])


OTHERS: dict[str, Callable[[dict[str, Path], Path], object]] = {
    "check": lambda p, table: headscope.check(table, table, every=True),
    "compare": lambda p, table: headscope.compare(*simulate_runs()),
    "explore": lambda p, table: headscope.explore(table, no_browser=True).close(),
    "export": lambda p, table: headscope.export(table),
    "patterns": lambda p, table: headscope.patterns(p["encoder"], p["texts"]),
    "rerun": lambda p, table: headscope.rerun(table),
}


@pytest.fixture(scope="module")
def reported(places: dict[str, Path]) -> xr.Dataset:
    return headscope.measure(places["encoder"], "grammar:29", "relations", permutations=0)


@pytest.mark.parametrize("command", OTHERS)
def test_nothing_is_written_that_is_not_named(
    places: dict[str, Path], reported: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    OTHERS[command](places, reported)
    assert [*tmp_path.iterdir()] == []
    # `merge` reads the files of `measure_shard`; `draw`, `tune` and `measure_shard` give nothing but files.
    measured = {name.split()[0] for name in MEASURE}  # with settings and without
    assert {*measured, *OTHERS, "draw", "merge", "tune"} == {record.command for record in COMMANDS} - {"list"}
