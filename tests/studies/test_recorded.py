"""The scores that Zhao and Bethard released, without any weights: their tables and tests, to the last printed digit."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from headscope.studies import STUDIES
from headscope.studies.arrays import read_recording
from headscope.studies.recorded import Recorded, judge_recording, render_markdown
from headscope.studies.sheet import format_cells, lay_out, make_printed_tables

pytestmark = pytest.mark.data

ZHAO = STUDIES["zhao2020"]
MODELS = {"bert-base": "BERT-base", "roberta-base": "RoBERTa-base"}

TABLES = {
    # As the paper prints them; RoBERTa-base's best head is in no table.
    ("bert-base", "table-3"): """\
average none 49.5 5.2 9.0
average control 48.6 ± 1.7 5.3 ± 0.2 9.0 ± 0.4
average negation 52.2 ± 2.2 6.6 ± 0.8 11.1 ± 1.2
best (8-4) none 76.2 41.5 53.8
best (8-4) control 65.0 ± 8.9 47.5 ± 11.7 53.1 ± 6.7
best (8-4) negation 82.3 ± 4.1 58.6 ± 10.8 67.7 ± 7.9
""",
    ("roberta-base", "table-3"): """\
average none 56.0 6.9 12.1
average control 53.7 ± 1.7 7.0 ± 0.3 12.0 ± 0.5
average negation 55.5 ± 1.9 7.9 ± 0.9 13.4 ± 1.4
""",
    ("bert-base", "table-4"): """\
none 0.440 0.418 0.415
control 0.438 ± 0.020 10/10 0.406 ± 0.034 10/10 0.409 ± 0.026 10/10
negation 0.469 ± 0.025 10/10 0.519 ± 0.020 10/10 0.516 ± 0.020 10/10
""",
    ("roberta-base", "table-4"): """\
none 0.438 0.472 0.471
control 0.456 ± 0.022 10/10 0.502 ± 0.023 10/10 0.487 ± 0.021 10/10
negation 0.521 ± 0.024 10/10 0.538 ± 0.033 10/10 0.531 ± 0.033 10/10
""",
    ("bert-base", "table-A4"): """\
negation -0.065 0/3 3/10 0.096 5/0 5/10 0.085 5/0 5/10
""",
    ("roberta-base", "table-A4"): """\
negation -0.134 0/7 7/10 -0.107 0/5 5/10 -0.113 0/6 6/10
""",
}

TESTS = {
    "p of task against control, F1, average head": "7.578e-05",
    "p of task against control, F1, best head": "0.002089",
    "p of task against control, consistency of F1": "1.083e-05",
    "p of Kendall's tau between the corpora, P": "5.24e-15",
    "p of Kendall's tau between the corpora, R": "1.20e-13",
    "p of Kendall's tau between the corpora, F1": "1.56e-13",
}
"""Sections 4.2.1 and 5.3, of BERT-base."""


def scores(folder: Path, name: str) -> Path:
    return folder / "negation" / "zhao_head_scores" / f"{name}.npz"


@pytest.fixture(scope="module")
def models(data) -> dict[str, Recorded]:
    return {name: judge_recording(ZHAO, ZHAO.recording, scores(data, name)) for name in MODELS}


@pytest.mark.full
@pytest.mark.parametrize(("model", "table"), TABLES)
def test_the_tables_are_the_papers_to_the_last_digit(models, model, table) -> None:
    made, frame = make_printed_tables(ZHAO, models[model].tables)[table]
    shown = lay_out(made, frame).drop(columns="runs")
    rows = [" ".join(filter(None, map(str, row))) for row in shown.itertuples(index=False)]
    wanted = TABLES[model, table].splitlines()
    assert rows[: len(wanted)] == wanted


@pytest.mark.parametrize("name", MODELS)
def test_every_figure_that_the_scores_hold_agrees(models, name) -> None:
    found = models[name].findings
    stated = [one for one in found if one.verdict not in ("not measured", "holds", "unclear")]
    assert {one.verdict for one in stated} == {"agrees"}
    for one in stated:
        _, _, paper, ours, _, _ = format_cells(one)
        assert ours.split()[0] == paper.split()[0], one.claim.what
        assert one.ours.detail in ("", one.claim.paper.detail) or "run" in one.ours.detail or "heads" in one.ours.detail
    # Table A1 without its baselines, which follow from the corpus; 12 figures of table A3, and of BERT-base 12 of table
    # 3; 18 of table 4; 12 of table A4; the taus and the tests.
    of = {where: sum(one.claim.where == where for one in stated) for where in {one.claim.where for one in stated}}
    if name == "bert-base":
        assert of == {"table 1": 6, "table 3": 24, "table 4": 18, "table A4": 12, "figure 2": 3, "section 4.2.1": 5,
                      "section 5.3": 3}  # fmt: skip
    else:
        assert of == {"table A1": 6, "table A3": 12, "table A5": 18, "table A4": 12, "figure A3": 3}


def test_the_p_values_are_the_papers(models) -> None:
    found = {one.claim.what: one for one in models["bert-base"].findings}
    for what, p in TESTS.items():
        assert found[what].verdict == "agrees"
        assert format_cells(found[what])[3].split()[0] == format_cells(found[what])[2].split()[0] == p


@pytest.mark.parametrize(("name", "verdicts"), [("bert-base", ["holds"] * 2), ("roberta-base", ["holds", "unclear"])])
def test_the_layers_of_the_figures(models, name, verdicts) -> None:
    found = [one for one in models[name].findings if one.claim.what.startswith("mean change of F1, half")]
    assert [one.verdict for one in found] == verdicts


def swap(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays, of which those of task and control have changed names."""
    other = {"neg": "control", "control": "neg", "pretrained": "pretrained"}
    return {f"{corpus}_{other[group]}": arrays[f"{corpus}_{group}"] for corpus, group in (n.split("_") for n in arrays)}


@pytest.mark.parametrize(
    ("name", "swapped", "verdicts"),
    [
        # With p < .05 either way: average head, best head, consistency.
        ("bert-base", False, ["holds", "holds", "holds"]),
        ("bert-base", True, ["fails", "fails", "fails"]),
        # RoBERTa-base's p of its best head is 0.2176.
        ("roberta-base", False, ["holds", "unclear", "holds"]),
        ("roberta-base", True, ["fails", "unclear", "fails"]),
    ],
)
def test_claims_have_a_direction(data, tmp_path, name, swapped, verdicts) -> None:
    with np.load(scores(data, name)) as file:
        arrays = dict(file)
    np.savez(tmp_path / "another.npz", **(swap(arrays) if swapped else arrays))
    model = judge_recording(ZHAO, ZHAO.recording, tmp_path / "another.npz")
    tests = [one for one in model.findings if one.claim.where == "section 5.3"]
    assert [one.verdict for one in tests] == verdicts
    assert not any(one.same for one in model.findings)
    for group, other in (("task", "control"), ("control", "task")):
        f1 = [model.tables[f"story_{of}"]["scope_f1"].mean(("layer", "head")) for of in (group, other)]
        p = mannwhitneyu(*f1, alternative="greater").pvalue
        assert (p < 0.025) == (swapped == (group == "control"))
    # What is said of the tasks in other places has the same direction.
    gains = [one for one in model.findings if "tuned on negation" in one.claim.what and one.claim.pattern]
    assert ("holds" in {one.verdict for one in gains}) == (not swapped)


def test_the_papers_own_model_with_task_and_control_swapped_differs(data, tmp_path) -> None:
    with np.load(scores(data, "bert-base")) as file:
        np.savez(tmp_path / "bert-base.npz", **swap(dict(file)))
    found = judge_recording(ZHAO, ZHAO.recording, tmp_path / "bert-base.npz").findings
    assert [one.verdict for one in found if one.claim.where == "section 5.3"] == ["differs"] * 3


def test_what_was_not_released_is_not_measured_and_says_why(models) -> None:
    missing = {one.claim.what: one.why for one in models["bert-base"].findings if one.verdict == "not measured"}
    assert missing["P, all in scope"] == "the table has no scope_all_precision"
    assert missing["coefficient of the scope, best head"] == "the table has no scope_label_coefficient"
    assert missing["F1 at the task, tuned on negation"] == (
        "recorded scores are those of heads; the scores of the models on the task are not among them"
    )
    corrected = "Kendall's tau, F1 before in one half of the texts and its change in the other"
    assert missing[corrected] == ("it needs the counts of each part of the corpus, which recorded scores do not have")
    assert len(missing) == 9 + 4 + 14 + 2


def test_the_misprints_are_named(models) -> None:
    named = {one.claim.where: one for one in models["roberta-base"].findings if "misprint" in one.claim.note}
    assert set(named) == {"table A1", "table A2"}
    best = named["table A1"]
    assert (best.claim.what, best.ours.detail, best.verdict) == ("P, best head", "9-12", "agrees")
    assert f"{best.ours.number:.1f}" == "82.9"
    sheet = render_markdown("zhao2020", ZHAO, [models["bert-base"]], with_figures=True)
    assert "misprint: " not in sheet.lower()  # one sentence each, which says it once
    for figure in ("figure-4", "figure-5"):
        assert f"](<figures/bert-base/{figure}.png>)" in sheet
    assert "- Table A1 misprints P of RoBERTa-base's best head as 92.9: the scores" in sheet
    assert "- Table A2 has a misprint in P = 97.2, R = 92.9 and F1 = 95.9 of RoBERTa-base tuned on negation: " in sheet


@pytest.mark.full
def test_the_command_writes_everything_and_needs_no_weights(run, data, tmp_path, monkeypatch) -> None:
    def save(figure: object, folder: Path, name: str, *, pdf: bool, bare: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("drawn")

    monkeypatch.setattr("headscope.view.figures.save", save)
    recorded = scores(data, "x").parent
    code, said, _ = run("study", "zhao2020", "--recorded", recorded, "--figures", "--table", "-o", tmp_path)
    assert code == 0
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    files = ("table-3.csv", "table-4.csv", "table-A4.csv", "tests.csv")
    figures = {f"figures/{model}/{figure}" for model in MODELS for figure in ("figure-4", "figure-5")}
    tables = {f"{model}/{file}" for model in MODELS for file in files}
    assert written == {"zhao2020.md", "zhao2020.csv", "zhao2020.json", *tables, *figures}
    assert "102 claims about BERT-base, by the file's name: 71 agree, 2 hold" in said
    assert "Table A1 misprints P of RoBERTa-base's best head as 92.9" in said.replace("\n", " ")
    with (tmp_path / "bert-base" / "table-3.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [round(float(row["F1"]), 1) for row in rows] == [9.0, 9.0, 11.1, 53.8, 53.1, 67.7]
    assert rows[1]["runs"] == "10"


def test_tables_read_from_the_file_name_its_model(data) -> None:
    tables, absent, unread = read_recording(ZHAO, ZHAO.recording, scores(data, "roberta-base"))
    assert {table.attrs["model"] for table in tables.values()} == {"roberta-base"}
    assert tables["story"].scope_f1.sel(layer=9, head=12) == tables["story"].scope_f1.max()
    assert (set(absent), unread) == ({"tuned_task", "tuned_control"}, ())


def test_the_documentation_shows_these_figures(models) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "reproduce-a-paper.md").read_text()
    for name, model in models.items():
        agree = sum(one.verdict == "agrees" for one in model.findings)
        table, frame = make_printed_tables(ZHAO, model.tables)["tests"]
        of = lay_out(table, frame).set_index(["score", "of"])["negation against control"]
        ps = [of["F1", what] for what in ("average head", "best head", "consistency")]
        assert f"| {' | '.join((MODELS[name], str(agree), *ps))} |" in page
