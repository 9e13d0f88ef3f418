"""What a model says of one text without heads: against passes that are written out here, for each kind of model."""

import re

import pytest
import torch
import transformers as hf

import headed
import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document
from headscope.errors import HeadscopeError
from headscope.intervene.what_if import LIKELY, LOSS, MOST_MASKED, PLACEBOS, SIMILARITY, TextModel

TEXT = "the old dog sees a red cat by the house"
HEADS = ["1-2", "2-4"]


def document(text: str) -> Document:
    return Document("text", tuple(text.split()))


def make(family: str, task: str | None) -> TextModel:
    module, tokenizer = headed.make(family, task) if task else tiny.make(family)
    return TextModel(Model.from_module(module, tokenizer, name=family))


def encode(model: TextModel, text: str = TEXT) -> dict[str, torch.Tensor]:
    return dict(model.model.tokenizer(text, return_tensors="pt"))


@torch.no_grad()
def run(model: TextModel, inputs: dict[str, torch.Tensor], heads: list[str] | None, how: str):
    """What transformers returns, with and without heads."""
    if heads is None:
        return model.model.module(**inputs)
    with headscope.disable(model.model, heads, how=how):
        return model.model.module(**inputs)


@pytest.mark.parametrize("how", ["zero", "uniform"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_loss_of_a_causal_model_is_that_of_transformers(family: str, how: str) -> None:
    model = make(family, "causal-lm")
    answer, inputs = model.ask(document(TEXT), HEADS, how), encode(model)
    for heads, value in ((None, answer.whole), (HEADS, answer.without)):
        logits = run(model, inputs, heads, how).logits[0, :-1].double().log_softmax(-1)
        targets = inputs["input_ids"][0, 1:]
        wanted = -logits[torch.arange(len(targets)), targets].mean().item()
        assert value == pytest.approx(wanted, rel=1e-5)
    assert answer.whole != pytest.approx(answer.without, abs=1e-4)
    assert (answer.measure, answer.outcome, len(answer.placebos)) == (LOSS, "next token", PLACEBOS)
    whole, without = (run(model, inputs, heads, how).logits[0, -1].softmax(-1) for heads in (None, HEADS))
    best = torch.maximum(whole, without).sort(descending=True).indices[:LIKELY]
    assert [each[1:] for each in answer.likely] == [
        (pytest.approx(whole[number].item(), rel=1e-4), pytest.approx(without[number].item(), rel=1e-4))
        for number in best
    ]


def test_the_start_can_be_named() -> None:
    module, tokenizer = headed.make("gpt2", "causal-lm")
    model = TextModel(Model.from_module(module, tokenizer, name="gpt2"), start=tokenizer.convert_ids_to_tokens(100))
    ids = torch.tensor([[100, *encode(model)["input_ids"][0].tolist()]])
    with torch.no_grad():
        logits = module(input_ids=ids).logits[0, :-1].double().log_softmax(-1)
    wanted = -logits[torch.arange(ids.shape[1] - 1), ids[0, 1:]].mean().item()
    assert model.ask(document(TEXT), HEADS).whole == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(HeadscopeError, match="has no token"):
        TextModel(model.model, start="nothing like it").ask(document(TEXT), HEADS)


def test_a_masked_model_predicts_each_token_in_turn() -> None:
    model = make("bert", "masked-lm")
    answer, inputs = model.ask(document(TEXT), HEADS), encode(model)
    mask, ids = model.model.tokenizer.mask_token_id, inputs["input_ids"][0]
    for heads, value in ((None, answer.whole), (HEADS, answer.without)):
        losses = []
        for place in range(1, len(ids) - 1):
            masked = ids.clone()
            masked[place] = mask
            logits = run(model, {**inputs, "input_ids": masked[None]}, heads, "zero").logits[0, place]
            losses.append(-logits.double().log_softmax(-1)[ids[place]].item())
        assert value == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert (answer.outcome, answer.likely) == ("", ())


def test_what_a_mask_hides_is_predicted() -> None:
    model = make("bert", "masked-lm")
    mask = model.model.tokenizer.mask_token
    text = f"the old {mask} sees a cat"
    answer, inputs = model.ask(document(text), HEADS), encode(model, text)
    place = inputs["input_ids"][0].tolist().index(model.model.tokenizer.mask_token_id)
    whole = run(model, inputs, None, "zero").logits[0, place].softmax(-1)
    assert answer.outcome == "masked token"
    assert max(each[1] for each in answer.likely) == pytest.approx(whole.max().item(), rel=1e-4)


def test_a_classifier_says_how_likely_its_labels_are() -> None:
    model = make("bert", "classification")
    answer, inputs = model.ask(document(TEXT), HEADS), encode(model)
    whole, without = (run(model, inputs, heads, "zero").logits[0].softmax(-1) for heads in (None, HEADS))
    names = ("negative", "none", "positive")
    wanted = {name: (whole[i].item(), without[i].item()) for i, name in enumerate(names)}
    assert {each[0]: each[1:] for each in answer.likely} == {
        name: pytest.approx(pair, rel=1e-4) for name, pair in wanted.items()
    }
    given = int(whole.argmax())
    assert (answer.outcome, answer.measure) == ("label", f"probability of {names[given]}")
    assert (answer.whole, answer.without) == pytest.approx((whole[given].item(), without[given].item()), rel=1e-4)
    assert len({*answer.placebos}) == PLACEBOS


def test_labels_that_may_all_be_true_have_probabilities_of_their_own() -> None:
    model = make("bert", "classification")
    model.model.module.config.problem_type = "multi_label_classification"
    answer, inputs = model.ask(document(TEXT), HEADS), encode(model)
    whole = run(model, inputs, None, "zero").logits[0].sigmoid()
    assert sorted(each[1] for each in answer.likely) == pytest.approx(sorted(whole.tolist()), rel=1e-4)
    assert answer.whole == pytest.approx(whole.max().item(), rel=1e-4)


def test_a_regression_gives_its_value() -> None:
    body, tokenizer = tiny.make("bert")
    body.config.num_labels = 1
    model = TextModel(Model.from_module(hf.BertForSequenceClassification(body.config).eval(), tokenizer, name="bert"))
    answer, inputs = model.ask(document(TEXT), HEADS), encode(model)
    for heads, value in ((None, answer.whole), (HEADS, answer.without)):
        assert value == pytest.approx(run(model, inputs, heads, "zero").logits.item(), rel=1e-4)
    assert (answer.measure, answer.likely, len({*answer.placebos})) == ("predicted value", (), PLACEBOS)


def test_a_model_without_a_head_is_compared_by_its_states() -> None:
    model = make("bert", None)
    answer, inputs = model.ask(document(TEXT), HEADS), encode(model)
    whole, without = (run(model, inputs, heads, "zero").last_hidden_state[0].double() for heads in (None, HEADS))
    cosine = ((whole * without).sum(-1) / whole.norm(dim=-1) / without.norm(dim=-1)).mean().item()
    assert answer.without == pytest.approx(cosine, rel=1e-6)
    assert answer.whole == pytest.approx(1)
    assert answer.measure == SIMILARITY
    assert all(-1 <= placebo < 0.9999 for placebo in answer.placebos)


@pytest.mark.parametrize(
    ("family", "task"),
    [("bert", "tagging"), ("llama", "tagging"), ("t5", "causal-lm"), ("bart", "causal-lm"), ("bert", "causal-lm")],
)
def test_a_model_with_another_head_is_compared_by_its_states_too(family: str, task: str) -> None:
    model = make(family, task)
    heads = ["decoder 1-2", "cross 2-4"] if len(model.model.layers) > 1 else HEADS
    answer = model.ask(document(TEXT), heads)
    aligned, _ = Alignment.for_model(model.model).align([document(TEXT)])
    inputs = {**collate(model.model, aligned).inputs, "output_hidden_states": True}
    outputs = [run(model, inputs, each, "zero") for each in (None, heads)]
    states = "decoder_hidden_states" if len(model.model.layers) > 1 else "hidden_states"
    whole, without = (output[states][-1][0].double() for output in outputs)
    cosine = ((whole * without).sum(-1) / whole.norm(dim=-1) / without.norm(dim=-1)).mean().item()
    assert answer.without == pytest.approx(cosine, rel=1e-6)
    assert (answer.measure, answer.whole) == (SIMILARITY, pytest.approx(1))
    assert answer.without < 0.9999


def test_a_pair_is_asked_about_as_a_pair() -> None:
    model = make("bert", None)
    words = tuple(TEXT.split())
    pair, single = (model.ask(Document("text", words, boundary=boundary), HEADS).without for boundary in (4, None))
    assert pair != pytest.approx(single, abs=1e-6)


def test_a_text_that_is_too_long_is_cut_and_that_is_said() -> None:
    module, tokenizer = headed.make("gpt2", "causal-lm")
    model = TextModel(Model.from_module(module, tokenizer, name="gpt2"), max_tokens=17)
    long, short = (model.ask(document("dog " * count), HEADS) for count in (53, 17))
    assert long.whole == short.whole
    start = "The first token of a text is not predicted."
    assert (long.note, short.note) == (f"The text is too long: its last 36 words are left out. {start}", start)
    with pytest.raises(HeadscopeError) as caught:
        model.ask(document("dog" * 53), HEADS)
    sentence = "the first word of this text has more tokens than the model reads here; put spaces between its words."
    assert str(caught.value) == sentence


def test_a_masked_model_reads_few_tokens_since_it_reads_them_for_each() -> None:
    model = make("bert", "masked-lm")
    long, short = (model.ask(document("dog " * count), HEADS) for count in (3000, MOST_MASKED))
    assert long.note == f"The text is too long: its last {3000 - MOST_MASKED:,} words are left out."
    assert (long.whole, short.note) == (short.whole, "")


def test_a_text_that_fills_the_model_has_room_for_its_start() -> None:
    module, tokenizer = headed.make("gpt2", "causal-lm")
    model = TextModel(Model.from_module(module, tokenizer, name="gpt2"), start="<|endoftext|>")
    left_out = 3000 - (model.model.max_tokens - 1)
    assert model.ask(document("dog " * 3000), HEADS).note == (
        f"The text is too long: its last {left_out:,} words are left out. The first token of a text is predicted from "
        "<|endoftext|>."
    )


def test_a_head_without_output_changes_nothing_and_neither_do_its_placebos() -> None:
    model = make("gpt2", "causal-lm")
    with torch.no_grad():
        attention = model.model.module.transformer.h[1].attn
        width, size = 35, 7
        attention.c_attn.weight[:, 2 * width + 3 * size : 2 * width + 4 * size] = 0
        attention.c_attn.bias[2 * width + 3 * size : 2 * width + 4 * size] = 0
    answer = model.ask(document(TEXT), ["2-4"])
    assert [answer.without, *answer.placebos] == pytest.approx([answer.whole] * (PLACEBOS + 1), abs=1e-6)
    assert model.ask(document(TEXT), ["2-3"]).without != pytest.approx(answer.whole, abs=1e-4)


def test_the_model_is_as_it_was_and_answers_are_the_same_again() -> None:
    model = make("llama", "causal-lm")
    first = model.ask(document(TEXT), HEADS)
    assert model.ask(document(TEXT), HEADS) == first
    assert model.ask(document(TEXT), HEADS, seed=1).placebos != first.placebos


@pytest.mark.parametrize(
    ("text", "heads", "how", "sentence"),
    [
        (TEXT, ["9-1"], "zero", "there is no"),
        (TEXT, [], "zero", "no head is named"),
        (TEXT, HEADS, "mean", "heads cannot be disabled by 'mean' here; name one of uniform, zero."),
        ("", HEADS, "zero", "bert has no tokens for this text; type another."),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(text: str, heads: list[str], how: str, sentence: str) -> None:
    with pytest.raises(HeadscopeError) as caught:
        make("bert", "masked-lm").ask(document(text), heads, how)
    assert re.match(sentence, str(caught.value))
