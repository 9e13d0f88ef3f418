"""What became of reported heads in another model: intervals, corrections and verdicts against plain numpy, and worlds.

Each axis has another length: 3 layers, 5 heads, 2 directions, 7 relations, 64 folds of which 43 have texts.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from analyse.tables import ATTRIBUTES, FOLDS, RELATIONS, head_table, stacked, texts, two_stacks
from headscope import heads
from headscope.analyse import add_report
from headscope.analyse.check import KEPT, LOST, check_heads, count_verdicts
from headscope.analyse.report import DOES_NOT, STANDS_OUT, UNDECIDED
from headscope.errors import TableError
from headscope.reducers.relations import ACCURACY
from headscope.score import write_scores

TEXTS, ITEMS = 43, 11


@dataclass(frozen=True)
class World:
    """Texts of an old model and of a new one, as hits of each head: ``[text, item, layer, head, relation]``."""

    old: np.ndarray
    new: np.ndarray

    @property
    def tables(self) -> tuple[xr.Dataset, xr.Dataset]:
        """Both tables, the old one with reported heads, all of which stand out."""
        return add_verdicts(make_table(self.old, "old")), make_table(self.new, "new")


def make_table(hits: np.ndarray, name: str) -> xr.Dataset:
    """A head table of hits, of which each text is in a fold of its own."""
    folds = np.arange(len(hits)) * 3 % FOLDS
    right = np.zeros((*hits.shape[2:], FOLDS))
    links = np.zeros((hits.shape[4], FOLDS))
    for text, fold in enumerate(folds):
        right[..., fold] += hits[text].sum(0)
        links[:, fold] += hits.shape[1]
    totals = links.sum(-1)
    values = {
        "relation_accuracy": (("layer", "head", "relation"), right.sum(-1) / totals),
        "relation_count": (("relation",), totals.astype(int)),
        "fold_correct": (("layer", "head", "relation", "fold"), right),
        "fold_link": (("relation", "fold"), links),
    }
    about = ATTRIBUTES | {"model": name, "weights_sha256": name, "scores": write_scores([ACCURACY])}
    return xr.Dataset(
        {
            variable: heads.variable(data, dims, name=variable, units="1", source="loops")
            for variable, (dims, data) in values.items()
        },
        coords={
            "layer": np.arange(1, hits.shape[2] + 1),
            "head": np.arange(1, hits.shape[3] + 1),
            "relation": list(RELATIONS[: hits.shape[4]]),
        },
        attrs=about,
    )


def add_verdicts(table: xr.Dataset, verdict: str = STANDS_OUT) -> xr.Dataset:
    """The table with reported heads, each with this verdict."""
    reported = add_report(table)
    return reported.assign(reported_verdict=xr.full_like(reported["reported_verdict"], verdict, dtype="U32"))


def make_hits(draw: np.random.Generator, share: object, spread: float = 0.1, rows: int = 7) -> np.ndarray:
    """Hits with this share, which differs from text to text."""
    shape = (TEXTS, ITEMS, 3, 5, rows)
    by_text = np.clip(share + spread * draw.standard_normal((TEXTS, 1, 1, 1, rows)), 0, 1)
    return draw.random(shape) < by_text


def lose(hits: np.ndarray, draw: np.random.Generator, loss: float) -> np.ndarray:
    """The same hits in a model that loses some of them, and finds none that were missed."""
    return hits & (draw.random(hits.shape) >= loss)


def change_of(world: World, row: int, layer: int, head: int) -> tuple[float, float, float, float]:
    """Change, ends of the interval and p at a tolerance of 0.05 by plain loops over the texts in odd folds."""
    odd = [text for text in range(TEXTS) if (text * 3 % FOLDS) % 2 == 1]
    before, after = (
        np.array([hits[text, :, layer - 1, head - 1, row].sum() for text in odd]) for hits in (world.old, world.new)
    )
    m, n = len(odd), len(odd) * ITEMS
    change = after.sum() / n - before.sum() / n
    residuals = (after - ITEMS * after.sum() / n) / n - (before - ITEMS * before.sum() / n) / n
    error = np.sqrt((residuals**2).sum() * m / (m - 1))
    t = scipy.stats.t.ppf(0.975, m - 1)  # all texts have as many items
    half = max(t * error, t**2 / (n + t**2))
    p = scipy.stats.t.cdf((change + 0.05) / (half / t), m - 1)
    return change, max(change - half, -1), min(change + half, 1), p


def adjust(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's procedure by its definition: the least of p n / k over all that are as large."""
    n = len(p)
    rank = {place: 1 + k for k, place in enumerate(np.argsort(p, kind="stable"))}
    return np.array([min(1, *(p[j] * n / rank[j] for j in range(n) if rank[j] >= rank[i])) for i in range(n)])


def test_a_row_that_pools_a_single_other_is_checked_once() -> None:
    hits = make_hits(np.random.default_rng(11), 0.6, rows=2).repeat(2, axis=-1)[..., [0, 1, 2]]
    names = {"relation": ["compound:prt", "compound:*", "obj"]}
    old, new = (table.assign_coords(names) for table in World(hits, hits).tables)
    assert check_heads(old, new)["label"].values.tolist() == ["compound:prt", "obj"]


@pytest.mark.parametrize("seed", [3, 5, 7])
def test_the_numbers_are_those_of_plain_loops(seed: int) -> None:
    draw = np.random.default_rng(seed)
    hits = make_hits(draw, draw.uniform(0.3, 0.9, (3, 5, 7)))
    world = World(hits, lose(hits, draw, draw.choice([0, 0.02, 0.15, 0.5], (3, 5, 7))))
    old, new = world.tables
    checked = check_heads(old, new)
    assert checked.sizes == {"row": 7}
    rows = []
    for place, relation in enumerate(RELATIONS):
        row, where = checked.isel(row=place), old.sel(relation=relation)
        layer, head = int(where["reported_layer"]), int(where["reported_head"])
        assert (row["label"], row["layer"], row["head"]) == (relation, layer, head)
        expected = change_of(world, place, layer, head)
        assert [row[name].item() for name in ("change", "change_lower", "change_upper", "p")] == pytest.approx(expected)
        assert row["before"].item() == where["heldout_accuracy"].item()
        assert row["after"].item() == pytest.approx(row["before"].item() + expected[0])
        assert row["count"] == where["heldout_count"]
        assert row["clusters"] == where["heldout_clusters"]
        rows.append(expected)
    _, lower, upper, p = np.array(rows).T
    assert checked["q"].values == pytest.approx(adjust(p))
    lost, kept = (upper < -0.05) & (adjust(p) < 0.025), lower >= -0.05
    assert checked["verdict"].values.tolist() == np.where(lost, LOST, np.where(kept, KEPT, UNDECIDED)).tolist()


def test_rows_of_the_same_items_are_checked_as_if_each_had_items_of_its_own() -> None:
    draw = np.random.default_rng(5)
    hits = make_hits(draw, 0.6)
    tables = World(hits, lose(hits, draw, 0.2)).tables
    shared = [table.assign(fold_link=table["fold_link"].isel(relation=0, drop=True)) for table in tables]
    xr.testing.assert_identical(check_heads(*shared), check_heads(*tables))


def test_the_same_weights_have_lost_nothing() -> None:
    draw = np.random.default_rng(3)
    old, _ = World(*[make_hits(draw, 0.6)] * 2).tables
    checked = check_heads(old, old.drop_vars([name for name in old.variables if "reported" in name]), tolerance=0.0)
    for name in ("change", "change_lower", "change_upper"):
        assert (checked[name] == 0).all()
    assert count_verdicts(checked) == {KEPT: 7, LOST: 0, UNDECIDED: 0}


def test_a_head_of_other_weights_that_changes_nothing_may_still_have_lost_what_the_items_do_not_show() -> None:
    hits = make_hits(np.random.default_rng(5), 0.6)
    old, new = World(hits, hits).tables
    checked = check_heads(old, new)
    assert (checked["change"] == 0).all()
    t = scipy.stats.t.ppf(0.975, checked["clusters"].values - 1)
    may = t**2 / (checked["count"].values + t**2)
    assert -checked["change_lower"].values == pytest.approx(may)
    assert (checked["verdict"] == KEPT).all()  # with 231 items, less than 2 in 100
    assert (check_heads(old, new, tolerance=0.01)["verdict"] == UNDECIDED).all()


def test_a_hash_that_outlived_a_change_of_the_weights_is_not_believed() -> None:
    hits = make_hits(np.random.default_rng(5), 0.6)
    new = hits.copy()
    new[0, 0, 0, 0, 0] = ~new[0, 0, 0, 0, 0]
    old, table = World(hits, new).tables
    expected = check_heads(old, table)
    xr.testing.assert_identical(check_heads(old, table.assign_attrs(weights_sha256="old")), expected)
    assert (expected["change_lower"] < 0).all()


def test_the_bound_on_what_is_not_seen_is_that_of_wilsons_interval() -> None:
    """Where the true loss is as large as the bound, no item shows it in 2.5 % of the samples at most, about."""
    n, t = 231, scipy.stats.t.ppf(0.975, 20)
    assert (1 - t**2 / (n + t**2)) ** n < 0.025


def test_one_head_is_lost_and_the_others_are_kept() -> None:
    draw = np.random.default_rng(7)
    hits = make_hits(draw, 0.5 * np.ones((3, 5, 7)) + 0.3 * (np.arange(15).reshape(3, 5, 1) == 8))
    new = hits.copy()
    new[:, :, 1, 3, 2] = draw.random(new.shape[:2]) < 0.1
    old, table = World(hits, new).tables
    assert (int(old["reported_layer"][2]), int(old["reported_head"][2])) == (2, 4)
    verdicts = check_heads(old, table)["verdict"].values.tolist()
    assert verdicts == [KEPT, KEPT, LOST, KEPT, KEPT, KEPT, KEPT]


def test_a_head_that_gains_is_kept() -> None:
    draw = np.random.default_rng(11)
    hits = make_hits(draw, 0.5)
    old, new = World(hits, hits | (draw.random(hits.shape) < 0.5)).tables
    checked = check_heads(old, new)
    assert (checked["change"] > 0.1).all()
    assert (checked["verdict"] == KEPT).all()


def simulate(draw: np.random.Generator, loss: float) -> xr.Dataset:
    """The reported heads of two models, which find each item independently of one another, but for the loss as often.

    The head 2-4 is the reported one of each row, whatever it scores.
    """
    share = draw.uniform(0.55, 0.85, (TEXTS, 1, 1, 1, 7))
    shape = (TEXTS, ITEMS, 3, 5, 7)
    old, new = (make_table(draw.random(shape) < each, name) for each, name in ((share, "old"), (share - loss, "new")))
    for name, value in (("layer", 2.0), ("head", 4.0), ("verdict", STANDS_OUT)):
        old[f"reported_{name}"] = ("relation", np.full(7, value))
    return check_heads(old, new, tolerance=0.0)


@pytest.mark.full
def test_no_change_is_taken_for_a_loss_in_5_of_100_checks_at_most() -> None:
    """In the whole check of 7 heads, at tolerance 0: the true change is 0, so any loss is a false one."""
    draw = np.random.default_rng(13)
    assert sum(bool((simulate(draw, 0.0)["verdict"] == LOST).any()) for _ in range(200)) <= 10


def test_a_loss_of_30_points_is_nearly_always_seen() -> None:
    draw = np.random.default_rng(17)
    seen = np.mean([(simulate(draw, 0.3)["verdict"] == LOST).mean() for _ in range(23)])
    assert seen > 0.95


def test_too_few_texts_decide_nothing() -> None:
    draw = np.random.default_rng(19)
    hits = make_hits(draw, 0.8)[:37]
    new = hits & (draw.random(hits.shape) < 0.05)
    checked = check_heads(*World(hits, new).tables)
    assert (checked["clusters"] < 20).all()
    assert (checked["change_upper"] < -0.5).all()
    assert (checked["verdict"] == UNDECIDED).all()


def test_documents_of_few_texts_decide_nothing() -> None:
    draw = np.random.default_rng(23)
    hits = make_hits(draw, 0.8)
    old, new = World(hits, hits).tables
    new["fold_link"].attrs["fold_unit"] = "document of few texts"
    assert (check_heads(old, new)["verdict"] == UNDECIDED).all()


def test_only_heads_that_stand_out_are_checked_unless_all_are_asked_for() -> None:
    draw = np.random.default_rng(29)
    old, new = World(*[make_hits(draw, 0.6)] * 2).tables
    old["reported_verdict"][[1, 3]] = [DOES_NOT, UNDECIDED]
    assert check_heads(old, new)["label"].values.tolist() == ["nsubj", "det", "case", "obl", "punct"]
    assert check_heads(old, new, every=True).sizes == {"row": 7}


def test_directions_and_attention_types_are_those_of_the_reported_heads() -> None:
    encoder, decoder = two_stacks(11)
    table = stacked({"encoder": encoder, "decoder": decoder})
    old = add_report(table, minimum=5)
    new = table.assign_attrs(weights_sha256="ef" * 32)
    new["fold_correct"] = new["fold_correct"] * 0
    checked = check_heads(old, new, every=True)
    for place in range(checked.sizes["row"]):
        row = checked.isel(row=place)
        where = old.sel(relation=row["label"].item())
        for dim in ("attention_type", "layer", "head", "direction"):
            assert row[dim].item() == where[f"reported_{dim}"].item()
        assert row["before"].item() == where["heldout_accuracy"].item()
        assert row["change"].item() == -row["before"].item()
    assert checked.attrs["tolerance"] == 0.05
    assert f"among {checked.sizes['row']} heads" in checked.attrs["method"]
    assert all(values.attrs["long_name"] and values.attrs["units"] for values in checked.data_vars.values())


def without(table: xr.Dataset, *names: str) -> xr.Dataset:
    return table.drop_vars(names)


REFUSALS = {
    "another shape": (lambda old, new: (old, new.isel(head=[0, 1, 2])), "the new table has 3 layers and 3 heads and "
                      "the old table 3 layers and 5 heads; give tables of one architecture."),
    "another corpus": (lambda old, new: (old, new.assign_attrs(corpus_sha256="x", corpus="b.txt")), "the new table is "
                       "of the corpus 'b.txt' and the old table of 'made-up.conllu'; measure both on the same corpus."),
    "other documents": (lambda old, new: (old, new.assign_attrs(documents=199)), "the new table is of 199 documents "
                        "and the old table of 211; measure both with the same options, so that both skip the same "
                        "documents."),
    "another view": (lambda old, new: (old, new.assign_attrs(view="norm")), "the new table is of the view `norm` and "
                     "the old table of the weights; measure both with the same --view."),
    "runs": (lambda old, new: (old, new.expand_dims(run=11)), "the new table holds 11 runs; check the table of one "
             "model against another."),
    "runs before": (lambda old, new: (old.expand_dims(run=11), new), "the old table holds 11 runs; check the table of "
                    "one model against another."),
    "no sums": (lambda old, new: (old, without(new, "fold_correct")), "the new table lacks fold_correct, from "
                "which relation_accuracy is computed; measure relation_accuracy there too."),
    "other items": (lambda old, new: (old, new.assign(fold_link=new["fold_link"] + 1)), "the new table has other links "
                    "of relation_accuracy in some fold than the old table; measure both with the same tokenizer, "
                    "options and version of headscope, on files of the same names."),
    "no report": (lambda old, new: (new, new), "the old table has no reported heads, so there is nothing to check; "
                  "measure a statistic by which heads are chosen (`headscope list reducers`), on more texts."),
    "none stands out": (lambda old, new: (old.assign(reported_verdict=xr.full_like(old["reported_verdict"], DOES_NOT)),
                        new), "no reported head of the old table stands out, so none can be lost; add --all to check "
                        "them all."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_tables_that_cannot_be_compared_are_refused_in_a_sentence(case: str) -> None:
    hits = make_hits(np.random.default_rng(31), 0.6)
    edit, sentence = REFUSALS[case]
    old, new = edit(*World(hits, hits).tables)
    with pytest.raises(TableError) as caught:
        check_heads(old, new)
    assert str(caught.value) == sentence


def test_a_table_is_called_by_its_file(tmp_path) -> None:
    old, new = World(*[make_hits(np.random.default_rng(37), 0.6)] * 2).tables
    paths = [heads.write_table(table, tmp_path / f"{name}.nc") for name, table in (("old", old), ("new", new))]
    first, second = map(heads.read_table, paths)
    with pytest.raises(TableError) as caught:
        check_heads(first, second.assign_attrs(documents=199))
    assert str(caught.value).startswith(f"{paths[1]} is of 199 documents and {paths[0]} of 211;")


def test_a_row_that_the_new_corpus_reading_lacks_is_another_item() -> None:
    made = texts(np.random.default_rng(41))
    old = add_report(head_table(made, RELATIONS), minimum=5)
    with pytest.raises(
        TableError, match=r"^the new table has other links of relation_accuracy in some fold than the old table;"
    ):
        check_heads(old, head_table(made, RELATIONS).isel(relation=[0, 1, 2]), every=True)
