"""What holds on a GPU: ``pytest -m gpu``.

These tests need one GPU, and the cases of a second GPU two. The others run the same code by Triton's interpreter, which
has no bfloat16, no tensor cores, and only torch's kernel for processors.
"""

import copy
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import headscope
import tiny
from dispatched import dispatch
from fused_layers import DOCUMENTS, PLAIN, in_float64, load, make_weights, observe, real
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.untouched import run_untouched
from headscope.capture.forward.verify import select_real
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan
from headscope.capture.rows.fused import FusedRows
from headscope.capture.rows.gpu import Kernels
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.corpora import Document
from headscope.runner import measure

pytestmark = pytest.mark.gpu

TYPES = (torch.bfloat16, torch.float16, torch.float32)
LONGEST = 1 << 15
TWO_GPUS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="the case needs two GPUs")


def near(dtype: torch.dtype) -> dict[str, float]:
    """By how much numbers of a type may differ that are found in another order."""
    close = 1e-4 if dtype == torch.float32 else 64 * torch.finfo(dtype).eps
    return {"atol": close, "rtol": close}


def make_llama(size: int, dtype: torch.dtype, documents: Sequence[Document]) -> tuple[Model, Batch]:
    """Return a model of one layer with heads of a size, and documents as it reads them."""
    _, tokenizer = tiny.make("llama")
    tokenizer.model_max_length = LONGEST
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=size, max_position_embeddings=LONGEST,
    )  # fmt: skip
    model = Model.from_module(LlamaModel(config).eval().to("cuda", dtype), tokenizer, name="llama")
    return model, collate(model, Alignment.for_model(model).align(documents)[0])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [16, 64, 80, 128, 256])
def test_there_is_a_kernel_for_heads(size: int, dtype: torch.dtype) -> None:
    """It compiles, fits, and gives the answers of plain products."""
    assert Kernels().find(torch.zeros(1, 1, 1, size, device="cuda", dtype=dtype)) is not None


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("family", PLAIN)
def test_the_output_is_that_of_the_untouched_model(family: str, dtype: torch.dtype) -> None:
    """Up to rounding: torch has no fused kernel for heads of 7 and 14 numbers."""
    model, batch = load(family, dtype=dtype, device="cuda")
    outputs = Capture(model, "interface").run(batch, lambda rows: None)
    untouched, ours = (select_real(batch, each) for each in (run_untouched(model, batch), outputs.verified))
    assert untouched.isfinite().all()
    torch.testing.assert_close(ours, untouched, **near(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [16, 64, 128])
@pytest.mark.parametrize("texts", [1, 5])
def test_the_output_of_the_models_own_kernel_is_kept_bit_by_bit(texts: int, size: int, dtype: torch.dtype) -> None:
    model, batch = make_llama(size, dtype, DOCUMENTS[:texts])
    shown: list[FusedRows] = []
    outputs = Capture(model, "interface").run(batch, shown.append)
    assert all(rows.attended is not None for rows in shown)
    untouched, ours = (select_real(batch, each) for each in (run_untouched(model, batch), outputs.verified))
    assert torch.equal(ours, untouched)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("family", PLAIN)
def test_statistics_are_those_of_float64(family: str, dtype: torch.dtype) -> None:
    """Of the same queries and keys, which alone are rounded to the model's type."""
    model, batch = load(family, dtype=dtype, device="cuda")
    columns = torch.rand(len(DOCUMENTS), batch.encoder.length, 21, device="cuda")
    for fused in observe(model, batch):
        weights, entropy = in_float64(fused)
        assert (real(fused, fused.entropy()[..., None])[..., 0] - entropy).abs().max() < 1e-5
        if fused.keys.length == batch.encoder.length:
            expected = torch.einsum("rhk,rkf->rhf", weights, _spread(fused, columns))
            assert (real(fused, fused.average(columns).double()) - expected).abs().max() < 1e-5


def _spread(fused: FusedRows, columns: torch.Tensor) -> torch.Tensor:
    """The columns of the text of each real row."""
    texts = torch.arange(len(columns), device=columns.device)[:, None].expand_as(fused.queries.real)
    return columns.double()[texts[fused.queries.real]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("length", [300, 2000, 6000])
def test_long_texts_keep_their_digits(length: int, size: int, dtype: torch.dtype) -> None:
    words = tuple(word for document in DOCUMENTS for word in document.words)
    document = Document("long", (words * (length // len(words) + 1))[:length])
    model, batch = make_llama(size, dtype, [document])
    (fused,) = observe(model, batch)
    assert isinstance(fused, FusedRows)
    weights = make_weights(fused)
    assert (fused.entropy() - torch.special.entr(weights).sum(-1)).abs().max() < 1e-5
    columns = torch.rand(1, weights.shape[-1], 70, device="cuda")
    assert (fused.average(columns) - weights @ columns[:, None].double()).abs().max() < 1e-5


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("family", ["bert", "llama", "mistral", "bart"])
def test_a_table_is_that_of_the_processor(family: str, dtype: torch.dtype) -> None:
    tables = []
    for device in ("cpu", "cuda"):
        model, _ = load(family, dtype=dtype, device=device)
        tables.append(headscope.measure(model, DOCUMENTS, ["surface"], permutations=0, progress=False))
    compared = [name for name, values in tables[0].items() if values.dtype.kind == "f"]
    for name in compared:
        ours, theirs = (torch.from_numpy(table[name].values) for table in tables)
        torch.testing.assert_close(ours, theirs, **near(dtype), equal_nan=True)
    assert len(compared) > 5


@pytest.mark.parametrize("view", [None, "norm", "rollout"])
@pytest.mark.parametrize(
    "places",
    [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "disk"), pytest.param(("cuda:0", "cuda:1"), marks=TWO_GPUS)],
)
@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_a_table_over_two_devices_is_that_of_one(
    family: str, places: tuple[str, str], view: str | None, tmp_path: Path
) -> None:
    first, second = places
    module, tokenizer = tiny.make(family)
    expected = headscope.load(copy.deepcopy(module), tokenizer)
    model = headscope.load(dispatch(module, second, tmp_path, first=first), tokenizer)
    assert model.weights_sha256 == expected.weights_sha256
    tables = [measure(each, tiny.documents(), ["surface"], plan=Plan(view=view)) for each in (expected, model)]
    for name, values in tables[0].items():
        if values.dtype.kind == "f":
            ours, theirs = (torch.from_numpy(table[name].values) for table in tables)
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4, equal_nan=True)
