"""What tuning changed: every figure by loops and scipy, the released scores of the paper, and refusals."""

import json
import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import false_discovery_control, kendalltau, mannwhitneyu, ttest_1samp, wilcoxon

from analyse.run_tables import (
    HEADS,
    LAYERS,
    OTHER_SEEDS,
    OTHERS,
    PAIRS,
    RUNS,
    SEEDS,
    released,
    tables,
    weights,
)
from headscope import heads
from headscope.analyse import compare_variable as compare
from headscope.analyse import list_highest
from headscope.errors import TableError


@pytest.fixture(autouse=True)
def _few_halves(monkeypatch) -> None:
    """Of the corrected tau, which other tests are about."""
    monkeypatch.setattr("headscope.analyse.change_against_baseline.HALVES", 1)


@pytest.fixture(scope="module")
def found() -> xr.Dataset:
    return compare(*tables())


def scores(variable: str = "scope_f1") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    before, after, control = (table[variable].values for table in tables())
    return before, after, control


def exact(values: np.ndarray) -> float:
    return float(wilcoxon(values, method="exact").pvalue)


# ----------------------------------------------------------------- the figures


def test_each_head_is_compared(found: xr.Dataset) -> None:
    before, after, control = scores()
    np.testing.assert_array_equal(found["before"], before)
    np.testing.assert_array_equal(found["after"].sel(group="task")[:RUNS], after)
    np.testing.assert_array_equal(found["after"].sel(group="control"), control)
    assert found["after"].sel(group="task")[RUNS:].isnull().all()
    assert found["after"].dims == ("group", "run", "layer", "head")
    for layer, head in np.ndindex(LAYERS, HEADS):
        at = {"layer": layer, "head": head}
        for group, runs in (("task", after), ("control", control)):
            changes = runs[:, layer, head] - before[layer, head]
            test = ttest_1samp(changes, 0)
            lower, upper = test.confidence_interval(0.95)
            one = found.sel(group=group).isel(at)
            assert float(one["change"]) == pytest.approx(changes.mean())
            assert (float(one["change_lower"]), float(one["change_upper"])) == pytest.approx((lower, upper))
            assert float(one["before_p"]) == pytest.approx(exact(changes))
        p = mannwhitneyu(after[:, layer, head], control[:, layer, head], method="exact").pvalue
        assert float(found["p"].isel(at)) == pytest.approx(p)
        paired = [after[one, layer, head] - control[other, layer, head] for _, one, other in PAIRS]
        assert float(found["paired_p"].isel(at)) == pytest.approx(exact(np.array(paired)))


def test_each_layer_is_compared(found: xr.Dataset) -> None:
    before, after, control = (values.mean(-1) for values in scores())
    np.testing.assert_allclose(found["layer_change"].sel(group="control"), control - before)
    for layer in range(LAYERS):
        lower, upper = ttest_1samp(after[:, layer] - before[layer], 0).confidence_interval(0.95)
        one = found.isel(layer=layer).sel(group="task")
        assert (float(one["layer_lower"]), float(one["layer_upper"])) == pytest.approx((lower, upper))
        assert float(one["layer_p"]) == pytest.approx(mannwhitneyu(after[:, layer], control[:, layer]).pvalue)
        assert float(one["layer_before_p"]) == pytest.approx(exact(after[:, layer] - before[layer]))
        paired = [after[a, layer] - control[b, layer] for _, a, b in PAIRS]
        assert float(one["layer_paired_p"]) == pytest.approx(exact(np.array(paired)))


@pytest.mark.parametrize("name", ["average", "best"])
def test_the_average_and_the_best_head_are_compared(found: xr.Dataset, name: str) -> None:
    before, after, control = scores()
    if name == "average":
        start, runs, others = before.mean(), after.mean((1, 2)), control.mean((1, 2))
    else:
        layer, head = np.unravel_index(before.argmax(), before.shape)
        start, runs, others = before[layer, head], after[:, layer, head], control[:, layer, head]
        assert found.attrs["best_head"] == f"{layer + 1}-{head + 1}"
    assert float(found[f"{name}_before"]) == pytest.approx(start)
    np.testing.assert_allclose(found[name].sel(group="task")[:RUNS], runs)
    lower, upper = ttest_1samp(others - start, 0).confidence_interval(0.95)
    of_control = found.sel(group="control")
    assert float(of_control[f"{name}_change"]) == pytest.approx(others.mean() - start)
    assert (float(of_control[f"{name}_lower"]), float(of_control[f"{name}_upper"])) == pytest.approx((lower, upper))
    assert float(found[f"{name}_p"]) == pytest.approx(mannwhitneyu(runs, others, method="exact").pvalue)
    assert float(of_control[f"{name}_before_p"]) == pytest.approx(exact(others - start))
    paired = [runs[a] - others[b] for _, a, b in PAIRS]
    assert float(found[f"{name}_paired_p"]) == pytest.approx(exact(np.array(paired)))


@pytest.mark.parametrize("name", ["", "paired_", "layer_", "layer_paired_"])
def test_p_values_are_corrected_over_heads_and_over_layers(found: xr.Dataset, name: str) -> None:
    p = found[f"{name}p"].values
    np.testing.assert_allclose(found[f"{name}q"], false_discovery_control(p.ravel()).reshape(p.shape))


@pytest.mark.parametrize("name", ["", "layer_"])
def test_tests_against_before_are_corrected_within_each_group(found: xr.Dataset, name: str) -> None:
    for group in ("task", "control"):
        p = found[f"{name}before_p"].sel(group=group).values
        q = found[f"{name}before_q"].sel(group=group)
        np.testing.assert_allclose(q, false_discovery_control(p.ravel()).reshape(p.shape))


def test_it_says_which_p_values_so_few_runs_can_give(found: xr.Dataset) -> None:
    assert found["runs"].values.tolist() == [RUNS, OTHERS]
    assert int(found["pairs"]) == len(PAIRS)
    assert float(found["p_least"]) == pytest.approx(2 / math.comb(RUNS + OTHERS, RUNS))
    assert float(found["paired_p_least"]) == pytest.approx(2 / 2 ** len(PAIRS))
    assert found["before_p_least"].values == pytest.approx([2 / 2**RUNS, 2 / 2**OTHERS])
    few = compare(*tables(runs=3, others=3))
    assert float(few["p_least"]) == pytest.approx(0.1)
    assert float(few["p"].min()) >= 0.1 - 1e-12


def test_it_is_a_table_that_can_be_kept(found: xr.Dataset, tmp_path) -> None:
    path = heads.write_table(found, tmp_path / "comparison.nc")
    xr.testing.assert_identical(heads.read_table(path), found)
    assert found["seed"].values.tolist() == [SEEDS + [-1] * 4, OTHER_SEEDS]
    assert (found.attrs["variable"], found.attrs["task"]) == ("scope_f1", "negation")
    assert found["change"].attrs["units"] == "share"
    told = [(run["group"], run["seed"], run["weights_sha256"]) for run in json.loads(found.attrs["runs"])]
    assert told == [
        *(("task", seed, weights(seed, False)) for seed in SEEDS),
        *(("control", seed, weights(seed, True)) for seed in OTHER_SEEDS),
    ]


def test_the_order_of_axes_and_of_runs_does_not_matter(found: xr.Dataset) -> None:
    before, after, control = tables()
    order = [5, 0, 2, 6, 1, 3, 4]
    turned = compare(before.transpose(..., "layer"), after.isel(run=order).transpose(..., "run"), control)
    for name in ("change", "change_lower", "p", "paired_p", "before_p", "average_p", "best_paired_p"):
        np.testing.assert_allclose(turned[name], found[name], rtol=1e-9)


def test_without_a_control_there_is_nothing_that_needs_one(found: xr.Dataset) -> None:
    alone = compare(*tables()[:2])
    assert alone["group"].values.tolist() == ["task"]
    gone = {str(name) for name in found} - {str(name) for name in alone}
    ends = ("p", "q", "paired_p", "paired_q")
    levels = {"": ends, "layer_": ends, "average_": ends[::2], "best_": ends[::2]}
    tests = {f"{level}{end}" for level, some in levels.items() for end in some}
    contrasts = {f"{level}contrast{end}" for level in levels for end in ("", "_lower", "_upper")}
    welch = {f"{level}{name}" for level in levels for name in ("welch_p", "spread_ratio")} | {
        "welch_q",
        "layer_welch_q",
    }
    few = {"pairs", "p_least", "paired_p_least", "heads_needed", "paired_heads_needed"}
    assert gone == tests | contrasts | welch | few
    xr.testing.assert_allclose(alone["change"], found["change"].sel(group=["task"]))


def test_a_single_model_is_one_run_without_an_interval() -> None:
    before, after, control = tables()
    one, other = (
        table.isel(run=0, drop=True).assign_attrs(weights_sha256=sha * 32)
        for table, sha in ((after, "ef"), (control, "fe"))
    )
    for table in (one, other):
        for told in ("runs", "task", "control"):
            del table.attrs[told]
    found = compare(before, one, other)
    np.testing.assert_allclose(found["change"].sel(group="task"), one["scope_f1"] - before["scope_f1"])
    assert found["change_lower"].isnull().all()
    assert float(found["p"].min()) == 1
    assert int(found["pairs"]) == 0
    assert found["average_paired_p"].isnull()


def test_heads_without_a_value_are_left_out_of_everything_and_counted() -> None:
    before, after, control = tables()
    before["scope_f1"][0, 1] = 0.99  # would be the best
    control["scope_f1"][4, 0, 1] = np.nan
    found = compare(before, after, control)
    assert (found.attrs["heads"], found.attrs["heads_left_out"]) == (LAYERS * HEADS - 1, 1)
    left = after["scope_f1"].values[:, 0, [0, 2, 3, 4]]
    assert found.attrs["best_head"] != "1-2"
    np.testing.assert_allclose(
        found["layer_change"].sel(group="task")[:RUNS, 0],
        left.mean(-1) - before["scope_f1"].values[0, [0, 2, 3, 4]].mean(),
    )
    assert found["p"].isnull().sum() == found["q"].isnull().sum() == 1
    kept = np.delete(np.arange(15), 1)
    start, one = before["scope_f1"].values.ravel()[kept], after["scope_f1"].values[3].ravel()[kept]
    assert float(found["baseline_tau"][0, 3]) == pytest.approx(kendalltau(start, one - start).statistic)


def test_stacks_are_compared_head_by_head() -> None:
    def deeper(table: xr.Dataset) -> xr.Dataset:
        values = table["scope_f1"].copy()
        values[{"layer": 2}] = np.nan
        both = xr.concat([table["scope_f1"], values / 2], dim="attention_type").assign_coords(
            attention_type=["encoder", "decoder"]
        )
        return table[[]].assign(scope_f1=both.assign_attrs(table["scope_f1"].attrs))

    before, after, control = (deeper(table) for table in tables())
    found = compare(before, after, control)
    assert (found.attrs["heads"], found.attrs["heads_left_out"]) == (25, 0)
    assert found.attrs["best_head"] == list_highest(before, "scope_f1", 1)[0][0]
    assert found.attrs["best_head"].startswith("encoder ")
    plain = compare(*tables())
    np.testing.assert_allclose(found["p"].sel(attention_type="encoder"), plain["p"])
    np.testing.assert_allclose(found["layer_change"].sel(attention_type="encoder"), plain["layer_change"])
    assert found["layer_change"].sel(attention_type="decoder", layer=3).isnull().all()


def test_a_place_of_a_variable_with_more_dimensions_is_compared() -> None:
    def by_class(table: xr.Dataset) -> xr.Dataset:
        mass = xr.concat([table["scope_f1"], table["scope_recall"]], dim="token_class")
        mass.attrs = {"units": "share of attention", "source": "loops", "long_name": "attention to a class"}
        return table.assign(token_class_mass=mass.assign_coords(token_class=["noun", "verb"]))

    made = [by_class(table) for table in tables()]
    found = compare(*made, "token_class_mass", where={"token_class": "verb"})
    np.testing.assert_array_equal(found["change"], compare(*tables(), "scope_recall")["change"])
    assert json.loads(found.attrs["where"]) == {"token_class": "verb"}
    assert found["change"].attrs["units"] == "share of attention"
    with pytest.raises(TableError) as refused:
        compare(*made, "token_class_mass")
    assert str(refused.value) == (
        "'token_class_mass' is not one value for each head; its dimensions are token_class, layer, head."
    )
    with pytest.raises(TableError) as refused:
        compare(*made, "token_class_mass", where={"token_class": "comma"})
    assert str(refused.value) == "the table before has no token_class 'comma'; it has noun, verb."
    with pytest.raises(TableError) as refused:
        compare(*made, "token_class_mass", where={"relation": "obj"})
    assert str(refused.value) == (
        "the table before has no dimension 'relation'; it has layer, head, fold, token_class."
    )


# ------------------------------------------------------------------- the paper


@pytest.mark.data
def test_the_released_scores_give_the_papers_tests(data) -> None:
    """Section 5: both p-values are two-sided, although the text says "significantly higher"."""
    found = compare(*released(data, "bert-base", "story_pretrained", "story_neg", "story_control"))
    assert found.attrs["best_head"] == "8-4"
    assert f"{float(found['average_p']):.3e}" == "7.578e-05"
    assert f"{float(found['best_p']):.6f}" == "0.002089"
    assert f"{float(found['average_spread_ratio']):.1f}" == "2.7"
    assert f"{100 * float(found['best'].sel(group='task').mean()):.1f}" == "67.7"


@pytest.mark.data
@pytest.mark.parametrize(("model", "variable", "tau", "signs"), [
    ("bert-base", "scope_precision", "-0.065", (0, 3)), ("bert-base", "scope_recall", "0.096", (5, 0)),
    ("bert-base", "scope_f1", "0.085", (5, 0)), ("roberta-base", "scope_f1", "-0.113", (0, 6)),
])  # fmt: skip
def test_the_released_scores_give_table_a4(data, model: str, variable: str, tau: str, signs: tuple[int, int]) -> None:
    found = compare(*released(data, model, "story_pretrained", "story_neg"), variable=variable).sel(group="task")
    sure = found["baseline_tau"].where(found["baseline_p"] < 0.05)
    assert f"{float(found['baseline_tau'].mean()):.3f}" == tau
    assert (int((sure > 0).sum()), int((sure < 0).sum())) == signs
    assert found["baseline_tau_corrected"].isnull().all()
    assert (
        found["baseline_tau_corrected"]
        .attrs["note"]
        .endswith(f"There is no corrected tau: {variable} is not a ratio of sums by fold that all tables have.")
    )


# ------------------------------------------------------------------- refusals


def changed(**attrs: str | int) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    before, after, control = tables()
    return before, after.assign_attrs(attrs), control


def unsaid(which: int) -> xr.Dataset:
    """One of the tables, which does not say what its runs are."""
    table = tables()[which].assign_attrs(runs="[]")
    del table.attrs["control"]
    return table


def copied(after: xr.Dataset) -> xr.Dataset:
    """The control, of which one run is the task's."""
    control = tables()[2]
    runs = json.loads(control.attrs["runs"])
    runs[1]["weights_sha256"], runs[1]["name"] = json.loads(after.attrs["runs"])[4]["weights_sha256"], "seed-11"
    return control.assign_attrs(runs=json.dumps(runs))


def single() -> xr.Dataset:
    """A single model after it was tuned."""
    after = unsaid(1).isel(run=0, drop=True)
    return after.drop_vars("seed", errors="ignore").assign_attrs(weights_sha256="ef" * 32)


REFUSED = {
    "swapped": (
        lambda: tables()[1::-1],
        "the table before holds 7 runs; give the table of the model before it was tuned first, and that of the runs "
        "second.",
    ),
    "another architecture": (
        lambda: (tables()[0].isel(layer=slice(2)), tables()[1]),
        "the table after has 3 layers and 5 heads and the table before 2 layers and 5 heads; give tables of one "
        "architecture.",
    ),
    "another corpus": (
        lambda: changed(corpus="reviews.xml", corpus_sha256="00" * 32),
        "the table after is of the corpus 'reviews.xml' and the table before of 'made-up.conllu'; measure both on the "
        "same corpus.",
    ),
    "other documents of it": (
        lambda: changed(documents=199),
        "the table after is of 199 documents and the table before of 211; measure both with the same options, so that "
        "both skip the same documents.",
    ),
    "tuned from other weights": (
        lambda: changed(weights_sha256="00" * 32, model="made/other"),
        "the runs of the table after were tuned from 'made/other', whose weights are not those that the table before "
        "is of; measure the model that they were tuned from.",
    ),
    "not tuned": (
        lambda: (tables()[0], tables()[0]),
        "the table after is of the same weights as the table before; give a table of the model after it was tuned.",
    ),
    "a control as the task": (
        lambda: (tables()[0], tables()[2]),
        "the runs of the table after are those of a control; give them with --control, and the task's.",
    ),
    "a task as the control": (
        lambda: (tables()[0], tables()[1], tables()[1]),
        "the runs of the table of the control are those of a task, not of a control; give it as the table after.",
    ),
    "one table twice": (
        lambda: (tables()[0], unsaid(1), unsaid(1)),
        "the table after and the table of the control are the same table; give that of the runs of the control.",
    ),
    "a run in both": (
        lambda: (*tables()[:2], copied(tables()[1])),
        "the run seed-11 of the table after has the same weights as the run seed-11 of the table of the control; give "
        "runs of the task and runs of its control.",
    ),
    "one model twice": (
        lambda: (tables()[0], single(), single().assign_attrs(call="again")),
        "the model of the table after has the same weights as the model of the table of the control; give runs of the "
        "task and runs of its control.",
    ),
    "a seed twice": (
        lambda: (tables()[0], tables()[1].isel(run=[0, 1, 0])),
        "the table after has the seed 2 more than once; runs of one seed are one run.",
    ),
    "nothing known": (
        lambda: [table.assign(scope_f1=table["scope_f1"] * np.nan) for table in tables()],
        "no head has a value of 'scope_f1' in the table before and in all runs; compare another variable.",
    ),
    "no such variable before": (
        lambda: [*(table.drop_vars("scope_f1") for table in tables()), "scope_f1"],
        "the table before has no variable 'scope_f1'; measure the same in all tables.",
    ),
    "no score before": (
        lambda: [tables()[0].drop_vars("scope_f1"), *tables()[1:]],
        "the head table has no score by which heads are chosen; name the variable.",
    ),
    "no such variable after": (
        lambda: [tables()[0], *(table.drop_vars("scope_f1") for table in tables()[1:])],
        "the table after has no variable 'scope_f1'; measure the same in all tables.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_refused(given, sentence: str) -> None:
    with pytest.raises(TableError) as refused:
        compare(*given())
    assert str(refused.value) == sentence


def test_a_refusal_names_the_file(tmp_path) -> None:
    before, after, _ = tables()
    read = heads.read_table(heads.write_table(after.assign_attrs(documents=199), tmp_path / "after.nc"))
    with pytest.raises(TableError, match=r"^\S+/after\.nc is of 199 documents"):
        compare(before, read)
