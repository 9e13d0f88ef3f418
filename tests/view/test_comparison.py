"""A comparison in words: its numbers by hand, by scipy and, of the released scores, by the paper."""

import io
from collections.abc import Sequence

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import mannwhitneyu, t, ttest_ind

from headscope.analyse import Consistencies
from headscope.view.comparison_frames import make_frames
from headscope.view.comparison_report import list_sections, render_markdown
from headscope.view.comparison_summary import print_comparisons
from view.comparisons import comparison, drawn, released


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the tables below a heading, without the first lines of each."""
    part = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [
        row
        for place, row in enumerate(cells)
        if "---" not in row[0] and "---" not in (cells[place + 1 :] or [row])[0][0]
    ]


def said(changed, width: int = 80, *, whole: bool = True) -> str:
    text = io.StringIO()
    print_comparisons([changed], Console(file=text, width=width), whole=whole)
    return text.getvalue()


def percent(values: Sequence[float]) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values):.1f}"


def test_average_and_best_head_with_the_interval_of_their_change() -> None:
    before, afters = drawn(runs=(7, 5))
    page = render_markdown([comparison(before, afters)])
    best = np.unravel_index(before.argmax(), before.shape)
    expected = []
    for name, start, ends in (
        ("average", before.mean(), [after.mean((1, 2)) for after in afters]),
        (f"best before, {best[0] + 1}-{best[1] + 1}", before.max(), [after[:, *best] for after in afters]),
    ):
        gains = []
        middles = [values.mean() - start for values in ends]
        halves = [t.ppf(0.975, len(one) - 1) * one.std(ddof=1) / np.sqrt(len(one)) for one in ends]
        welch = ttest_ind(*ends, equal_var=False).confidence_interval(0.95)
        middles, halves = [*middles, (welch.low + welch.high) / 2], [*halves, (welch.high - welch.low) / 2]
        for middle, half in zip(middles, halves, strict=True):
            numbers = (f"{100 * value:+.1f}".replace("-", "−") for value in (middle, middle - half, middle + half))
            gains.append("{} [{}, {}]".format(*numbers))
        gains.append(f"{ends[0].std(ddof=1) / ends[1].std(ddof=1):.2g}")
        expected.append(["scope F1 (% of words)", name, f"{100 * start:.1f}", *map(percent, ends), *gains])
    assert rows(page, "Before and after") == expected
    assert page.startswith(
        "# What fine-tuning on negation changes in the heads of tiny/bert\n\n"
        "story.json, 757 documents; negation, 7 runs and control, 5 runs; 35 heads.\n\n## Before and after\n"
    )


def test_each_test_with_its_runs_and_the_smallest_p_that_they_can_give() -> None:
    before, afters = drawn(runs=(7, 5))
    found = rows(render_markdown([comparison(before, afters)]), "Tests")
    means = [after.mean((1, 2)) for after in afters]
    p, welch = mannwhitneyu(*means, method="exact").pvalue, ttest_ind(*means, equal_var=False).pvalue
    assert found[0] == ["scope F1", "average", "negation against control, rank-sum", "7 + 5", f"{p:.4g}", "0.002525"]
    assert found[1][:4] + found[1][5:] == ["scope F1", "average", "negation against control, Welch", "7 + 5", ""]
    assert float(found[1][4]) == pytest.approx(welch, rel=1e-3)
    tests = [row[2:4] + row[5:] for row in found[:5]]
    assert tests[2:] == [
        ["negation against control by seed, signed-rank", "5 pairs", "0.0625"],
        ["negation against before, signed-rank", "7", "0.01562"],
        ["control against before, signed-rank", "5", "0.0625"],
    ]
    assert len(found) == 10


RANK_SUM = (
    "Null of p and q: the runs of negation and of the control have one distribution, so unequal spreads alone can make "
    "them small."
)
WELCH = (
    "Null of Welch's p and q: the means are equal, whatever the spreads; runs are taken as about normal. Ratio of "
    "spreads: the task's standard deviation over runs divided by the control's (ddof 1)."
)


def test_the_null_of_each_test_is_stated() -> None:
    changed = comparison(*drawn(runs=(5, 5)))
    for text in (render_markdown([changed]), " ".join(said(changed).split())):
        assert text.count(RANK_SUM) == text.count(WELCH) == 1
    few = comparison(*drawn(runs=(1, 3)))
    needs = "Welch's p and the ratio of spreads need two runs of each group at least."
    for text in (render_markdown([few]), " ".join(said(few).split())):
        assert needs in text
        assert WELCH not in text
    assert "against control, Welch" not in render_markdown([few])
    alone = comparison(*drawn(runs=(7,)))
    for text in (render_markdown([alone]), said(alone, 200)):
        assert "Null of p and q: the changes with negation are symmetric around 0.\n" in text
        assert "Welch's" not in text.replace("of two, by Welch's.", "")
        assert "spreads" not in text


def test_how_many_heads_a_small_q_needs() -> None:
    least = "With 5 against 5 runs, p is 0.00794 at least: no head has q ≤ 0.05 unless at least 12 of 72 heads have it."
    changed = comparison(*drawn(6, 12, runs=(5, 5)))
    for text in (render_markdown([changed]), said(changed, 200)):
        assert text.count(least) == 1
    enough = comparison(*drawn(runs=(7, 7)))
    assert "With 7 against 7 runs, p is 0.000583 at least: one head of 35 with that p has q ≤ 0.05." in said(
        enough, 200
    )
    alone = comparison(*drawn(runs=(10,)))
    assert "With 10 runs, p is 0.00195 at least: no head has q ≤ 0.05 unless at least 2 of 35 heads have it." in said(
        alone, 200
    )
    assert "unless at least" not in said(comparison(*drawn(runs=(3, 3))))


def test_a_small_q_of_unequal_spreads_is_no_difference_of_means() -> None:
    draw = np.random.default_rng(3)
    before, control = np.full((3, 5), 0.3), 0.3 + draw.normal(0, 0.01, (10, 3, 5))
    # In the first head's runs most are a little higher and one is far lower, so that the mean is the same.
    task = 0.3 + draw.normal(0, 0.01, (10, 3, 5))
    task[:, 0, 0] = 0.35 + draw.normal(0, 0.001, 10)
    task[0, 0, 0] -= 0.5
    task[:, 1, 2] += 0.2
    changed = comparison(before, [task, control])
    ratio = task.std(0, ddof=1) / control.std(0, ddof=1)
    count = int(((ratio > 2) | (ratio < 0.5)).sum())
    assert count >= 1
    unequal = (
        f"Where spreads differ by more than a factor of 2 ({count} of 15 heads), a small p alone is no sign of unequal "
        "means."
    )
    page, text = render_markdown([changed]), said(changed, 200)
    assert (
        "2 of 15 heads have q ≤ 0.05, 1 of them also Welch's q ≤ 0.05: 1 are higher than with the control, 0 lower."
        in (page)
    )
    assert "Heads with q ≤ 0.05: 2 of 15; Welch's q too: 1\n" in text
    assert page.count(unequal) == text.count(unequal) == 1


def test_a_control_whose_runs_do_not_differ_has_no_ratio_of_spreads_that_is_finite() -> None:
    before, (task, control) = drawn(runs=(4, 4))
    control[:] = control[0]
    page = render_markdown([comparison(before, [task, control])])
    assert [row[-1] for row in rows(page, "Before and after")] == ["∞", "∞"]
    task[:] = task[0]
    page = render_markdown([comparison(before, [task, control])])
    assert [row[-1] for row in rows(page, "Before and after")] == ["", ""]
    assert "Where spreads differ" not in page


def test_three_runs_against_three_are_said_to_be_too_few() -> None:
    changed = comparison(*drawn(runs=(3, 3)))
    few = (
        "With 3 against 3 runs, p is 0.1 at least: this test cannot show whether the task changes more than its "
        "control; tune more seeds."
    )
    page = render_markdown([changed])
    assert page.count(few) == 2
    assert "heads have q" not in page
    assert few in " ".join(said(changed).split())
    enough = comparison(*drawn(runs=(4, 4)))
    assert "tune more seeds" not in render_markdown([enough]) + said(enough)
    alone = comparison(*drawn(runs=(1,)))
    assert "With 1 run, p is 1 at least: this test cannot show whether tuning changes anything" in render_markdown(
        [alone]
    )


def test_layers_and_heads_in_their_tables() -> None:
    before, afters = drawn(7, 3, runs=(5, 4))
    afters[1][:, 0] += 0.3  # the control's
    changed = comparison(before, afters)
    page = render_markdown([changed])
    layers = rows(page, "Layers")
    assert [row[0] for row in layers] == [str(layer) for layer in range(1, 8)]
    assert [float(row[1]) for row in layers] == pytest.approx(100 * before.mean(1), abs=0.05)
    gains = [float(row[2].split(" [")[0].replace("−", "-")) for row in layers]
    assert gains == pytest.approx(100 * (afters[0].mean((0, 2)) - before.mean(1)), abs=0.05)
    assert [float(row[5]) for row in layers] == pytest.approx(changed["layer_q"].values, rel=1e-3)
    change = np.abs(afters[0].mean(0) - before)
    order = np.argsort(-change, axis=None)[:10]
    heads = rows(page, "The heads that change most")
    assert [row[0] for row in heads] == [f"{place // 3 + 1}-{place % 3 + 1}" for place in order]
    layer, head = divmod(int(order[0]), 3)
    assert heads[0][1:3] == [f"{100 * before[layer, head]:.1f}", percent(afters[0][:, layer, head])]
    outcomes = [changed[name].values[layer, head] for name in ("p", "q", "welch_p", "welch_q")]
    assert [float(cell) for cell in heads[0][-5:-1]] == pytest.approx(outcomes, rel=1e-3)
    outcomes = changed[["layer_p", "layer_q", "layer_welch_p", "layer_welch_q"]].to_array().values.T
    np.testing.assert_allclose([[float(cell) for cell in row[4:8]] for row in layers], outcomes, rtol=1e-3)
    assert [row[8] for row in layers] == [f"{ratio:.2g}" for ratio in changed["layer_spread_ratio"].values]
    small = changed["q"].values <= 0.05
    standing = small & (changed["welch_q"].values <= 0.05)
    more = afters[0].mean(0) > afters[1].mean(0)
    above = int((standing & more).sum())
    assert standing.sum() > above > 0
    assert (
        f"{small.sum()} of 21 heads have q ≤ 0.05, {standing.sum()} of them also Welch's q ≤ 0.05: {above} are higher "
        f"than with the control, {standing.sum() - above} lower."
    ) in page


def test_what_has_another_unit_is_not_in_percent() -> None:
    before, afters = drawn(runs=(3, 2))
    (average, _) = rows(
        render_markdown([comparison(before, afters, variable="entropy", units="nats")]), "Before and after"
    )
    assert average[:3] == ["entropy (nats)", "average", f"{before.mean():.3f}"]


def test_both_taus_and_one_sentence_on_the_bias() -> None:
    changed = comparison(*drawn(runs=(3, 2)))
    without = render_markdown([changed, changed])
    assert without.count("so chance in the score before is in both with opposite signs") == 1
    assert without.count("There is no corrected τ where the tables have no sums by fold.") == 1
    assert [row[-1] for row in rows(without, "Change against baseline (do the rich get richer?)")] == ["none"] * 4
    taus, ps = np.array([[-0.3, -0.1, 0.2], [0.1, 0.3, np.nan]]), np.array([[0.01, 0.2, 0.03], [0.04, 0.5, np.nan]])
    known = {"baseline_tau": taus, "baseline_p": ps, "baseline_tau_corrected": taus + 0.25}
    changed = changed.assign({name: changed[name].copy(data=values) for name, values in known.items()})
    page = render_markdown([changed])
    assert rows(page, "Change against baseline (do the rich get richer?)") == [
        ["scope F1", "negation", "−0.067 ± 0.205", "2/3", "1 / 1", "0.183 ± 0.205"],
        ["scope F1", "control", "0.200 ± 0.100", "1/2", "1 / 0", "0.450 ± 0.100"],
    ]
    assert "There is no corrected" not in page
    assert "τ −0.067 ± 0.205 as published, which chance pulls down; 0.183 ± 0.205 corrected" in said(changed, 200)


def test_where_nothing_changes_no_head_is_named_and_there_is_no_tau() -> None:
    before, afters = drawn(runs=(3, 2))
    changed = comparison(before, [np.repeat(before[None], len(after), 0) for after in afters])
    page = render_markdown([changed])
    assert rows(page, "The heads that change most") == []
    assert [row[2] for row in rows(page, "Change against baseline (do the rich get richer?)")] == ["none", "none"]
    why = "no τ where all heads score the same before, or all change by the same"
    assert f" There is {why}. " in page
    text = said(changed, 200)
    assert "Changing most: no head changes" in text
    assert f"Change against baseline (do the rich get richer?): {why}\n" in text


def test_where_attention_goes_is_no_score() -> None:
    attention = comparison(*drawn(), variable="token_class_mass")
    assert "rich" not in render_markdown([attention])
    assert "rich" not in said(attention)
    page = render_markdown([comparison(*drawn()), attention])
    assert [row[0] for row in rows(page, "Change against baseline (do the rich get richer?)")] == ["scope F1"] * 2
    assert "\nNo p or q on this page is corrected for there being 2 variables.\n" in page


def test_consistency_that_cannot_be_told_is_not_tested() -> None:
    names, nothing = ("seed-1", "seed-2"), (np.nan, np.nan)
    found = {of: [Consistencies("scope_f1", 35, names, nothing, nothing)] for of in ("negation", "control")}
    page = render_markdown([comparison(*drawn())], found)
    assert rows(page, "Do the same heads score well on the other corpus?")[0] == ["scope F1", "negation", "none", "0/2"]
    assert "rank-sum, p = " not in page.partition("## Do the same heads")[2]


def test_consistency_between_corpora_where_it_is_given() -> None:
    taus = {"before": (0.4,), "control": (0.3, 0.35, 0.4), "negation": (0.5, 0.55, 0.6)}
    ps = {"before": (0.001,), "control": (0.001, 0.2, 0.003), "negation": (0.001, 0.002, 0.003)}
    names = ("seed-1", "seed-2", "seed-3")
    found = {of: [Consistencies("scope_f1", 35, names[: len(taus[of])], taus[of], ps[of])] for of in taus}
    changed = comparison(*drawn())
    page = render_markdown([changed], found)
    heading = "Do the same heads score well on the other corpus?"
    assert rows(page, heading) == [
        ["scope F1", "before", "0.400", "1/1"],
        ["scope F1", "control", "0.350 ± 0.041", "2/3"],
        ["scope F1", "negation", "0.550 ± 0.041", "3/3"],
    ]
    assert page.endswith("scope F1: control against negation, rank-sum, p = 0.1.\n")
    assert heading not in render_markdown([changed])
    assert "\n".join(list_sections([changed], found)) in page


def test_figures_stand_before_the_tables() -> None:
    page = render_markdown([comparison(*drawn())], figures={"change of each head": "figures/change.png"})
    assert page.index("![change of each head](figures/change.png)") < page.index("## Before and after")


def test_a_summary_of_eighty_columns() -> None:
    before, afters = drawn(24, 16, runs=(7, 5))
    changed = comparison(before, afters)
    text = said(changed)
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= 80
    (average,) = [line.removeprefix("scope F1 %") for line in lines if " average " in line]
    numbers = [f"{100 * before.mean():.1f}", *(percent(after.mean((1, 2))) for after in afters)]
    means = [after.mean((1, 2)) for after in afters]
    p, welch = mannwhitneyu(*means, method="exact").pvalue, ttest_ind(*means, equal_var=False).pvalue
    *cells, shown, ratio = average.split()
    assert " ".join(cells) == f"average {' '.join(numbers)} {p:.4g}"
    assert float(shown) == pytest.approx(welch, rel=1e-3)
    assert ratio == f"{means[0].std(ddof=1) / means[1].std(ddof=1):.2g}"
    small = (changed["layer_q"] <= 0.05).values
    both = small & (changed["layer_welch_q"] <= 0.05).values
    layers, also = (", ".join(map(str, changed["layer"].values[which])) for which in (small, both))
    assert f"Layers with q ≤ 0.05: {layers}; Welch's q too: {also}" in " ".join(text.split())
    small = changed["q"] <= 0.05
    also = int((small & (changed["welch_q"] <= 0.05)).sum())
    assert f"Heads with q ≤ 0.05: {int(small.sum())} of 384; Welch's q too: {also}" in text


def test_the_verdict_comes_first_and_the_rest_with_an_option() -> None:
    before, afters = drawn(24, 16, runs=(7, 5))
    changed = comparison(before, afters)
    text = said(changed, whole=False)
    count = int(((changed["q"] <= 0.05) & (changed["welch_q"] <= 0.05)).sum())
    verdict = f"{count or 'None'} of 384 heads surely change"
    assert text.split("\n\n")[1].startswith(verdict)
    assert "Layers with q" not in text
    assert "--table prints all: layers and tests" in text


def test_brackets_in_names_are_printed_as_they_are() -> None:
    text = said(comparison(*drawn(), model="tiny/[bold]bert", task="[red]negation"), 200)
    assert "tiny/[bold]bert before and after fine-tuning on [red]negation" in text
    assert "after [red]negation" in text


def test_a_row_for_each_head_layer_and_run() -> None:
    before, afters = drawn(runs=(3, 2))
    changed = comparison(before, afters)
    found = make_frames(changed)
    assert {name: len(frame) for name, frame in found.items() if name != "columns"} == {
        "heads": 5 * 7,
        "layers": 5,
        "runs": 3 + 2,
    }
    head = found["heads"].set_index(["layer", "head"]).loc[(2, 3)]
    assert head["before"] == before[1, 2]
    assert head["after_control"] == pytest.approx(afters[1][:, 1, 2].mean())
    assert head["change_task"] == pytest.approx(afters[0][:, 1, 2].mean() - before[1, 2])
    assert head["q"] == changed["q"].sel(layer=2, head=3).item()
    layer = found["layers"].set_index("layer").loc[4]
    assert layer["layer_before"] == pytest.approx(before[3].mean())
    assert layer["layer_change_control"] == pytest.approx((afters[1][:, 3] - before[3]).mean())
    run = found["runs"].set_index(["group", "run"]).loc[("control", 2)]
    assert run["seed"] == 2
    assert run["average"] == pytest.approx(afters[1][1].mean())
    about = found["columns"].set_index(["table", "column"])
    for name in ("heads", "layers", "runs"):
        assert about.loc[name].index.tolist() == found[name].columns.tolist()
    assert about.loc[("heads", "change_task"), "units"] == "share of words"
    assert (about["what"].str.len() > 0).all()


def test_heads_that_are_left_out_are_counted_and_in_no_mean() -> None:
    before, afters = drawn(runs=(3, 2))
    afters[0][1, 2, 3] = np.nan
    changed = comparison(before, afters)
    assert "; 34 heads, 1 left out, which lack a value before or in a run." in render_markdown([changed])
    assert "story.json: 34 heads, 1 left out, which lack a value before or in a run; negation, 3 runs" in said(
        changed, 200
    )
    other = comparison(before, drawn(runs=(3, 2))[1], variable="scope_recall")
    assert (
        "scope F1: 34 heads, 1 left out, which lack a value before or in a run; scope recall: 35 heads."
        in render_markdown([changed, other])
    )
    layer = make_frames(changed)["layers"].set_index("layer").loc[3]
    assert layer["layer_before"] == pytest.approx(np.delete(before[2], 3).mean())


@pytest.mark.data
@pytest.mark.parametrize(
    ("model", "average", "best"),
    [
        ("bert-base", ["9.0", "11.1 ± 1.2", "9.0 ± 0.4"], "8-4"),
        ("roberta-base", ["12.1", "13.4 ± 1.4", "12.0 ± 0.5"], "9-12"),
    ],
)
def test_released_scores_give_the_tables_of_the_paper(model, average, best) -> None:
    """Zhao and Bethard 2020, tables 3, A3 and A4 and the tests of section 5."""
    page = render_markdown([released(model)])
    assert rows(page, "Before and after")[0][2:5] == average
    assert rows(page, "Before and after")[1][1] == f"best before, {best}"
    rich = rows(page, "Change against baseline (do the rich get richer?)")[0]
    if model == "bert-base":
        assert rows(page, "Before and after")[1][2:5] == ["53.8", "67.7 ± 7.9", "53.1 ± 6.7"]
        assert "50 of 144 heads have q ≤ 0.05, 41 of them also Welch's q ≤ 0.05: " in page
        assert [rows(page, "Tests")[place][4] for place in (0, 5)] == ["7.578e-05", "0.002089"]
        assert rich[2:5] == ["0.085 ± 0.079", "5/10", "5 / 0"]
    else:
        assert rich[2].startswith("−0.113 ± ")
        assert rich[3:5] == ["6/10", "0 / 6"]
