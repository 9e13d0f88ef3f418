"""Attention without its matrix gives the answers of the matrix, and is used only where it may be."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

import tiny
from fused_layers import DOCUMENTS, PLAIN, in_float64, load, make_weights, observe, real
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.verify import find_bound
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.dense import DenseRows
from headscope.capture.rows.fused import FusedRows
from headscope.capture.rows.kernel import Attended
from headscope.capture.rows.sweep import Swept, sweep
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import ModelError
from headscope.reducers.surface import Surface

MORE_THAN_PLAIN = ("gemma2", "gpt_oss", "t5")  # softcap, sinks, position biases


@pytest.mark.parametrize("family", PLAIN)
def test_the_answers_are_those_of_the_matrix(family: str) -> None:
    """Of the same queries and keys: from pass to pass these differ by what layers below have rounded."""
    model, batch = load(family)
    for dense, fused in zip(observe(model, batch, fused=False), observe(model, batch, fused=True), strict=True):
        assert (type(dense), type(fused)) == (DenseRows, FusedRows)
        assert (dense.attention_type, dense.layer, dense.rows, dense.heads) == (
            fused.attention_type, fused.layer, fused.rows, fused.heads,
        )  # fmt: skip
        exact, close = replace(dense, matrix=make_weights(fused).float()), {"atol": 5e-6, "rtol": 0}
        torch.testing.assert_close(real(fused, exact.matrix), real(dense, dense.matrix), atol=1e-5, rtol=0)
        torch.testing.assert_close(real(fused, fused.weights()), real(exact, exact.weights()), **close)
        torch.testing.assert_close(
            real(fused, fused.entropy()[..., None]), real(exact, exact.entropy()[..., None]), **close
        )
        # More columns than a head is wide, and a number that its width does not divide.
        columns = torch.rand(len(DOCUMENTS), fused.keys.length, 17, generator=torch.Generator().manual_seed(3))
        torch.testing.assert_close(real(fused, fused.average(columns)), real(exact, exact.average(columns)), **close)
        keys = torch.randint(
            fused.keys.length, (len(DOCUMENTS), fused.queries.length, 3), generator=torch.Generator().manual_seed(5)
        )
        torch.testing.assert_close(real(fused, fused.at(keys)), real(exact, exact.at(keys)), **close)
        few = columns * (torch.arange(fused.keys.length) % 11 == 3)[:, None]
        torch.testing.assert_close(real(fused, fused.average(few)), real(exact, exact.average(few)), **close)
        visible = [attention.visible()[attention.queries.real] for attention in (fused, dense)]
        torch.testing.assert_close(*visible)


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("edges", [(1,), (1, 2, 5, 11), (1, 2, 4, 8, 16, 32, 64), (13,)])
@pytest.mark.parametrize("family", PLAIN)
def test_distances_are_those_of_the_matrix(family: str, edges: tuple[int, ...], rows: int, monkeypatch) -> None:
    """Also where most of a row is far: the texts are short, so the blocks are made short too."""
    monkeypatch.setattr(BlockSizes, "measure", lambda device: BlockSizes(rows=rows))
    model, batch = load(family)
    for dense, fused in zip(observe(model, batch, fused=False), observe(model, batch, fused=True), strict=True):
        distances = fused.distances(edges)
        assert (real(fused, fused.entropy()[..., None])[..., 0] - in_float64(fused)[1]).abs().max() < 1e-5
        for ours, theirs in zip(distances, dense.distances(edges), strict=True):
            if theirs.ndim == 3:  # a distance may be 30 tokens, and is as exact as that makes it
                theirs, ours = theirs[..., None] / 30, ours[..., None] / 30
            torch.testing.assert_close(real(fused, ours), real(dense, theirs), atol=1e-5, rtol=0)


@pytest.mark.parametrize("weights", [1, 331, 1 << 21])
@pytest.mark.parametrize("family", ["bert", "llama", "modernbert", "bart"])
def test_a_pass_answers_the_same_whatever_heads_it_takes_together(family: str, weights: int, monkeypatch) -> None:
    """One head, some that share a key head, or all heads: the entropies, the distances, and what each head returns."""
    monkeypatch.setattr(BlockSizes, "measure", lambda device: BlockSizes(rows=3, swept=weights))
    for fused in observe(*load(family), fused=True):
        exact, values = (
            make_weights(fused),
            fused.values().double().repeat_interleave(fused.heads // fused.key.shape[1], 1),
        )
        close = {"atol": 1e-5, "rtol": 0}
        torch.testing.assert_close(real(fused, fused.output().double()), real(fused, exact @ values), **close)
        entropy = torch.special.entr(exact).sum(-1)[..., None]
        torch.testing.assert_close(real(fused, fused.entropy().double()[..., None]), real(fused, entropy), **close)
        away = fused.keys.position[:, None] - fused.queries.position[:, :, None]
        masses, mean = fused.distances((1, 2, 5, 11))
        apart = (exact * away.abs()[:, None]).sum(-1)[..., None]
        torch.testing.assert_close(real(fused, mean.double()[..., None]) / 30, real(fused, apart) / 30, **close)
        before = (exact * (away <= -11)[:, None]).sum(-1)[..., None]
        torch.testing.assert_close(real(fused, masses[..., :1].double()), real(fused, before), **close)


@pytest.mark.parametrize("family", ["bert", "llama", "modernbert", "bart"])
def test_what_one_layer_is_asked_the_next_answers_in_its_one_pass(family: str, monkeypatch) -> None:
    model, batch = load(family)
    length = batch.encoder.length
    columns = [
        torch.rand(len(DOCUMENTS), length, width, generator=torch.Generator().manual_seed(3)) for width in (5, 17)
    ]
    passes: Counter[str] = Counter()
    attend = FusedRows.attend

    def count_kernels(fused: FusedRows, values: torch.Tensor) -> Attended:
        passes[f"kernel {fused.attention_type} {fused.layer}"] += 1
        return attend(fused, values)

    def count_sweeps(*given: Any, **how: Any) -> Swept:
        passes["sweep"] += 1
        return sweep(*given, **how)

    def ask(fused: Attention) -> None:
        assert isinstance(fused, FusedRows)
        for asked in [*columns, columns[0]] if fused.keys.length == length else []:
            expected = make_weights(fused) @ asked[:, None].double()
            averages = real(fused, fused.average(asked).double())
            torch.testing.assert_close(averages, real(fused, expected), atol=1e-5, rtol=0)
        fused.distances((1, 2, 5))

    monkeypatch.setattr(FusedRows, "attend", count_kernels)
    monkeypatch.setattr("headscope.capture.rows.fused.sweep", count_sweeps)
    Capture(model, "interface").run(batch, ask, fused=True)
    assert passes.pop("sweep") == sum(model.layers.values())
    assert {key[-2:] for key in passes} == {" 1"}


def test_what_is_asked_is_answered_as_it_is_now() -> None:
    """Columns that were changed in place are others, and whoever changes an answer changes it for nobody else."""
    model, batch = load("llama")
    buffer, kept = (torch.rand(len(DOCUMENTS), batch.encoder.length, 5) for _ in range(2))
    held = []

    def ask(fused: Attention) -> None:
        assert isinstance(fused, FusedRows)
        fused.entropy()
        with torch.inference_mode(False):
            buffer.copy_(torch.rand(buffer.shape))
        for columns in (buffer, kept, kept):
            expected = make_weights(fused) @ columns[:, None].double()
            averages = fused.average(columns)
            torch.testing.assert_close(real(fused, averages.double()), real(fused, expected), atol=1e-5, rtol=0)
            averages.zero_()
        held.append(fused)

    Capture(model, "interface").run(batch, ask, fused=True)
    later = torch.rand(len(DOCUMENTS), batch.encoder.length, 3)
    for fused in held:
        expected = make_weights(fused) @ later[:, None].double()
        torch.testing.assert_close(real(fused, fused.average(later).double()), real(fused, expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["bert", "llama", "mistral", "gemma2"])
def test_in_half_precision_the_statistics_are_those_of_float32(family: str, dtype: torch.dtype) -> None:
    """Given the same rounded queries and keys, the weights are not rounded, so that rows sum to 1 on both paths."""
    module, tokenizer = tiny.make(family)
    model = Model.from_module(module.to(dtype), tokenizer, name=family)
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    for fused in (True, False):
        for attention in observe(model, batch, fused=fused):
            assert isinstance(attention, FusedRows) == (fused and family != "gemma2")
            everything = torch.ones(len(DOCUMENTS), attention.keys.length, 1)
            sums = real(attention, attention.average(everything))
            torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
            if isinstance(attention, FusedRows):
                weights, entropy = in_float64(attention)
                assert (real(attention, attention.entropy()[..., None])[..., 0] - entropy).abs().max() < 1e-5
                assert (real(attention, attention.weights()) - weights).abs().max() < 1e-5


@pytest.mark.parametrize("family", PLAIN)
def test_it_agrees_with_float64(family: str) -> None:
    for fused in observe(*load(family), fused=True):
        assert isinstance(fused, FusedRows)
        weights, entropy = in_float64(fused)
        assert (real(fused, fused.entropy()[..., None])[..., 0] - entropy).abs().max() < 1e-5
        assert (real(fused, fused.weights()) - weights).abs().max() < 1e-5


@pytest.mark.parametrize("family", MORE_THAN_PLAIN)
def test_scores_that_are_more_than_plain_keep_their_matrix(family: str) -> None:
    assert {type(attention) for attention in observe(*load(family), fused=True)} == {DenseRows}


def test_windows_are_known() -> None:
    reaches = {a.layer: (a.reach.before, a.reach.after) for a in observe(*load("modernbert"), fused=True)}
    assert reaches == {1: (None, None), 2: (3, 3), 3: (3, 3)}
    assert {(a.reach.before, a.reach.after) for a in observe(*load("mistral"), fused=True)} == {(6, 0)}
    assert {(a.reach.before, a.reach.after) for a in observe(*load("llama"), fused=True)} == {(None, 0)}


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss", "mistral", "modernbert", "llama"])
def test_with_the_matrix_too_keys_that_a_block_cannot_see_are_left_out(family: str) -> None:
    model, batch = load(family)
    held = {}
    for attention in observe(model, batch, fused=False, rows=3):
        held.setdefault(attention.layer, []).append(attention.matrix.shape[-1])
        assert attention.weights().shape[-1] == batch.encoder.length
    whole = {1: False, 2: family in {"gemma2", "gpt_oss"}, 3: False} if family != "modernbert" else {1: True}
    for layer, sizes in held.items():
        if whole.get(layer):
            assert max(sizes) == batch.encoder.length
        elif family != "llama":
            assert max(sizes) <= tiny.WINDOW + 2 if family != "modernbert" else tiny.WINDOW + 3
        else:
            assert sizes == [min(row + 3, batch.encoder.length) for row in range(0, batch.encoder.length, 3)]


def test_short_texts_and_whole_matrices_are_measured_with_the_matrix() -> None:
    model, batch = load("bert")
    assert {type(attention) for attention in observe(model, batch)} == {DenseRows}
    assert {type(attention) for attention in observe(model, batch, fused=True, whole=True)} == {DenseRows}


@pytest.mark.parametrize("gradients", [False, True])
def test_nothing_as_large_as_the_matrix_is_made(gradients: bool) -> None:
    """For a text of 1,999 tokens the matrix of one layer would be 24 million numbers; the mask one of 4 million."""
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=317, hidden_size=84, intermediate_size=37, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, head_dim=14, max_position_embeddings=2000,
    )  # fmt: skip
    _, tokenizer = tiny.make("llama")
    model = Model.from_module(LlamaModel(config), tokenizer)
    ids = torch.randint(3, 300, (1, 1999), generator=torch.Generator().manual_seed(7))
    short = collate(model, Alignment.for_model(model).align(DOCUMENTS[:1])[0])
    batch = long_batch(short, ids)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            nonlocal largest
            result = function(*arguments, **(keywords or {}))
            tensors = [part for part in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(part)]
            largest = max([largest, *(tensor.untyped_storage().nbytes() // 4 for tensor in tensors)])
            return result

    attentions, (attention_type,) = [], model.layers
    with Watch():
        facts = Surface().prepare(batch, attention_type)
        Surface().count(facts)
        Capture(model, "interface").run(
            batch,
            lambda a: attentions.append((a, Surface().observe(facts, a))),
            gradients=gradients,
            loss=lambda output: output.last_hidden_state.sin().sum(),
        )
    assert attention_type == "decoder"
    assert {type(a) for a, _ in attentions} == {FusedRows}
    assert largest < 1999 * 1999 // 4


def long_batch(like: Batch, ids: torch.Tensor) -> Batch:
    from dataclasses import replace

    real = torch.ones_like(ids, dtype=torch.bool)
    position = torch.arange(ids.shape[1])[None]
    tokens = replace(
        like.encoder, ids=ids, real=real, word=position, position=position, cls=~real, sep=~real, punctuation=~real
    )
    return replace(like, encoder=tokens, inputs={"input_ids": ids, "attention_mask": real.long()})


def test_a_term_that_nobody_announced_is_noticed(monkeypatch) -> None:
    """A model whose own function adds to the scores behind our back must not be measured as if it did not."""
    from transformers.models.bert import modeling_bert

    honest = modeling_bert.eager_attention_forward

    def biased(module, query, key, value, mask, scaling=None, **terms):
        return honest(module, query, key, value, mask, scaling=1.01 * scaling, **terms)

    model, batch = load("bert")
    monkeypatch.setattr(modeling_bert, "eager_attention_forward", biased)
    with pytest.raises(ModelError) as refused:
        observe(model, batch, fused=True)
    assert re.fullmatch(
        r"the outputs of layer 1 without its matrix of 'bert' differ by [\d.e-]+ from what the model computes by "
        r"itself \(at most [\d.e-]+ is allowed\), so its attention cannot be captured.",
        str(refused.value),
    )


def test_scores_too_large_for_float32_keep_their_matrix() -> None:
    """Without the matrix a weight is the exponential of a difference of rounded scores, and could be above 1."""
    module, tokenizer = tiny.make("mistral")
    with torch.no_grad():
        for layer in module.layers:
            layer.self_attn.q_proj.weight.mul_(100)
    model = Model.from_module(module, tokenizer, name="mistral")
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    attentions: list[Attention] = []
    outputs = Capture(model, "interface").run(batch, attentions.append, fused=True)
    assert {type(attention) for attention in attentions} == {DenseRows}
    reasons = {re.sub(r"of [\d,]+,", "of N,", way) for _, _, way in outputs.paths}
    assert reasons == {"with the matrix: scores of N, too large for float32 without it"}


def test_a_check_does_not_look_at_padding(monkeypatch) -> None:
    """A query of padding may see nothing but padding; what it adds up to says nothing of how exact the others are."""
    sizes = []

    def note(model: Model, size: float, tolerance: float | None = None) -> float:
        sizes.append(size)
        return find_bound(model, size, tolerance)

    monkeypatch.setattr("headscope.capture.forward.comparisons.find_bound", note)
    model, batch = load("modernbert")
    Capture(model, "interface").run(batch, lambda attention: None, fused=True)
    assert len(sizes) == 6  # outputs and entropies of three layers
    assert max(sizes) < 100
