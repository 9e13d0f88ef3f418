"""The log-probability of sentences: against plain loops, in closed form, whatever the batch, and what is refused."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.corpora import MinimalPair, read_minimal_pairs
from headscope.errors import CorpusError, ModelError
from headscope.intervene import prediction
from headscope.intervene.likelihood import compute_accuracy, compute_likelihoods, score_minimal_pairs
from witnesses.likelihood import log_probability, pseudo_log_likelihood

CAUSAL = {
    "gpt2": hf.GPT2LMHeadModel,
    "llama": hf.LlamaForCausalLM,
    "qwen3": hf.Qwen3ForCausalLM,
    "mistral": hf.MistralForCausalLM,
    "gemma2": hf.Gemma2ForCausalLM,
    "bloom": hf.BloomForCausalLM,  # without the interface
}
MASKED = {
    "bert": hf.BertForMaskedLM,
    "roberta": hf.RobertaForMaskedLM,
    "distilbert": hf.DistilBertForMaskedLM,
    "electra": hf.ElectraForMaskedLM,
    "albert": hf.AlbertForMaskedLM,
    "modernbert": hf.ModernBertForMaskedLM,
    "mpnet": hf.MPNetForMaskedLM,  # without the interface
}
FAMILIES = {**CAUSAL, **MASKED}
SENTENCES = [" ".join(document.words) for document in tiny.documents(5)]
PAIRS = [
    MinimalPair(f"{paradigm}:{number}", good, bad, paradigm, phenomenon, field)
    for number, (good, bad, paradigm, phenomenon, field) in enumerate(
        [
            ("the dog sees a cat .", "the dog sees cat a .", "order", "words", "syntax"),
            ("a cat sees the dog", "a cat sees", "objects", "arguments", "syntax"),
            ("walked by the house", "walked the by house of the old cat", "order", "words", "syntax"),
            ("unseen dogs", "unseen dogs", "same", "words", "morphology"),
            ("the readers", "the reader", "number", "agreement", "morphology"),
        ]
    )
]


@cache
def make(family: str, kind: type | None = None, **settings: object) -> Model:
    """A tiny model with the head of a language model, and weights of which each token's probability differs."""
    body, tokenizer = tiny.make(family)
    for name, value in settings.items():
        setattr(body.config, name, value)
    module = (kind or FAMILIES[family])(body.config).eval()
    module.base_model.load_state_dict(body.state_dict(), strict=False)  # some leave the pooler out
    generator = torch.Generator().manual_seed(97)
    with torch.no_grad():
        for name, weights in module.named_parameters():
            if not name.startswith(module.base_model_prefix):
                weights.copy_(0.3 * torch.randn(weights.shape, generator=generator))
    return Model.from_module(module, tokenizer, name=family)


@contextmanager
def changing(model: Model, change: Callable[[torch.Tensor], object]) -> Iterator[None]:
    """Within, the logits of the model are changed in place."""

    def hook(module: torch.nn.Module, inputs: object, output: Any) -> None:
        change(output.logits)

    handle = model.module.register_forward_hook(hook)
    yield
    handle.remove()


def witness(model: Model, sentence: str) -> tuple[float, int]:
    naive = pseudo_log_likelihood if model.name in MASKED else log_probability
    return naive(model.module, model.tokenizer, sentence)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sentence_is_as_probable_as_a_plain_loop_says(family: str) -> None:
    model = make(family)
    expected = [witness(model, sentence) for sentence in SENTENCES]
    for batch_tokens in (1, 53, 2048):
        likelihoods = compute_likelihoods(model, SENTENCES, text="spaced", batch_tokens=batch_tokens)
        assert [each.tokens for each in likelihoods] == [tokens for _, tokens in expected]
        sums = [each.log_probability for each in likelihoods]
        assert sums == pytest.approx([total for total, _ in expected], rel=1e-5, abs=1e-5)
    assert len({round(each.log_probability / each.tokens, 3) for each in likelihoods}) == len(SENTENCES)


@pytest.mark.parametrize("family", ["gpt2", "bloom", "bert"])
def test_in_float64_margins_are_those_of_a_plain_loop_to_the_ninth_digit(family: str) -> None:
    """Batches and padding change nothing but the last digits of float32, as no step of ours is in float32."""
    model = Model.from_module(deepcopy(make(family).module).double(), make(family).tokenizer, name=family)
    for batch_tokens in (1, 37, 2048):
        scores = score_minimal_pairs(model, PAIRS, text="spaced", batch_tokens=batch_tokens)
        for pair, margin in zip(PAIRS, scores["difference"], strict=True):
            assert margin == pytest.approx(witness(model, pair.good)[0] - witness(model, pair.bad)[0], abs=1e-9)


WRITTEN_SENTENCES = ["The dogs don't walk.", " a  cat\n\nsees 1984 dogs", "naïve, U.S. cats!"]


def predict_plainly(model: Model, sentence: str, start: str | None) -> tuple[float, int]:
    """The log-probability of the tokens of a sentence, and how many of them something stands in front of."""
    encoded = model.tokenizer(sentence, return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    if start is not None:
        front = special.index(0)
        ids, special = [model.tokenizer.convert_tokens_to_ids(start), *ids[front:]], [1, *special[front:]]
    with torch.inference_mode():
        logits = model.module(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    places = [place for place in range(1, len(ids)) if not special[place]]
    return float(sum(logits[place - 1, ids[place]] for place in places)), len(places)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bloom"])
@pytest.mark.parametrize("named", [False, True])
def test_a_written_sentence_is_as_probable_as_its_own_tokens(family: str, named: bool) -> None:
    model = make(family)
    start = model.tokenizer.convert_ids_to_tokens(3) if named else None
    likelihoods = compute_likelihoods(model, WRITTEN_SENTENCES, start=start, text="written")
    for sentence, likelihood in zip(WRITTEN_SENTENCES, likelihoods, strict=True):
        total, tokens = predict_plainly(model, sentence, start)
        assert likelihood.tokens == tokens
        assert likelihood.log_probability == pytest.approx(total, rel=1e-5)


@pytest.mark.full
@pytest.mark.demo
@pytest.mark.data
@pytest.mark.parametrize("start", [None, "<|endoftext|>"])
def test_minimal_pairs_are_judged_by_smollm2_as_plain_transformers_does(smollm2: str, data, start: str | None) -> None:
    assert_same_margins(load(smollm2, task="causal-lm"), data, start)


@pytest.mark.data
@pytest.mark.parametrize("start", [None, "</s>"])
def test_minimal_pairs_are_judged_as_plain_transformers_does(data, start: str | None) -> None:
    assert_same_margins(load(data / "tiny-llm" / "hf-stories260K", task="causal-lm"), data, start)


def assert_same_margins(model: Model, data: Path, start: str | None) -> None:
    """The margins of pairs of three paradigms of BLiMP are those of a loop over sentences."""
    wanted = ("npi_present_1", "anaphor_number_agreement", "wh_island")
    pairs = read_minimal_pairs(data / "blimp", paradigms=wanted)
    pairs = [pair for name in wanted for pair in [each for each in pairs if each.paradigm == name][:7]]
    scores = score_minimal_pairs(model, pairs, start=start, text="written")
    plain = [predict_plainly(model, pair.good, start)[0] - predict_plainly(model, pair.bad, start)[0] for pair in pairs]
    np.testing.assert_allclose(scores["difference"], plain, atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_few_logits_are_held_at_once(family: str, monkeypatch) -> None:
    model, expected = make(family), compute_likelihoods(make(family), SENTENCES)
    sizes: list[int] = []
    vocabulary = model.module.config.vocab_size
    monkeypatch.setattr(prediction, "HELD_LOGITS", 61 * vocabulary)
    with changing(model, lambda logits: sizes.append(logits.numel())):
        held = compute_likelihoods(model, SENTENCES)
    assert max(sizes) <= 61 * vocabulary
    assert len(sizes) > 1
    np.testing.assert_allclose(
        [each.log_probability for each in held], [each.log_probability for each in expected], atol=1e-4
    )


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_an_even_head_gives_each_token_one_in_the_vocabulary(family: str) -> None:
    """What changes the logits from outside acts."""
    model = make(family)
    with changing(model, torch.Tensor.zero_):
        likelihoods = compute_likelihoods(model, SENTENCES)
    for each in likelihoods:
        expected = -each.tokens * math.log(model.module.config.vocab_size)
        assert each.log_probability == pytest.approx(expected, rel=1e-6)


def test_without_a_first_token_to_start_from_the_first_word_is_not_scored() -> None:
    _, tokenizer = tiny.make("gpt2")
    tokenizer.bos_token = None
    model = Model.from_module(make("gpt2").module, tokenizer, name="gpt2")
    (begun,), (alone,) = (compute_likelihoods(each, ["the dog sees"], text="spaced") for each in (make("gpt2"), model))
    assert (begun.tokens, alone.tokens) == (3, 2)
    assert alone.log_probability == pytest.approx(log_probability(model.module, tokenizer, "the dog sees")[0], rel=1e-5)
    with pytest.raises(CorpusError) as refused:
        compute_likelihoods(model, ["the dog", "the"])
    assert str(refused.value) == (
        "the sentence 'the' has no token that the model could predict; leave it out, or add words."
    )


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_first_token_can_be_predicted_from_another_one(family: str) -> None:
    model = make(family)
    _, tokenizer = tiny.make(family)
    tokenizer.bos_token = tokenizer.pad_token
    predicted = compute_likelihoods(model, SENTENCES, start="<pad>", text="spaced")
    for sentence, each in zip(SENTENCES, predicted, strict=True):
        assert each.log_probability == pytest.approx(log_probability(model.module, tokenizer, sentence)[0], rel=1e-5)
    start = model.tokenizer.bos_token
    assert compute_likelihoods(model, SENTENCES, start=start, text="spaced") == compute_likelihoods(
        model, SENTENCES, text="spaced"
    )


@pytest.mark.parametrize(("family", "start"), [("gpt2", "<|endoftext|>"), ("llama", None), ("bert", None)])
def test_what_stood_before_texts_in_training_is_known_of_some(family: str, start: str | None) -> None:
    assert prediction.find_known_start(make(family)) == start


@pytest.mark.full
@pytest.mark.demo
def test_smollm2_expects_text_behind_the_start_that_it_is_known_to_have(smollm2: str) -> None:
    model = load(smollm2, task="causal-lm")
    start = prediction.find_known_start(model)
    assert start == "<|endoftext|>"
    losses = {}
    for first in (start, model.tokenizer.bos_token):
        (text,) = prediction.SentenceReader(model, start=first).tokenize(["The dog that chased the cats barks."])
        (row,) = prediction.make_rows(text, None)
        with torch.no_grad():
            logits = model.module(torch.tensor([row.text.ids])).logits
        losses[first] = -float(prediction.score_rows(logits, [row])) / len(row.targets)
    assert losses[start] < losses["<|im_start|>"] - 0.5


def test_a_start_that_nothing_can_be_predicted_from_is_refused() -> None:
    assert refused(make("gpt2"), "the dog", start="<start>") == (
        "the tokenizer of 'gpt2' has no token '<start>'; name as `start` a token of its vocabulary, or leave it out."
    )
    assert refused(make("bert"), "the dog", start="[CLS]") == (
        "'bert' is a masked model, which predicts no token from '[CLS]'; leave `start` out."
    )


@pytest.mark.parametrize("family", ["albert", "llama"])
def test_the_order_of_pairs_and_the_batches_change_nothing(family: str) -> None:
    model = make(family)
    scores = score_minimal_pairs(model, PAIRS)
    order = random.Random(5).sample(range(len(PAIRS)), len(PAIRS))
    other = score_minimal_pairs(model, [PAIRS[place] for place in order], batch_tokens=37)
    assert list(other["pair"]) == [PAIRS[place].id for place in order]
    other = other.set_index("pair").loc[scores["pair"]]
    for column in ("good", "bad", "difference"):
        np.testing.assert_allclose(scores[column], other[column], atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_row_is_a_pair_with_both_of_its_sentences(family: str) -> None:
    model = make(family)
    for pair, row in zip(PAIRS, score_minimal_pairs(model, PAIRS, text="spaced").itertuples(), strict=True):
        assert (row.pair, row.paradigm, row.phenomenon, row.field) == (
            pair.id,
            pair.paradigm,
            pair.phenomenon,
            pair.field,
        )
        (good, good_tokens), (bad, bad_tokens) = (witness(model, sentence) for sentence in (pair.good, pair.bad))
        assert (row.good_tokens, row.bad_tokens) == (good_tokens, bad_tokens)
        assert (row.good, row.bad) == (pytest.approx(good, rel=1e-5), pytest.approx(bad, rel=1e-5))
        assert row.difference == pytest.approx(good - bad, abs=1e-4)
        assert (row.difference == 0) is (pair.good == pair.bad)


def test_a_model_that_likes_one_word_prefers_the_sentences_with_it() -> None:
    """An even head but for the bias of a word: each of these is more probable, and by the closed form."""
    body, tokenizer = tiny.make("bert")
    model = Model.from_module(hf.BertForMaskedLM(body.config).eval(), tokenizer, name="planted")
    with torch.no_grad():
        model.module.get_output_embeddings().weight.zero_()
        model.module.get_output_embeddings().bias.zero_()
        model.module.get_output_embeddings().bias[tokenizer.convert_tokens_to_ids("dog")] = 3.0
    pairs = [
        MinimalPair("p:1", "the dog sees", "the cat sees", "p", "x", "f"),
        MinimalPair("p:2", "the dog", "a dog", "p", "x", "f"),
        MinimalPair("p:3", "old cat", "old dog", "p", "x", "f"),
        MinimalPair("q:1", "dog by dog", "dog by cat", "q", "y", "f"),
        MinimalPair("q:2", "a cat", "a cat", "q", "y", "f"),
        MinimalPair("r:1", "dog", "dog", "r", "y", "f"),
    ]
    scores = score_minimal_pairs(model, pairs)
    np.testing.assert_allclose(scores["difference"], [3, 0, -3, 3, 0, 0], atol=1e-5)
    table = compute_accuracy(scores)
    assert table.values.tolist() == [
        ["paradigm", "p", 3, 0, 1, pytest.approx(1 / 3)],
        ["paradigm", "q", 1, 1, 0, 1.0],
        ["paradigm", "r", 0, 1, 0, pytest.approx(float("nan"), nan_ok=True)],
        ["phenomenon", "x", 3, 0, 1, pytest.approx(1 / 3)],
        ["phenomenon", "y", 1, 2, 0, 1.0],
        ["field", "f", 4, 2, 1, 0.5],
        ["all", "all", 4, 2, 1, 0.5],
    ]


def refused(model: Model, *sentences: str, **settings: Any) -> str:
    with pytest.raises((CorpusError, ModelError)) as caught:
        compute_likelihoods(model, sentences, **settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("family", "kind"),
    [("bert", hf.BertForSequenceClassification), ("t5", hf.T5ForConditionalGeneration), ("gpt2", hf.GPT2Model)],
)
def test_a_model_without_the_head_of_a_language_model_is_refused(family: str, kind: type) -> None:
    body, tokenizer = tiny.make(family)
    model = Model.from_module(kind(body.config), tokenizer, name=family)
    assert refused(model, "the dog") == (
        f"{family!r} ({kind.__name__}) gives a sentence no probability; load a language model with its task head, as "
        "in headscope.load(..., task='causal-lm')."
    )


@pytest.mark.filterwarnings("ignore")
def test_a_causal_head_that_sees_later_tokens_is_refused() -> None:
    assert refused(make("bert", hf.BertLMHeadModel), "the dog") == (
        "'bert' (BertLMHeadModel) sees the token that it is to predict next; load the task masked-lm."
    )
    causal = make("bert", hf.BertLMHeadModel, is_decoder=True)
    assert compute_likelihoods(causal, ["the dog"])[0].tokens == 2


def test_a_masked_model_without_a_mask_is_refused() -> None:
    _, tokenizer = tiny.make("bert")
    tokenizer.mask_token = None
    assert refused(Model.from_module(make("bert").module, tokenizer, name="bert"), "the dog") == (
        "the tokenizer of 'bert' has no mask; give the one that the model was trained with."
    )


@pytest.mark.parametrize(("family", "special"), [("bert", 2), ("llama", 1), ("gpt2", 1)])
def test_a_sentence_longer_than_the_model_takes_is_refused(family: str, special: int) -> None:
    model = make(family)
    words = model.max_tokens - special
    assert compute_likelihoods(model, ["the " * words], text="spaced")[0].tokens == words
    assert refused(model, "the dog", "the " * (words + 1), text="spaced") == (
        f"the sentence {'the ' * 15!r} ... has {model.max_tokens + 1} tokens, and the model takes {model.max_tokens}; "
        "leave it out, or shorten it."
    )


def test_a_sentence_without_tokens_is_refused() -> None:
    for sentence in ("", " ", tiny.TOKENLESS[0]):
        assert refused(make("bert"), "the dog", sentence) == (
            f"the sentence {sentence!r} has no token that the model could predict; leave it out, or add words."
        )


def test_numbers_that_are_not_finite_are_refused() -> None:
    model = make("bert")
    with changing(model, lambda logits: logits.fill_(math.nan)):
        message = refused(model, "the dog")
    assert message == (
        "'bert' gives the sentence 'the dog' the log-probability nan; a finite number was expected: check the weights, "
        "or load them in float32."
    )


@pytest.mark.data
def test_a_tiny_llama_scores_blimp_as_a_plain_loop_does(data) -> None:
    model = load(data / "tiny-llm" / "hf-stories260K", task="causal-lm")
    files = [data / "blimp" / f"{name}.jsonl" for name in ("determiner_noun_agreement_1", "principle_A_case_2")]
    pairs = [pair for file in files for pair in read_minimal_pairs(file)[100:300]]
    scores = score_minimal_pairs(model, pairs)
    for pair, row in list(zip(pairs, scores.itertuples(), strict=True))[::101]:
        assert row.good == pytest.approx(log_probability(model.module, model.tokenizer, pair.good)[0], rel=1e-5)
        assert row.bad == pytest.approx(log_probability(model.module, model.tokenizer, pair.bad)[0], rel=1e-5)
    accuracy = compute_accuracy(scores).set_index("name")
    assert accuracy.loc["determiner_noun_agreement_1", "accuracy"] > 0.6
    assert accuracy.loc["principle_A_case_2", ["pairs", "equal", "ties"]].tolist() == [198, 2, 0]
