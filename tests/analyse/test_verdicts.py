"""When a head stands out: it must beat each rival and chance, on texts enough to tell."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from statsmodels.stats.multitest import multipletests

from analyse.tables import CLASSES, DIRECTIONS, OFFSETS, RELATIONS, SIDES, Links, Text, head_table, texts
from headscope.analyse import add_report
from headscope.analyse.report import CLUSTERS, await_untrained
from headscope.reducers.relations import ACCURACY
from headscope.score import write_scores

LAYERS, HEADS, LINKS, TEXTS = 3, 5, 7, 46
HEAD, OFFSET, RULE = (1, 3, 1), OFFSETS.index(-2), (11, 5)
RIVALS = ("offset", "upos", "untrained")
WEAK, STRONG = 2, 5


def right(number: int, level: int) -> np.ndarray:
    """The links of a text that are found: so many, and by turns one more, none more or one less."""
    return np.arange(LINKS) < level + (number // 2 % 3 - 1)


def compared(odd: dict[str, int], even: dict[str, int], count: int = TEXTS) -> tuple[xr.Dataset, xr.Dataset]:
    """A model whose head 2-4 finds 5 of 7 links, beside rivals that find so many on each half, and an untrained one."""
    trained, untrained = [], []
    for number in range(count):
        found = {name: right(number + 2, (odd if number % 2 else even).get(name, WEAK)) for name in RIVALS}
        hits, others = np.zeros((2, LINKS, LAYERS, HEADS, len(DIRECTIONS)), dtype=bool)
        hits[(slice(None), *HEAD)] = right(number, STRONG)
        others[:, 2, 0, 0] = found["untrained"]
        rules = np.zeros((LINKS, len(DIRECTIONS), len(SIDES), len(CLASSES)), dtype=bool)
        rules[(slice(None), HEAD[2], *RULE)] = found["upos"]
        distance = np.where(found["offset"], OFFSETS[OFFSET], 17)
        trained.append(Text(number, {"obj": Links(hits, distance, rules)}))
        untrained.append(Text(number, {"obj": Links(others, distance, rules)}))
    return head_table(trained, ["obj"]), head_table(untrained, ["obj"])


def with_p(table: xr.Dataset, p: float) -> xr.Dataset:
    """A table of which every head has this p-value; there is one relation, so it is the false discovery rate too."""
    return table.assign(relation_p_corrected=xr.full_like(table["relation_accuracy"], p))


def without_rivals(table: xr.Dataset) -> xr.Dataset:
    return table.assign_attrs(scores=write_scores([replace(ACCURACY, rivals=())]))


def verdict(table: xr.Dataset, untrained: xr.Dataset | None = None) -> str:
    return add_report(table, untrained)["reported_verdict"].item()


def test_a_head_that_beats_every_rival_stands_out() -> None:
    row = add_report(*compared({}, {})).squeeze()
    assert row["reported_verdict"] == "stands out"
    assert (row["reported_layer"], row["reported_head"], row["reported_direction"]) == (2, 4, "head_to_dependent")
    for name in ("lift", *(f"lift_over_{rival}" for rival in RIVALS)):
        assert row[name].item() == pytest.approx((STRONG - WEAK) / LINKS, abs=0.05)
        assert 0 < row[f"{name}_lower"] < row[name] < row[f"{name}_upper"]
    assert row["lift_rival"] == "offset"  # the first of equals
    assert (row["heldout_offset"], row["heldout_upos_side"], row["heldout_upos_word_class"]) == (
        -2, "side 11", "class 05",
    )  # fmt: skip


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("where", ["both halves", "only where heads are scored"])
def test_each_rival_alone_can_prevent_it(rival: str, where: str) -> None:
    strong = {rival: STRONG}
    row = add_report(*compared(strong, strong if where == "both halves" else {})).squeeze()
    assert row["reported_verdict"] == "does not stand out"
    assert row[f"lift_over_{rival}_lower"] <= 0
    assert [row[f"lift_over_{other}_lower"].item() > 0 for other in RIVALS if other != rival] == [True, True]
    # The strongest rival is chosen where the head is chosen, and another may do better on the other half.
    assert row["lift_rival"] == (rival if where == "both halves" else "offset")
    assert (row["lift_lower"] > 0) == (row["lift_rival"] != rival)


@pytest.mark.parametrize(("p", "expected"), [
    (0.049, "stands out"), (0.05, "does not stand out"), (0.9, "does not stand out"), (np.nan, "does not stand out"),
])  # fmt: skip
def test_chance_can_prevent_it(p: float, expected: str) -> None:
    table, untrained = compared({}, {})
    assert verdict(with_p(table, p), untrained) == expected


@pytest.mark.parametrize(("permutations", "expected"), [(19, "cannot decide"), (20, "stands out")])
def test_permutations_that_allow_no_p_value_below_the_level_decide_nothing(permutations: int, expected: str) -> None:
    table, untrained = compared({}, {})
    table = with_p(table, 1 / (permutations + 1))
    best = xr.DataArray(np.zeros((1, permutations)), dims=("relation", "permutation"))
    assert verdict(table.assign(relation_z_permuted=best), untrained) == expected
    table, untrained = (each.assign_attrs(table.attrs) for each in compared({"upos": STRONG}, {"upos": STRONG}))
    assert verdict(table.assign(relation_z_permuted=best), untrained) == "does not stand out"


@pytest.mark.parametrize(("count", "expected"), [(38, "cannot decide"), (39, "cannot decide"), (40, "stands out")])
@pytest.mark.parametrize("strong", [{}, {"upos": STRONG}], ids=["would stand out", "would not"])
def test_fewer_than_twenty_texts_decide_nothing(count: int, expected: str, strong: dict[str, int]) -> None:
    report = add_report(*compared(strong, strong, count))
    assert report["heldout_clusters"].item() == count // 2
    assert CLUSTERS == 20
    decided = "does not stand out" if strong else "stands out"
    assert report["reported_verdict"].item() == (expected if expected == "cannot decide" else decided)


@pytest.mark.parametrize(("unit", "expected"), [
    ("text", "stands out"), ("document", "stands out"), ("document of few texts", "cannot decide"),
])  # fmt: skip
def test_documents_of_few_texts_decide_nothing(unit: str, expected: str) -> None:
    table, untrained = compared({}, {})
    table["fold_link"].attrs["fold_unit"] = unit
    assert verdict(table, untrained) == expected


def test_a_head_that_is_compared_with_nothing_does_not_stand_out() -> None:
    table, untrained = compared({}, {})
    alone = without_rivals(table)
    assert verdict(alone) == "does not stand out"
    assert verdict(alone, untrained) == "stands out"
    assert verdict(with_p(alone, 0.01)) == "stands out"
    assert verdict(with_p(alone, 0.05)) == "does not stand out"
    assert not [name for name in add_report(alone).variables if "lift" in str(name)]
    # An untrained model without this row is no comparison.
    other = untrained.assign_coords(relation=["nsubj"])
    assert verdict(alone, other) == "does not stand out"
    assert verdict(table, other) == "stands out"


def test_a_head_that_is_never_right_does_not_stand_out() -> None:
    table, _ = compared({}, {})
    never = without_rivals(table).assign(fold_correct=table["fold_correct"] * 0)
    assert verdict(with_p(never, 0.01)) == "does not stand out"


def test_a_row_without_a_head_has_no_verdict() -> None:
    table, untrained = compared({}, {})
    report = add_report(table, untrained, minimum=LINKS * TEXTS)
    assert (report["reported_verdict"].item(), report["lift_rival"].item()) == ("", "")


@pytest.mark.parametrize("strong", [{}, {"upos": STRONG}], ids=["weak", "strong"])
def test_a_rival_whose_annotation_is_missing_is_left_out(strong: dict[str, int]) -> None:
    table, untrained = compared(strong, strong)
    report = add_report(table.drop_vars("fold_upos"), untrained)
    assert report["reported_verdict"].item() == "stands out"
    assert report["lift_rival"].item() == "offset"
    assert not [name for name in report.variables if "upos" in str(name)]


def test_each_row_has_a_verdict_of_its_own() -> None:
    """Verdicts by loops over the rows of a table of seven."""
    made = texts(np.random.default_rng(5))
    many = [Text(2 * place + number % 2, text.links) for place in range(32) for number, text in enumerate(made[:2])]
    report = add_report(with_p(head_table(many, RELATIONS), 0.01), head_table(many[::-1], RELATIONS), minimum=1)
    for name in RELATIONS:
        row = report.sel(relation=name)
        lower = [row[f"lift_over_{rival}_lower"].item() for rival in RIVALS] + [row["heldout_lower"].item()]
        if np.isnan(row["reported_layer"]):
            expected = ""
        elif row["heldout_clusters"] < CLUSTERS:
            expected = "cannot decide"
        else:
            sure = min(lower) > 0 and row["verdict_p"] < 0.05
            expected = "stands out" if sure else "does not stand out"
        assert row["reported_verdict"] == expected
    decided = report["reported_verdict"].isin(["stands out", "does not stand out"])
    assert decided.any()
    larger = np.maximum(report["lift_p"][decided], 0.01)
    np.testing.assert_allclose(report["verdict_p"][decided], multipletests(larger, method="holm")[1])
    assert report["verdict_p"][~decided].isnull().all()
    assert report["reported_verdict"].dims == ("relation",)


@pytest.mark.parametrize("p", [None, 0.01, 0.2])
@pytest.mark.parametrize("known", ["all rivals", "no rule"])
@pytest.mark.parametrize("count", [38, TEXTS])
@pytest.mark.parametrize("strong", [(), ("upos",), ("untrained",), ("upos", "untrained")], ids="+".join)
def test_before_the_untrained_model_is_measured_no_verdict_is_one_that_it_changes(
    strong: tuple[str, ...], count: int, known: str, p: float | None
) -> None:
    levels = dict.fromkeys(strong, STRONG)
    table, untrained = compared(levels, levels, count)
    table = table if known == "all rivals" else without_rivals(table)
    table = table if p is None else with_p(table, p)
    first = await_untrained(add_report(table))
    before, after = first["reported_verdict"].item(), verdict(table, untrained)
    assert first.attrs["awaited"] == "the untrained model"
    assert before in ("not yet", after)
    # What is known is said: too few texts, a rule that does as well, and chance.
    is_known = count < TEXTS or (known == "all rivals" and "upos" in strong) or p == 0.2
    assert (before == "not yet") is not is_known


def test_a_row_without_a_head_awaits_nothing() -> None:
    table, _ = compared({}, {})
    assert await_untrained(add_report(table, minimum=LINKS * TEXTS))["reported_verdict"].item() == ""
