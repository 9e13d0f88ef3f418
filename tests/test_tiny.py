"""The other tests' tools: are the models tiny, the tokenizers fast, the witnesses right where a hand can check?"""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny
import witnesses
from headscope.corpora.document import Document, Link
from witnesses import Seen, Token

ALL = [*tiny.FAMILIES, *tiny.UNSUPPORTED]
NAN = math.nan


def encode(tokenizer, *documents, **options):
    words = [list(document.words) for document in documents]
    return tokenizer(words, is_split_into_words=True, return_tensors="pt", **options)


def run(model, inputs):
    """The last hidden states of the model, and of the decoder if it has one, which reads what the encoder reads."""
    inputs = dict(inputs)
    if model.config.is_encoder_decoder:
        start = torch.full((len(inputs["input_ids"]), 1), model.config.decoder_start_token_id)
        inputs["decoder_input_ids"] = torch.cat([start, inputs["input_ids"]], dim=1)
    with torch.no_grad():
        output = model(**inputs)
    if model.config.is_encoder_decoder:
        return [output.encoder_last_hidden_state, output.last_hidden_state]
    return [output.last_hidden_state]


# ----------------------------------------------------------- tiny models


@pytest.mark.parametrize("family", ALL)
def test_the_attention_has_the_planned_shape_and_its_rows_sum_to_one(family):
    plan = {**tiny.FAMILIES, **tiny.UNSUPPORTED}[family]
    model, tokenizer = tiny.make(family)
    assert not model.training
    for document in [*tiny.documents(), tiny.tokenless_document()]:
        attention_types = witnesses.see(model, tokenizer, document)
        assert {attention_type: seen.weights.shape[:2] for attention_type, seen in attention_types.items()} == {
            attention_type: (layers, plan.heads) for attention_type, layers in plan.attention_types.items()
        }
        for seen in attention_types.values():
            sums = seen.weights.sum(axis=-1)
            if family == "gpt_oss":  # the rest went to the sink
                assert (sums < 1).all()
                assert sums.min() < 0.5 < sums.max()
            else:
                np.testing.assert_allclose(sums, 1, atol=1e-6)


@pytest.mark.parametrize("family", ALL)
def test_a_key_has_weight_exactly_where_the_witness_says_that_it_is_visible(family):
    model, tokenizer = tiny.make(family)
    for document in tiny.documents():
        for seen in witnesses.see(model, tokenizer, document).values():
            for head in range(seen.weights.shape[1]):
                np.testing.assert_array_equal(seen.weights[:, head] > 0, seen.visible)


@pytest.mark.parametrize("family", ALL)
def test_heads_are_peaked_and_differ_and_no_argmax_is_close(family):
    model, tokenizer = tiny.make(family)
    documents = tiny.documents()
    for attention_type in {**tiny.FAMILIES, **tiny.UNSUPPORTED}[family].attention_types:
        corpus = [witnesses.see(model, tokenizer, document)[attention_type] for document in documents]
        values = witnesses.surface(corpus)
        assert (values["entropy"] < 0.98 * values["entropy_uniform"]).all()
        distinct = np.unique(np.round(values["entropy"], 4))
        assert len(distinct) == values["entropy"].size
        assert narrowest_gap(corpus) > 1e-5


def narrowest_gap(corpus):
    """The least relative difference between the two best candidates for any link."""
    gaps = []
    for seen in corpus:
        for weights in seen.weights.reshape(-1, *seen.weights.shape[2:]):
            words = witnesses.word_weights(weights, seen.queries, seen.keys, len(seen.document.words))
            for link in seen.document.links:
                for line in (words[link.source], words[:, link.source]):
                    best = sorted(np.delete(line, link.source))[-2:]
                    if len(best) == 2 and best[1] > 0:
                        gaps.append((best[1] - best[0]) / best[1])
    return min(gaps)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_padding_changes_nothing(family):
    model, tokenizer = tiny.make(family)
    documents = tiny.documents()
    together = encode(tokenizer, *documents, padding=True, padding_side="right")
    padded = run(model, together)
    lengths = together["attention_mask"].sum(dim=1).tolist()
    assert len(set(lengths)) > 3
    for number, document in enumerate(documents):
        for alone, row in zip(run(model, encode(tokenizer, document)), padded, strict=True):
            assert alone.isfinite().all()
            torch.testing.assert_close(row[number, : alone.shape[1]], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ALL)
def test_the_seed_decides_the_weights(family):
    first, again, other = (tiny.make(family, seed)[0].state_dict() for seed in (3, 3, 5))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize(
    ("family", "setting", "without"),
    [("gemma2", "attn_logit_softcapping", None), ("gemma2", "sliding_window", 128), ("gpt_oss", "sliding_window", 128)],
)
def test_what_makes_a_family_special_is_felt(family, setting, without):
    model, tokenizer = tiny.make(family)
    inputs = encode(tokenizer, tiny.documents()[tiny.PAIR])
    config = copy.deepcopy(model.config)
    setattr(config, setting, without)
    plain = type(model)(config).eval()
    plain.load_state_dict(model.state_dict())
    assert (run(model, inputs)[0] - run(plain, inputs)[0]).abs().max() > 0.1


def test_the_sinks_are_felt_and_differ():
    model, tokenizer = tiny.make("gpt_oss")
    seen = witnesses.see(model, tokenizer, tiny.documents()[tiny.PAIR])["decoder"]
    kept = seen.weights.sum(axis=-1).mean(axis=-1)
    assert (kept < 0.99).all()
    assert np.ptp(kept) > 0.05


# ------------------------------------------------- tokenizers, documents


@pytest.mark.parametrize("family", ALL)
def test_a_tokenizer_is_fast_splits_some_words_and_not_others(family):
    _, tokenizer = tiny.make(family)
    assert tokenizer.is_fast
    assert tokenizer.pad_token_id is not None
    for document in tiny.documents():
        words = [word for word in encode(tokenizer, document).word_ids(0) if word is not None]
        assert words == sorted(words)
        assert set(words) == set(range(len(document.words)))
    words = encode(tokenizer, tiny.documents()[0]).word_ids(0)
    pieces = {words.count(word) for word in words if word is not None}
    assert 1 in pieces
    assert max(pieces) > 3
    known = tokenizer("the dog sees a house")["input_ids"]
    assert tokenizer.unk_token_id is None or tokenizer.unk_token_id not in known


@pytest.mark.parametrize("style", [tiny.BERT, tiny.T5, tiny.GPT2])
def test_some_words_get_no_token(style):
    words = set(encode(tiny.tokenizer(style), tiny.tokenless_document()).word_ids(0)) - {None}
    assert set(range(6)) - words == {"wordpiece": {2, 4}, "unigram": {4}, "bytes": set()}[style.algorithm]


def test_a_slow_tokenizer_cannot_tell_words():
    tokenizer = tiny.slow_tokenizer()
    assert not tokenizer.is_fast
    with pytest.raises(ValueError, match=r"^word_ids\(\) is not available when using Python based tokenizers$"):
        tokenizer(["the", "dog"], is_split_into_words=True).word_ids()


def test_documents_are_small_trees_of_different_lengths():
    documents = tiny.documents(16)
    assert [len(document.words) for document in documents] == [13, 2, 7, 17, 5, 1, 11, 3] * 2
    assert len({document.id for document in documents}) == 16
    assert len({document.group for document in documents}) == 8
    assert [number for number, document in enumerate(documents) if document.boundary] == [3, 11]
    for document in documents:
        heads = {link.source: link.target for link in document.links}
        assert len(heads) == len(document.links) == len(document.words) - 1
        for word in range(len(document.words)):
            steps = 0
            while word in heads:
                word, steps = heads[word], steps + 1
                assert steps < len(document.words)
        assert all((link.label == "punct") == (document.words[link.source] in ".,") for link in document.links)
    assert {link.label for document in documents for link in document.links} == {*tiny.LABELS, "punct"}


# ----------------------------------------------------- witnesses, by hand


@pytest.mark.parametrize(("family", "separators", "special"), [("bert", 2, 3), ("roberta", 3, 4), ("xlnet", 2, 3)])
def test_a_pair_of_segments_is_seen_as_one_text(family, separators, special):
    model, tokenizer = tiny.make(family)
    pair = tiny.documents()[tiny.PAIR]
    tokens = witnesses.see(model, tokenizer, pair)["encoder"].keys
    words = [token.word for token in tokens if token.word is not None]
    assert sorted(set(words)) == list(range(len(pair.words)))
    assert words == sorted(words)
    assert sum(token.kind == "sep" for token in tokens) == separators
    assert sum(token.word is None for token in tokens) == special
    assert {token.word for token in tokens if token.kind == "punctuation"} == {4, 5, 11}  # a.m. and two commas
    between = [token.kind for token in tokens if token.word == pair.boundary or token.kind == "sep"]
    assert between[0] == "sep"


def test_the_decoder_repeats_the_encoder_after_its_start():
    model, tokenizer = tiny.make("bart")
    assert model.config.decoder_start_token_id == tokenizer.sep_token_id  # and yet the start is no separator
    attention_types = witnesses.see(model, tokenizer, tiny.documents()[0])
    encoder, decoder, cross = (attention_types[attention_type] for attention_type in ("encoder", "decoder", "cross"))
    assert encoder.keys == encoder.queries == cross.keys
    assert cross.queries == decoder.queries == decoder.keys == (Token(-1), *encoder.keys)


SENTENCE = (Token(0, kind="cls"), Token(1, 0), Token(2, 1, "punctuation"), Token(3, kind="sep"))  # [CLS] dog . [SEP]
WEIGHTS = np.array([[1, 1, 1, 1], [0, 2, 2, 0], [1, 0, 0, 3], [0, 0, 4, 0]]) / 4


def one_head(weights, queries, keys=None, visible=None, document=None):
    keys = queries if keys is None else keys
    visible = np.ones(weights.shape, dtype=bool) if visible is None else visible
    return Seen(document or Document("by hand", ("a",)), weights[None, None], visible[None], queries, keys)


def check_surface(seen, **wanted):
    assert set(wanted) == set(witnesses.SURFACE)
    got = {name: value.item() for name, value in witnesses.surface([seen]).items()}
    assert got == pytest.approx(wanted, abs=1e-12, nan_ok=True)


def test_surface_of_a_sentence_by_hand():
    check_surface(
        one_head(WEIGHTS, SENTENCE),
        mass_self=(1 / 4 + 2 / 4 + 0 + 0) / 4,
        mass_previous=(0 + 0 + 4 / 4) / 3,
        mass_next=(1 / 4 + 2 / 4 + 3 / 4) / 3,
        mass_cls=(1 / 4 + 1 / 4) / 4,
        mass_sep=(1 / 4 + 3 / 4) / 4,
        mass_punctuation=(1 / 4 + 2 / 4 + 4 / 4) / 4,
        mass_first=(1 / 4 + 1 / 4) / 4,
        mass_sep_from_sep=0,
        mass_sep_from_other=(1 / 4 + 0 + 3 / 4) / 3,
        entropy=(math.log(4) + math.log(2) + (math.log(4) / 4 + 3 / 4 * math.log(4 / 3)) + 0) / 4,
        entropy_from_cls=math.log(4),
        entropy_uniform=math.log(4),
        mean_distance=((1 + 2 + 3) / 4 + 2 / 4 + (2 + 3) / 4 + 1) / 4,
    )


def test_surface_of_one_causal_token_by_hand():
    single = one_head(np.array([[1.0]]), (Token(0, 0),))
    check_surface(
        single,
        **dict.fromkeys(["mass_self", "mass_first"], 1),
        **dict.fromkeys(["mass_punctuation", "entropy", "entropy_uniform", "mean_distance"], 0),
        **dict.fromkeys(["mass_previous", "mass_next", "mass_cls", "mass_sep"], NAN),
        **dict.fromkeys(["mass_sep_from_sep", "mass_sep_from_other", "entropy_from_cls"], NAN),
    )
    both = witnesses.surface([single, one_head(WEIGHTS, SENTENCE)])
    assert both["mass_self"].item() == pytest.approx((1 + 3 / 16) / 2)
    assert both["mass_previous"].item() == pytest.approx(1 / 3)  # the single token does not count


def test_surface_across_two_stacks_by_hand():
    keys = (Token(0, 0), Token(1, kind="sep"))
    queries = (Token(-1), *keys)
    visible = np.array([[1, 1], [1, 1], [0, 1]], dtype=bool)
    check_surface(
        one_head(np.array([[1, 4], [2, 3], [0, 5]]) / 5, queries, keys, visible),
        mass_self=(2 / 5 + 5 / 5) / 2,  # the start token repeats no key
        mass_previous=0,  # only the last query has such a key
        mass_next=(1 / 5 + 3 / 5) / 2,
        mass_cls=NAN,
        mass_sep=(4 + 3 + 5) / 5 / 3,
        mass_punctuation=0,
        mass_first=(1 + 2 + 0) / 5 / 3,
        mass_sep_from_sep=1,
        mass_sep_from_other=(4 / 5 + 3 / 5) / 2,
        entropy=-(0.2 * math.log(0.2) + 0.8 * math.log(0.8) + 0.4 * math.log(0.4) + 0.6 * math.log(0.6)) / 3,
        entropy_from_cls=NAN,
        entropy_uniform=(math.log(2) + math.log(2) + 0) / 3,
        mean_distance=((1 + 2 * 4) / 5 + 3 / 5 + 0) / 3,
    )


def test_relations_by_hand():
    tokens = (Token(0, kind="cls"), Token(1, 0), Token(2, 1), Token(3, 1), Token(4, 2))  # word 1 is split
    weights = np.array([[9, 9, 9, 9, 9], [9, 0, 1, 2, 3], [9, 4, 9, 9, 0], [9, 2, 9, 9, 0], [9, 5, 0, 5, 9]]) / 10
    words = witnesses.word_weights(weights, tokens, tokens, 3)
    np.testing.assert_allclose(words, [[0, 0.3, 0.3], [0.3, 1.8, 0], [0.5, 0.5, 0.9]])

    links = (Link(0, 1, "nsubj"), Link(1, 2, "nsubj:pass"), Link(2, 0, "punct"), Link(0, 2, "1", kind="other"))
    seen = one_head(weights, tokens, document=Document("first", ("a", "b", "c"), links))
    # word 0: its row ties, so word 1 is right; its column is largest at word 2, so word 1 is wrong.
    # word 1: its row says 0, its column says 2. Word 2: its row ties, so word 0 is right; its column says 0.
    table = witnesses.relations([seen])
    assert {row: relation.accuracy.ravel().tolist() for row, relation in table.items()} == {
        "nsubj": [1, 0],
        "nsubj:pass": [0, 1],
        "nsubj:*": [0.5, 0.5],
        "punct": [1, 1],
        "all": [0.5, 0.5],
    }
    assert {row: relation.count for row, relation in table.items()} == {
        "nsubj": 1, "nsubj:pass": 1, "nsubj:*": 2, "punct": 1, "all": 2,
    }  # fmt: skip
    assert {k: value for k, value in table["all"].offset.items() if value} == {1: 1}
    assert {k: value for k, value in table["punct"].offset.items() if value} == {-2: 1}
    assert set(table["all"].offset) == {-5, -4, -3, -2, -1, 1, 2, 3, 4, 5}
    assert math.isnan(table["all"].error(0, 0, 0))

    second = replace(seen, document=replace(seen.document, id="second"))
    assert witnesses.relations([seen, second])["all"].count == 4


def test_a_word_that_sees_no_other_word_predicts_none():
    assert witnesses.best_other([0.0, 1.0, 0.0], word=1) is None
    assert witnesses.best_other([0.0, 1.0, 0.5], word=1) == 2
    assert witnesses.best_other([1.0], word=0) is None


def test_the_clustered_error_by_hand():
    correct, clusters = [True, True, False, True, False], ["a", "a", "a", "b", "c"]
    # residuals from 3/5 add up to 2/5 + 2/5 - 3/5 = 1/5, 2/5, -3/5 per cluster
    by_hand = math.sqrt(3 / 2 * ((1 / 5) ** 2 + (2 / 5) ** 2 + (3 / 5) ** 2)) / 5
    assert witnesses.clustered_error(correct, clusters) == pytest.approx(by_hand, rel=1e-12)
