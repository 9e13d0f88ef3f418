"""Heads that were built to attend by a rule are the heads at which the studies point."""

from dataclasses import replace

import pytest

import planted
from headscope.analyse import assess
from headscope.corpora import Document, Span
from headscope.reducers import Surface
from headscope.runner.local import measure
from headscope.studies import STUDIES, Finding, judge


@pytest.fixture(scope="module")
def model():
    return planted.plant(planted.RULES)


def judge_study(name: str, tables) -> dict[tuple[str, str], Finding]:
    return {(finding.claim.where, finding.claim.what): finding for finding in judge(STUDIES[name], tables)}


def negated(document: Document) -> Document:
    """The verb is a cue, its scope the noun."""
    (obj,) = (link for link in document.links if link.label == "obj")
    spans = (Span(obj.target, obj.target + 1, "1", "cue"), Span(obj.source, obj.source + 1, "1", "scope"))
    return replace(document, spans=spans)


def test_clark2019(model) -> None:
    # With fewer determiners than objects, so that of all links together the head of the objects finds most.
    documents = [
        replace(document, links=tuple(link for link in document.links if number % 5 or link.label != "det"))
        for number, document in enumerate(planted.documents())
    ]
    tables = {
        "treebank": assess(measure(model, documents, ["relations"])),
        "text": measure(model, documents, [Surface()]),
    }
    claims = judge_study("clark2019", tables)
    obj = claims["table 1, dobj", "best head"]
    assert (obj.ours.detail, obj.ours.number, obj.verdict) == ("2-3", 100, "holds")
    assert (obj.ours.held_out.detail, obj.ours.held_out.number) == ("2-3", 100)
    assert obj.difference == pytest.approx(100 - 86.8)
    det = claims["table 1, det", "best head"]
    assert (det.ours.detail, det.ours.number, det.verdict) == ("3-5 head to dependent", 100, "holds")
    assert claims["table 1, dobj", "best fixed offset"].ours.number < 50
    share = claims["section 4.2", "relations for which the dependent attends to its head"].ours
    assert (share.number, share.detail) == (pytest.approx(200 / 3), "all but det")  # of dobj, det and all
    before = claims["section 3.1", "heads with most of their attention on the token before"]
    assert (before.ours.number, before.ours.detail, before.verdict) == (1, "layer 1 of 3", "holds")
    after = claims["section 3.1", "heads with most of their attention on the token after"]
    assert (after.ours.number, after.verdict) == (0, "fails")
    assert claims["figure 2, above", "layer that attends most to [SEP]"].ours.number == 3
    assert claims["table 1, nsubj", "best head"].why == "the corpus has no relation nsubj"
    assert claims["table 1, prep", "best head"].why == "the corpus has no relation prep"
    assert claims["table 2, all", "best head"].why == "there is no table of coreference"


def test_zhao2020(model) -> None:
    tables = {}
    for name, seed in (("story", 0), ("review", 1)):
        documents = [negated(document) for document in planted.documents(200, seed)]
        tables[name] = assess(measure(model, documents, ["scope"]))
    claims = judge_study("zhao2020", tables)
    best = claims["table 1", "F1, best head"]
    assert (best.ours.detail, best.ours.held_out.detail, best.verdict) == ("2-3", "2-3", "holds")
    # Words of no rule attend to all alike, and where the cue comes first it is theirs too.
    recall = claims["table 1", "R, best head"].ours
    assert (recall.detail, recall.number) == ("2-3", 100)
    rank = claims["section 4.2.1", "rank on reviews of the head that is best on stories"]
    assert (rank.ours.number, rank.ours.detail, rank.verdict) == (1, "2-3", "holds")
    label = claims["section 4.2.1", "coefficient of the scope, best head"]
    assert (label.ours.detail, label.ours.number) == ("2-3", pytest.approx(1, abs=0.1))
    assert label.verdict == "holds"
    of_chance = {"story": tables["story"].assign(scope_label_p_clustered=tables["story"].scope_label_p * 0 + 0.05)}
    unknown = judge_study("zhao2020", of_chance)["section 4.2.1", "coefficient of the scope, best head"]
    assert (unknown.ours.number, unknown.verdict) == (label.ours.number, "unclear")
    assert claims["section 4.2.1", "sum of squares that the scope explains"].verdict == "holds"
    beside = claims["section 4.2.1", "F1, best head, beside all in scope"]
    assert (beside.ours, beside.verdict) == (best.ours, "holds")
    # The same head is no find where as much is found by taking every word.
    easy = tables | {"story": tables["story"].assign(scope_all_f1=((), 0.999))}
    assert judge_study("zhao2020", easy)["section 4.2.1", "F1, best head, beside all in scope"].verdict == "fails"


def test_kovaleva2019(model) -> None:
    documents = []
    for document in planted.documents(200):
        roles = tuple(replace(link, kind="role", label="ARG1") for link in document.links if link.label == "obj")
        tags = tuple(
            Span(place, place + 1, {"noun": "NOUN", "verb": "VERB"}[kind], "upos")
            for place, word in enumerate(document.words)
            for kind in ("noun", "verb")
            if word in planted.KINDS[kind]
        )
        documents.append(replace(document, links=roles, spans=tags))
    tables = {
        "roles": assess(measure(model, documents, ["roles"])),
        "classes": measure(model, documents, ["classes"]),
    }
    claims = judge_study("kovaleva2019", tables)
    best = claims["section 4.2, figure 3", "weight between the two, best head"]
    assert (best.ours.detail, best.ours.number, best.verdict) == ("2-3", pytest.approx(100, abs=0.1), "holds")
    heads = claims["section 4.2", "heads that link a predicate to what fills its roles"]
    assert (heads.ours.number, heads.ours.detail, heads.verdict) == (1, "2-3", "holds")
    assert claims["section 4.5, figure 7", "attention from [CLS] to [SEP], last layer"].verdict == "holds"
    assert claims["section 4.4", "attention to pronouns, average head"].verdict == "not measured"
    # One head looks at [SEP] and none at [CLS], so of the two only [SEP] gets more than the words.
    for name, verdict in (("[CLS]", "fails"), ("[SEP]", "holds")):
        assert claims["section 4.4, figure 6", f"attention to {name}, average head"].verdict == verdict
