"""Heads that find antecedents: against naive loops, on planted heads, and by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

import laws
import planted
import tiny
import witnesses
from headscope import heads
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.corpora.document import Document, Link, Span
from headscope.errors import CorpusError
from headscope.reducers.coreference import MENTIONS, Coreference
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.folds import FOLDS, FoldAssignment
from headscope.runner import Plan, measure
from headscope.runner.checkpoint import RunSums
from headscope.score import OFFSETS

DOCUMENTS = tiny.documents(11)
BASELINES = ("nearest", "head_match", "rules")


def asked(family: str, documents: Sequence[Document] = DOCUMENTS) -> tuple[Model, dict[str, list[witnesses.Seen]]]:
    """A tiny model, and what the witness saw of it in each attention type."""
    module, tokenizer = tiny.make(family)
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in documents:
        for attention_type, maps in witnesses.see(module, tokenizer, document).items():
            seen.setdefault(attention_type, []).append(maps)
    return Model.from_module(module, tokenizer, name=family), seen


def check(table: xr.Dataset, seen: dict[str, list[witnesses.Seen]]) -> None:
    """All that a table says is what the witness says."""
    for attention_type, maps in seen.items():
        ours = table
        if "attention_type" in table.dims:  # the layers that only other attention types have are left out
            ours = table.sel(attention_type=attention_type).dropna("layer", how="all", subset=["antecedent_accuracy"])
        theirs = witnesses.coreference(maps)
        assert list(theirs) == list(ours["mention"].values)
        for name, expected in theirs.items():
            row = ours.sel(mention=name)
            assert row["antecedent_count"] == expected.count
            np.testing.assert_allclose(
                row["antecedent_accuracy"].values, expected.heads, err_msg=f"{attention_type} {name}"
            )
            for baseline, share in expected.baseline.items():
                assert row[f"antecedent_{baseline}"].item() == pytest.approx(share, nan_ok=True)
            for offset, share in expected.offset.items():
                assert row["antecedent_offset"].sel(offset=offset).item() == pytest.approx(share, nan_ok=True)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_coreference(family: str, plan: Plan) -> None:
    model, seen = asked(family)
    table = measure(model, DOCUMENTS, [Coreference(), "relations"], plan=plan)
    check(table, seen)
    counts = table["antecedent_count"]
    assert counts.sel(mention="all") > counts.sel(mention=["pronoun", "proper", "nominal"]).sum()  # some have no tag
    assert (counts > 3).all()
    for name in BASELINES:
        by_fold = table[f"fold_antecedent_{name}"].sum("fold") / counts
        np.testing.assert_allclose(by_fold, table[f"antecedent_{name}"])
        assert by_fold.max() > 0
    assert table["antecedent_accuracy"].sel(mention="all").max() > 0.1


def tokenless(*words: int) -> Document:
    """A document of which WordPiece drops the words 2 and 4 and Unigram word 4, with a chain of some of its words."""
    chain = tuple(Span(word, word + 1, "1", "mention") for word in words)
    return replace(tiny.tokenless_document(), spans=chain)


@pytest.mark.parametrize(("family", "count"), [("bert", 1), ("t5", 2), ("gpt2", 3)])
def test_a_mention_without_a_token_is_left_out(family: str, count: int) -> None:
    document = tokenless(1, 2, 3, 4)
    model, seen = asked(family, [document])
    table = measure(model, [document], [Coreference()])
    check(table, seen)
    assert table["antecedent_count"].sel(mention="all") == count
    assert table["antecedent_nearest"].sel(mention="all") == 1


def test_an_antecedent_without_a_token_is_found_by_no_head() -> None:
    model, _ = asked("bert", [])
    table = measure(model, [tokenless(2, 3), replace(tokenless(1), id="other")], [Coreference()])
    assert table["antecedent_count"].sel(mention="all") == 1
    assert (table["antecedent_accuracy"].sel(mention="all") == 0).all()


# ---------------------------------------------------------- planted heads


def sentences(*, noun_first: bool, count: int = 40) -> list[Document]:
    """*every dog now ... the sees now*, or the other way round: a chain of two, 0 to 6 words apart; no two are equal.

    The head word of a mention is that in its middle.
    """
    documents = []
    for number in range(count):
        nouns, verbs = planted.KINDS["noun"], planted.KINDS["verb"]
        pair = (["every", nouns[number % 3], "now"], ["the", verbs[number % 2], "now"])
        first, second = pair if noun_first else pair[::-1]
        between = number % 7
        words = (*first, *["now"] * between, *second, ".")
        place = 4 + between
        links = [Link(word, 1, "dep") for word in (0, 2)]
        links += [Link(word, place, "dep") for word in (place - 1, place + 1, 1, len(words) - 1)]
        spans = (Span(0, 3, "7", "mention"), Span(place - 1, place + 2, "7", "mention"))
        documents.append(Document(f"planted-{noun_first}-{number}", words, tuple(links), spans))
    return documents


def pointing(**targets: str) -> planted.Rule:
    """From words of each kind to words of another."""

    def rule(query: torch.Tensor, key: torch.Tensor) -> None:
        for place, (source, target) in enumerate(targets.items()):
            query[place, [planted.SIZE + planted.WORDS.index(word) for word in planted.KINDS[source]]] = 1
            key[place, [planted.SIZE + planted.WORDS.index(word) for word in planted.KINDS[target]]] = 1

    return rule


def nowhere(query: torch.Tensor, key: torch.Tensor) -> None:
    """To [SEP], so strongly that in float32 nothing is left for any word."""
    planted.separator(query, key)
    query *= 4


FROM_NOUN, FROM_VERB, PREVIOUS, BESIDE, FROM_BESIDE, NOWHERE = (1, 2), (2, 4), (3, 1), (3, 3), (1, 5), (2, 1)
PLANTED = {
    FROM_NOUN: pointing(noun="verb", verb="adverb"),
    FROM_VERB: pointing(verb="noun", noun="adverb"),
    PREVIOUS: planted.previous,
    BESIDE: pointing(noun="determiner", verb="determiner"),
    FROM_BESIDE: pointing(determiner="verb", noun="adverb", verb="adverb"),
    NOWHERE: nowhere,
}


@pytest.fixture(scope="module")
def model() -> Model:
    return planted.plant(PLANTED)


@pytest.mark.parametrize(
    ("noun_first", "right", "wrong"),
    [(False, FROM_NOUN, FROM_VERB), (True, FROM_VERB, FROM_NOUN)],
    ids=["from the noun back to the verb", "from the verb back to the noun"],
)
def test_only_the_head_that_points_from_the_mention_to_its_antecedent_is_right(
    model: Model, noun_first: bool, right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    table = measure(model, sentences(noun_first=noun_first), [Coreference()])
    accuracy = table["antecedent_accuracy"].sel(mention="all")
    assert table["antecedent_count"].sel(mention="all") == 40
    assert accuracy.sel(layer=right[0], head=right[1]) == 1
    for layer, head in (wrong, PREVIOUS, BESIDE, FROM_BESIDE):
        assert accuracy.sel(layer=layer, head=head) == 0


def test_a_head_that_points_at_the_word_before_is_right_where_the_antecedent_stands_there(model: Model) -> None:
    spans = (Span(0, 1, "1", "mention"), Span(1, 2, "1", "mention"), Span(3, 4, "1", "mention"))
    table = measure(model, [Document("d", ("dog", "cat", "now", "child", "now"), (), spans)], [Coreference()])
    assert table["antecedent_accuracy"].sel(mention="all", layer=3, head=1) == 1 / 2
    by_offset = table["antecedent_offset"].sel(mention="all")
    assert by_offset.values.tolist() == [0, 0, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0]  # -3 -2 -1
    assert table["antecedent_nearest"].sel(mention="all") == 1


def test_a_head_that_points_at_no_word_finds_nothing(model: Model) -> None:
    spans = (Span(0, 1, "1", "mention"), Span(2, 3, "1", "mention"))
    table = measure(model, [Document("d", ("dog", "now", "cat"), (), spans)], [Coreference()])
    accuracy = table["antecedent_accuracy"].sel(mention="all")
    assert accuracy.sel(layer=NOWHERE[0], head=NOWHERE[1]) == 0
    assert table["antecedent_count"].sel(mention="all") == 1


# ---------------------------------------------------------------- by hand


def by_hand(model: Model) -> xr.Dataset:
    """Two documents in which no two rules get the same mentions right."""
    tags = {"dog": "NOUN", "cat": "PROPN", "child": "PRON", "sees": "VERB"}
    documents = []
    for number, (text, chains) in enumerate(
        [
            ("dog now cat now dog", {"1": (0, 4), "2": (2,)}),
            ("dog cat child cat dog sees", {"1": (0, 2), "2": (1, 3), "3": (4, 5)}),
        ]
    ):
        words = tuple(text.split())
        spans = [Span(word, word + 1, tags[text], "upos") for word, text in enumerate(words) if text in tags]
        spans += [Span(word, word + 1, chain, "mention") for chain, places in chains.items() for word in places]
        documents.append(Document(f"by hand {number}", words, (), tuple(spans)))
    return measure(model, documents, [Coreference()])


def test_the_baselines_by_hand(model: Model) -> None:
    table = by_hand(model)
    assert table["mention"].values.tolist() == ["all", "pronoun", "proper", "nominal"]
    # dog 4 -> dog 0; child 2 -> dog 0; cat 3 -> cat 1; sees 5 -> dog 4
    assert table["antecedent_count"].values.tolist() == [4, 1, 1, 2]
    # The chain of the first cat has one mention, so that it is no candidate; child 2 is beside cat 1.
    assert table["antecedent_nearest"].values.tolist() == [0.5, 0, 0, 1]
    assert table["antecedent_head_match"].values.tolist() == [0.5, 0, 1, 0.5]
    assert table["antecedent_rules"].values.tolist() == [0.75, 0, 1, 1]
    assert table["antecedent_offset"].sel(mention="all", offset=-2) == 0.5
    assert table["antecedent_offset"].sel(mention="nominal", offset=-4) == 0.5
    assert table["antecedent_offset"].sel(offset=[1, 2, 3, 4, 5]).max() == 0


def test_no_mention_no_share(model: Model) -> None:
    spans = (Span(0, 1, "1", "mention"), Span(2, 3, "2", "mention"))
    table = measure(model, [Document("d", ("dog", "now", "cat"), (), spans)], [Coreference()])
    assert table["antecedent_count"].values.tolist() == [0, 0, 0, 0]
    for name in ("accuracy", "offset", *BASELINES):
        assert table[f"antecedent_{name}"].isnull().all()


def test_the_sums_by_fold_are_those_of_the_shares(model: Model) -> None:
    table = measure(model, sentences(noun_first=False) + sentences(noun_first=True), [Coreference()])
    count = table["antecedent_count"]
    assert table["fold_antecedent"].dims == ("mention", "fold")
    assert table.sizes["fold"] == FOLDS
    assert (table["fold_antecedent"].sel(mention="all") > 0).sum() > 20
    xr.testing.assert_equal(table["fold_antecedent"].sum("fold"), count)
    some = {"mention": "all"}
    for fold, share in [
        ("fold_antecedent_correct", "antecedent_accuracy"),
        ("fold_antecedent_offset", "antecedent_offset"),
        ("fold_antecedent_nearest", "antecedent_nearest"),
        ("fold_antecedent_head_match", "antecedent_head_match"),
        ("fold_antecedent_rules", "antecedent_rules"),
    ]:
        summed = table[fold].sum("fold").sel(some) / count.sel(some)
        xr.testing.assert_allclose(summed, table[share].sel(some).transpose(*summed.dims))
        assert summed.max() > 0 or fold == "fold_antecedent_head_match"
    assert table["fold_antecedent"].attrs["fold_unit"] == "text"


def test_a_mention_counts_in_the_fold_of_its_document(model: Model) -> None:
    document = sentences(noun_first=False)[5]
    fold_assignment = FoldAssignment("document", seed=3)
    table = measure(model, [document], [Coreference(fold_assignment)])
    (fold,) = np.flatnonzero(table["fold_antecedent"].sel(mention="all"))
    assert fold == fold_assignment.fold(document)
    assert table["fold_antecedent"].attrs["fold_unit"] == "document"


# ------------------------------------------------------------- the reducer


@pytest.mark.parametrize("family", ["bert", "bart"])
def test_parts_of_a_corpus_add_up(family: str) -> None:
    model, reducers = Model.from_module(*tiny.make(family), name=family), [Coreference()]
    whole = laws.add_up(model, DOCUMENTS, reducers, Plan())
    parts = [laws.add_up(model, DOCUMENTS[k::3], reducers, Plan(batch_tokens=47)) for k in (2, 0, 1)]
    merged = RunSums({})
    for part in parts:
        merged = merged + part
    expected = laws.tabulate_sums(whole, model, reducers)
    laws.assert_same(laws.tabulate_sums(merged, model, reducers), expected)
    alone = laws.tabulate_sums(parts[0], model, reducers)
    assert alone["antecedent_count"].sel(mention="all") < expected["antecedent_count"].sel(mention="all")


def test_the_table_says_what_its_numbers_are(model: Model) -> None:
    table = by_hand(model)
    expected = {
        "antecedent_accuracy": ("layer", "head", "mention"),
        "antecedent_count": ("mention",),
        **{f"antecedent_{name}": ("mention",) for name in BASELINES},
        "antecedent_offset": ("mention", "offset"),
        "fold_antecedent_correct": ("layer", "head", "mention", "fold"),
        "fold_antecedent": ("mention", "fold"),
        "fold_antecedent_offset": ("mention", "fold", "offset"),
        **{f"fold_antecedent_{name}": ("mention", "fold") for name in BASELINES},
    }
    permuted = {f"antecedent_{name}": ("layer", "head", "mention") for name in ("permuted", "z", "p")}
    permuted["antecedent_z_permuted"] = ("mention", "permutation")
    assert {name: values.dims for name, values in table.data_vars.items()} == expected | permuted
    for name, values in table[list(expected)].data_vars.items():
        is_count = name.startswith("fold") or name.endswith("count")
        assert values.attrs["units"] == ("mentions" if is_count else "share of mentions")
        assert values.attrs["source"] == "Clark et al. 2019, section 4.3"
        assert (values.dtype.kind == "i") == is_count
    assert table["offset"].values.tolist() == list(OFFSETS)
    assert tuple(table["mention"].values) == MENTIONS


def test_the_table_follows_the_schema(model: Model) -> None:
    heads.check(by_hand(model))


def test_it_is_a_reducer_for_whole_layers() -> None:
    assert isinstance(Coreference(), Reducer)
    assert (Coreference.name, Coreference.scope, Coreference.max_tokens) == ("coreference", "layer", 4096)


def test_a_corpus_with_mentions() -> None:
    unnamed = [replace(document, group="") for document in DOCUMENTS]
    corpora = {"text": tiny.documents(20), "document of few texts": DOCUMENTS, "document": unnamed}
    for unit, documents in corpora.items():
        summary = summarize(documents)
        assert Coreference.for_corpus(summary) == Coreference(FoldAssignment.for_corpus(summary))
        assert Coreference.for_corpus(summary).fold_assignment.unit == unit


def test_a_corpus_without_mentions_is_refused() -> None:
    without = [replace(document, spans=()) for document in DOCUMENTS]
    with pytest.raises(CorpusError) as refused:
        Coreference.for_corpus(summarize(without))
    assert str(refused.value) == (
        "the reducer `coreference` needs mentions and their chains, and the corpus has none; "
        "give one that has, such as OntoNotes, OntoGUM, LitBank, or UD GUM in the format corefud, or measure "
        "`surface` only."
    )
