"""A pass that begins at a layer gives what a whole pass gives, in every family with the interface."""

import pytest
import torch

import tiny
from edited import agree, make
from headscope.capture.passes.blocks import record_blocks
from headscope.capture.passes.projection import find_projections
from headscope.errors import ModelError
from headscope.intervene import replacement
from headscope.intervene.edit import capture_model
from headscope.intervene.replacement import EditedHeads

EAGER_ONLY = ("gemma2", "gpt_oss")


def run(subject) -> torch.Tensor:
    config = subject.model.module.config
    cache = {"use_cache": False} if hasattr(config, "use_cache") else {}
    with torch.inference_mode():
        return subject.model.module(**subject.batch.inputs, **cache).last_hidden_state


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_pass_from_a_layer_on_is_a_whole_pass(family: str) -> None:
    subject = make(family, "eager" if family in EAGER_ONLY else "sdpa")
    capture = capture_model(subject.model)
    with record_blocks(capture) as recorded:
        plain = run(subject)
    assert set(recorded.starts) == set(capture.modules)
    for layer in capture.modules:
        with capture.editing(EditedHeads({layer: (0,)}, replacement.zero)):
            expected = run(subject)
            with recorded.skip_below(layer):
                assert torch.equal(run(subject), expected)
        assert not torch.equal(expected, plain)
        with recorded.skip_below(layer):
            assert torch.equal(run(subject), plain)


@pytest.mark.parametrize("family", sorted(set(tiny.FAMILIES) - {"albert"}))
def test_a_pass_from_changed_heads_on_is_a_whole_pass_but_for_rounding(family: str) -> None:
    subject = make(family, "eager" if family in EAGER_ONLY else "sdpa")
    capture = capture_model(subject.model)
    projections = find_projections(capture, subject.batch)
    with record_blocks(capture) as recorded:
        plain = run(subject)
    for layer in capture.modules:
        edit = EditedHeads({layer: (1, 2)}, replacement.zero)
        with capture.editing(edit):
            expected = run(subject)
        assert (expected - plain).abs().max() > 1e-3
        for _ in range(2):
            with torch.inference_mode(), recorded.change(layer, edit, projections):
                actual = run(subject)
            agree(actual, expected, to=1e-5)
        assert torch.equal(run(subject), plain)


def test_albert_normalizes_in_its_module_of_attention_so_a_pass_begins_at_its_block() -> None:
    """There the change of a head is no sum with what the module returns; that it differs is seen (`effect.py`)."""
    subject = make("albert", "sdpa")
    capture = capture_model(subject.model)
    with record_blocks(capture) as recorded:
        run(subject)
    edit = EditedHeads({("encoder", 2): (1, 2)}, replacement.zero)
    with capture.editing(edit):
        expected = run(subject)
    projections = find_projections(capture, subject.batch)
    with torch.inference_mode(), recorded.change(("encoder", 2), edit, projections):
        assert (run(subject) - expected).abs().max() > 1e-3


@pytest.mark.parametrize("family", ["bert", "albert", "t5"])
def test_what_lies_below_is_not_run(family: str) -> None:
    subject = make(family)
    capture = capture_model(subject.model)
    with record_blocks(capture) as recorded:
        run(subject)
    calls = []
    hooks = [module.register_forward_hook(lambda *_: calls.append(1)) for module in {*capture.modules.values()}]
    highest = max(recorded.starts, key=lambda layer: recorded.starts[layer])
    with recorded.skip_below(highest):
        run(subject)
    for hook in hooks:
        hook.remove()
    # The decoder's block also has its cross attention.
    assert len(calls) == sum(start == recorded.starts[highest] for start in recorded.starts.values())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_afterwards_the_blocks_run_again(error: type[BaseException]) -> None:
    subject = make("bert")
    capture = capture_model(subject.model)
    before = {id(block): block.forward for block in subject.model.module.encoder.layer}
    with record_blocks(capture) as recorded:
        plain = run(subject)

    def fail() -> None:
        with recorded.skip_below(("encoder", 2)):
            raise error

    with pytest.raises(error):
        fail()
    assert {id(block): block.forward for block in subject.model.module.encoder.layer} == before
    assert torch.equal(run(subject), plain)


def test_a_model_without_a_list_of_layers_is_refused() -> None:
    subject = make("bert")
    capture = capture_model(subject.model)
    encoder = subject.model.module.encoder
    encoder.layer.__class__ = torch.nn.Sequential
    with pytest.raises(ModelError, match="keeps the modules of its layers in no list"), record_blocks(capture):
        pass
