"""`headscope lesions` of a planted model that needs one of three heads, from a head table to a folder of files."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
from commands.interrupted import interrupt
from headscope import cli
from headscope.errors import HeadscopeError
from headscope.view.lesions_report import describe_random_sets, list_lesions
from planted_task import save_task

SETS = {"nouns": ["1-4", "2-3", "3-2"], "others": ["1-1", "2-1", "3-5"], "one": ["2-3"]}
"""The heads that know the answer; others; and one of the first, with which its layer has four others alone."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a planted model that needs one of three heads, its task as TSV files, and its head table."""
    folder = tmp_path_factory.mktemp("inputs")
    save_task(folder, [(1, 4), (2, 3), (3, 2)])
    headscope.measure(folder / "model", "grammar:60", "relations", out=folder / "heads.nc", permutations=0)
    return folder


def run(capsys, monkeypatch, *arguments: object) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["headscope", "lesions", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.fixture(scope="module")
def lesions(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    task = headscope.learn.read_task(str(inputs / "nouns"))
    out = tmp_path_factory.mktemp("lesions")
    return headscope.lesions(inputs / "model", task, SETS, out, random=7, progress=False)


@pytest.mark.full
def test_the_task_suffers_without_the_needed_heads_and_not_without_others(lesions: xr.Dataset) -> None:
    """Of three sets one that no random one equals has beaten 60; how many it takes to see that another is not so."""
    for metric, sign in (("accuracy", -1), ("loss", 1)):
        change = lesions[f"lesion_{metric}_excess"].sel(subset="all")
        p = lesions[f"lesion_{metric}_p"].sel(subset="all")
        assert sign * float(change.sel(set="nouns")) > 0.2
        assert float(p.sel(set="nouns")) == pytest.approx(3 / 61)
        assert float(p.sel(set="others")) > 0.05
        assert np.isnan(p.sel(set="one"))
    frame = list_lesions(lesions).query("metric != 'kl'").set_index("set")
    assert {name: {*frame.loc[name, "verdict"]} for name in SETS} == {
        "nouns": {"suffers"}, "others": {""}, "one": {"cannot decide"}
    }  # fmt: skip
    assert lesions["set_random_sets"].sel(set=["nouns", "one"]).values.tolist() == [60, 4]
    assert int(lesions["set_random_sets"].sel(set="others")) in (7, 14, 28, 56)
    assert describe_random_sets(lesions) == "4 to 60 random sets of the same size in each layer"
    assert lesions["set_others"].values.tolist() == [124, 124, 4]
    assert int(lesions["set_member"].sum()) == 7
    assert int(lesions["set_member"].sel(set="nouns", layer=2, head=3)) == 1


@pytest.mark.full
def test_a_change_is_that_of_disabling_the_heads_by_hand(inputs: Path, lesions: xr.Dataset, tmp_path: Path) -> None:
    task = headscope.learn.read_task(str(inputs / "nouns"))
    effects = headscope.measure_effects(inputs / "model", task, tmp_path, heads="2-3", placebos=0, progress=False)
    for name in ("accuracy", "loss", "kl"):
        expected = float(effects[f"effect_{name}"].sel(how="uniform", subset="all", layer=2, head=3))
        assert float(lesions[f"lesion_{name}"].sel(subset="all", set="one")) == pytest.approx(expected, abs=1e-6)


@pytest.mark.full
def test_the_folder_has_a_table_rows_and_maps(inputs: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    code, printed, complaint = run(
        capsys, monkeypatch, inputs / "model", inputs / "nouns", "--atlas", inputs / "heads.nc", "--row", "nsubj",
        "--row", "det", "--size", 2, "--random", 4, "--match", "size", "--figures", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, complaint
    frame = pd.read_csv(tmp_path / "out" / "lesions.csv")
    harmed = frame[(frame["metric"] == "accuracy") & (frame["subset"] == "all") & (frame["verdict"] == "suffers")]
    (verdict,) = [line for line in printed.splitlines() if "of heads harm" in line and "accuracy" in line]
    assert verdict.startswith(f"{len(harmed) or 'None'} of 2 sets of heads harm")
    assert frame["set"].unique().tolist() == ["nsubj", "det"]
    table = headscope.read_table(tmp_path / "out" / "lesions.nc")
    for name in ("nsubj", "det"):
        row = frame[(frame["set"] == name) & (frame["metric"] == "accuracy")].iloc[0]
        assert row["change"] == pytest.approx(float(table["lesion_accuracy"].sel(set=name, subset="all")), abs=1e-5)
        assert len(row["heads"].split(", ")) == 2
    assert "random=4" in table.attrs["call"]
    listed = json.loads((tmp_path / "out" / "lesions.json").read_text())["sha256"]
    assert {"lesions.nc", "lesions.csv", "figures/lesions-accuracy.png"} <= {*listed}


@pytest.mark.full
def test_random_sets_may_have_as_many_heads_in_any_layer(inputs: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    code, printed, complaint = run(
        capsys, monkeypatch, inputs / "model", inputs / "nouns", "--atlas", inputs / "heads.nc", "--row", "nsubj",
        "--random", 4, "--match", "size", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, complaint
    assert re.search(r"compared with \d+ random sets of the same size\n", printed)
    table = headscope.read_table(tmp_path / "out" / "lesions.nc")
    assert table.attrs["match"] == "size"
    assert "match='size'" in table.attrs["call"]


@pytest.mark.parametrize(("step", "stage"), [(9, 7), (40, 14)])
def test_a_killed_run_goes_on_and_gives_the_same(
    inputs: Path, lesions: xr.Dataset, tmp_path: Path, monkeypatch, step: int, stage: int
) -> None:
    task = headscope.learn.read_task(str(inputs / "nouns"))
    monkeypatch.setattr("headscope.commands.unit_effects.SAVE_EVERY", 0.0)
    interrupt(monkeypatch, step=step)
    settings = {"random": 7, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        headscope.lesions(inputs / "model", task, SETS, tmp_path / "out", **settings)
    assert (tmp_path / "out" / f".lesions.partial.{stage}.npz").is_file()
    with pytest.raises(HeadscopeError, match="was left by another run"):
        headscope.lesions(inputs / "model", task, SETS, tmp_path / "out", resume=True, **settings, seed=3)
    resumed = headscope.lesions(inputs / "model", task, SETS, tmp_path / "out", resume=True, **settings)
    for name in lesions.data_vars:
        np.testing.assert_array_equal(resumed[name], lesions[name], err_msg=name)
    assert not [*(tmp_path / "out").glob(".*.npz")]


def test_progress_says_how_many_random_sets_run_at_most(inputs: Path, tmp_path: Path) -> None:
    steps = {}
    headscope.lesions(
        inputs / "model", headscope.learn.read_task(str(inputs / "nouns")), {"nouns": SETS["nouns"]}, tmp_path,
        progress=lambda step, done, total: steps.update({step: (done, total)}),
    )  # fmt: skip
    disabling = {step: counts for step, counts in steps.items() if step.startswith("disabling")}
    assert [step.partition(" of model")[0] for step in disabling] == [
        "disabling sets of heads (1 left, random sets 1 to 10 of at most 20)",
        "disabling sets of heads (1 left, random sets 11 to 20 of at most 20)",
    ]
    assert all(done == total for done, total in disabling.values())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--random", "3"], "--random is 3, which does not show how much random sets differ; give 4 or more."),
        (["--size", "0"], "--size is 0; give 1 or more."),
        (["--size", "15"], "sets of 15 heads cannot be compared with others: the model has 15; give fewer."),
        (["--how", "prune"], "--how is 'prune'; give uniform, zero, mean or resample."),
        (["--match", "norm"], "--match is 'norm'; give layer or size."),
        (["--row", "subject"], "the table has no row 'subject' with a reported head; it has"),
    ],
)
def test_what_is_wrong_is_one_sentence(inputs: Path, tmp_path: Path, capsys, monkeypatch, arguments, sentence) -> None:
    code, _, complaint = run(
        capsys, monkeypatch, inputs / "model", inputs / "nouns", "--atlas", inputs / "heads.nc", "-o", tmp_path / "out",
        *arguments,
    )  # fmt: skip
    assert code == 2
    assert sentence in complaint.replace("\n", " ")
    assert not [*(tmp_path / "out").glob("lesions*")]


def test_sets_without_heads_and_heads_that_are_not_there_are_refused(inputs: Path, tmp_path: Path) -> None:
    task = headscope.learn.read_task(str(inputs / "nouns"))
    with pytest.raises(HeadscopeError, match=r"^no set of heads is named, or one has no heads"):
        headscope.lesions(inputs / "model", task, {"none": []}, tmp_path, progress=False)
    with pytest.raises(HeadscopeError, match=r"there is no head 2-9"):
        headscope.lesions(inputs / "model", task, {"wrong": ["2-9"]}, tmp_path, progress=False)
