"""Models that accelerate has dispatched: where their parts run, and their weights."""

import copy
import json
from pathlib import Path

import accelerate
import pytest
import torch

import dispatched
import headed
import headscope
import tiny
from headscope.capture.model.dispatched import describe_placement, find_device, hold_weights, list_devices
from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.open.untrained import untrained_model
from headscope.capture.passes.room import advise_on_memory
from headscope.capture.passes.stream import Plan
from headscope.errors import ModelError
from headscope.learn.training import Pretrained
from headscope.learn.word_vectors import embed_words
from headscope.runner.local import measure
from headscope.runner.provenance import identify_model
from planted_task import make_task
from second_device import DEVICE, second_device

CPU = torch.device("cpu")
WAYS = ("disk", "all on disk", "cpu_offload", "from_pretrained")


def make_offloaded(family: str, way: str, folder: Path) -> tuple[Model, Model]:
    """A model in one place, and the same with weights that are elsewhere between passes."""
    module, tokenizer = headed.make(family, "causal-lm")
    if way == "disk":
        far = dispatched.dispatch(copy.deepcopy(module), "disk", folder)
    elif way == "all on disk":
        far = accelerate.disk_offload(copy.deepcopy(module), str(folder))
    elif way == "cpu_offload":
        far = accelerate.cpu_offload(copy.deepcopy(module))
    else:
        module.save_pretrained(folder / "model")
        far = type(module).from_pretrained(folder / "model", device_map={"": "disk"}, offload_folder=folder / "rest")
    return load(module, tokenizer, task="own"), load(far, tokenizer, task="own")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", ["mistral", "bart"])
def test_weights_that_are_elsewhere_are_the_same_weights(family: str, way: str, tmp_path: Path) -> None:
    near, far = make_offloaded(family, way, tmp_path)
    assert any(weights.device.type == "meta" for weights in far.module.parameters())
    assert far.weights_sha256 == near.weights_sha256
    assert (far.device, far.devices) == (CPU, (CPU,))
    assert far.is_causal == near.is_causal
    expected, table = (measure(model, tiny.documents(2), ["sinks"]) for model in (near, far))
    for name, values in expected.variables.items():
        assert values.identical(table[name].variable)
    changed = {key for key in table.attrs if table.attrs[key] != expected.attrs.get(key)}
    assert {"placement"} <= changed <= {"placement", "created", "model", "call"}


def test_where_each_part_runs_is_stated(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("llama")
    assert describe_placement(module) == {}
    with second_device():
        far = load(dispatched.dispatch(module, str(DEVICE), tmp_path), tokenizer)
        about = identify_model(far)
    assert json.loads(about["placement"]) == {
        "embed_tokens": "cpu", "layers.0": "cpu", "layers.1": "lazy:1", "norm": "cpu"
    }  # fmt: skip
    assert about["device"] == "cpu, lazy:1"
    assert (find_device(far.module), list_devices(far.module)) == (CPU, (CPU, DEVICE))
    assert find_device(far.module.layers[1]) == DEVICE


def test_a_whole_model_on_disk_is_one_part(tmp_path: Path) -> None:
    _, far = make_offloaded("mistral", "all on disk", tmp_path)
    assert describe_placement(far.module) == {"MistralForCausalLM": "cpu, offloaded between passes"}


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_held_and_then_let_go(way: str, tmp_path: Path) -> None:
    near, far = make_offloaded("mistral", way, tmp_path)
    expected, block = near.module.model.layers[1].state_dict(), far.module.model.layers[1]
    for _ in range(2):
        with hold_weights(block):
            held = {name: weights.clone() for name, weights in block.state_dict().items()}
        assert {weights.device.type for weights in block.state_dict().values()} == {"meta"}
        assert held.keys() == expected.keys()
        assert all(torch.equal(weights, expected[name]) for name, weights in held.items())


def test_embeddings_on_disk_are_read(tmp_path: Path) -> None:
    near, far = (
        embed_words(model, ["dog", "old", "naïve"]) for model in make_offloaded("bart", "all on disk", tmp_path)
    )
    assert (near.values == far.values).all()


@pytest.mark.parametrize("keep_embeddings", [False, True])
@pytest.mark.parametrize("second", ["disk", str(DEVICE)])
def test_an_untrained_model_lies_where_the_trained_one_does(second: str, keep_embeddings: bool, tmp_path: Path) -> None:
    module, tokenizer = headed.make("bert", "masked-lm")  # without a pooler, which the untrained model has
    near = load(copy.deepcopy(module), tokenizer)
    with second_device():
        far = load(dispatched.dispatch(module, second, tmp_path), tokenizer)
        expected, untrained = (untrained_model(model, seed=3, keep_embeddings=keep_embeddings) for model in (near, far))
        assert untrained.devices == far.devices
        assert untrained.weights_sha256 == expected.weights_sha256


def test_only_hooks_make_several_devices_one_model(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("llama")
    far = dispatched.dispatch(module, "disk", tmp_path)
    accelerate.hooks.remove_hook_from_module(far.layers[1].mlp, recurse=True)
    far.layers[1].mlp.to_empty(device="meta")
    with pytest.raises(ModelError) as refused:
        load(far, tokenizer)
    assert str(refused.value) == (
        "the weights of 'LlamaModel' lie on cpu and no device (meta), and no hook of accelerate brings them together "
        "when it runs; load it with device_map, or put all of it on one device."
    )


def test_a_device_map_that_parts_what_is_added_up_is_named(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("llama")
    with second_device():
        far = load(dispatched.dispatch(module, str(DEVICE), tmp_path), tokenizer)
        accelerate.hooks.remove_hook_from_module(far.module.layers[1], recurse=True)
        ids = torch.tensor([[1, 2, 3]])
        with pytest.raises(ModelError) as refused:
            run_model(far, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    message = str(refused.value)
    assert message.startswith("'LlamaModel' (LlamaModel) cannot be run where its parts lie, on cpu and lazy:1 (")
    assert message.endswith("; load it with another device_map, whose parts are whole layers, or without one.")


def test_what_to_do_without_memory_names_the_device_map(tmp_path: Path) -> None:
    near, far = make_offloaded("mistral", "disk", tmp_path)
    assert advise_on_memory(near) == "lower `max_tokens` or set `dtype` to bfloat16"
    assert advise_on_memory(far) == (
        "lower `max_tokens`, set `dtype` to bfloat16 or load it with a device_map that leaves more memory free"
    )


def test_a_second_device_refuses_what_lies_on_both(tmp_path: Path) -> None:
    """The witness of the tests over two devices can fail."""
    with second_device():
        near, far = torch.arange(3.0), torch.arange(3.0).to(DEVICE)
        assert (near + near).tolist() == (far + far).tolist() == [0.0, 2.0, 4.0]
        assert (far + 1).device == (far + torch.tensor(1)).device == DEVICE
        with pytest.raises(RuntimeError, match=r"^Expected all tensors to be on the same device, but aten\.add"):
            near + far
        with pytest.raises(RuntimeError, match=r"^Expected all tensors to be on the same device, but aten\.index_put"):
            far[torch.tensor([0, 1])] = torch.ones(2)


def test_a_run_that_was_killed_goes_on_over_two_devices(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("llama")
    plan, path = Plan(batch_tokens=20), tmp_path / "sums"
    with second_device():
        far = load(dispatched.dispatch(module, str(DEVICE), tmp_path), tokenizer)
        expected = measure(far, tiny.documents(5), ["sinks"], plan=plan)

        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("headscope.runner.local.SAVE_EVERY", 0)
            with pytest.raises(KeyboardInterrupt):
                measure(far, tiny.documents(5), ["sinks"], plan=plan, checkpoint=path, progress=stop)
        table = measure(far, tiny.documents(5), ["sinks"], plan=plan, checkpoint=path, resume=True)
    assert table.drop_attrs().identical(expected.drop_attrs())


@pytest.mark.parametrize("way", WAYS)
def test_a_model_on_disk_is_tuned_from_its_own_weights(way: str, tmp_path: Path) -> None:
    near, far = make_offloaded("mistral", way, tmp_path)
    pair = (far.module, far.tokenizer)
    started = Pretrained.from_model(pair, make_task(), device="cpu", trust_remote_code=False)
    copied = type(near.module.base_model).from_pretrained(started.source).state_dict()
    expected = near.module.base_model.state_dict()
    assert all(torch.equal(copied[name], weights) for name, weights in expected.items())


@pytest.mark.full
def test_probes_of_a_model_on_disk_are_those_of_the_same_model_in_memory(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("bert")
    far = dispatched.dispatch(copy.deepcopy(module), "disk", tmp_path / "offloaded")
    expected, table = (
        headscope.probe((each, tokenizer), "grammar:13", tmp_path / str(each is far), seeds=1, progress=False)
        for each in (module, far)
    )
    for name, values in expected.variables.items():
        assert values.identical(table[name].variable)
