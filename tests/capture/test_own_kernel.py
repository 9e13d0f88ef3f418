"""The model's own fused kernel: its output goes on untouched, and its log-sum-exp is that of the scores."""

import json
from collections import Counter
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import headscope
import tiny
from fused_layers import DOCUMENTS, PLAIN, in_float64, load, observe, real
from headscope.capture.forward import own_kernel
from headscope.capture.forward.call import CHECKED_PASSES, Call, Pass
from headscope.capture.forward.comparisons import LargeScoresError
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.untouched import run_untouched
from headscope.capture.forward.verify import select_real
from headscope.capture.model.mask import Masks
from headscope.capture.model.model import Model
from headscope.capture.rows import second_pass
from headscope.capture.rows.fused import FusedRows
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.errors import ModelError
from headscope.reducers import Surface
from one_head import make_documents, make_model
from operations import Operations

HALF, WHOLE = torch.float16, torch.float32


@pytest.fixture
def kernel(monkeypatch) -> ModuleType:
    """The kernel for GPUs, run by Triton's interpreter on the processor."""
    monkeypatch.setattr("headscope.capture.rows.gpu._try_kernel", lambda device, size, dtype: second_pass)
    return second_pass


@pytest.mark.parametrize("dtype", [HALF, WHOLE])
@pytest.mark.parametrize("family", PLAIN)
def test_the_output_is_that_of_the_untouched_model_bit_by_bit(
    kernel: ModuleType, family: str, dtype: torch.dtype
) -> None:
    """With windows, padding, grouped queries and an encoder beside a decoder."""
    model, batch = load(family, documents=2, dtype=dtype)
    untouched = run_untouched(model, batch)
    outputs = Capture(model, "interface").run(batch)
    assert torch.equal(select_real(batch, outputs.verified), select_real(batch, untouched))
    assert {way.split(": ")[0] for _, _, way in outputs.paths} == {"without the matrix, by Triton"}


@pytest.mark.parametrize("family", ["llama", "modernbert", "bart"])
def test_its_sums_are_those_of_the_scores(kernel: ModuleType, family: str) -> None:
    """Nearly: torch's kernel for processors adds up exponentials that are right to 1e-4. Ours mends that."""
    model, batch = load(family, documents=2, dtype=HALF)
    for fused in observe(model, batch):
        assert isinstance(fused, FusedRows)
        own = fused.attended[1]
        assert (own.shape, own.dtype) == (fused.query.shape[:3], WHOLE)
        difference = real(fused, (own - fused.log_sum)[..., None])
        assert difference.abs().max() < 1e-4


def test_kernels_are_asked_for_their_sums() -> None:
    """Those of GPUs find them only where they are asked; on a device without numbers their shapes show it."""
    query, key = (torch.empty(2, 4, length, 16, dtype=HALF, device="meta") for length in (37, 50))
    for operator in ("efficient", "cudnn"):
        call = getattr(torch.ops.aten, f"_scaled_dot_product_{operator}_attention")
        assert call(query, key, key, None, False)[1].numel() == 0 or operator == "cudnn"
        with own_kernel._Kernel() as seen:
            call(query, key, key, None, False)
        assert seen.queries == 37
        assert seen.log_sum.flatten(2)[..., :37].shape == (2, 4, 37)


def test_where_torch_has_no_kernel_no_matrix_is_made(kernel: ModuleType) -> None:
    """The second pass then finds the sums and the output as well."""
    model, batch = load("llama", documents=2, dtype=WHOLE)
    expected = Capture(model, "interface").run(batch, fused=False).verified
    shown: list[FusedRows] = []
    with sdpa_kernel(SDPBackend.MATH):
        outputs = Capture(model, "interface").run(batch, shown.append)
    assert [rows.attended for rows in shown] == [None] * len(shown)
    assert all(isinstance(rows, FusedRows) for rows in shown)
    close = {"atol": 1e-5, "rtol": 0}
    torch.testing.assert_close(select_real(batch, outputs.verified), select_real(batch, expected), **close)
    entropies = real(shown[0], shown[0].entropy()[..., None])[..., 0].double()
    torch.testing.assert_close(entropies, in_float64(shown[0])[1], **close)


@pytest.mark.parametrize("family", ["mistral", "modernbert"])
def test_another_mask_than_ours_is_noticed(kernel: ModuleType, monkeypatch, family: str) -> None:
    model, batch = load(family, documents=1, dtype=HALF)
    monkeypatch.setattr(Masks, "own", lambda masks, mask, device: None)
    with pytest.raises(ModelError, match=r"(the sums that the model's own kernel finds in|the outputs of) layer \d"):
        Capture(model, "interface").run(batch, lambda attention: None)


def test_each_row_of_each_layer_is_compared_in_each_pass(kernel: ModuleType, monkeypatch) -> None:
    """By its sums: those of one row in the second layer are off by a hundredth, in a pass that is not the first."""
    model, batch = load("llama", documents=2, dtype=HALF)
    capture = Capture(model, "interface")
    capture.run(batch, lambda attention: None)

    def attend(run: Pass, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        output, sums = own_kernel.attend_by_own_kernel(run, call)
        sums[0, 1, 5] += 0.01 * (call.layer == 2)
        return output, sums

    monkeypatch.setattr("headscope.capture.forward.layer.attend_by_own_kernel", attend)
    with pytest.raises(ModelError, match=r"model's own kernel finds in layer 2 of 'llama' differ by 0\.01"):
        capture.run(batch, lambda attention: None)


def test_rows_are_compared_with_the_models_function_in_each_layer_in_turn(kernel: ModuleType, monkeypatch) -> None:
    """In all of them in the first pass, and then in one every few passes."""
    model, batch = load("llama", documents=1, dtype=HALF)
    capture, compared = Capture(model, "interface"), list[list[int]]()
    monkeypatch.setattr(
        "headscope.capture.forward.comparisons.Comparisons.note_entropies",
        lambda _, attention, *rows: compared[-1].append(attention.layer),
    )
    layers = model.layers["decoder"]
    for _ in range(1 + 2 * layers * CHECKED_PASSES):
        compared.append([])
        capture.run(batch, lambda attention: None)
    assert compared[::CHECKED_PASSES] == [[*range(1, layers + 1)], *2 * [[layer] for layer in range(1, layers + 1)]]
    assert sum(map(len, compared)) == 3 * layers


def test_nothing_is_read_between_layers(kernel: ModuleType) -> None:
    """A number that is read waits for all that a GPU has been given to do: as many are for two layers as for one."""
    reads = []
    for layers in (2, 3):
        model = make_model(layers)
        capture, texts = Capture(model, "interface"), make_documents(2, 16, 1)
        batch = collate(model, Alignment.for_model(model).align(texts)[0])
        facts = Surface().prepare(batch, "decoder")
        for _ in range(2):
            with Operations() as operations:
                capture.run(batch, lambda rows, facts=facts: Surface().observe(facts, rows))
        reads.append([operations.names[name] for name in ("_local_scalar_dense", "item", "is_nonzero")])
    assert reads[0] == reads[1]
    assert sum(reads[0]) > 0


def test_a_batch_with_scores_too_large_for_float32_is_run_again_with_that_layers_matrix(
    kernel: ModuleType, monkeypatch
) -> None:
    module, tokenizer = tiny.make("mistral")
    with torch.no_grad():
        module.layers[1].self_attn.q_proj.weight.mul_(100)
    model = Model.from_module(module, tokenizer, name="mistral")
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS[:2])[0])
    with pytest.raises(
        LargeScoresError, match=r"layer 2 of 'mistral' has scores of [\d,]+, too large for float32 with"
    ):
        Capture(model, "interface").run(batch, lambda attention: None)
    asked = {"permutations": 0, "progress": False}
    table = headscope.measure(model, DOCUMENTS[:2], ["surface"], **asked)
    monkeypatch.setattr("headscope.capture.rows.gpu._try_kernel", lambda device, size, dtype: None)
    expected = headscope.measure(model, DOCUMENTS[:2], ["surface"], **asked)
    ways = [way.split(":")[0] for way in json.loads(table.attrs["paths"])]
    assert "with the matrix" in str(ways)
    assert "without the matrix, by Triton" in str(ways)
    for name in ("entropy", "mass_first", "mean_distance"):
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-5, atol=1e-5)


def test_gradients_are_those_without_it(kernel: ModuleType) -> None:
    model, batch = load("llama", documents=2, dtype=WHOLE)

    def find(**how) -> list[torch.Tensor]:
        loss = Capture(model, "interface").run(
            batch, gradients=True, loss=lambda output: output.last_hidden_state[real_tokens].square().mean(), **how
        )
        return [loss.gradients[layer].g.transpose(1, 2)[real_tokens] for layer in sorted(loss.gradients)]

    real_tokens = batch.encoder.real
    ours, theirs = find(), find(fused=False)
    assert len(ours) == len(theirs) > 0
    for gradient, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-4)


def test_some_rows_are_shown_beside_an_untouched_output(kernel: ModuleType) -> None:
    model, batch = load("llama", documents=2, dtype=HALF)
    untouched, rows = run_untouched(model, batch), [slice(3, 7)]
    outputs = Capture(model, "interface").run(batch, lambda attention: None, chosen_rows={"decoder": rows})
    assert torch.equal(select_real(batch, outputs.verified), select_real(batch, untouched))
    assert all(way.startswith("some rows; the output without the matrix, by Triton") for _, _, way in outputs.paths)


@pytest.mark.full
@pytest.mark.parametrize("family", ["bert", "llama", "mistral"])
def test_a_table_is_that_of_the_processor(monkeypatch, family: str) -> None:
    """In half precision, by the kernel and by the model's own function on blocks of rows."""
    model, _ = load(family, documents=2, dtype=HALF)
    asked = {"permutations": 0, "progress": False}
    expected = headscope.measure(model, DOCUMENTS[:3], ["surface"], **asked)
    monkeypatch.setattr("headscope.capture.rows.gpu._try_kernel", lambda device, size, dtype: second_pass)
    table = headscope.measure(model, DOCUMENTS[:3], ["surface"], **asked)
    compared = Counter()
    for name, values in expected.items():
        if values.dtype.kind == "f":
            torch.testing.assert_close(
                torch.from_numpy(table[name].values), torch.from_numpy(values.values), atol=2e-3, rtol=2e-3,
                equal_nan=True,
            )  # fmt: skip
            compared[name] += 1
    assert len(compared) > 5
