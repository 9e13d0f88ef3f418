"""Studies that fine-tune, from nothing to the sheet: a tiny model, a small corpus, a few steps."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope import HeadscopeError, heads, runner, runs, study
from headscope.studies import STUDIES, judge
from headscope.view import figures


@pytest.fixture
def drawn(monkeypatch) -> list[str]:
    """The names of the figures that are asked for: to draw them takes longer than all the rest."""
    drawn: list[str] = []
    monkeypatch.setattr(figures, "save", lambda figure, folder, name, **settings: drawn.append(name))
    return drawn


@pytest.fixture(scope="module")
def zhao(model, corpora, tmp_path_factory):
    """Two runs of the task and two of its control; the figures are drawn elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "save", lambda figure, folder, name, **settings: None)
        out = tmp_path_factory.mktemp("zhao")
        return study("zhao2020", str(model), corpora, out, seeds=2, epochs=1, figures=True)


def finding(made, what: str):
    (one,) = [one for one in made.findings if one.claim.what == what]
    return one


@pytest.mark.full
def test_it_tunes_measures_compares_and_writes(zhao) -> None:
    of_heads = {f"{corpus}{group}" for corpus in ("story", "review") for group in ("", "_task", "_control")}
    changes = {f"change_{score}" for score in ("precision", "recall", "f1")}
    assert set(zhao.tables) == of_heads | changes | {"tuned_task", "tuned_control"}
    for name in of_heads | changes:
        xr.testing.assert_equal(heads.read_table(zhao.folder / f"{name}.nc"), zhao.tables[name])
    folder = zhao.folder / "runs" / "negation"
    for group, place in (("task", folder), ("control", folder / "control")):
        found = runs.read(place)
        assert [run.name for run in found.runs] == ["seed-1", "seed-2"]
        assert found.settings["epochs"] == 1
        for name, score in zhao.tables[f"tuned_{group}"].data_vars.items():
            if not name.startswith("task_"):
                assert score.values.tolist() == [run.scores["test"][name] for run in found.runs]
    assert {"zhao2020.md", "zhao2020.csv", "zhao2020-table-3.csv", "zhao2020-table-4.csv"} <= set(zhao.files)
    sheet = (zhao.folder / "zhao2020.md").read_text()
    assert "## Tables 3 and A3: heads before and after fine-tuning, on stories" in sheet
    assert "the best epoch by f1 on validation: seed-1 1, seed-2 1." in sheet
    paper = "The paper: 10 runs of 50 epochs at a learning rate of 4e-5; the epoch that is best on the test split."
    assert paper in sheet
    assert "; 1 epoch at a learning rate of 4e-05; " in sheet
    tuned = zhao.tables["tuned_task"]["f1"].values
    assert f"F1 {tuned.mean():.3f} ± {tuned.std():.3f}, accuracy" in sheet
    assert "figures/zhao2020-figure-4.png" in sheet


@pytest.mark.full
def test_its_figures_are_those_of_the_runs(zhao) -> None:
    story, task = (zhao.tables[name]["scope_f1"] for name in ("story", "story_task"))
    best = np.unravel_index(int(story.values.argmax()), story.shape)
    averages = [100 * task.isel(run=run).values.mean() for run in range(2)]
    assert finding(zhao, "F1, average head, tuned on negation").ours.number == pytest.approx(np.mean(averages))
    of_best = [100 * float(task.isel(run=run, layer=best[0], head=best[1])) for run in range(2)]
    assert finding(zhao, "F1, best head, tuned on negation").ours.number == pytest.approx(np.mean(of_best))
    scores = 100 * zhao.tables["tuned_task"]["f1"].values
    assert finding(zhao, "F1 at the task, tuned on negation").ours.number == pytest.approx(scores.mean())
    on_task = finding(zhao, "F1 at the task, tuned on the control").ours
    assert on_task.number == pytest.approx(100 * zhao.tables["tuned_control"]["task_f1"].values.mean())


def test_what_is_tuned_here_is_never_the_papers(zhao) -> None:
    assert not [one for one in zhao.findings if one.verdict in ("agrees", "differs")]
    why = finding(zhao, "p of task against control, F1, average head").why
    assert why == "2 and 2 runs cannot give a p-value below 0.33; take more seeds"


def test_the_findings_follow_from_the_tables_alone(zhao) -> None:
    assert repr(judge(STUDIES["zhao2020"], zhao.tables)) == repr(zhao.findings)


@pytest.mark.full
def test_a_study_goes_on_where_it_stopped_and_leaves_finished_runs_alone(zhao, drawn, model, corpora) -> None:
    weights = sorted((zhao.folder / "runs").rglob("model.safetensors"))
    assert len(weights) == 4
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in weights}
    stages: list[str] = []
    with pytest.raises(HeadscopeError, match=r"holds runs \(seed-1, seed-2\); add `resume` to go on with them"):
        study(
            "zhao2020",
            str(model),
            corpora,
            zhao.folder,
            seeds=2,
            epochs=1,
            progress=lambda *told: stages.append(told[0]),
        )
    assert not [stage for stage in stages if "measuring" in stage]  # before the work, not after it
    again = study("zhao2020", str(model), corpora, zhao.folder, seeds=2, epochs=1, figures=True, resume=True)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in weights} == before
    assert repr(again.findings) == repr(zhao.findings)
    assert not list(zhao.folder.glob(".*"))


@pytest.mark.full
def test_runs_that_are_there_are_measured_as_those_of_the_study_itself(zhao, drawn, model, corpora, tmp_path) -> None:
    finished = zhao.folder / "runs" / "negation"
    again = study("zhao2020", str(model), corpora, tmp_path, runs=finished, figures=True)
    assert repr(again.findings) == repr(zhao.findings)
    assert not (tmp_path / "runs").exists()
    sheets = [(folder / "zhao2020.md").read_text() for folder in (zhao.folder, tmp_path)]
    assert sheets[0] == sheets[1]


def test_runs_on_something_else_are_refused(run, zhao, model, corpora, tmp_path) -> None:
    finished = zhao.folder / "runs" / "negation"
    shutil.copytree(finished, tmp_path / "alone", ignore=shutil.ignore_patterns("control"))
    needed = "mrpc or rte or cola or sst2 or stsb or wnli"
    refusals = {
        ("zhao2020", "--runs", finished, "--seeds", 2): (
            "runs are measured as they are; give --runs alone, or --seeds and how to train."
        ),
        ("zhao2020", "--runs", finished, "--epochs", 2): (
            "runs are measured as they are; give --runs alone, or --seeds and how to train."
        ),
        ("clark2019", "--runs", finished): "the study clark2019 fine-tunes nothing; leave out --runs.",
        ("kovaleva2019", "--runs", finished): (
            f"{finished} holds runs on negation, and the study kovaleva2019 needs some on {needed}; name their folder."
        ),
        ("zhao2020", "--runs", finished / "control"): (
            f"{finished / 'control'} holds runs on the control of negation, and the study zhao2020 needs some on "
            "negation; name their folder."
        ),
        ("zhao2020", "--runs", tmp_path / "alone"): (
            f"{tmp_path / 'alone'} holds no runs on the control of negation, which the study shows next to those on "
            "the task; tune them with `headscope tune --control --resume`."
        ),
        ("zhao2020", "--runs", finished, "--recorded", "."): (
            "recorded scores need no fine-tuning; give --recorded or --runs, not both."
        ),
    }
    for command, sentence in refusals.items():
        code, _, complaint = run("study", *command, "--model", model, "--data", corpora, "-o", tmp_path / "out")
        assert (code, complaint.splitlines()[-1]) == (2, f"headscope: {sentence}")


@pytest.mark.full
def test_without_seeds_nothing_is_fine_tuned_and_it_says_so(run, model, corpora, tmp_path) -> None:
    code, said, _ = run("study", "zhao2020", "--model", model, "--data", corpora, "-o", tmp_path)
    assert code == 0
    assert not (tmp_path / "runs").exists()
    sheet = (tmp_path / "zhao2020.md").read_text().splitlines()
    (row,) = [line for line in sheet if line.startswith("| table 3 | F1, average head, tuned on negation | ")]
    assert row.endswith("| not measured | nothing was fine-tuned: give --seeds |")
    assert "not measured" in said


@pytest.mark.full
def test_kovaleva2019_on_a_glue_set(run, model, corpora, tmp_path, drawn) -> None:
    code, _, _ = run(
        "study", "kovaleva2019", "--model", model, "--data", corpora, "-o", tmp_path, "--seeds", 1, "--epochs", 1,
        "--task", "mrpc", "--max-examples", 17, "--figures",
    )  # fmt: skip
    assert code == 0
    similarity = heads.read_table(tmp_path / "texts_task.nc")["similarity"]
    assert similarity.sizes["run"] == 1
    assert 0.5 < float(similarity.min()) <= float(similarity.max()) <= 1
    # The texts are the test split: of MRPC, its development set.
    assert heads.read_table(tmp_path / "texts.nc").attrs["part"] == "21 of 21 test examples"
    assert runs.read(tmp_path / "runs" / "mrpc").settings["examples"]["train"] == 17
    assert {f"kovaleva2019-figure-{name}" for name in ("5", "6-tuned", "7-tuned", "8", "9")} <= set(drawn)
    effects = heads.read_table(tmp_path / "effects_task.nc")
    assert (effects.sizes["run"], int(effects["examples"][0])) == (1, 21)
    assert (tmp_path / "effects" / "summary.csv").is_file()
    sheet = (tmp_path / "kovaleva2019.md").read_text()
    (row,) = [line for line in sheet.splitlines() if "| similarity of maps before and after, last sixth" in line]
    least = float(similarity.isel(layer=-1).mean())
    assert f"| {least:.3f} (1 run) |" in row
    metric = next(iter(json.loads(effects.attrs["metrics"])))["name"]
    gain = 100 * float(effects[f"effect_{metric}"].mean())
    (row,) = [line for line in sheet.splitlines() if "| gain from disabling one head, average head" in line]
    assert f"| {gain + 0.0:.2f} (1 run) |" in row
    (row,) = [line for line in sheet.splitlines() if "| gain from disabling one head, best head" in line]
    assert "| not measured | the best head is chosen on other runs than it is scored on; take 2 seeds; " in row


@pytest.mark.full
def test_aspects2019(model, corpora, tmp_path, drawn, monkeypatch) -> None:
    trusted: list[bool] = []
    measure_runs = runner.measure_runs

    def watched(*given, trust_remote_code: bool, **settings):
        trusted.append(trust_remote_code)
        return measure_runs(*given, **settings)

    monkeypatch.setattr(runner, "measure_runs", watched)
    made = study(
        "aspects2019",
        str(model),
        corpora,
        tmp_path,
        seeds=1,
        epochs=1,
        max_examples=31,
        figures=True,
        trust_remote_code=True,
    )
    assert trusted == [True, True]
    accuracy = made.tables["pairs_task"]["aspect_accuracy"] - made.tables["pairs"]["aspect_accuracy"]
    changed = made.tables["change_same_aspect"]["change"].sel(group="task")
    np.testing.assert_allclose(changed, accuracy.isel(run=0).sel(target="same_aspect").transpose("layer", "head"))
    assert {"aspects2019-best-heads", "aspects2019-change-same-aspect"} <= set(drawn)
    # What was left out is told once, though the control leaves it out too.
    count = runs.read(tmp_path / "runs" / "aspects").settings["skipped"]["reading"]
    left_out = count["training examples beyond a sample of 31"]
    sheet = (tmp_path / "aspects2019.md").read_text().splitlines()
    assert sheet.count(f"- left out of the task: {left_out:,} training examples beyond a sample of 31.") == 1
    mass = made.tables["pairs_task"]["aspect_mass"].sel(target="same_aspect").isel(run=0)
    layer, head = divmod(int(mass.values.argmax()), mass.sizes["head"])
    best = finding(made, "attention to the aspect's words in the review, best head").ours
    assert (best.number, best.detail) == (pytest.approx(100 * float(mass.max())), f"{layer + 1}-{head + 1}")
    assert "## The best head for each target, before and after fine-tuning" in sheet
    shown = pd.read_csv(tmp_path / "aspects2019-targets.csv", keep_default_na=False, index_col=[0, 1])
    assert shown.loc[("same aspect", "aspects"), "best head"] == best.detail
    assert float(shown.loc[("same aspect", "aspects"), "attention"]) == pytest.approx(best.number)
    before = made.tables["pairs"].sel(target="same_aspect")
    place = np.unravel_index(int(before["aspect_mass"].values.argmax()), before["aspect_mass"].shape)
    columns = {"attention": before["aspect_mass"][place], "points at it": before["aspect_accuracy"][place],
               "even attention": before["aspect_uniform"]}  # fmt: skip
    for column, value in columns.items():
        assert float(shown.loc[("same aspect", "none"), column]) == pytest.approx(100 * float(value))
    essays = finding(made, "attention to words of another aspect, the essay's head")
    assert (essays.verdict, essays.why) == ("not measured", "the model has no head 11-4")


REFUSALS = {
    "no runs": (("zhao2020", "--seeds", "0"), "--seeds is 0; give 1 or more."),
    "epochs of nothing": (
        ("zhao2020", "--epochs", "3"),
        "nothing is fine-tuned without seeds; give --seeds, the number of runs, as well.",
    ),
    "a learning rate of nothing": (
        ("zhao2020", "--seeds", "3", "--learning-rate", "0"),
        "the learning rate 0.0 is not above 0; give one such as 4e-5.",
    ),
    "a study that tunes nothing": (
        ("clark2019", "--seeds", "3"), "the study clark2019 fine-tunes nothing; leave out --seeds."
    ),
    "another task": (
        ("kovaleva2019", "--seeds", "3", "--task", "negation"),
        "the study kovaleva2019 does not fine-tune on 'negation'; it does on mrpc, rte, cola, sst2, stsb, wnli.",
    ),
    "recorded runs and new ones": (
        ("zhao2020", "--seeds", "3", "--recorded", "."),
        "recorded scores need no fine-tuning; give --recorded or --seeds, not both.",
    ),
    "a split that is none": (
        ("zhao2020", "--seeds", "2", "--select", "dev"),
        "--select is 'dev'; give validation or test.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_code_2(run, model, corpora, tmp_path, case) -> None:
    command, sentence = REFUSALS[case]
    code, _, complaint = run("study", *command, "--model", model, "--data", corpora, "-o", tmp_path / "out")
    assert code == 2
    assert complaint.splitlines()[-1] == f"headscope: {sentence}"
