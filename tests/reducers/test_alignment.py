"""Word alignment: naive loops over the maps of the model itself, laws, planted heads, and worlds with nothing there."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import laws
import planted_translator
import tiny
import tiny_pairs
import witnesses
from family_maps import make, see_all
from headscope.analyse import assess, shortlist_heads
from headscope.capture import untrained_model
from headscope.capture.model.model import Model
from headscope.corpora import Document, Link, read, summarize
from headscope.errors import CorpusError, HeadscopeError
from headscope.reducers import REDUCERS, WordAlignment
from headscope.reducers.support.permutations import Permutations
from headscope.runner import Plan, measure

PAIRS = tiny_pairs.pairs(29)
FEW = PAIRS[:11]  # for the laws
FAMILIES = ("bart", "t5")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "plan", [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True)], ids=["batched", "alone, 3 rows", "fused"]
)
def test_shares_equal_naive_loops(family: str, plan: Plan) -> None:
    maps = see_all(family, tuple(PAIRS))["cross"]
    table = measure(make(family), PAIRS, ["alignment"], plan=plan).sel(attention_type="cross")
    for step, expected in witnesses.alignment(maps).items():
        row = table.sel(decoder_step=step)
        assert int(row["alignment_count"]) == expected.count > 50
        np.testing.assert_array_equal(row["alignment_accuracy"].transpose("layer", "head"), expected.share)
        np.testing.assert_allclose(row["alignment_error_rate"].transpose("layer", "head"), expected.error_rate)
        for rule in ("index", "diagonal"):
            by_shift = row[f"fold_alignment_{rule}"].sum("fold").to_series().to_dict()
            assert by_shift == getattr(expected, rule)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_attention_types_have_no_score(family: str) -> None:
    table = assess(measure(make(family), PAIRS, ["alignment"]))
    others = table.sel(attention_type=["encoder", "decoder"])
    for name in ("accuracy", "error_rate", "p", "q", "p_corrected", "permuted", "accuracy_lower"):
        assert others[f"alignment_{name}"].isnull().all()
        assert table[f"alignment_{name}"].sel(attention_type="cross").notnull().all()
    assert {*table["alignment_reported_attention_type"].values.tolist()} == {"cross"}


def naive_permuted(maps: Sequence[witnesses.Seen], permutations: Permutations, back: int) -> np.ndarray:
    """The words right in each permutation by layer and head, from the word of each permuted place, one by one."""
    total = np.zeros((*maps[0].weights.shape[:2], permutations.count))
    for seen in maps:
        document = seen.document
        source = sorted({key.word for key in seen.keys if key.word is not None})
        target = sorted({query.word for query in seen.queries if query.word is not None})
        of_word: dict[int, dict[int, str]] = {}
        for link in document.alignment:
            if link.source in source and link.target in target:
                of_word.setdefault(link.target, {})[link.source] = link.label
        items = [word for word in sorted(of_word) if "sure" in of_word[word].values()]
        places = [[at for at in target if all(at + word - item in source for word in of_word[item])] for item in items]
        if not items:
            continue
        chosen = permutations.choose(document, [len(each) for each in places])
        for row, item in enumerate(items):
            for number, pick in enumerate(chosen[row]):
                at = places[row][pick]
                rows = [place - back for place, query in enumerate(seen.queries) if query.word == at]
                to_words = [
                    sum(seen.weights[:, :, rows, c].mean(-1) for c, key in enumerate(seen.keys) if key.word == word)
                    for word in source
                ]
                looked = np.array(source)[np.stack(to_words).argmax(0)]
                total[:, :, number] += np.isin(looked, [word + at - item for word in of_word[item]])
    return total


def test_permutations_equal_naive_loops() -> None:
    permutations = Permutations(7)
    reducer = replace(WordAlignment.for_corpus(summarize(PAIRS)), permutations=permutations)
    done = laws.add_up(make("bart"), PAIRS, [reducer], Plan())
    sums = done.collect_layers("alignment", "cross", (1, 2, 3))["alignment_permuted"]
    for place, back in enumerate((1, 0)):
        expected = naive_permuted(see_all("bart", tuple(PAIRS))["cross"], permutations, back)
        np.testing.assert_array_equal(sums[:, :, place], expected)


@cache
def reducer() -> WordAlignment:
    return replace(WordAlignment.for_corpus(summarize(FEW)), permutations=Permutations(7))


@cache
def expected(family: str) -> xr.Dataset:
    return laws.tabulate_alone(make(family), FEW, [reducer()])


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=7, deadline=None)
@given(
    plan=laws.PLANS,
    order=st.permutations(range(len(FEW))),
    cuts=st.sets(st.integers(1, len(FEW) - 1), max_size=5),
)
def test_any_order_split_padding_batch_and_block(family: str, plan: Plan, order: list, cuts: set) -> None:
    permuted = [FEW[place] for place in order]
    done = laws.merge(laws.add_up_parts(make(family), permuted, cuts, [reducer()], plan))
    laws.assert_same(laws.tabulate_sums(done, make(family), [reducer()]), expected(family))


@cache
def translator() -> Model:
    return Model.from_module(*planted_translator.plant(), name="planted")


def judge(model: Model, documents: Sequence[Document], permutations: int = 199) -> xr.Dataset:
    """The assessed table of the cross-attention, with a verdict on every head."""
    chosen = replace(WordAlignment.for_corpus(summarize(documents)), permutations=Permutations(permutations))
    table, untrained = (measure(each, documents, [chosen]) for each in (model, untrained_model(model)))
    return shortlist_heads(assess(table, untrained), untrained).sel(attention_type="cross")


def list_heads(table: xr.Dataset, step: str) -> list[tuple[int, int]]:
    stands_out = table["alignment_shortlist_stands_out"].sel(decoder_step=step)
    return [(layer, head) for layer in (1, 2) for head in range(1, 6) if stands_out.sel(layer=layer, head=head) == 1]


def test_planted_heads_are_found_and_their_neighbours_are_not() -> None:
    table = judge(translator(), planted_translator.pairs())
    assert list_heads(table, "predicting") == [(1, 2)]
    assert list_heads(table, "reading") == [(2, 3)]
    assert float(table["alignment_accuracy"].sel(layer=1, head=2, decoder_step="predicting")) == 1
    assert float(table["alignment_accuracy"].sel(layer=2, head=3, decoder_step="reading")) == 1
    assert float(table["alignment_error_rate"].sel(layer=2, head=3, decoder_step="reading")) == 0
    assert table["alignment_shortlist_stands_out"].notnull().all()
    assert table["alignment_reported_verdict"].values.tolist() == ["stands out"] * 2
    assert table["alignment_reported_layer"].values.tolist() == [1, 2]
    assert table["alignment_reported_head"].values.tolist() == [2, 3]


def test_where_words_stand_in_one_order_the_rules_explain_all() -> None:
    """The head that looks up words is always right there too, but no better than to look at the same number."""
    table = judge(translator(), planted_translator.pairs(order=range(13)))
    assert float(table["alignment_accuracy"].sel(layer=2, head=3, decoder_step="reading")) == 1
    assert not list_heads(table, "predicting") + list_heads(table, "reading")
    assert table["alignment_reported_verdict"].values.tolist() == ["does not stand out"] * 2


@pytest.mark.full
def test_where_links_are_random_no_head_stands_out() -> None:
    for seed in range(3):
        documents = planted_translator.permute_links(planted_translator.pairs(seed=seed), seed)
        table = judge(translator(), documents)
        assert not list_heads(table, "predicting") + list_heads(table, "reading")
        assert table["alignment_reported_verdict"].values.tolist() == ["does not stand out"] * 2


@pytest.mark.parametrize("family", FAMILIES)
def test_with_random_weights_no_head_stands_out(family: str) -> None:
    table = judge(make(family), tiny_pairs.pairs(300))
    assert (table["alignment_shortlist_stands_out"] == 0).all()
    assert table["alignment_reported_verdict"].values.tolist() == ["does not stand out"] * 2


def test_of_few_pairs_nothing_is_decided() -> None:
    table = judge(translator(), planted_translator.pairs(23))
    assert table["alignment_shortlist_stands_out"].isnull().all()


def test_possible_links_are_right_and_make_no_item() -> None:
    (pair,) = planted_translator.pairs(1)
    links = tuple(replace(link, label="possible") if link.target else link for link in pair.alignment)
    table = measure(translator(), [replace(pair, alignment=links)], ["alignment"])
    assert table["alignment_count"].values.tolist() == [1, 1]
    head = table.sel(attention_type="cross", layer=2, head=3, decoder_step="reading")
    # One sure link, found; every other link of the head is possible: none is wrong.
    assert float(head["alignment_error_rate"]) == 0
    other = (Link(pair.alignment[0].source, 0, "possible"), Link((pair.alignment[0].source + 1) % 13, 0, "sure"))
    table = measure(translator(), [replace(pair, alignment=other)], ["alignment"])
    head = table.sel(attention_type="cross", layer=2, head=3, decoder_step="reading")
    assert (float(head["alignment_accuracy"]), int(head["alignment_count"])) == (1, 1)
    assert float(head["alignment_error_rate"]) == pytest.approx(1 - (0 + 1) / (len(pair.translation) + 1))


def test_a_text_without_a_translation_is_read_twice_as_before() -> None:
    mixed = [*tiny.documents(7), *PAIRS[:7]]
    table, alone = (measure(make("bart"), documents, ["alignment"]) for documents in (mixed, PAIRS[:7]))
    xr.testing.assert_equal(table["alignment_count"], alone["alignment_count"])
    np.testing.assert_array_equal(table["alignment_accuracy"], alone["alignment_accuracy"])


def test_a_corpus_without_links_and_a_model_without_cross_attention_are_refused() -> None:
    summary = summarize(read("grammar:5"))
    assert not REDUCERS["alignment"].supports(summary)
    with pytest.raises(CorpusError) as refused:
        WordAlignment.for_corpus(summary)
    assert str(refused.value) == (
        "the reducer `alignment` needs sure links between words and those of a translation, and the corpus has none; "
        "give one in the format `alignments`, or measure `surface` only."
    )
    with pytest.raises(HeadscopeError) as refused:
        measure(make("bert"), PAIRS, ["alignment"])
    assert str(refused.value) == (
        "the reducer `alignment` needs cross-attention, and the model has none; give an encoder-decoder."
    )
