"""Heads stay disabled while a model is trained, generates and is measured, and come back whatever happens."""

import re
from threading import Thread

import pytest
import torch
import transformers as hf

import headscope
import tiny
from edited import DOCUMENTS, agree, make, read
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError, ModelError
from headscope.intervene import edit
from headscope.intervene.replacement import EditedHeads, Shuffle
from headscope.intervene.selected_heads import select_heads
from projections import order_of_calls, replaced

WAYS = {
    "uniform": {}, "zero": {}, "mean": {"corpus": DOCUMENTS}, "resample": {"corpus": DOCUMENTS}, "shuffle": {"step": 2},
}  # fmt: skip


def names(module: torch.nn.Module) -> list[str]:
    return [part.config._attn_implementation for part in module.modules() if isinstance(part, hf.PreTrainedModel)]


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("family", ["albert", "llama", "t5"])
def test_afterwards_the_model_is_as_it_was(family: str, how: str, error: type[BaseException] | None) -> None:
    subject = make(family, "sdpa")
    before, implementations = subject.run(), names(subject.model.module)

    def use() -> None:
        with headscope.disable(subject.model, [subject.name("1-2"), subject.name("2")], how, **WAYS[how]):
            assert (subject.run() - before).abs().max() > 0.01
            if error is not None:
                raise error

    if error is None:
        use()
    else:
        with pytest.raises(error):
            use()
    assert torch.equal(subject.run(), before)
    assert names(subject.model.module) == implementations
    assert not subject.model.module._forward_pre_hooks


@pytest.mark.parametrize("family", ["bert", "albert", "t5"])
def test_nested_blocks_act_one_after_the_other(family: str) -> None:
    subject = make(family)
    first, second, both = subject.name("1-2"), subject.name("2-4"), [subject.name("1-2"), subject.name("2-4")]
    with edit.zero(subject.model, both):
        expected = subject.run()
    with edit.zero(subject.model, first), edit.zero(subject.model, second):
        agree(subject.run(), expected)
    with edit.zero(subject.model, first):
        with edit.zero(subject.model, second):
            pass
        alone = subject.run()
    with edit.zero(subject.model, first):
        agree(subject.run(), alone)
    # What acts last is what remains.
    with edit.zero(subject.model, second), edit.uniform(subject.model, second):
        last = subject.run()
    with edit.uniform(subject.model, second):
        agree(subject.run(), last)


@pytest.mark.parametrize("family", ["bert", "albert", "llama"])
def test_blocks_can_end_in_any_order(family: str) -> None:
    subject = make(family, "sdpa")
    before = subject.run()
    with edit.zero(subject.model, "2-2"):
        expected = subject.run()
    first, second = edit.zero(subject.model, "1-1"), edit.zero(subject.model, "2-2")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.equal(subject.run(), expected)
    second.__exit__(None, None, None)
    assert torch.equal(subject.run(), before)
    assert set(names(subject.model.module)) == {"sdpa"}


def test_two_models_are_changed_apart() -> None:
    first, second = make("bert"), make("roberta")
    with edit.zero(first.model, "2-4"):
        alone = first.run()
    untouched = second.run()
    with edit.zero(first.model, "2-4"), edit.zero(second.model, "1-1"):
        changed = second.run()
        agree(first.run(), alone)
    assert (changed - untouched).abs().max() > 0.01


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_what_is_measured_within_is_of_the_changed_model(family: str) -> None:
    subject = make(family)
    with edit.zero(subject.model, subject.name("1-4")):
        table = headscope.measure(subject.model, DOCUMENTS, ["surface"])
    call = order_of_calls(subject.model).index((subject.kind, 1))
    with replaced(subject.model, family, call, 3, torch.zeros_like):
        expected = headscope.measure(subject.model, DOCUMENTS, ["surface"])
    plain = headscope.measure(subject.model, DOCUMENTS, ["surface"])
    for name in ("mass_self", "entropy"):
        assert abs(table[name] - expected[name]).max() < 1e-5
        assert abs(table[name] - plain[name]).max() > 1e-3


@pytest.mark.parametrize("how", ["resample", "shuffle"])
def test_a_model_is_measured_whose_heads_depend_on_the_texts_beside(how: str) -> None:
    subject = make("bert")
    with headscope.disable(subject.model, "1-4", how, **WAYS[how]):
        table = headscope.measure(subject.model, DOCUMENTS, ["surface"])
    plain = headscope.measure(subject.model, DOCUMENTS, ["surface"])
    change = abs(table["entropy"] - plain["entropy"])
    assert change.sel(layer=1).max() < 1e-6
    assert change.sel(layer=2).max() > 1e-3


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_shuffled_outputs_are_the_same_in_a_pass_of_ours(family: str) -> None:
    """Padding is no token, also where a causal mask need not hide it."""
    subject = make(family)
    change = EditedHeads(select_heads(subject.model, subject.name("2-4")), Shuffle(2))
    outputs = Capture.verified(subject.model, subject.batch).run(subject.batch, edit=change)
    with edit.shuffle(subject.model, subject.name("2-4"), step=2):
        agree(outputs.hidden[(subject.batch.decoder or subject.batch.encoder).real], subject.run(), to=1e-5)


@pytest.mark.parametrize("hides", [-1e9, -1e4])
def test_a_mask_of_ones_own_hides_by_a_large_number(hides: float) -> None:
    subject = make("bert", documents=[DOCUMENTS[0]])
    length = subject.batch.encoder.length
    seen = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
    outputs = []
    for lowest in (torch.finfo(torch.float32).min, hides):
        subject.batch.inputs["attention_mask"] = torch.zeros(seen.shape).masked_fill(~seen, lowest)
        with edit.uniform(subject.model, "1-2"):
            outputs.append(subject.run())
    agree(outputs[1], outputs[0])


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_a_module_in_training_stays_in_training(how: str) -> None:
    module, tokenizer = tiny.make("bert")
    module.train()
    for model in ((module, tokenizer), Model(module, tokenizer, "bert", "", "")):
        with headscope.disable(model, "1-1", how, **WAYS[how]):
            assert all(part.training for part in module.modules())
        assert all(part.training for part in module.modules())


def test_a_head_without_output_learns_nothing_and_the_others_do() -> None:
    module, tokenizer = tiny.make("llama")
    model = Model.from_module(module, tokenizer)
    module.train()
    batch = read(model, DOCUMENTS)
    with edit.zero(model, "2-4"):
        assert module.training
        module(**batch.inputs).last_hidden_state.pow(2).sum().backward()
    assert module.training
    size = tiny.FAMILIES["llama"].settings["head_dim"]
    gradient = module.layers[1].self_attn.q_proj.weight.grad.unflatten(0, (-1, size))
    silent = gradient.abs().amax((1, 2)) == 0
    assert silent.nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype: torch.dtype) -> None:
    subject = make("llama", "sdpa")
    subject.model.module.to(dtype)
    before = subject.run()
    with edit.capture_model(subject.model).editing(lambda z, layer: z):
        assert torch.equal(subject.run(), before)
    with edit.uniform(subject.model, "2-4"):
        assert subject.run().dtype == dtype


def test_another_thread_is_told_that_the_model_is_changed() -> None:
    subject, errors = make("bert"), []

    def run() -> None:
        try:
            subject.run()
        except HeadscopeError as error:
            errors.append(str(error))

    with edit.zero(subject.model, "1-1"):
        thread = Thread(target=run)
        thread.start()
        thread.join()
        subject.run()
    assert errors == [
        "a model was run while its heads are edited in another thread; run it in the thread that edits it, or run a "
        "copy of the model that was made before."
    ]


REFUSED = {
    "a head": ("bert", ["3-1"], {}, "there is no head 3-1; the model has 2 layers of 5 heads, 1-1 to 2-5."),
    "a layer": ("bert", "3", {}, "there is no layer 3; the model has 2 layers, counted from 1."),
    "a group": ("llama", "1-kv7", {},
        "there is no key/value head 1-kv7; the layer has 2, 1-kv1 to 1-kv2."),
    "no name": (
        "bert", "first", {},
        "'first' is not a head; write layer-head, both counted from 1, such as 1-1 or 2-5 (L0H0 counts from 0)."),
    "nothing": ("bert", [], {}, "no head is named; give heads such as 3-1, or layers such as 3."),
    "no type": ("bert", "cross 1-1", {}, "'bert' has no 'cross' attention; it has encoder."),
    "which type": (
        "t5", "1-1", {},
        "'1-1' is a head of several: 't5' has encoder, decoder, cross attention; write one of these before it, as in "
        "encoder 1-1."),
    "a way": (
        "bert", "1-1", {"how": "random"},
        "heads cannot be disabled by 'random'; name one of uniform, zero, mean, resample, shuffle."),
    "no corpus": (
        "bert", "1-1", {"how": "mean"},
        "heads cannot be disabled by 'mean' so: missing a required argument: 'corpus'; give what it takes."),
    "an option": (
        "bert", "1-1", {"how": "zero", "seed": 5},
        "heads cannot be disabled by 'zero' so: got an unexpected keyword argument 'seed'; give what it takes."),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_disabled_is_refused_in_a_sentence(what: str) -> None:
    family, heads, options, message = REFUSED[what]
    with (
        pytest.raises(HeadscopeError, match=f"^{re.escape(message)}$"),
        headscope.disable(make(family).model, heads, **options),
    ):
        pass


def test_a_layer_may_be_a_number() -> None:
    model = make("bert").model
    assert select_heads(model, 2) == select_heads(model, [2]) == select_heads(model, "2")
    assert select_heads(model, [2, "1-3"]) == {("encoder", 1): (2,), ("encoder", 2): (0, 1, 2, 3, 4)}


def test_groups_are_those_of_the_attention_type() -> None:
    settings = dict(tiny.FAMILIES["bart"].settings, d_model=40, encoder_attention_heads=8, decoder_attention_heads=4)
    module, tokenizer = hf.BartModel(hf.BartConfig(**settings, vocab_size=tiny.BYTE_VOCABULARY)), tiny.make("bart")[1]
    model = Model.from_module(module, tokenizer)
    assert select_heads(model, "decoder 1-kv2, encoder 2-kv7") == {("decoder", 1): (1,), ("encoder", 2): (6,)}


def test_another_implementation_within_the_block_is_refused() -> None:
    subject = make("bert", "sdpa")
    message = "the attention implementation of BertModel became 'eager' while its heads are edited; choose it before, "
    with edit.zero(subject.model, "1-1"):
        subject.model.module.set_attn_implementation("eager")
        with pytest.raises(HeadscopeError, match=f"^{re.escape(message)}"):
            subject.run()


def test_other_refusals_name_what_to_do() -> None:
    subject = make("bert")
    message = "'bert' computes attention by 'flex_attention', whose heads cannot be edited; load the model with "
    message += "attn_implementation='sdpa' or 'eager'."
    capture = Capture.verified(subject.model, subject.batch)
    subject.model.module.config._attn_implementation = "flex_attention"
    with pytest.raises(ModelError, match=f"^{re.escape(message)}$"), capture.editing(lambda z, layer: z):
        pass
    subject.model.module.config._attn_implementation = "eager"
    with pytest.raises(HeadscopeError, match=r"^\(3, -1\) is not an edge; write \(from, to\), two places of tokens "):
        edit.cut(subject.model, "1-1", [(3, -1)]).__enter__()
    with pytest.raises(HeadscopeError, match=r"^no edge is named; give pairs \(from, to\) of places of tokens"):
        edit.cut(subject.model, "1-1", []).__enter__()
    alone = make("bert", documents=DOCUMENTS[:1])
    message = "the heads of a batch of 1 cannot be shuffled by 1: each example would get its own; run two examples or "
    with edit.shuffle(alone.model, "1-1"), pytest.raises(HeadscopeError, match=f"^{re.escape(message)}"):
        alone.run()


@pytest.mark.parametrize("family", sorted(set(tiny.UNSUPPORTED) - {"falcon"}))
def test_families_without_the_interface_cannot_be_changed(family: str) -> None:
    subject = make(family)
    with pytest.raises(ModelError, match=r"cannot be edited or differentiated: the model does not use transformers'"):
        edit.zero(subject.model, subject.name("1-1")).__enter__()
