"""`headscope disable` from a folder of files to a folder of files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headscope
from commands.interrupted import interrupt
from headscope import cli
from headscope.commands.evaluations import find_evaluation
from headscope.errors import HeadscopeError
from planted_task import save_task


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a planted model, and its task as TSV files."""
    folder = tmp_path_factory.mktemp("inputs")
    save_task(folder, [(2, 3)])
    return folder


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["headscope", "disable", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.mark.full
def test_the_folder_has_a_table_rows_and_figures(inputs: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    code, printed, _ = run(
        capsys, monkeypatch, inputs / "model", inputs / "nouns", "-o", tmp_path / "out", "--placebos", 4, "--heads",
        "2-3,1-2", "--layers", "3", "--how", "zero", "--how", "mean", "--pairs", 2, "--figures",
    )  # fmt: skip
    assert code == 0, printed
    assert printed.split("\n\n")[1].startswith("1 of 2 heads is needed for the accuracy: 2-3.\n")
    assert "\nBy mean: 1 of 2 heads makes the accuracy worse when disabled, which was not" in printed
    frame = pd.read_csv(tmp_path / "out" / "effects.csv", dtype={"unit": str})
    accuracy = frame[(frame["metric"] == "accuracy") & (frame["how"] == "zero")].set_index("unit")
    assert accuracy.index.tolist() == ["1-2", "2-3", "3", "2-3+1-2"]
    assert accuracy["verdict"]["2-3"] == "needed"
    table = headscope.read_table(tmp_path / "out" / "effects.nc")
    assert float(table["effect_accuracy"].sel(how="zero", subset="all", layer=2, head=3)) == pytest.approx(
        accuracy["effect"]["2-3"], abs=1e-5
    )
    for argument in ("heads='2-3,1-2'", "layers='3'", "how=['zero', 'mean']", "placebos=4", "limit=None"):
        assert argument in table.attrs["call"]
    listed = json.loads((tmp_path / "out" / "effects.json").read_text())["sha256"]
    written = {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    assert {*listed, "effects.json"} == written - {".headscope.lock"}
    assert {"figures/heads-accuracy.png", "figures/layers-loss.svg"} <= written


@pytest.mark.full
def test_a_killed_run_goes_on_and_gives_the_same(inputs: Path, tmp_path: Path, monkeypatch) -> None:
    settings = {"heads": "2-3,1-2", "placebos": 2, "batch_tokens": 64, "pairs": 2, "progress": False}
    task = headscope.learn.read_task(str(inputs / "nouns"))
    expected = headscope.measure_effects(inputs / "model", task, tmp_path / "whole", **settings)
    monkeypatch.setattr("headscope.commands.unit_effects.SAVE_EVERY", 0.0)
    interrupt(monkeypatch, step=9)
    with pytest.raises(KeyboardInterrupt):
        headscope.measure_effects(inputs / "model", task, tmp_path / "out", **settings)
    assert (tmp_path / "out" / ".effects.partial.npz").is_file()
    with pytest.raises(HeadscopeError, match="was left by another run"):
        headscope.measure_effects(inputs / "model", task, tmp_path / "out", resume=True, **{**settings, "placebos": 3})
    resumed = headscope.measure_effects(inputs / "model", task, tmp_path / "out", resume=True, **settings)
    for name in expected.data_vars:
        np.testing.assert_array_equal(resumed[name], expected[name], err_msg=name)
    assert not [*(tmp_path / "out").glob(".*.npz")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--heads", "2-9"], "there is no head 2-9"),
        (["--layers", "7"], "there is no layer 7"),
        (["--heads", "2-kv9"], "there is no key/value head 2-kv9"),
        (["--heads", "first"], "is not a head"),
        (["--split", "dev"], "there is no split 'dev'"),
        (["--paradigm", "causative"], "has no paradigms"),
        (["--start", "[CLS]"], "leave out the start token"),
    ],
)
def test_what_is_wrong_is_one_sentence(inputs: Path, tmp_path: Path, capsys, monkeypatch, arguments, sentence) -> None:
    code, _, complaint = run(
        capsys, monkeypatch, inputs / "model", inputs / "nouns", "-o", tmp_path / "out", *arguments
    )
    assert code == 2
    assert sentence in complaint.replace("\n", " ")
    assert not [*(tmp_path / "out").glob("effects*")]


def test_a_minimal_pair_without_a_side_is_refused(inputs: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence_good": "She left.", "sentence_bad": "She leave."}\n{"sentence_good": "He left."}\n')
    code, _, complaint = run(capsys, monkeypatch, inputs / "model", pairs, "-o", tmp_path / "out")
    assert code == 2
    assert 'pairs.jsonl:2 has no "sentence_bad"' in complaint.replace("\n", " ")


def test_a_sample_of_the_heads_is_run_and_all_are_estimated(inputs: Path, tmp_path: Path) -> None:
    task = headscope.learn.read_task(str(inputs / "nouns"))
    table = headscope.measure_effects(inputs / "model", task, tmp_path, top=2, placebos=0, progress=False)
    runs = table["effect_loss"].sel(how="uniform", subset="all")
    assert 3 <= int(runs.notnull().sum()) <= 4
    assert not np.isnan(float(runs.sel(layer=2, head=3)))
    assert int(table["first_order_loss"].notnull().sum()) == 15
    assert float(table["first_order_error_loss"].sel(how="uniform", subset="all")) >= 0


def test_results_in_a_folder_called_blimp_do_not_hide_the_pairs(tmp_path: Path, monkeypatch) -> None:
    """As after `disable MODEL blimp -o blimp`, of which the documentation has an example."""
    monkeypatch.chdir(tmp_path)
    pair = '{"sentence_good": "She left.", "sentence_bad": "She leave.", "UID": "drop"}\n'
    for folder in ("blimp", "corpora/blimp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "blimp" / "effects.csv").write_text("unit,effect\n")
    (tmp_path / "blimp" / "effects.json").write_text("{}\n")
    (tmp_path / "corpora" / "blimp" / "drop.jsonl").write_text(2 * pair)
    assert [pair.good for pair in find_evaluation("blimp", "corpora").pairs] == ["She left.", "She left."]
    (tmp_path / "blimp" / "own.jsonl").write_text(pair)
    assert len(find_evaluation("blimp", "corpora").pairs) == 1
