"""Words <-> tokens: nothing is guessed, nothing is lost without being counted."""

from collections import Counter
from dataclasses import replace

import pytest

import tiny
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Stream
from headscope.capture.tokens.align import Alignment
from headscope.corpora.document import Document, Link, Span
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError, HeadscopeError, ModelError
from headscope.runner import Plan, measure

STYLES = {"wordpiece": "bert", "bytes": "roberta", "bytes without special tokens": "gpt2", "unigram": "t5"}


def of(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


def align(model: Model, *documents: Document, **how) -> tuple[list, Counter]:
    return Alignment.for_model(model, **how).align(documents)


@pytest.mark.parametrize("family", STYLES.values(), ids=STYLES)
def test_a_words_tokens_are_those_it_has_alone(family: str) -> None:
    model = of(family)
    words = ("the", "dog", "walking", "naïve", "a.m.", ",", "unseen", ".")
    (one,), skipped = align(model, Document("d", words))
    assert not skipped
    for index, word in enumerate(words):
        tokens = [token for token, of_word in zip(one.ids, one.word, strict=True) if of_word == index]
        alone = model.tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
        assert tokens == alone, word
    assert [w for w in one.word if w >= 0] == sorted(w for w in one.word if w >= 0)


@pytest.mark.parametrize(("family", "lost"), [("bert", {2, 4}), ("t5", {4}), ("gpt2", set())])
def test_a_word_without_a_token_is_counted_with_its_links(family: str, lost: set) -> None:
    document = tiny.tokenless_document()
    (one,), skipped = align(of(family), document)
    assert set(range(len(document.words))) - set(one.word) == lost
    links = sum(bool({link.source, link.target} & lost) for link in document.links)
    assert skipped == ({"words without a token": len(lost), "links of a word without a token": links} if lost else {})


def test_links_of_lost_words_are_neither_right_nor_wrong() -> None:
    document = tiny.tokenless_document()
    table = measure(of("bert"), [document, *tiny.documents(3)], ["relations"])
    lost = sum(bool({link.source, link.target} & {2, 4}) for link in document.links)
    total = sum(len(d.links) for d in tiny.documents(3)) + len(document.links) - lost
    exact = [name for name in table["relation"].values if name != "all" and not name.endswith(":*")]
    assert table["relation_count"].sel(relation=exact).sum() == total
    assert f'"links of a word without a token": {lost}' in table.attrs["skipped"]


def test_a_pair_gets_a_separator_between_and_its_words_count_on() -> None:
    model = of("bert")
    words = tuple("the old dog walking by the red house".split())
    (one,), _ = align(model, Document("d", words, boundary=3))
    sep = model.tokenizer.sep_token_id
    places = [index for index, token in enumerate(one.ids) if token == sep]
    assert len(places) == 2
    assert max(w for w in one.word[: places[0]]) == 2
    assert min(w for w in one.word[places[0] + 1 : -1]) == 3
    assert [w for w in sorted(set(one.word)) if w >= 0] == list(range(len(words)))
    assert one.segment == [0] * (places[0] + 1) + [1] * (len(one.ids) - places[0] - 1)


def test_the_longer_side_of_a_pair_is_cut_first() -> None:
    model = of("bert")
    pair = Document("d", ("the",) * 5 + ("dog",) * 41, boundary=5)
    (one,), skipped = align(model, pair, pair_tokens=23)
    assert len(one.ids) == 23
    assert sum(0 <= w < 5 for w in one.word) == 5
    assert skipped == {"pairs of segments cut to 23 tokens (the rest is used)": 1}


def test_a_sentence_longer_than_the_model_takes_is_skipped_and_counted() -> None:
    model = of("bert")
    documents = [Document("long", ("dog",) * 131), *tiny.documents(3)]
    table = measure(model, documents, ["surface"], plan=Plan(cut=False))
    assert table.attrs["documents"] == 3
    assert table.attrs["skipped"] == '{"documents longer than 128 tokens": 1}'


def test_if_nothing_fits_there_is_no_table() -> None:
    with pytest.raises(CorpusError) as refused:
        measure(of("bert"), [Document("long", ("dog",) * 131)], ["surface"])
    assert str(refused.value) == (
        "none of the 1 documents could be measured (1 documents longer than 128 tokens); "
        "give shorter documents or a model that takes longer ones."
    )


def test_a_slow_tokenizer_is_refused() -> None:
    module, _ = tiny.make("bert")
    with pytest.raises(ModelError) as refused:
        Model.from_module(module, tiny.slow_tokenizer(), name="slow")
    assert str(refused.value) == (
        "the tokenizer of 'slow' (ByT5Tokenizer) is a slow one, which cannot say which word a token comes from; "
        "give a model with a tokenizer.json."
    )


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_batches_hold_every_document_once_within_their_budget(family: str) -> None:
    model, documents = of(family), tiny.documents(23)
    batches = [batch for portion in Stream(documents, (model,), Plan(batch_tokens=53)) for batch in portion.batches]
    assert sorted(d.id for batch in batches for d in batch.documents) == sorted(d.id for d in documents)
    for batch in batches:
        assert batch.encoder.ids.numel() <= 53 or len(batch.documents) == 1
        real = batch.encoder.real
        assert (batch.inputs["attention_mask"].bool() == real).all()
        assert (batch.encoder.word[~real] == -1).all()


def test_a_decoder_reads_a_start_token_and_then_the_text() -> None:
    model = of("t5")
    ((batch,),) = (portion.batches for portion in Stream(tiny.documents(5), (model,), Plan(batch_tokens=10**6)))
    assert batch.decoder is not None
    assert (batch.decoder.ids[:, 0] == model.start_id).all()
    assert (batch.decoder.ids[:, 1:][batch.encoder.real] == batch.encoder.ids[batch.encoder.real]).all()
    assert (batch.decoder.word[:, 1:] == batch.encoder.word).all()
    assert (batch.decoder.position[:, 1:] == batch.encoder.position).all()


def test_links_to_tokens_survive_the_longest_first_order() -> None:
    document = Document("d", ("the", "dog"), (Link(0, 1, "det"),))
    table = measure(of("bert"), [document], ["relations"], plan=Plan(batch_tokens=1))
    # Each word has one other word to attend to, so every head is right.
    assert (table["relation_accuracy"].sel(relation="det") == 1).all()


@pytest.mark.parametrize("family", STYLES.values(), ids=STYLES)
def test_a_long_text_is_cut_behind_the_last_word_that_fits(family: str) -> None:
    model = of(family)
    words = ("the", "walking", "dog", "sees", "naïve", "readers")
    links = (Link(0, 2, "det"), Link(3, 1, "obj"), Link(5, 0, "nsubj"))
    spans = (Span(0, 2, "1", "scope"), Span(1, 5, "1", "scope"), Span(5, 6, "1", "cue"))
    document = Document("d", words, links, spans, boundary=None)
    (whole,), _ = align(model, document)
    for limit in range(len(whole.ids) - 1, 0, -1):
        found, skipped = align(model, document, max_tokens=limit, cut=True)
        longest = max((n for n in range(1, 6) if fits(model, words[:n], limit)), default=0)
        if longest == 0:
            assert (found, skipped) == ([], {f"documents longer than {limit} tokens": 1})
            continue
        (one,) = found
        assert one.document.words == words[:longest]
        assert one.document.links == tuple(link for link in links if max(link.source, link.target) < longest)
        assert one.document.spans == tuple(span for span in spans if span.end <= longest)
        (alone,), _ = align(model, Document("d", words[:longest]))
        assert (one.ids, one.word) == (alone.ids, alone.word)
        cut = {f"documents cut to {limit} tokens (the rest is used)": 1, "words after the cut": 6 - longest}
        assert skipped == cut


def fits(model: Model, words: tuple[str, ...], limit: int) -> bool:
    return len(model.tokenizer([list(words)], is_split_into_words=True)["input_ids"][0]) <= limit


def test_by_default_texts_with_coreference_are_cut_and_others_skipped() -> None:
    long = Document("long", ("the",) * 300)
    mentions = (Span(0, 1, "1", "mention"), Span(7, 8, "1", "mention"), Span(299, 300, "1", "mention"))
    for spans, plan, words in (((), Plan(), 2), (mentions, Plan(), 126 + 2), (mentions, Plan(cut=False), 2)):
        corpus = [Document("short", ("the", "dog")), replace(long, spans=spans)]
        table = measure(of("bert"), corpus, ["surface"], plan=plan)
        assert table.attrs["words"] == words


@pytest.mark.parametrize("family", STYLES.values(), ids=STYLES)
def test_tokens_of_no_word_at_the_end_are_cut_with_the_last_word(family: str) -> None:
    model = of(family)
    trailing = Document("newlines", ("the", "dog"), written=WrittenText("the dog" + " \n" * 9, ((0, 3), (4, 7))))
    for document in (Document("dropped", ("the", "dog", tiny.TOKENLESS[0])), trailing):
        for limit in range(1, 30):
            for text in align(model, document, max_tokens=limit, cut=True, text="written")[0]:
                assert len(text.ids) <= limit


def test_pairs_that_are_cut_from_the_left_are_used_and_counted() -> None:
    model = of("bert")
    model.tokenizer.truncation_side = "left"
    (one,), skipped = align(model, Document("d", ("the",) * 5 + ("dog",) * 41, boundary=5), pair_tokens=23)
    assert len(one.ids) == 23
    assert skipped == {"pairs of segments cut to 23 tokens (the rest is used)": 1}


def test_another_way_to_read_texts_is_refused() -> None:
    with pytest.raises(HeadscopeError, match="'writen'; give 'written' or 'spaced'"):
        Alignment.for_model(of("bert"), text="writen")
