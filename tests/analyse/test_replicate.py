"""Heads chosen on one corpus and scored on another: naive loops, verdicts, other rows, other models, several types."""

import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from analyse.tables import DIRECTIONS, FOLDS, OFFSETS, RELATIONS, Links, Text, head_table, interval_of, stacked
from headscope.analyse import add_replication, add_report
from headscope.analyse.report import UNDECIDED
from headscope.errors import TableError
from headscope.heads import check
from headscope.reducers.relations import ACCURACY
from headscope.score import Rival, write_scores
from witnesses import replication

SIDES, CLASSES = ("left", "right"), ("NOUN", "VERB", "ADJ")
UPOS = Rival("upos", "nearest word", ("fold_upos",), ("fold_link",), ("side", "word_class"))
SCORE = replace(ACCURACY, rivals=(*ACCURACY.rivals[:1], UPOS))
TEXTS = 43


def make_shares(draw: np.random.Generator, layers: int = 3, heads: int = 5) -> np.ndarray:
    """How often each head finds the links of each relation, in each direction."""
    return draw.beta(1, 1, (len(RELATIONS), layers, heads, len(DIRECTIONS)))


def make_texts(draw: np.random.Generator, share: np.ndarray) -> list[Text]:
    """43 texts in 64 folds, with many links of the first relation and few of the last."""
    made = []
    for number in range(TEXTS):
        links = {}
        for row, name in enumerate(RELATIONS):
            count = int(draw.integers(0, 6 - row // 2)) if row < 6 else int(draw.random() < 0.35)
            links[name] = Links(draw.random((count, *share.shape[1:])) < share[row], draw.choice([*OFFSETS, 17], count))
        made.append(Text(number * 5 % FOLDS, links))
    return made


def add_rules(table: xr.Dataset, texts: list[Text], draw: np.random.Generator) -> tuple[xr.Dataset, dict]:
    """The table with a rival that is bound to a direction, and its hits: of each link, direction, side and class."""
    shape = (len(DIRECTIONS), len(SIDES), len(CLASSES))
    share = draw.beta(1, 2, (len(RELATIONS), *shape)) * np.linspace(0.3, 1, len(RELATIONS))[:, None, None, None]
    sums = np.zeros((len(DIRECTIONS), len(RELATIONS), FOLDS, len(SIDES), len(CLASSES)))
    hits: dict[str, list[np.ndarray]] = {name: [] for name in RELATIONS}
    for text in texts:
        for row, name in enumerate(RELATIONS):
            for _ in text.links[name].distance:
                hit = draw.random(shape) < share[row]
                hits[name].append(hit)
                for direction in range(len(DIRECTIONS)):
                    sums[direction, row, text.fold] += hit[direction]
    dims = ("direction", "relation", "fold", "side", "word_class")
    about = {"long_name": "links that rules find", "units": "links", "source": "loops"}
    table = table.assign(fold_upos=(dims, sums, about)).assign_coords(side=list(SIDES), word_class=list(CLASSES))
    return table.assign_attrs(scores=write_scores([SCORE])), {name: np.array(found) for name, found in hits.items()}


def elsewhere(table: xr.Dataset) -> xr.Dataset:
    """The table as if it were of another corpus."""
    return table.assign_attrs(corpus="folder/other.conllu", corpus_sha256="ef" * 32, words=1009)


@pytest.mark.parametrize("seed", [3, 5, 7])
def test_a_replication_is_what_naive_loops_say(seed: int) -> None:
    draw = np.random.default_rng(seed)
    strong = make_shares(draw)
    weak = make_shares(draw) * np.linspace(0.4, 1, len(RELATIONS))[:, None, None, None]
    texts, others, untrained = (make_texts(draw, share) for share in (strong, strong, weak))
    table, _ = add_rules(head_table(texts, RELATIONS), texts, draw)
    other, rules = add_rules(head_table(others, RELATIONS), others, draw)
    report = add_report(table, minimum=5)
    replicated = add_replication(report, elsewhere(other), head_table(untrained, RELATIONS))
    assert len(set(replicated["replication_verdict"].values)) == 3
    decided = {}
    for name in RELATIONS:
        row = replicated.sel(relation=name)
        assert row["reported_layer"] > 0
        direction = DIRECTIONS.index(row["reported_direction"].item())
        place = (int(row["reported_layer"]) - 1, int(row["reported_head"]) - 1, direction)
        folds = [text.fold for text in others for _ in text.links[name].distance]
        hits = np.concatenate([text.links[name].hits for text in others])[(slice(None), *place)]
        assert row["replication_count"] == len(hits)
        assert row["replication_clusters"] == len(set(folds))
        assert row["replication_accuracy"].item() == pytest.approx(np.mean(hits))
        ends = interval_of(hits.tolist(), [str(fold) for fold in folds])
        assert [row[f"replication_{end}"].item() for end in ("lower", "upper")] == pytest.approx(ends, abs=3e-3)
        far = np.array([distance for text in others for distance in text.links[name].distance])
        control = np.concatenate([text.links[name].hits for text in untrained])
        candidates = {
            "offset": (np.stack([far == offset for offset in OFFSETS], axis=-1), folds),
            "upos": (rules[name][:, direction], folds),
            "untrained": (control, [text.fold for text in untrained for _ in text.links[name].distance]),
        }
        lifts, shares = {}, {}
        for rival, (columns, where) in candidates.items():
            column = columns[(slice(None), *replication.best(columns))]
            lifts[rival], shares[rival] = replication.lift(hits, column, folds, where), np.mean(column)
            assert_lift(row, f"replication_lift_over_{rival}", lifts[rival])
        strongest = max(shares, key=lambda rival: shares[rival])
        assert row["replication_rival"] == strongest
        assert_lift(row, "replication_lift", lifts[strongest])
        assert row["replication_lift_p"].item() == pytest.approx(max(p for *_, p in lifts.values()), rel=1e-9)
        if replication.decide(lifts, folds):
            decided[name] = lifts
    wanted = replication.judge(decided)
    for name in RELATIONS:
        verdict, p = wanted.get(name, (UNDECIDED, np.nan))
        row = replicated.sel(relation=name)
        assert row["replication_verdict"] == verdict
        assert row["replication_p"].item() == pytest.approx(p, nan_ok=True, rel=1e-9)


def assert_lift(row: xr.Dataset, name: str, lift: tuple[float, float, float, float]) -> None:
    assert [row[f"{name}{end}"].item() for end in ("", "_lower", "_upper")] == pytest.approx(lift[:3])


def test_the_table_is_kept_and_says_what_the_other_corpus_was() -> None:
    draw, share = np.random.default_rng(11), make_shares(np.random.default_rng(12))
    report = add_report(head_table(make_texts(draw, share), RELATIONS), minimum=5)
    before = report.copy(deep=True)
    other = elsewhere(head_table(make_texts(draw, share), RELATIONS)).assign_attrs(corpus_source="a treebank")
    replicated = add_replication(report, other)
    xr.testing.assert_identical(report, before)
    assert check(replicated) is replicated
    added = {key: value for key, value in replicated.attrs.items() if key.startswith("replication_")}
    assert added == {
        "replication_corpus": "folder/other.conllu", "replication_corpus_sha256": "ef" * 32,
        "replication_corpus_source": "a treebank",
        "replication_documents": 211, "replication_words": 1009, "replication_tokens": 2503,
        "replication_skipped": report.attrs["skipped"],
    }  # fmt: skip
    assert not [name for name in replicated if "untrained" in str(name)]


def planted(texts: int, links: int, share: float, label: str = "obj", *, folds: int = FOLDS) -> xr.Dataset:
    """One relation of which head 2-3 finds so many links from the dependent, and no offset any."""
    made = []
    for number in range(texts):
        hits = np.zeros((links, 3, 5, 2), dtype=bool)
        hits[: round(share * links), 1, 2, 0] = True
        made.append(Text(number % folds, {label: Links(hits, [17] * links)}))
    return head_table(made, [label])


@pytest.mark.parametrize(
    ("texts", "links", "share", "verdict"),
    [
        (29, 5, 0.6, "survives"),
        (29, 5, 0.0, "does not survive"),
        (20, 5, 0.6, "survives"),
        (19, 5, 0.6, "cannot decide"),
        (23, 0, 0.0, "cannot decide"),
    ],
)
def test_a_planted_head_survives_where_it_is_planted_too(texts, links, share, verdict) -> None:
    report = add_report(planted(61, 7, 0.8))
    assert (report["reported_layer"].item(), report["reported_head"].item()) == (2, 3)
    row = add_replication(report, elsewhere(planted(texts, links, share))).squeeze()
    assert row["replication_verdict"] == verdict
    assert row["replication_count"] == texts * links
    if links:
        assert row["replication_lift"].item() == pytest.approx(share)


def test_documents_of_few_texts_are_not_decided() -> None:
    report, other = add_report(planted(61, 7, 0.8)), elsewhere(planted(31, 5, 0.6))
    assert add_replication(report, other)["replication_verdict"].item() == "survives"
    other["fold_link"].attrs["fold_unit"] = "document of few texts"
    assert add_replication(report, other)["replication_verdict"].item() == UNDECIDED


def test_without_a_rival_there_is_nothing_to_decide() -> None:
    report, other = add_report(planted(61, 7, 0.8)), elsewhere(planted(31, 5, 0.6)).drop_vars("fold_offset")
    row = add_replication(report, other).squeeze()
    assert row["replication_verdict"] == UNDECIDED
    assert row["replication_accuracy"].item() == pytest.approx(0.6)
    assert "replication_lift" not in row
    untrained = elsewhere(planted(31, 5, 0.2))
    assert add_replication(report, other, untrained)["replication_verdict"].item() == "survives"


def test_a_row_that_no_rival_has_is_not_decided() -> None:
    report, other = add_report(planted(61, 7, 0.8)), elsewhere(planted(31, 5, 0.6)).drop_vars("fold_offset")
    row = add_replication(report, other, elsewhere(planted(31, 5, 0.2, "nsubj"))).squeeze()
    assert row["replication_lower"] > 0
    assert row["replication_lift_over_untrained"].isnull()
    assert row["replication_verdict"] == UNDECIDED


def test_rows_in_another_order_and_rows_that_are_not_there() -> None:
    draw, share = np.random.default_rng(13), make_shares(np.random.default_rng(14))
    report = add_report(head_table(make_texts(draw, share), RELATIONS), minimum=5)
    other, untrained = (elsewhere(head_table(make_texts(draw, share), RELATIONS)) for _ in range(2))
    whole = add_replication(report, other, untrained)
    backwards = other.isel(relation=slice(None, None, -1))
    xr.testing.assert_identical(
        add_replication(report, backwards, untrained.isel(relation=[3, 1, 2, 0, 6, 5, 4])), whole
    )
    some = ["det", "obj", "nsubj"]
    fewer = add_replication(report, other.sel(relation=some), untrained.sel(relation=some))
    of_all = "replication_p"  # corrected for the rows that there are
    xr.testing.assert_identical(fewer.drop_vars(of_all).sel(relation=some), whole.drop_vars(of_all).sel(relation=some))
    assert (fewer[of_all].sel(relation=some) <= whole[of_all].sel(relation=some)).all()
    lost = fewer.drop_sel(relation=some)
    lost = lost.sel(relation=lost["reported_layer"] > 0)
    assert lost.sizes["relation"] > 2
    assert (lost["replication_verdict"] == UNDECIDED).all()
    assert (lost["replication_count"] == 0).all()
    assert lost["replication_lift"].isnull().all()
    assert (lost["replication_rival"] == "").all()


def test_a_row_without_a_head_has_no_verdict() -> None:
    report = add_report(planted(61, 7, 0.8), minimum=1000)
    row = add_replication(report, elsewhere(planted(31, 5, 0.6))).squeeze()
    assert row["replication_verdict"] == ""
    assert (row["replication_count"], row["replication_clusters"], row["replication_rival"]) == (0, 0, "")
    assert np.isnan(row["replication_accuracy"])


def test_of_several_attention_types_the_head_of_the_reported_one_is_scored() -> None:
    here = {name: planted(61, 7, share) for name, share in (("encoder", 0.3), ("decoder", 0.9))}
    there = {name: planted(31, 5, share) for name, share in (("encoder", 0.8), ("decoder", 0.4))}
    table, other = stacked(here), elsewhere(stacked(there))
    row = add_replication(add_report(table), other, other).squeeze()
    assert row["reported_attention_type"] == "decoder"
    assert row["replication_accuracy"].item() == pytest.approx(0.4)
    # The best head of the untrained model is chosen on the other corpus, among all types.
    assert row["replication_lift_over_untrained"].item() == pytest.approx(-0.4)
    assert row["replication_verdict"] == "does not survive"


def test_a_score_that_the_other_corpus_lacks_is_not_decided() -> None:
    second = replace(ACCURACY, variable="own_accuracy", numerator=("own_correct",), denominator=("own_link",),
                     rivals=(), prefix=None)  # fmt: skip
    report = planted(61, 7, 0.8)
    names = {"relation_accuracy": "own_accuracy", "fold_correct": "own_correct", "fold_link": "own_link"}
    both = report.assign({new: report[old] for old, new in names.items()})
    both = add_report(both.assign_attrs(scores=write_scores([ACCURACY, second])))
    row = add_replication(both, elsewhere(planted(31, 5, 0.6))).squeeze()
    assert (row["replication_verdict"], row["own_replication_verdict"]) == ("survives", UNDECIDED)
    assert row["own_replication_count"] == 0
    lacking = elsewhere(planted(31, 5, 0.6)).drop_vars("fold_correct")
    refuse(both, lacking, "the head table of the other corpus has none of the scores relation_accuracy, own_accuracy; "
           "measure them there too.")  # fmt: skip


def refuse(table: xr.Dataset, other: xr.Dataset, sentence: str) -> None:
    with pytest.raises(TableError, match=f"^{re.escape(sentence)}$"):
        add_replication(table, other)


def test_what_cannot_be_replicated_is_refused() -> None:
    table, other = planted(61, 7, 0.8), elsewhere(planted(31, 5, 0.6))
    refuse(table, other, "the head table has no reported heads, so nothing can be replicated; call add_report first.")
    report, same = add_report(table), planted(31, 5, 0.6)
    sentence = (
        "the corpus to replicate on, copy.conllu, has the same contents as the one on which the heads are chosen; "
        "give other texts."
    )
    refuse(report, same.assign_attrs(corpus="copy.conllu"), sentence)
    sentence = (
        "the heads were chosen in the model made/up, and the other corpus was measured with a model that differs in "
        "its {} (made/up); measure it with the same one."
    )
    refuse(report, other.assign_attrs(weights_sha256="00" * 32), sentence.format("weights"))
    refuse(report, other.isel(layer=slice(2)), sentence.format("numbers of layers and heads"))
