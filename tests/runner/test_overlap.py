"""Two batches at a time: the tables of batches one after the other, whatever fails on the way."""

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import xarray as xr

import headscope
import second_device
import tiny
from headscope.capture.model.model import Model
from headscope.capture.model.turns import hold, is_held_here, list_configs
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.corpora import Document
from headscope.errors import ModelError
from headscope.runner import measure, overlap
from headscope.runner.checkpoint import bring_home
from headscope.runner.overlap import find_gpu, run_portions

DOCUMENTS = tiny.documents_with_roles(23)
PLAN = Plan(batch_tokens=30)
REDUCERS = ["surface", "relations", "coreference"]
PATIENCE = 30
"""Seconds after which a test that waits for another thread fails."""


def make(family: str = "bert") -> Model:
    module, tokenizer = tiny.make(family)
    return Model.from_module(module, tokenizer, name=family)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processor be taken for a GPU by those who decide how many batches are run at a time."""
    stream = Mock(spec=torch.cuda.Stream)
    monkeypatch.setattr(overlap, "find_gpu", lambda model: None if held(model) else torch.device("cpu"))
    monkeypatch.setattr(overlap, "_make_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())


def held(model: Model) -> bool:
    return is_held_here(list_configs(model.module))


def list_portions(model: Model) -> list[Portion]:
    return [*Stream(DOCUMENTS, (model,), PLAN)]


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_the_table_is_the_same_to_the_last_bit(gpu, monkeypatch, family: str) -> None:
    model = make(family)
    tables = [measure(model, DOCUMENTS, REDUCERS, plan=PLAN)]
    monkeypatch.setattr(overlap, "find_gpu", lambda model: None)
    tables.append(measure(model, DOCUMENTS, REDUCERS, plan=PLAN))
    xr.testing.assert_identical(*(table.drop_attrs(deep=False) for table in tables))
    ours, theirs = ({name: each for name, each in table.attrs.items() if name != "created"} for table in tables)
    assert ours == theirs


def test_two_portions_are_run_at_a_time_and_come_in_order(gpu) -> None:
    portions, both = list_portions(make())[:6], threading.Barrier(2, timeout=PATIENCE)
    slow = threading.Event()
    number = {id(portion): place for place, portion in enumerate(portions)}

    def run(portion: Portion) -> int:
        both.wait()
        place = number[id(portion)]
        if place % 2:
            slow.set()
        else:  # the first of each two ends last
            assert slow.wait(PATIENCE)
            slow.clear()
        return place

    assert [*run_portions(make(), portions, run, 30)] == [[place] for place in range(6)]


class Memory:
    """Memory for `tokens` tokens at a time, in all batches that are run together."""

    def __init__(self, tokens: int) -> None:
        self.tokens, self.taken, self.most, self.fails = tokens, 0, 0, 0
        self.lock = threading.Lock()
        self.together = threading.Barrier(2)

    def run(self, portion: Portion) -> int:
        ids = portion.batches[0].encoder.ids
        with self.lock:
            self.taken += ids.numel()
            self.most = max(self.most, self.taken)
            fits = self.taken <= self.tokens
        try:
            if not self.fails:
                self.together.wait(PATIENCE)
            if not fits:
                self.fails += 1
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return len(ids)
        finally:
            with self.lock:
                self.taken -= ids.numel()


def test_what_does_not_fit_beside_another_is_run_alone(gpu, caplog) -> None:
    model = make()
    portions = list_portions(model)
    largest = max(portion.batches[0].encoder.ids.numel() for portion in portions)
    memory = Memory(largest + 1)
    results = [*run_portions(model, portions, memory.run, 30)]
    assert results == [[len(portion.batches[0].documents)] for portion in portions]
    assert memory.fails in (1, 2)
    assert not caplog.records  # no batch was halved


def test_what_does_not_fit_alone_is_halved(gpu, caplog) -> None:
    model = make()
    portions = [*Stream(DOCUMENTS, (model,), Plan(batch_tokens=150))]
    sizes = [portion.batches[0].encoder.ids.shape for portion in portions]
    texts, length = sizes[0]
    assert texts > 2
    memory = Memory(texts * length - 1)
    results = [*run_portions(model, portions, memory.run, 150)]
    assert [sum(parts) for parts in results] == [rows for rows, _ in sizes]
    assert len(results[0]) > 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_text_that_does_not_fit_alone_is_named(gpu) -> None:
    model = make()
    memory = Memory(3)
    with pytest.raises(ModelError, match=r"the text '.+' of \d+ tokens alone needs more memory than there is"):
        next(run_portions(model, list_portions(model), memory.run, 30))


@pytest.mark.parametrize("place", [0, 1, 4])
def test_an_error_comes_after_the_results_before_it_and_no_thread_is_left(gpu, place: int) -> None:
    model = make()
    portions = list_portions(model)
    bad, results, threads = portions[place], list[list[int]](), threading.active_count()

    def run(portion: Portion) -> int:
        if portion is bad:
            raise ValueError("no such text")
        return 1

    with pytest.raises(ValueError, match="no such text"):
        results.extend(run_portions(model, portions, run, 30))
    assert threading.active_count() == threads
    results.clear()
    for parts in (iterator := run_portions(model, portions, lambda portion: 1, 30)):
        results.append(parts)
        iterator.close()  # as where the caller is interrupted
    assert results == [[1]]
    assert threading.active_count() == threads


def test_documents_that_are_not_finite_are_left_out_of_both(gpu, monkeypatch) -> None:
    module, tokenizer = tiny.make("bert")
    documents = [*DOCUMENTS, Document("odd", ("\u2603", "\u2603"))]
    number = tokenizer.unk_token_id
    assert not any((portion.batches[0].encoder.ids == number).any() for portion in list_portions(make()))
    with torch.no_grad():
        module.embeddings.word_embeddings.weight[number] = torch.nan
    model = Model.from_module(module, tokenizer, name="bert")
    table = measure(model, documents, ["surface"], plan=PLAN)
    monkeypatch.setattr(overlap, "find_gpu", lambda model: None)
    expected = measure(model, documents, ["surface"], plan=PLAN)
    assert table.attrs["skipped"] == expected.attrs["skipped"]
    assert table.attrs["documents"] == len(DOCUMENTS)
    np.testing.assert_array_equal(table["entropy"], expected["entropy"])


def test_within_edits_batches_are_run_one_after_the_other(gpu) -> None:
    """The block holds the configuration, for which other threads would wait for ever."""
    model = make()
    with headscope.disable(model, heads=["1-2"]):
        assert held(model)
        edited = measure(model, DOCUMENTS, ["surface"], plan=PLAN)
    assert not held(model)
    assert not np.array_equal(edited["entropy"], measure(model, DOCUMENTS, ["surface"], plan=PLAN)["entropy"])


def test_only_a_model_on_one_gpu_that_nobody_holds_reads_two_batches(monkeypatch) -> None:
    model = make()

    def place(*names: str) -> Model:
        return Mock(spec=Model, devices=tuple(map(torch.device, names)), module=model.module)

    assert find_gpu(place("cuda:1")) == torch.device("cuda:1")
    assert find_gpu(place("cpu")) is None
    assert find_gpu(place("cuda:0", "cuda:1")) is None
    with hold(list_configs(model.module)):
        assert find_gpu(place("cuda:1")) is None
        other = run_in_thread(lambda: is_held_here(list_configs(model.module)))
    assert other is False


def run_in_thread(function: Callable[[], bool]) -> bool:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(PATIENCE)
    return results[0]


@pytest.fixture
def sums() -> dict[tuple[str, ...], torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {
        ("a",): torch.rand(2, 3, 5, generator=generator).double(),
        ("b",): torch.tensor(7),
        ("c",): torch.rand(11, generator=generator).double(),
        ("d",): torch.rand(5, 7, generator=generator).double().mT,
        ("e",): torch.zeros(0, 2, dtype=torch.float64),
        ("f",): torch.arange(13),
    }


def test_sums_come_home_as_they_are(sums) -> None:
    expected = {key: value.clone() for key, value in sums.items()}
    with second_device.second_device():
        far = {key: value.to(second_device.DEVICE) if key != ("b",) else value for key, value in sums.items()}
        home = bring_home(far)
        assert [*home] == [*sums]
        for key, value in home.items():
            assert value.device.type == "cpu"
            assert value.dtype == expected[key].dtype
            assert torch.equal(value, expected[key])
