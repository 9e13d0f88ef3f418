"""Recorded scores of models that the paper does not have: made up, with what must be found planted in them."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import kendalltau, mannwhitneyu, permutation_test, rankdata, wilcoxon

from headscope import study_recorded
from headscope.errors import CorpusError, HeadscopeError
from headscope.studies import STUDIES
from headscope.studies.findings import Finding
from headscope.studies.recorded import judge_recording, render_markdown, show
from headscope.studies.sheet import lay_out, make_printed_tables, make_table
from headscope.studies.study import Claim, Value
from headscope.view.lines import print_grid

ZHAO = STUDIES["zhao2020"]
LAYERS, HEADS, RUNS, CONTROLS = 7, 5, 11, 3
BEST = (4, 2)
CORPORA = ("story", "review")
SWAPPED = {"pretrained": "pretrained", "neg": "control", "control": "neg"}


def arrays(layers: int = LAYERS, heads: int = HEADS, runs: int = RUNS, controls: int = CONTROLS) -> dict:
    """Scores of which head 5-3 is best, and rises by 0.2 in the task, as all do by 0.02; none in the control."""
    draw = np.random.default_rng(0)
    made = {}
    for corpus in CORPORA:
        before = draw.uniform(0.1, 0.4, (layers, heads, 3))
        before[BEST] = 0.6
        gain = np.full((layers, heads, 1), 0.02)
        gain[BEST] = 0.2
        made[f"{corpus}_pretrained"] = before
        made[f"{corpus}_neg"] = before + gain + draw.normal(0, 0.003, (runs, layers, heads, 3))
        made[f"{corpus}_control"] = before + draw.normal(0, 0.003, (controls, layers, heads, 3))
    return made


def save(folder: Path, name: str = "mine", **changed) -> Path:
    path = folder / f"{name}.npz"
    np.savez(path, **{key: array for key, array in (arrays() | changed).items() if array is not None})
    return path


def frames(path: Path) -> dict[str, pd.DataFrame]:
    printed = make_printed_tables(ZHAO, judge_recording(ZHAO, ZHAO.recording, path).tables)
    return {name: frame for name, (_, frame) in printed.items()}


def test_table_3_is_mean_and_deviation_over_runs(tmp_path) -> None:
    given, table = arrays(), frames(save(tmp_path))["table-3"]
    assert table["head"].unique().tolist() == ["average", "best (5-3)"]
    for group, setting in (("neg", "negation"), ("control", "control")):
        runs = given[f"story_{group}"]
        for place, letter in enumerate(("P", "R", "F1")):
            for head, values in (
                ("average", [np.mean(run[..., place]) for run in runs]),
                ("best (5-3)", [run[BEST][place] for run in runs]),
            ):
                (row,) = table[(table["head"] == head) & (table["tuned on"] == setting)].to_dict("records")
                assert row["runs"] == len(runs)
                assert row[letter] == pytest.approx(100 * sum(values) / len(values))
                assert row[f"{letter} sd"] == pytest.approx(100 * np.sqrt(np.mean((values - np.mean(values)) ** 2)))


def test_tests_are_scipys(tmp_path) -> None:
    given, table = arrays(), frames(save(tmp_path))["tests"]
    task, control = (given[f"story_{group}"][..., 2].mean((1, 2)) for group in ("neg", "control"))
    (row,) = table[(table["score"] == "F1") & (table["of"] == "average head")].to_dict("records")
    assert row["negation against control"] == pytest.approx(mannwhitneyu(task, control, method="exact").pvalue)
    before = given["story_pretrained"][..., 2].mean()
    assert row["negation against before"] == pytest.approx(wilcoxon(task - before, method="exact").pvalue)
    assert row["control against before"] == pytest.approx(wilcoxon(control - before, method="exact").pvalue)
    taus = [
        [kendalltau(one[..., 2].ravel(), other[..., 2].ravel()).statistic for one, other in zip(*pair, strict=True)]
        for pair in ((given[f"story_{group}"], given[f"review_{group}"]) for group in ("neg", "control"))
    ]
    (row,) = table[(table["score"] == "F1") & (table["of"] == "consistency")].to_dict("records")
    # Taus of few heads are tied, for which scipy has no exact rank-sum test; all 364 deals of the ranks are one.
    ranks = np.split(rankdata(np.concatenate(taus)), [RUNS])
    dealt = permutation_test(ranks, lambda one, other: one.sum(), n_resamples=np.inf)
    assert row["negation against control"] == pytest.approx(dealt.pvalue)


def test_tables_4_and_a4_are_kendalls(tmp_path) -> None:
    given, tables = arrays(), frames(save(tmp_path))
    one, other = (given[f"{corpus}_neg"][..., 1] for corpus in CORPORA)
    found = [kendalltau(a.ravel(), b.ravel()) for a, b in zip(one, other, strict=True)]
    row = tables["table-4"].set_index("tuned on").loc["negation"]
    assert row["R tau"] == pytest.approx(np.mean([tau.statistic for tau in found]))
    assert row["R tau sd"] == pytest.approx(np.std([tau.statistic for tau in found]))
    assert row["R sig"] == sum(tau.pvalue < 0.05 for tau in found)
    before = given["story_pretrained"][..., 1]
    found = [kendalltau(before.ravel(), (run - before).ravel()) for run in one]
    row = tables["table-A4"].set_index("tuned on").loc["negation"]
    assert row["R tau"] == pytest.approx(np.mean([tau.statistic for tau in found]))
    assert row["R pos"] == sum(tau.pvalue < 0.05 and tau.statistic > 0 for tau in found)
    assert row["R neg"] == sum(tau.pvalue < 0.05 and tau.statistic < 0 for tau in found)


@pytest.mark.parametrize(("layers", "heads", "runs", "controls"), [(24, 16, 3, 2), (6, 12, 1, 1), (5, 3, 2, 7)])
def test_any_shape_and_any_number_of_runs(tmp_path, layers, heads, runs, controls) -> None:
    np.savez(tmp_path / "other.npz", **arrays(layers, heads, runs, controls))
    model = judge_recording(ZHAO, ZHAO.recording, tmp_path / "other.npz")
    assert f"{layers} layers of {heads} heads, {runs} run" in model.shape
    made = make_printed_tables(ZHAO, model.tables)
    assert set(made) == {"table-3", "table-4", "table-A4", "tests"}
    assert made["table-3"][1]["runs"].tolist() == ["", controls, runs] * 2
    assert made["table-3"][1]["head"].iloc[-1] == "best (5-3)"
    assert "nan" not in render_markdown("zhao2020", ZHAO, [model])


@pytest.mark.full
@pytest.mark.parametrize(("runs", "controls"), [(100, 37), (1, 1)])
def test_nothing_is_cut_at_80_columns(tmp_path, runs, controls) -> None:
    path = save(tmp_path, **arrays(runs=runs, controls=controls))
    for name, (made, frame) in make_printed_tables(ZHAO, judge_recording(ZHAO, ZHAO.recording, path).tables).items():
        shown, console = lay_out(made, frame), Console(file=io.StringIO(), width=80)
        print_grid(make_table(shown), console)
        said = console.file.getvalue()
        assert max(map(len, said.splitlines())) <= 80
        lines = iter(said.splitlines())
        for row in shown.itertuples(index=False):  # whole, and in a line of their own
            assert any(all(str(cell) in line for cell in row) for line in lines), (name, row)


def test_one_run_has_no_spread_and_its_tests_can_show_nothing(tmp_path) -> None:
    path = save(tmp_path, "bert-base", **arrays(runs=1, controls=1))
    model = judge_recording(ZHAO, ZHAO.recording, path)
    page = render_markdown("zhao2020", ZHAO, [model])
    assert "±" not in page.partition("### Claims")[0].partition("## bert-base")[2]
    assert "|  | least possible | 1.000 | 1.000 | 1.000 |" in page
    spread = finding(path, "F1, average head, tuned on negation, sd over runs")
    assert (spread.verdict, spread.why) == ("not measured", "a single run has no standard deviation; take more seeds")


def test_counts_of_another_number_of_runs_are_not_held_against_the_papers(tmp_path) -> None:
    found = judge_recording(ZHAO, ZHAO.recording, save(tmp_path, "bert-large")).findings
    counts = [one for one in found if one.ours and one.claim.unit == "runs"]
    assert len(counts) == 15
    assert {(one.verdict, one.ours.detail) for one in counts} == {("shown", "of 11 runs"), ("shown", "of 3 runs")}


def test_a_model_that_the_paper_does_not_have_is_judged_by_what_the_claims_say_of_any(tmp_path) -> None:
    model = judge_recording(ZHAO, ZHAO.recording, save(tmp_path))
    assert {one.claim.model for one in model.findings} == {"BERT-base", ""}
    assert {one.verdict for one in model.findings} == {"holds", "unclear", "shown", "not measured"}
    assert not any(one.same for one in model.findings)
    sheet = render_markdown("zhao2020", ZHAO, [model])
    assert "The paper has no model of this name; it has BERT-base, BERT-large, RoBERTa-base, RoBERTa-large." in sheet
    assert "best (5-3)" in sheet
    show(ZHAO, [model], console := Console(file=io.StringIO(), width=80), whole=True)
    holding = f"{sum(one.verdict == 'holds' for one in model.findings)} hold, "
    assert f"about BERT-base, as the paper has no model of this name: {holding}" in console.file.getvalue()


@pytest.mark.parametrize(
    ("name", "swapped", "verdict"),
    [
        ("mine", False, "holds"),
        ("mine", True, "fails"),
        ("roberta-base", False, "holds"),
        ("roberta-base", True, "fails"),
        # The paper finds no difference here, which no test can show, and a difference refutes.
        ("bert-large", False, "fails"),
        ("bert-large", True, "fails"),
    ],
)
def test_task_against_control_is_judged_with_its_sign(tmp_path, name, swapped, verdict) -> None:
    given = arrays()
    if swapped:
        given = {f"{corpus}_{SWAPPED[group]}": given[f"{corpus}_{group}"] for corpus in CORPORA for group in SWAPPED}
    one = finding(save(tmp_path, name, **given), "p of task against control, F1, average head")
    of_runs = [given[f"story_{group}"][..., 2].mean((1, 2)) for group in ("neg", "control")]
    test = mannwhitneyu(*of_runs, method="exact")
    assert one.ours.number == pytest.approx(test.pvalue)
    assert test.statistic == (0 if swapped else RUNS * CONTROLS)  # all pairs of runs say the same
    assert one.verdict == verdict


def test_a_tau_between_corpora_that_is_not_significant_is_unclear(tmp_path) -> None:
    path, given = save(tmp_path), arrays()
    for place, letter in enumerate(("P", "R", "F1")):
        test = kendalltau(*(given[f"{corpus}_pretrained"][..., place].ravel() for corpus in CORPORA))
        one = finding(path, f"Kendall's tau between the corpora, {letter}")
        assert one.ours.number == pytest.approx(test.statistic)
        assert one.ours.p == pytest.approx(test.pvalue)
        assert test.pvalue > 0.05
        assert one.verdict == "unclear"
    alike = save(tmp_path, "alike", review_pretrained=given["story_pretrained"])
    assert finding(alike, "Kendall's tau between the corpora, F1").verdict == "holds"


def test_groups_that_are_alike_leave_every_claim_of_a_difference_unclear(tmp_path) -> None:
    given = arrays(runs=7, controls=7)
    given |= {f"{corpus}_control": given[f"{corpus}_neg"][::-1] for corpus in CORPORA}
    for name in ("mine", "roberta-base", "bert-large"):
        tests = [one for one in judge_recording(ZHAO, ZHAO.recording, save(tmp_path, name, **given)).findings
                 if one.claim.unit == "p" and "task against control" in one.claim.what]  # fmt: skip
        assert tests
        assert {one.verdict for one in tests} == {"unclear"}


@pytest.mark.parametrize("name", ["BERT-large", "bert-large-uncased", "bert-large"])
def test_a_file_named_after_a_model_of_the_paper_is_held_against_it(tmp_path, name) -> None:
    model = judge_recording(ZHAO, ZHAO.recording, save(tmp_path, name))
    of_heads = [one for one in model.findings if one.claim.where == "table A3" and one.claim.unit == "%"]
    assert len(of_heads) == 12
    assert {one.verdict for one in of_heads} <= {"agrees", "differs"}
    assert "differs" in {one.verdict for one in of_heads}


def finding(path: Path, claim: str) -> Finding:
    (one,) = [one for one in judge_recording(ZHAO, ZHAO.recording, path).findings if one.claim.what == claim]
    return one


def test_without_reviews_the_consistency_is_told_to_be_missing(tmp_path) -> None:
    path = save(tmp_path, "bert-base", review_pretrained=None, review_neg=None, review_control=None)
    assert set(frames(path)) == {"table-3", "table-A4", "tests"}
    assert "consistency" not in set(frames(path)["tests"]["of"])
    one = finding(path, "Kendall's tau between the corpora, F1, tuned on negation")
    assert (one.verdict, one.why) == (
        "not measured",
        "bert-base.npz has no review_pretrained; bert-base.npz has no review_neg; bert-base.npz has no review_control",
    )
    sheet = render_markdown("zhao2020", ZHAO, [judge_recording(ZHAO, ZHAO.recording, path)])
    assert "- bert-base.npz has no review_neg: the table review_task is missing." in sheet


def test_an_array_that_nobody_knows_is_told(tmp_path) -> None:
    model = judge_recording(ZHAO, ZHAO.recording, save(tmp_path, story_negation=np.zeros(3)))
    assert model.warnings == ["The study does not know the array story_negation; it was left out."]


def with_at(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array.flat[7] = value
    return array


GIVEN = arrays()
REFUSALS = {
    "missing": (
        {"story_neg": None, "story_control": None},
        "{path} has no array story_neg and no story_control; it has story_pretrained, review_pretrained, review_neg, "
        "review_control. Give the scores of the heads before fine-tuning and after it as story_pretrained, story_neg, "
        "story_control, review_pretrained, review_neg, review_control.",
    ),
    "two scores": (
        {"story_pretrained": GIVEN["story_pretrained"][..., :2]},
        "story_pretrained in {path} has the shape (7, 5, 2); its axes must be layer, head, score, none of them empty, "
        "and the last 3 long: precision, recall, f1.",
    ),
    "no runs": (
        {"story_neg": GIVEN["story_neg"][:0]},
        "story_neg in {path} has the shape (0, 7, 5, 3); its axes must be run, layer, head, score, none of them empty, "
        "and the last 3 long: precision, recall, f1.",
    ),
    "a run without its axis": (
        {"story_control": GIVEN["story_control"][0]},
        "story_control in {path} has the shape (7, 5, 3); its axes must be run, layer, head, score, none of them "
        "empty, and the last 3 long: precision, recall, f1.",
    ),
    "other heads": (
        {"review_neg": GIVEN["review_neg"][:, :, :3]},
        "review_neg in {path} has the shape (11, 7, 3, 3), and story_pretrained is of 7 layers of 5 heads; give the "
        "scores of one model.",
    ),
    "other layers": (
        {"story_neg": GIVEN["story_neg"][:, :5]},
        "story_neg in {path} has the shape (11, 5, 5, 3), and story_pretrained is of 7 layers of 5 heads; give the "
        "scores of one model.",
    ),
    "other runs": (
        {"review_neg": GIVEN["review_neg"][:2]},
        "review_neg in {path} is of 2 runs, and story_neg of 11; give the scores of the same runs on both corpora.",
    ),
    "percent": (
        {"story_pretrained": 100 * GIVEN["story_pretrained"]},
        "story_pretrained in {path} holds {first} at [0, 0, 0], and 104 more that are no scores; give shares from 0 to "
        "1.",
    ),
    "not a number": (
        {"story_neg": with_at(GIVEN["story_neg"], np.nan)},
        "story_neg in {path} holds nan at [0, 0, 2, 1], and 0 more that are no scores; give shares from 0 to 1.",
    ),
    "below 0": (
        {"review_control": with_at(GIVEN["review_control"], -0.25)},
        "review_control in {path} holds -0.25 at [0, 0, 2, 1], and 0 more that are no scores; give shares from 0 to 1.",
    ),
    "words": (
        {"story_pretrained": np.full((7, 5, 3), "high")},
        "story_pretrained in {path} holds values of the type <U4; give scores as numbers.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_arrays_are_refused_by_file_and_name(run, tmp_path, case) -> None:
    changed, sentence = REFUSALS[case]
    path, out = save(tmp_path, **changed), tmp_path / "out"
    code, _, complaint = run("study", "zhao2020", "--recorded", tmp_path, "-o", out)
    assert code == 2
    first = f"{100 * GIVEN['story_pretrained'][0, 0, 0]:g}"
    assert complaint.splitlines()[-1] == f"headscope: {sentence.format(path=path, first=first)}"
    assert not out.exists()


def pickled() -> bytes:
    content = io.BytesIO()
    np.savez(content, **(arrays() | {"story_neg": np.array([{"run": 1}], dtype=object)}))
    return content.getvalue()


def single() -> bytes:
    content = io.BytesIO()
    np.save(content, np.zeros((2, 3)))
    return content.getvalue()


def zipped_text() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("story_pretrained", "0.1 0.2")
    return content.getvalue()


def halved() -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays())
    return content.getvalue()[: len(content.getvalue()) // 2]


BYTES = {
    "text": (b"P,R,F1\n0.1,0.2,0.3\n", "is no archive of plain arrays"),
    "nothing": (b"", "is no archive of plain arrays"),
    "a pickle": (b"\x80\x04K\x01.", "is no archive of plain arrays"),
    "pickled arrays": (pickled(), "is no archive of plain arrays"),
    "half a file": (halved(), "is no archive of plain arrays"),
    "a single array": (single(), "holds a single array without a name"),
    "no array": (zipped_text(), "is no archive of plain arrays (story_pretrained is no array)"),
}


@pytest.mark.parametrize("case", BYTES)
def test_a_file_that_is_no_archive_of_arrays_is_refused(tmp_path, case) -> None:
    content, sentence = BYTES[case]
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        study_recorded("zhao2020", tmp_path, tmp_path / "out")
    assert str(caught.value).startswith(f"{path} {sentence}")
    assert str(caught.value).endswith("; save the scores with numpy.savez.")


def test_folders_and_studies_without_recorded_scores_are_refused(tmp_path) -> None:
    for name, folder, sentence in (
        ("zhao2020", tmp_path, f"{tmp_path} has no .npz file; give a folder of recorded scores, with one .npz file "
         "for each model."),
        ("zhao2020", tmp_path / "a", f"{tmp_path / 'a'} is not a folder; give a folder of recorded scores, with one "
         ".npz file for each model."),
        ("clark2019", tmp_path, "there is no layout of recorded scores for the study clark2019; there is one for "
         "zhao2020."),
    ):  # fmt: skip
        with pytest.raises(HeadscopeError) as caught:
            study_recorded(name, folder, tmp_path / "out")
        assert str(caught.value) == sentence


def test_no_torch_is_loaded(tmp_path) -> None:
    save(tmp_path)
    code = (
        "import sys; from headscope import cli\ntry:\n    cli.main()\n"
        "except SystemExit as end:\n    print(end.code, 'torch' in sys.modules)"
    )
    words = [sys.executable, "-c", code, "study", "zhao2020", "--recorded", tmp_path, "-o", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr


@pytest.mark.parametrize(("printed_p", "digits", "tolerance"), [(7.578e-05, 4, 5e-9), (0.002089, 4, 5e-7)])
def test_the_tolerance_of_a_p_value_is_half_of_its_last_digit(printed_p, digits, tolerance) -> None:
    claim = Claim("text", "p", (), Value(printed_p), lambda: Value(0.0), "p", significant=digits)
    assert claim.tolerance == pytest.approx(tolerance)


def test_a_comparison_says_what_was_tuned_on(tmp_path) -> None:
    change = judge_recording(ZHAO, ZHAO.recording, save(tmp_path)).tables["change_f1"]
    assert (change.attrs["task"], change.attrs["best_head"]) == ("negation", "5-3")
    assert change["runs"].values.tolist() == [RUNS, CONTROLS]
    # Nothing says that runs of the same number had the same seed.
    assert int(change["pairs"]) == 0
