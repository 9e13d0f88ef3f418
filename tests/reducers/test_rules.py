"""Rules of a user's own as rivals: what they find, against loops; how they are known; what is refused."""

import re
from functools import partial
from itertools import product

import numpy as np
import pytest
import xarray as xr

import headscope
import rivals
import tiny
from headscope.capture.model.model import Model
from headscope.corpora import Document, Link, summarize
from headscope.errors import HeadscopeError
from headscope.reducers import Relations, Rule
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, measure
from headscope.view.table_frames import make_frames

DOCUMENTS = rivals.add_rivals(tiny.documents(11))
TEXT = Document("7", ("she", "saw", "herself"), (Link(2, 0, "reflexive", "link"),))


def find_next(document: Document) -> list[int | None]:
    return [*range(1, len(document.words)), None]


def find_first(document: Document) -> np.ndarray:
    """The first word, for all but that: as NumPy and others have it, with -1 for none."""
    return np.array([-1] + [0] * (len(document.words) - 1))


RULES = (Rule("next word", find_next), Rule("first word", find_first), Rule("none but one", partial(find_first)))


def relations(*rules: Rule, documents: list[Document] = DOCUMENTS) -> Relations:
    return with_permutations(Relations.for_corpus(summarize(documents), rules), 0)


def model() -> Model:
    return Model.from_module(*tiny.make("bert"), name="bert")


@pytest.fixture(scope="module", params=[Plan(), Plan(batch_tokens=1)], ids=["batched", "alone"])
def table(request) -> xr.Dataset:
    return measure(model(), DOCUMENTS, ["surface", relations(*RULES)], plan=request.param)


@pytest.mark.parametrize("variable", ["fold_rule", "fold_candidate_rule"])
def test_what_rules_find_is_what_loops_find(table, variable: str) -> None:
    assert table["rule"].values.tolist() == ["next word", "first word", "none but one"]
    assert table["end"].values.tolist() == ["source", "target"]
    expected = dict.fromkeys(product(tiny.LABELS, (0, 1, 2), (0, 1)), 0)
    for document in DOCUMENTS:
        answers = [[word + 1 for word in range(len(document.words) - 1)] + [-1], [-1] + [0] * len(document.words)]
        for link in document.links:
            if link.label in tiny.LABELS and (link.rivals or variable == "fold_rule"):
                for rule, found in enumerate((answers[0], answers[1], answers[1])):
                    expected[link.label, rule, 0] += found[link.source] == link.target
                    expected[link.label, rule, 1] += found[link.target] == link.source
    assert sum(expected.values()) > 23
    for (label, rule, end), hits in expected.items():
        ours = table[variable].sum("fold").sel(relation=label).transpose("rule", "end")
        assert ours[rule, end] == hits, (label, rule, end)


def test_rules_change_nothing_else(table) -> None:
    without = measure(model(), DOCUMENTS, ["surface", relations()], plan=Plan())
    assert set(table.data_vars) - set(without.data_vars) == {"fold_rule", "fold_candidate_rule"}
    xr.testing.assert_allclose(table[list(without.data_vars)].drop_vars(["rule", "end"], errors="ignore"), without)


def test_a_rule_is_known_by_its_name_and_that_of_its_function() -> None:
    assert repr(RULES[0]) == f"Rule(name='next word', predict={__name__}.find_next)"
    assert repr(RULES[2]) == "Rule(name='none but one', predict=functools.partial)"
    assert " at 0x" not in repr(relations(*RULES))


def test_a_list_of_rules_will_do_and_links_without_tokens_ask_for_none() -> None:
    reducer = relations(*RULES)
    assert Relations(reducer.links, rules=list(RULES)).rules == RULES
    plain = [*DOCUMENTS, Document("plain", ("the", "dog"))]
    again = Rule("next word", lambda document: find_next(document) if document.links else pytest.fail("no links"))
    measured = measure(model(), plain, [relations(again)])
    assert measured["fold_rule"].sum() > 0


def test_rules_are_in_the_report_and_the_csv_files(table) -> None:
    reported = headscope.analyse.add_report(table, minimum=1)
    assert {*reported["heldout_rule"].values} <= {"", "next word", "first word", "none but one"}
    frame = make_frames(reported)["relation"]
    assert {"heldout_rule", "heldout_rule_end", "heldout_rule_accuracy", "lift_over_rule"} <= {*frame}


RETURN = "return a list with the index of a word, or None, for each of them."
INDICES = "return indices from 0 to 2, or None where it predicts none."
REFUSALS = {
    "too few": (lambda _: [1], f"gave 1 predictions for the document '7', which has 3 words; {RETURN}"),
    "one word": (lambda _: 1, f"gave 1 for the document '7', which has 3 words; {RETURN}"),
    "nothing": (lambda _: None, f"gave None for the document '7', which has 3 words; {RETURN}"),
    "outside": (lambda _: [1, 3, 0], f"gave 3 for word 1 of the document '7', which has 3 words; {INDICES}"),
    "before": (lambda _: [-2, 0, 0], f"gave -2 for word 0 of the document '7', which has 3 words; {INDICES}"),
    "true": (lambda _: [None, 0, True], f"gave True for word 2 of the document '7', which has 3 words; {INDICES}"),
    "a word": (lambda _: "abc", f"gave 'a' for word 0 of the document '7', which has 3 words; {INDICES}"),
    "no word": (
        lambda _: [None, 2, None],
        "predicts no word for either end of any link of the corpus; correct its function, or leave it out.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_rule_that_predicts_no_words_of_the_document_is_refused(case: str) -> None:
    predict, sentence = REFUSALS[case]
    with pytest.raises(HeadscopeError, match=f"^{re.escape(f'the rule {case!r} {sentence}')}$"):
        measure(model(), [TEXT], [relations(Rule(case, predict), documents=[TEXT])])


def test_a_rule_without_a_name_is_refused() -> None:
    sentence = (
        "the rule ' ' has <built-in function len> to predict words; give it a name, and a function from a document to "
        "the index of a word, or None, for each of its words."
    )
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        Rule(" ", len)


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(HeadscopeError, match=r"^the rule 'next word' is named twice; name each once\.$"):
        relations(RULES[0], RULES[0])
