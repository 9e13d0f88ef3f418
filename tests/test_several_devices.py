"""Models over several devices, or on disk between passes: their tables are those of the same model in one place."""

import copy
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import xarray as xr

import headed
import headscope
import rivals
import tiny
from dispatched import dispatch
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.passes.stream import Plan
from headscope.runner.local import measure
from plain_reducers import OF_ONE_MODEL
from second_device import DEVICE, second_device

DOCUMENTS = rivals.add_rivals(tiny.documents_with_roles(5))
FEW = DOCUMENTS[:3]
TEXTS = ["the dog sees the old cat .", "a red house was seen by the cat", "dogs walking in the house ."]
TASKS = {"bert": "masked-lm", "mistral": "causal-lm", "bart": "causal-lm"}

pytestmark = pytest.mark.parametrize("second", ["disk", str(DEVICE)])


@pytest.fixture(autouse=True)
def two_devices(second: str) -> Iterator[None]:
    with nullcontext() if second == "disk" else second_device():
        yield


def make_both(family: str, second: str, folder: Path, *, head: bool = True) -> tuple[Model, Model]:
    """A model in one place, and the same with every other block in a second one."""
    module, tokenizer = headed.make(family, TASKS[family])
    module = module if head else module.base_model
    far = dispatch(copy.deepcopy(module), second, folder / "offloaded")
    near, far = (load(each, tokenizer, task="own" if head else None) for each in (module, far))
    assert near.weights_sha256 == far.weights_sha256
    assert len(far.devices) == (1 if second == "disk" else 2)
    return near, far


def assert_same(run: Callable[[Model], xr.Dataset], models: tuple[Model, Model], second: str) -> None:
    """Equal to the last bit; a tensor that is moved may lie otherwise in memory there, and so be rounded otherwise."""
    expected, table = map(run, models)
    assert {*table.variables} == {*expected.variables}
    for name, values in expected.variables.items():
        if second == "disk" or values.dtype.kind != "f":
            xr.testing.assert_identical(values, table[name].variable)
        else:
            np.testing.assert_allclose(values, table[name], atol=1e-6, rtol=1e-5, err_msg=str(name))


@pytest.mark.parametrize("family", ["mistral", "bart"])
def test_few_statistics(family: str, second: str, tmp_path: Path) -> None:
    models = make_both(family, second, tmp_path, head=False)
    assert_same(lambda model: measure(model, FEW[:2], ["sinks", "head_distances"]), models, second)


def test_the_norm_view(second: str, tmp_path: Path) -> None:
    models = make_both("mistral", second, tmp_path, head=False)
    assert_same(lambda model: measure(model, FEW[:2], ["sinks"], plan=Plan(view="norm")), models, second)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model_type", "view"),
    [
        *product(["mistral"], [None, "norm", "gradient", "rollout"]),
        ("bart", None),
        ("bart", "gradient"),
        ("bert", None),
    ],
)
def test_all_statistics(model_type: str, second: str, view: str | None, tmp_path: Path) -> None:
    reducers = OF_ONE_MODEL if view is None else ("surface", "sinks")
    models = make_both(model_type, second, tmp_path)
    assert_same(lambda model: measure(model, DOCUMENTS, reducers, plan=Plan(view=view)), models, second)


@pytest.mark.full
def test_zeroed_values(second: str, tmp_path: Path) -> None:
    models, short = make_both("mistral", second, tmp_path), min(DOCUMENTS, key=lambda document: len(document.words))
    assert_same(lambda model: measure(model, [short], ["sinks"], plan=Plan(view="value-zeroing")), models, second)


@pytest.mark.full
def test_logits_values_and_gradients(second: str, tmp_path: Path) -> None:
    models = make_both("mistral", second, tmp_path)
    reducers = ("copying", "streaming", "induction", "gradients")
    assert_same(lambda model: measure(model, FEW, reducers), models, second)


@pytest.mark.full
@pytest.mark.parametrize("plan", [Plan(fused=True), Plan(fused=True, view="norm"), Plan(rows=3), Plan(batch_tokens=1)])
def test_plans(plan: Plan, second: str, tmp_path: Path) -> None:
    models = make_both("mistral", second, tmp_path, head=False)
    assert_same(lambda model: measure(model, FEW, ["surface"], plan=plan), models, second)


@pytest.mark.full
def test_a_model_beside_the_one_before_it(second: str, tmp_path: Path) -> None:
    """The one before is in one place, and then in two as well."""
    models = make_both("mistral", second, tmp_path, head=False)
    before, tokenizer = tiny.make("mistral", 7)
    reducers = ("similarity", "head_distances_before", "head_distances")
    assert_same(lambda model: measure(model, FEW, reducers, before=(before, tokenizer)), models, second)
    near = load(copy.deepcopy(before), tokenizer)
    far = load(dispatch(before, second, tmp_path / "before"), tokenizer)
    assert_same(lambda model: measure(models[1], FEW, reducers, before=model), (near, far), second)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model_type", "how"),
    [*product(["mistral"], ["uniform", "zero", "mean", "resample", "shuffle"]), ("bart", "mean"), ("bert", "shuffle")],
)
def test_disabled_heads(model_type: str, how: str, second: str, tmp_path: Path) -> None:
    models = make_both(model_type, second, tmp_path)
    options = {"corpus": TEXTS} if how in ("mean", "resample") else {}
    heads = ["encoder 1-2", "decoder 2-1", "cross 2"] if model_type == "bart" else ["1-2", "2-1"]

    def run(model: Model) -> xr.Dataset:
        inputs = dict(model.tokenizer(TEXTS[:2], return_tensors="pt", padding=True))
        inputs.pop("token_type_ids", None)
        if model_type == "bart":
            inputs["decoder_input_ids"] = inputs["input_ids"]
        with torch.no_grad(), headscope.disable(model, heads, how, **options):
            return xr.Dataset({"logits": xr.DataArray(model.module(**inputs).logits.cpu().numpy())})

    # Logits of these weights are in the hundreds.
    near, far = map(run, models)
    np.testing.assert_allclose(far["logits"], near["logits"], rtol=0, atol=0 if second == "disk" else 1e-4)


@pytest.mark.full
@pytest.mark.parametrize("settings", [{"how": ["zero", "mean"], "placebos": 2}, {"direct": True, "how": "zero"}])
def test_effects(settings: dict, second: str, tmp_path: Path) -> None:
    models = make_both("mistral", second, tmp_path)

    def run(model: Model) -> xr.Dataset:
        trainable = [weights.requires_grad for weights in model.module.parameters()]
        folder = tmp_path / str(model is models[0])
        table = headscope.measure_effects(model, TEXTS, folder, heads=["1-2", "2-1", "2"], progress=False, **settings)
        assert [weights.requires_grad for weights in model.module.parameters()] == trainable
        return table

    assert_same(run, models, second)


@pytest.mark.full
def test_lesions(second: str, tmp_path: Path) -> None:
    models = make_both("mistral", second, tmp_path)
    sets = {"one": ["1-1"], "another": ["2-3"]}

    def run(model: Model) -> xr.Dataset:
        return headscope.lesions(model, TEXTS, sets, tmp_path / str(model is models[0]), random=4, progress=False)

    assert_same(run, models, second)


@pytest.mark.full
def test_roles(second: str, tmp_path: Path) -> None:
    models = make_both("mistral", second, tmp_path)

    def run(model: Model) -> xr.Dataset:
        return headscope.profile(model, tmp_path / str(model is models[0]), repeats=5, needles=2, progress=False)

    assert_same(run, models, second)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize(("model_type", "projection"), [("mistral", "o_proj"), ("bart", "out_proj")])
def test_adapters(model_type: str, projection: str, second: str, tmp_path: Path) -> None:
    module, tokenizer = headed.make(model_type, TASKS[model_type])
    settings = peft.LoraConfig(target_modules=["q_proj", projection], r=2, init_lora_weights=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        adapted = peft.get_peft_model(module, settings)
    far = copy.deepcopy(adapted)
    dispatch(far.get_base_model(), second, tmp_path)
    models = load(adapted, tokenizer), load(far, tokenizer)
    assert models[0].weights_sha256 == models[1].weights_sha256
    assert_same(lambda model: measure(model, FEW, ["surface"], plan=Plan(view="norm")), models, second)
