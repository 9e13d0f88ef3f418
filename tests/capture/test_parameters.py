"""The hash of what a model keeps, of whatever kind it is: quantised weights are packed, or no tensors at all."""

import copy
import enum
import io

import numpy as np
import pytest
import torch
from torch import nn

import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.capture.model.parameters import hash_parameters
from headscope.errors import ModelError
from headscope.runner import Plan, measure

# Its quantisation is about to leave torch.
pytestmark = pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated", "ignore:torch.quantize_per")

DOCUMENTS = tiny.documents(7)


class Layout(enum.Enum):
    PLAIN = 1
    TILED = 2


class Packed(torch.Tensor):
    """A tensor made of others, as those of torchao are."""

    @staticmethod
    def __new__(cls, values: torch.Tensor, scale: torch.Tensor, layout: Layout = Layout.PLAIN) -> "Packed":
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32)

    def __init__(self, values: torch.Tensor, scale: torch.Tensor, layout: Layout = Layout.PLAIN) -> None:
        self.values, self.scale, self.layout_kind = values, scale, layout

    def __tensor_flatten__(self) -> tuple[list[str], list]:
        return ["values", "scale"], [self.layout_kind, torch.float32, None]

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        if function is torch.ops.aten.detach.default:
            return arguments[0]
        raise AssertionError(f"the tensor was computed with: {function}")  # to hash it, it is only taken apart


class Kept(nn.Module):
    """A module whose state is one thing."""

    def __init__(self, part: object) -> None:
        super().__init__()
        self.part = part

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        destination["part"] = self.part


def quantize(module: nn.Module) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)


def round_to(scale: float) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3), scale, 0, torch.qint8)


def round_channels(scale: float) -> torch.Tensor:
    return torch.quantize_per_channel(
        torch.ones(2, 3), torch.tensor([scale, 1.0]), torch.zeros(2, dtype=torch.long), 0, torch.qint8
    )


VALUES, SCALE = torch.arange(6, dtype=torch.int8).reshape(2, 3), torch.ones(2)
PAIRS = {  # how two parts of a state are made
    "nothing": lambda: (None, 0),
    "names": lambda: ("int8", "int4"),
    "types": lambda: (torch.qint8, torch.quint8),
    "bytes": lambda: (b"one", io.BytesIO(b"two")),
    "tensors": lambda: (torch.ones(3), torch.ones(3, dtype=torch.float64)),
    "sparse tensors": lambda: (torch.eye(3).to_sparse(), 2 * torch.eye(3).to_sparse()),
    "arrays": lambda: (np.ones(3), np.ones((3, 1))),
    "tuples": lambda: ((torch.ones(3), None), (torch.ones(3), torch.zeros(1))),
    "dictionaries": lambda: ({"scale": 1.0}, {"scale": 2.0}),
    "quantised": lambda: (round_to(0.5), round_to(0.25)),
    "quantised by channel": lambda: (round_channels(0.5), round_channels(0.25)),
    "packed values": lambda: (Packed(VALUES, SCALE), Packed(VALUES + 1, SCALE)),
    "packed scales": lambda: (Packed(VALUES, SCALE), Packed(VALUES, 2 * SCALE)),
    "packed otherwise": lambda: (Packed(VALUES, SCALE), Packed(VALUES, SCALE, Layout.TILED)),
    "objects": lambda: (Kept(3), Kept(5)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_anything_is_hashed_and_told_from_another(kind: str) -> None:
    first, second = (hash_parameters(Kept(part), "model") for part in PAIRS[kind]())
    assert first == hash_parameters(Kept(PAIRS[kind]()[0]), "model")
    assert first != second


def test_what_cannot_be_written_down_is_named() -> None:
    with pytest.raises(ModelError) as refused:
        hash_parameters(Kept(each for each in ()), "model")
    assert str(refused.value).startswith("the state of 'model' has part, of the type generator, which cannot be")
    assert str(refused.value).endswith("; save the model to a folder, and give that.")


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_dynamically_quantised_models_are_measured(family: str) -> None:
    """They round by the largest number of a batch, so each text is measured alone; the eager model is the witness."""
    model = Model.from_module(quantize(tiny.make(family)[0]), tiny.make(family)[1], name=family)
    again, other = (
        Model.from_module(each, model.tokenizer) for each in (quantize(tiny.make(family)[0]), tiny.make(family)[0])
    )
    assert model.weights_sha256 == again.weights_sha256 != other.weights_sha256
    table = measure(model, DOCUMENTS, ["surface"], plan=Plan(batch_tokens=1))
    module, (kind,) = copy.deepcopy(model.module), model.layers
    expected = witnesses.surface([witnesses.see(module, model.tokenizer, each)[kind] for each in DOCUMENTS])
    for name in ("mass_first", "mass_previous", "entropy"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-4, err_msg=name)


def test_a_quantised_model_that_reads_padding_is_refused() -> None:
    model = Model.from_module(quantize(tiny.make("bert")[0]), tiny.make("bert")[1], name="bert")
    with pytest.raises(
        ModelError, match=r"with the padding next to a text; measure each text alone \(--batch-tokens 1"
    ):
        measure(model, DOCUMENTS, ["surface"])


def test_quantised_weights_that_differ_have_another_hash() -> None:
    with torch.no_grad():
        module = tiny.make("bert")[0]
        module.encoder.layer[0].attention.self.query.weight[0, 0] += 5
    assert hash_parameters(quantize(module), "bert") != hash_parameters(quantize(tiny.make("bert")[0]), "bert")
