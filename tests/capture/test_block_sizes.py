"""A GPU gets few large blocks: what it is handed does not grow with texts and lengths, and the numbers are the same."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import headscope
import tiny
from headscope.capture.model.block_sizes import SHARE, BlockSizes, find_free_memory
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan
from headscope.capture.rows import second_pass
from headscope.corpora import Document, Link
from headscope.reducers import REDUCERS
from headscope.runner import measure
from one_head import make_documents, make_model
from operations import Operations, Uncounted

GIB = 1 << 30
MEASURE = BlockSizes.measure
MOST = {("surface",): 60, ("surface", "relations"): 120}
"""Operations a layer beyond those of the bare model."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The blocks of a GPU that has 80 GiB free, on the processor."""
    pretend(monkeypatch, 80 * GIB)


def pretend(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (free, 80 * GIB))
    monkeypatch.setattr(BlockSizes, "measure", lambda device: MEASURE(torch.device("cuda:0")))


def test_the_blocks_of_a_gpu_follow_from_its_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch holds and does not use is free; blocks on a processor are always the same."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (6 * GIB, 80 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device=None: 5 * GIB)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device=None: 3 * GIB)
    device = torch.device("cuda:0")
    assert find_free_memory(device) == 8 * GIB
    assert {*vars(MEASURE(device)).values()} == {8 * GIB // SHARE}
    assert MEASURE(torch.device("cpu")) == MEASURE(torch.device("meta")) == BlockSizes()


def count_a_layer(reducers: tuple[str, ...], texts: int, length: int) -> float:
    """The operations of one layer in a batch of a run beyond those of the bare model; not those of a run's first."""

    def count(layers: int, batches: int) -> int:
        model, documents = make_model(layers), make_documents(texts, length, batches)
        with Operations() as operations:
            table = headscope.measure(
                model, documents, reducers, permutations=0, batch_tokens=texts * length, progress=False
            )
        assert table.attrs["tokens"] == batches * texts * length
        return operations.count

    def count_bare(layers: int) -> int:
        with Operations() as operations, torch.inference_mode():
            make_model(layers).module(torch.ones(texts, length, dtype=torch.long), use_cache=False)
        return operations.count

    one, two = (count(layers, 2) - count(layers, 1) - count_bare(layers) for layers in (1, 2))
    return two - one


@pytest.mark.parametrize("reducers", MOST, ids=" ".join)
def test_what_is_dispatched_grows_with_neither_texts_nor_length(reducers: tuple[str, ...], gpu) -> None:
    shapes = [(8, 32), (2, 128), (1, 1600)]
    counts = [count_a_layer(reducers, *shape) for shape in shapes]
    assert counts == [counts[0]] * len(shapes)
    assert counts[0] <= MOST[reducers]


def test_with_the_kernel_no_more_is_dispatched(monkeypatch: pytest.MonkeyPatch, gpu) -> None:
    """As on a GPU; what Triton's interpreter dispatches is not counted."""
    monkeypatch.setattr("headscope.capture.rows.gpu._try_kernel", lambda device, size, dtype: second_pass)
    for name in ("add_up", "answer"):
        monkeypatch.setattr(second_pass, name, Uncounted(getattr(second_pass, name)))
    counts = [count_a_layer(("surface",), *shape) for shape in ((3, 16), (2, 64))]
    assert counts == [counts[0]] * 2
    assert counts[0] <= MOST["surface",]


@pytest.mark.full
@pytest.mark.parametrize(
    ("reducers", "texts", "length"),
    [
        *((reducers, *shape) for reducers in MOST for shape in ((8, 128), (32, 512))),
        (("surface",), 1, 8192),
        (("surface", "relations"), 1, 4096),  # longer texts are left out
    ],
)
def test_what_is_dispatched_for_long_texts(reducers: tuple[str, ...], texts: int, length: int, gpu) -> None:
    assert count_a_layer(reducers, texts, length) <= MOST[reducers]


@pytest.mark.parametrize("free", [80 * GIB, 1 << 14, 1 << 20], ids=["large", "tiny", "small"])
@pytest.mark.parametrize("family", ["bert", "llama", "mistral", "bart"])
@pytest.mark.parametrize("fused", [False, True])
def test_the_numbers_are_those_of_the_processor(
    family: str, free: int, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one block, in some, and in blocks of a few numbers."""
    model, reducers = Model.from_module(*tiny.make(family)), ["surface", "relations"]
    if family in ("llama", "mistral"):
        reducers += ["induction", "sinks", "streaming", "nearby_tokens", "sparse_shapes", "average_map"]
    words = ("the", "dog", "sees", "a", "cat", ".")
    documents = [
        Document(str(number), words * (number % 5 + 1), (Link(0, 1, "det"), Link(2, 1, "nsubj"))) for number in range(9)
    ]
    if fused:  # those that want a whole layer have its matrix
        reducers = [name for name in reducers if REDUCERS[name].scope == "rows"]
    plan = Plan(fused=fused)
    expected = measure(model, documents, reducers, plan=plan)
    pretend(monkeypatch, free)
    table = measure(model, documents, reducers, plan=plan)
    for name, values in expected.data_vars.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(table[name], values, rtol=1e-4, atol=2e-5, err_msg=str(name))
        else:
            np.testing.assert_array_equal(table[name], values, err_msg=str(name))


def test_a_long_text_has_its_matrix_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is measured without it, in large blocks, where there is not."""
    documents, paths = make_documents(1, 1600, 1), []
    tables = []
    for free in (None, 80 * GIB, 1600**2 * SHARE // 2):
        with pytest.MonkeyPatch.context() as patch:
            if free is not None:
                pretend(patch, free)
            tables.append(measure(make_model(1), documents, ["surface"]))
        paths += [*json.loads(tables[-1].attrs["paths"])]
    assert paths == [
        "decoder 1 without the matrix: causal",
        "decoder 1 with the matrix: it fits into memory, and there is no kernel without it",
        "decoder 1 without the matrix: causal",
    ]
    for table in tables[1:]:
        for name, values in tables[0].data_vars.items():
            np.testing.assert_allclose(table[name], values, rtol=1e-4, atol=1e-5, err_msg=str(name))
