"""Plain names: every relation of real treebanks, every row of every reducer and every rule has one."""

import os
from pathlib import Path

import pytest

from headscope.corpora import read
from headscope.reducers import REDUCERS
from headscope.reducers.alignment import STEPS
from headscope.reducers.aspects import TARGETS
from headscope.reducers.coreference import MENTIONS
from headscope.reducers.induction import MATCHES
from headscope.reducers.nearby_tokens import NEARBY
from headscope.reducers.retrieval import ANSWERS
from headscope.reducers.sinks import SINKS
from headscope.reducers.sparse_shapes import SHAPES
from headscope.reducers.support.nearest import CLASSES, SIDES
from headscope.reducers.support.pattern_network import PATTERNS
from headscope.reducers.surface import SHOWN
from headscope.reducers.token_classes import CLASSES as TOKEN_CLASSES
from headscope.view.glosses import ROWS, STATISTICS, TERMS, gloss_distance, gloss_row, gloss_rule, gloss_statistic
from headscope.view.relation_names import RELATIONS, find_relation

UNIVERSAL = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
).split()
"""Universal Dependencies, version 2 (https://universaldependencies.org/u/dep)."""


def test_all_relations_have_words_an_explanation_and_an_example() -> None:
    assert set(UNIVERSAL) == {code for code in RELATIONS if ":" not in code} - {"all"}
    for code, name in RELATIONS.items():
        assert all(name), code
        assert name.about.endswith((".", "…")), code
        quoted, _, pairs = name.example.partition("”: ")
        if code != "root":
            for pair in pairs.split(", "):
                words = [word.split()[-1] for word in pair.split(" → ")]
                assert len(words) == 2, code
                assert {*words} <= {*quoted.removeprefix("“").split()}, code
    titles = [gloss_row(f"relation:{code}").title for code in RELATIONS]
    assert len({*titles}) == len(titles)


@pytest.mark.data
def test_every_relation_of_the_treebanks_has_a_name() -> None:
    files = sorted(Path(os.environ["HEADSCOPE_DATA"]).glob("ud/*/*.conllu"))
    assert len(files) > 5
    labels = {link.label for file in files for document in read(file) for link in document.links}
    assert len(labels) > 50
    assert not labels - {*RELATIONS}


def test_an_unknown_subtype_has_the_name_of_its_relation_and_a_row_that_pools_says_so() -> None:
    assert gloss_row("relation:nsubj:foo").title == "subject (foo) → its verb"
    assert gloss_row("relation:nsubj:*").title == "subject of any kind → its verb"
    assert gloss_row("relation:nsubj:foo").about == RELATIONS["nsubj"].about
    assert find_relation("object") is None
    own = gloss_row("relation:srl ARG0", "dependent_to_head", "srl ARG0", "links")
    assert (own.title, own.about) == ("srl ARG0", "")
    assert own.state("25 %", 1234) == "is right for 25 % of 1,234 links"


def test_both_directions_have_a_name() -> None:
    there, back = (gloss_row("relation:obj", way) for way in ("dependent_to_head", "head_to_dependent"))
    assert (there.title, back.title) == ("object → its verb", "verb → its object")
    assert there.example == "“She saw the dog”: dog → saw"
    assert back.example == "“She saw the dog”: saw → dog"
    assert there.state("69 %", 184) == "finds the verb for 69 % of 184 objects"
    assert back.state("69 %", 184) == "finds 69 % of 184 objects from the verb"
    assert gloss_row("relation:all", "head_to_dependent").example == "“The dog barked”: dog → The, barked → dog"
    titles = {
        "conj": "word before ‘and’ → its word after ‘and’",
        "nmod": "noun → noun that describes it",
        "acl:*": "noun → clause about it of any kind",
        "obl:tmod": "verb → time of it",
        "all": "word → word that depends on it",
    }
    assert {code: gloss_row(f"relation:{code}", "head_to_dependent").title for code in titles} == titles


def test_every_row_that_a_reducer_reports_has_a_name() -> None:
    rows = {
        "antecedent": MENTIONS, "match": MATCHES, "nearby": NEARBY, "sink": SINKS, "retrieval": ANSWERS,
        "pattern": PATTERNS, "sparse_best": SHAPES, "aspect": TARGETS, "alignment": STEPS,
    }  # fmt: skip
    keys = {f"{stem}:{row}" for stem, labels in rows.items() for row in labels}
    single = {"scope", "role", "copying", "streaming"}
    assert {*ROWS} == keys | single
    stems = {score.stem for reducer in REDUCERS.values() for score in reducer.scores if score.has_report}
    assert stems - {"relation", "candidate"} == {*rows} | single
    for key, name in ROWS.items():
        assert all((name.title, name.about, name.items)), key
        assert "{" not in name.state("50 %", 7), key


def test_statistics_have_plain_names() -> None:
    assert {*SHOWN} <= {*STATISTICS}
    assert {f"token_class_mass:{name}" for name in TOKEN_CLASSES} <= {*STATISTICS}
    assert gloss_statistic("mass_self", "to itself") == "attention to the word itself"
    assert gloss_statistic("own", "my own") == "my own"
    distances = [-8, -4, -2, -1, 0, 1, 2]
    reach = ["8 or more back", "4–7 back", "2–3 back", "1 back", "the token itself", "1 ahead", "2 or more ahead"]
    assert [gloss_distance(each, distances) for each in distances] == [f"attention by distance: {way}" for way in reach]
    assert all(text.endswith(".") for text in TERMS.values())


@pytest.mark.parametrize(
    ("options", "direction", "plain"),
    [
        ({"offset": "1"}, "dependent_to_head", "the next word"),
        ({"offset": "-2"}, "dependent_to_head", "the word 2 back"),
        ({"offset": "1"}, "head_to_dependent", "the word before"),
        ({"side": "left", "word_class": "VERB"}, "", "the nearest verb before the word"),
        (
            {"side": "either, right first", "word_class": "ADJ/NOUN/VERB"}, "",
            "the nearest adjective, noun or verb after or before the word",
        ),
        ({"rule": "my rule", "end": "source"}, "", "my rule, from the source"),
        ({"back": "3"}, "", "the token 3 back"),
        ({}, "", "the same model with random weights"),
    ],
)  # fmt: skip
def test_rules_have_plain_names(options: dict[str, str], direction: str, plain: str) -> None:
    label = "my rule, from the source" if "rule" in options else "code"
    assert gloss_rule("" if options else "untrained", label, options, direction) == plain


def test_every_class_of_words_on_every_side_has_a_name_of_its_own() -> None:
    names = set()
    for side in SIDES:
        for word_class in CLASSES:
            plain = gloss_rule("upos", "", {"side": side, "word_class": word_class})
            assert plain.startswith("the nearest ")
            names.add(plain)
            assert not any(part.isupper() and len(part) > 1 for part in plain.replace(",", "").split())
    assert len(names) == len(SIDES) * len(CLASSES)
    assert gloss_rule("nearest", "nearest candidate", {}) == "the nearest candidate"
