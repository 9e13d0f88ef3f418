"""The difference of two tables of the same texts: planted heads, refusals, and numbers of naive loops."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
import planted
import tiny
from analyse.tables import RELATIONS, head_table, stacked, texts, two_stacks, with_other_hits
from headscope.analyse.paired import HIGHER, LOWER, NOT_SHOWN, NOT_TESTED
from headscope.analyse.report import UNDECIDED
from headscope.capture.model.model import Model
from headscope.errors import TableError
from worlds.differences import draw_tables

PLACE = ["layer", "head", "direction"]


WHAT = ["surface", "relations"]


def tiny_model(seed: int) -> Model:
    return Model.from_module(*tiny.make("bert", seed=seed), name="tiny")


def make_pair(seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Tables of two models on the same 23 texts."""
    draw = np.random.default_rng(seed)
    made = texts(draw)
    return head_table(made, RELATIONS), head_table(with_other_hits(made, draw), RELATIONS)


def test_the_head_that_was_planted_is_found_and_no_other() -> None:
    documents = planted.documents(120)
    others = {place: rule for place, rule in planted.RULES.items() if place != (2, 3)}
    before, after = (
        headscope.measure(planted.plant(rules), documents, "relations", permutations=19)
        for rules in (others, planted.RULES)
    )
    frame = headscope.difference(before, after)
    differing = frame[frame.verdict.isin([HIGHER, LOWER])]
    found = differing[PLACE].agg(tuple, axis=1).isin([(2, 3, way) for way in before.direction.values])
    assert found.all()
    row = differing.set_index(["row", *PLACE]).loc[("obj", 2, 3, "dependent_to_head")]
    assert row.verdict == HIGHER
    assert row.b == 1.0
    assert row.difference_lower > 0.5
    other = headscope.difference(after, before).set_index(["row", *PLACE])
    assert other.loc[("obj", 2, 3, "dependent_to_head")].verdict == LOWER


def test_an_edit_changes_later_layers_alone_and_the_frame_says_which_it_was() -> None:
    model = tiny_model(0)
    documents = tiny.documents(23)
    before = headscope.measure(model, documents, WHAT, permutations=19)
    with headscope.disable(model, "1-2"):
        after = headscope.measure(model, documents, WHAT, permutations=19)
    frame = headscope.difference(before, after)
    assert frame.attrs["edited"] == {"b": "uniform in place of 1-2"}
    assert frame.attrs["differs_in"] == ""
    assert (frame[frame.layer == 1].difference.dropna() == 0).all()
    assert (frame[(frame.layer == 2) & (frame.score == "entropy")].difference != 0).all()
    other = headscope.measure(tiny_model(1), documents, WHAT, permutations=19)
    assert headscope.difference(before, other).attrs["differs_in"] == "weights"


@pytest.mark.parametrize("seed", [3, 5])
def test_the_order_of_the_tables_turns_the_sign_alone(seed: int) -> None:
    first, second = draw_tables(np.random.default_rng(seed), "as often", 150, 8, planted=True)
    there, back = headscope.difference(first, second), headscope.difference(second, first)
    assert there.verdict.isin([HIGHER, LOWER]).any()
    turned = back.rename(columns={"a": "b", "b": "a", "difference_lower": "upper", "difference_upper": "lower"})
    turned = turned.rename(columns={"lower": "difference_lower", "upper": "difference_upper"})
    ends = ["difference", "difference_lower", "difference_upper"]
    turned = turned.assign(
        **-turned[ends], verdict=turned.verdict.replace({HIGHER: LOWER, LOWER: HIGHER})
    )[[*there.columns]]  # fmt: skip
    pd.testing.assert_frame_equal(there, turned, check_exact=True)


def test_a_table_does_not_differ_from_itself() -> None:
    table, _ = make_pair(7)
    frame = headscope.difference(table, table)
    assert (frame[["difference", "difference_lower", "difference_upper"]] == 0).all(axis=None)
    assert (frame.p == 1).all()
    assert not frame.verdict.isin([HIGHER, LOWER]).any()


def test_other_weights_that_change_no_item_may_still_differ_by_what_the_items_do_not_show() -> None:
    table, _ = make_pair(7)
    frame = headscope.difference(table, table.assign_attrs(weights_sha256="ef" * 32))
    assert (frame.difference == 0).all()
    assert (frame.difference_upper > 0).all()
    assert (frame.p == 1).all()


def test_rounding_is_no_difference() -> None:
    """As on another device: all sums of attention are a little larger."""
    draw = np.random.default_rng(11)
    table, _ = make_pair(7)
    right = table["fold_correct"] * draw.uniform(0.2, 0.9)
    pair = [table.assign(fold_correct=right.assign_attrs(units="1") * factor) for factor in (1, 1 + 1e-7, 1 + 1e-3)]
    assert (headscope.difference(pair[0], pair[1]).p == 1).all()
    assert (headscope.difference(pair[0], pair[2]).p < 0.01).any()


def test_tables_without_sums_have_a_difference_and_no_interval() -> None:
    documents = tiny.documents(7)
    first, second = (headscope.measure(tiny_model(seed), documents, "surface") for seed in (0, 1))
    frame = headscope.difference(first, second, ["entropy", "mass_distance"])
    assert frame.score.unique().tolist() == ["entropy", "mass_distance"]
    assert (frame.verdict == NOT_TESTED).all()
    assert frame[["difference_lower", "difference_upper", "p", "p_corrected", "count"]].isna().all(axis=None)
    entropy = frame[frame.score == "entropy"].set_index(["layer", "head"]).difference.to_xarray()
    np.testing.assert_array_equal(entropy, second.entropy - first.entropy)
    row = frame[(frame.row == "1") & (frame["layer"] == 2) & (frame["head"] == 3)].iloc[0]
    place = {"layer": 2, "head": 3, "distance": 1}
    assert row.difference == float(second.mass_distance.sel(place) - first.mass_distance.sel(place))
    pair = [table.drop_vars("fold_correct") for table in make_pair(3)]
    assert (headscope.difference(*pair).verdict == NOT_TESTED).all()


def test_all_scores_and_variables_of_heads_are_compared() -> None:
    table = headscope.measure(tiny_model(0), tiny.documents(7), ["surface", "scope", "classes"], permutations=19)
    frame = headscope.difference(table, headscope.analyse.assess(table))
    names = {"scope_f1", "scope_precision", "scope_recall", "token_class_mass", "entropy", "mass_cls", "mean_distance"}
    assert names <= {*frame.score}
    assert not {name for name in frame.score if name.endswith(("_lower", "_upper", "_p", "_z", "_permuted", "_q"))}
    assert (frame[frame.score == "token_class_mass"].row != "").all()
    assert (frame[frame.score == "entropy"].row == "").all()


def test_heads_of_each_attention_type_are_compared() -> None:
    encoder, decoder = two_stacks(13)
    first, second = stacked({"encoder": encoder, "decoder": decoder}), stacked({"encoder": encoder, "decoder": encoder})
    frame = headscope.difference(first, second)
    of_decoder = frame[frame.attention_type == "decoder"]
    assert (frame[frame.attention_type == "encoder"].difference == 0).all()
    assert {*of_decoder.layer.astype(int)} == {1, 2, 3}
    assert of_decoder[of_decoder.layer == 3].a.isna().all()  # only the second has a third layer
    assert (of_decoder[of_decoder.layer == 3].verdict == NOT_TESTED).all()
    assert (of_decoder[of_decoder.layer < 3].difference != 0).any()


def test_rows_in_another_order_are_compared_by_their_labels() -> None:
    first, second = make_pair(17)
    turned = second.isel(relation=slice(None, None, -1))
    pd.testing.assert_frame_equal(headscope.difference(first, turned), headscope.difference(first, second))


def test_what_else_is_known_of_rows_changes_nothing() -> None:
    first, second = make_pair(29)
    noted = [table.assign_coords(note=("relation", [f"{name} {number}" for name in RELATIONS]), about=number)
             for number, table in enumerate((first, second))]  # fmt: skip
    pd.testing.assert_frame_equal(headscope.difference(*noted), headscope.difference(first, second))


def test_few_texts_decide_nothing() -> None:
    first, second = draw_tables(np.random.default_rng(19), "as often", 22, planted=True)
    frame = headscope.difference(first, second)
    few = frame.clusters < 20
    assert 0 < few.sum() < len(frame)
    assert (frame[few].verdict == UNDECIDED).all()
    assert frame[few].p_corrected.isna().all()
    assert frame[few].p.notna().all()
    assert frame[~few].verdict.isin([HIGHER, LOWER, NOT_SHOWN]).all()
    of_documents = first.fold_link.assign_attrs(fold_unit="document of few texts")
    assert (headscope.difference(first.assign(fold_link=of_documents), second).verdict == UNDECIDED).all()


def without(table: xr.Dataset, *names: str) -> xr.Dataset:
    return table.drop_vars(names)


ALL = "relation_accuracy"
REFUSALS = {
    "no table": (lambda a, b: ("a.nc", b, None), "a head table was wanted, and str came; headscope.read_table reads "
                 "one."),
    "no second table": (lambda a, b: (a, b.to_dataframe, None), "a head table was wanted, and method came; "
                        "headscope.read_table reads one."),
    "no head table": (lambda a, b: (a, b.drop_vars("head"), None), "the second table has no dimension 'head' with "
                      "labels; every head table has layers and heads."),
    "one layer": (lambda a, b: (a, b.sel(layer=1), None), "the second table has no dimension 'layer' with labels; "
                  "every head table has layers and heads."),
    "no attributes": (lambda a, b: (a, b.drop_attrs(), None), "the second table does not say of which texts and "
                      "weights it is: it lacks corpus_sha256, documents, weights_sha256; give the table that was "
                      "measured, with its attributes."),
    "another shape": (lambda a, b: (a, b.isel(head=[0, 1, 2]), None), "the second table has 3 layers and 3 heads and "
                      "the first table 3 layers and 5 heads; give tables of one architecture."),
    "another corpus": (lambda a, b: (a, b.assign_attrs(corpus_sha256="x", corpus="b.txt"), None), "the second table is "
                       "of the corpus 'b.txt' and the first table of 'made-up.conllu'; measure both on the same "
                       "corpus."),
    "other documents": (lambda a, b: (a, b.assign_attrs(documents=199), None), "the second table is of 199 documents "
                        "and the first table of 211; measure both with the same options, so that both skip the same "
                        "documents."),
    "another view": (lambda a, b: (a, b.assign_attrs(view="norm"), None), "the second table is of the view `norm` and "
                     "the first table of the weights; measure both with the same --view."),
    "runs": (lambda a, b: (a, b.expand_dims(run=11), None), "the second table holds 11 runs, which have no heads in "
             "common; choose one, as in table.isel(run=0)."),
    "runs before": (lambda a, b: (a.expand_dims(run=7), b, None), "the first table holds 7 runs, which have no heads "
                    "in common; choose one, as in table.isel(run=0)."),
    "other items": (lambda a, b: (a, b.assign(fold_link=b.fold_link + 1), None), "the second table has other links of "
                    "relation_accuracy in some fold than the first table; measure both with the same tokenizer, "
                    "options and version of headscope, on files of the same names."),
    "other folds": (lambda a, b: (a, b.isel(fold=slice(32)), None), "the second table has other links of "
                    "relation_accuracy in some fold than the first table; measure both with the same tokenizer, "
                    "options and version of headscope, on files of the same names."),
    "documents in other folds": (lambda a, b: (a, b.roll(fold=1), None), "the documents of the second table are in "
                                 "other folds than those of the first table, as versions of headscope assign them "
                                 "differently; measure both with one version."),
    "other rows": (lambda a, b: (a, b.isel(relation=[0, 1, 2]), None), "'relation_accuracy' of the second table has "
                   "other labels along relation than that of the first table; measure both with the same options."),
    "other dimensions": (lambda a, b: (a, b.isel(direction=0, drop=True), None), "'relation_accuracy' of the second "
                         "table has the dimensions layer, head, relation, and that of the first table has layer, head, "
                         "relation, direction; measure both with the same options."),
    "nothing in common": (lambda a, b: (a, b.drop_vars(ALL), None), "the first table and the second table have no "
                          "score in common; measure the same in both."),
    "misspelt": (lambda a, b: (a, b, "relation_acuracy"), "the first table has no score or variable of heads "
                 "'relation_acuracy' (did you mean relation_accuracy?); the first table has relation_accuracy."),
    "not in the second": (lambda a, b: (a, without(b, ALL), [ALL]), "the second table has no score or variable of "
                          "heads 'relation_accuracy' (did you mean relation_accuracy?); the first table has "
                          "relation_accuracy."),
    "sums": (lambda a, b: (a, b, "fold_correct"), "the first table has no score or variable of heads 'fold_correct'; "
             "the first table has relation_accuracy."),
    "no name": (lambda a, b: (a, b, []), "no score was named; name one or more, or leave `scores` out to compare all."),
    "a number": (lambda a, b: (a, b, 7), "the first table has no score or variable of heads 7; the first table has "
                 "relation_accuracy."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_compared_is_refused_in_a_sentence(case: str) -> None:
    edit, sentence = REFUSALS[case]
    with pytest.raises(TableError) as caught:
        headscope.difference(*edit(*make_pair(23)))
    assert str(caught.value) == sentence
