"""What is right in single texts: the reducers' own sums and loops over the weights say the same of the same texts."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import tiny
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.examples import Text
from headscope.reducers import Relations, Rule
from headscope.reducers.support.items import ItemReducer
from headscope.reducers.support.permutations import Permutations
from headscope.runner import Plan, measure, resolve_reducers
from headscope.runner.example_texts import RowRule, read_texts
from witnesses.relations import PLACES, dependencies_of, hits_of
from witnesses.seen import see

DOCUMENTS = tiny.documents(13)
DIRECTIONS = ("dependent_to_head", "head_to_dependent")


@cache
def make(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


def read(family: str, rules: dict[str, RowRule] | None = None) -> tuple[list[ItemReducer], list[Text]]:
    reducers = resolve_reducers(["relations", "coreference"], summarize(DOCUMENTS))
    assert all(isinstance(reducer, ItemReducer) for reducer in reducers)
    return reducers, read_texts(make(family), DOCUMENTS, Plan(batch_tokens=53), reducers, rules or {})


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_what_is_right_adds_up_to_the_scores_of_a_corpus_of_the_examples(family: str) -> None:
    reducers, texts = read(family)
    table = measure(make(family), DOCUMENTS, reducers, plan=Plan(batch_tokens=53))
    compared = 0
    for kind in texts[0].judged:
        part = table.sel(attention_type=kind) if "attention_type" in table.dims else table
        for stem, dim, sums in (
            ("relation", "relation", ("fold_correct", "fold_link")),
            ("antecedent", "mention", ("fold_antecedent_correct", "fold_antecedent")),
        ):
            for row in map(str, part[dim].values):
                right, count = (part[name].sel({dim: row}).sum("fold") for name in sums)
                for bit, direction in enumerate(DIRECTIONS if stem == "relation" else [""]):
                    hits = np.zeros(texts[0].judged[kind].right.shape[:2], dtype=int)
                    counting = 0
                    for text in texts:
                        judged = text.judged[kind]
                        own = [place for place, item in enumerate(text.items) if f"{stem}:{row}" in item.rows]
                        hits += (judged.right[..., own] >> bit & 1).sum(-1, dtype=int)
                        counting += int((judged.counts[own] >> bit & 1).sum())
                    wanted = right.sel(direction=direction) if direction else right
                    # An encoder may have fewer layers than its decoder.
                    wanted = wanted.transpose("layer", "head").isel(layer=slice(len(hits)))
                    np.testing.assert_array_equal(hits, wanted, err_msg=f"{row} {direction}")
                    assert counting == (count.sel(direction=direction) if "direction" in count.dims else count)
                    compared += int(hits.sum())
    assert compared > 100


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_links_are_right_where_a_loop_over_the_weights_says_so(family: str) -> None:
    _, texts = read(family)
    for text, document in zip(texts, DOCUMENTS, strict=True):
        if document.boundary is not None:
            continue
        ((kind, seen),) = see(*tiny.make(family), document).items()
        links = list(zip(dependencies_of(document), hits_of(seen), strict=True))
        of_links = [place for place, item in enumerate(text.items) if item.rows[0].startswith("relation:")]
        assert [(text.items[place].source, text.items[place].targets) for place in of_links] == [
            (link.source, (link.target,)) for link, _ in links
        ]
        for place, (_, hit) in zip(of_links, links, strict=True):
            counts, right = text.judged[kind].counts[place], text.judged[kind].right[..., place]
            assert [bool(counts >> bit & 1) for bit in (0, 1)] == (~np.isnan(hit[0, 0])).tolist()
            np.testing.assert_array_equal(np.stack([right & 1, right >> 1], -1), np.nan_to_num(hit))


OWN = Rule("second last", lambda document: [max(0, place - 2) for place in range(len(document.words))])
RULES = [
    ("offset", {"offset": "2"}, "fold_offset", {"offset": 2}),
    ("offset", {"offset": "-1"}, "fold_offset", {"offset": -1}),
    *(
        ("upos", {"side": side, "word_class": word_class}, "fold_upos", {"side": side, "word_class": word_class})
        for side in PLACES
        for word_class in ("VERB", "NOUN/PROPN", "open class")
    ),
    *(
        ("rule", {"rule": OWN.name, "end": end}, "fold_rule", {"rule": OWN.name, "end": end})
        for end in ("source", "target")
    ),
]


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_the_picks_of_a_rule_are_right_as_often_as_its_sums_say(family: str) -> None:
    reducer = replace(Relations.for_corpus(summarize(DOCUMENTS)), rules=(OWN,), permutations=Permutations(0))
    table = measure(make(family), DOCUMENTS, [reducer])
    compared = 0
    for name, options, variable, place in RULES:
        wanted = table[variable].sel(place).sum("fold")
        for bit, direction in enumerate(DIRECTIONS):
            rules = {f"relation:{row}": RowRule(name, options, bit) for row in table["relation"].values}
            texts = read_texts(make(family), DOCUMENTS, Plan(), [reducer], rules)
            for row in map(str, table["relation"].values):
                right = 0.0
                for text in texts:
                    own = [place for place, item in enumerate(text.items) if f"relation:{row}" in item.rows]
                    picks = text.picks.get(f"relation:{row}", ())
                    assert len(picks) == len(own)
                    (judged,) = text.judged.values()
                    for place, pick in zip(own, picks, strict=True):
                        item = text.items[place]
                        if judged.counts[place] >> bit & 1:
                            others = pick[0] if family == "llama" else len(text.words) - 1
                            guess = pick[1] < 0 and name == "upos"
                            right += 1 / others if guess else {*pick} == {item.source, *item.targets}
                count = wanted.sel(relation=row)
                count = count.sel(direction=direction) if "direction" in count.dims else count
                assert right == pytest.approx(count.item())
                compared += right
    assert compared > 100


@pytest.mark.parametrize("name", ["nearest", "head_match", "rules", "offset"])
def test_the_picks_of_antecedents_are_right_as_often_as_their_sums_say(name: str) -> None:
    table = measure(make("bert"), DOCUMENTS, ["coreference"])
    options = {"offset": "-2"} if name == "offset" else {}
    rules = {f"antecedent:{row}": RowRule(name, options, 0) for row in table["mention"].values}
    _, texts = read("bert", rules)
    for row in map(str, table["mention"].values):
        right = 0
        for text in texts:
            own = [item for item in text.items if f"antecedent:{row}" in item.rows]
            picks = text.picks.get(f"antecedent:{row}", ())
            right += sum(word in item.targets for item, (_, word) in zip(own, picks, strict=True))
        wanted = table[f"fold_antecedent_{name}"].sel(mention=row).sum("fold")
        assert right == (wanted.sel(offset=-2) if options else wanted)
    assert right > 0


def test_a_rule_that_picks_no_words_has_no_picks() -> None:
    _, texts = read("bert", {"relation:obj": RowRule("untrained", {}, 0), "scope": RowRule("all", {}, 0)})
    assert not any(text.picks for text in texts)
