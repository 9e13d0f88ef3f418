"""Batches that do not fit into memory are halved: tables are what they are where they fit, and nothing counts twice."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr

import headscope
import tiny
from headscope.capture.model import forward
from headscope.capture.model.forward import is_out_of_memory
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.passes import room as rooms
from headscope.capture.passes.projection import find_projections
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import BATCH_TOKENS, Plan, Stream
from headscope.corpora import read
from headscope.errors import ModelError
from headscope.intervene.ablation import list_ablations, list_units
from headscope.intervene.collect import average_outputs
from headscope.intervene.edit import capture_model, collate_sample
from headscope.intervene.effect import Outcomes, measure_outcomes
from headscope.intervene.labels import prepare_task
from headscope.intervene.likelihood import compute_likelihoods
from headscope.intervene.ways import Ways
from headscope.learn.map_sample import MapName, read_maps
from headscope.runner import Run, measure
from headscope.runner.example_texts import read_texts
from planted_task import make_task, plant_task

CORPUS = "grammar:29"
REDUCERS = ["surface", "relations", "coreference"]
OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

ERRORS = {
    "torch": OUT_OF_MEMORY,
    "the processor": RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"),
    "another back end": RuntimeError("MPS backend out of memory (MPS allocated: 1.00 GB)"),
    "Python": MemoryError(),
}


class Memory:
    """Pretend that memory holds `tokens` tokens at once, and note the sizes of batches."""

    def __init__(self, tokens: float, error: Exception = OUT_OF_MEMORY) -> None:
        self.tokens, self.error = tokens, error
        self.sizes: list[tuple[int, ...]] = []
        self.fits: list[bool] = []

    def take(self, inputs: Any) -> None:
        size = tuple(inputs["input_ids"].shape)
        self.sizes.append(size)
        self.fits.append(size[0] * size[1] <= self.tokens)
        if not self.fits[-1]:
            raise self.error


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Memory]:
    """A function that gives all models so much memory."""

    def install(tokens: float, error: Exception = OUT_OF_MEMORY) -> Memory:
        memory = Memory(tokens, error)

        @contextmanager
        def count(module: Any) -> Iterator[None]:
            hook = module.register_forward_pre_hook(lambda _, args, inputs: memory.take(inputs), with_kwargs=True)
            try:
                yield
            finally:
                hook.remove()

        monkeypatch.setattr(forward, "run_uncompiled", count)
        return memory

    return install


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return load(tiny.save(tmp_path / "model"))


def differ_by_rounding(table: xr.Dataset, expected: xr.Dataset) -> None:
    assert {*table.data_vars} == {*expected.data_vars}
    for name, values in expected.data_vars.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(table[name], values, rtol=1e-4, atol=1e-6, err_msg=str(name))
        else:
            np.testing.assert_array_equal(table[name], values, err_msg=str(name))
    for count in {"documents", "words", "tokens", "skipped"} & expected.attrs.keys():
        assert table.attrs[count] == expected.attrs[count]


@pytest.mark.parametrize("error", ERRORS)
def test_a_batch_that_does_not_fit_is_run_in_parts(error: str, model: Model, limit, caplog) -> None:
    documents = read(CORPUS)
    expected = measure(model, documents, REDUCERS)
    memory = limit(260, ERRORS[error])
    table = measure(model, documents, REDUCERS)
    assert 1 < memory.fits.count(False) < 9
    differ_by_rounding(table, expected)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == memory.fits.count(False)
    rows, length = memory.sizes[memory.fits.index(False)]
    assert said[0].startswith(f"{model.name}: a batch of {rows * length:,} tokens does not fit into memory (")
    assert said[0].endswith(f"); from here on batches have {rows // 2 * length:,} tokens at most.")
    # Once a size has failed, none so large is tried again.
    largest = [rows * length for rows, length in memory.sizes]
    failures = [place for place, fits in enumerate(memory.fits) if not fits]
    assert all(largest[before] > largest[after] for before, after in pairwise(failures))


def test_parts_are_those_that_a_smaller_batch_would_have(model: Model, limit) -> None:
    """Texts of one length halve without other padding, and the sums are the same to the last bit."""
    documents = [*read([["the", "dog", "sees", "a", "cat", "."]] * 16)]
    reducers = ["surface"]
    expected = measure(model, documents, reducers, plan=Plan(batch_tokens=32))
    limit(40)
    table = measure(model, documents, reducers, plan=Plan(batch_tokens=128))
    assert table.attrs["documents"] == 16
    for name, values in expected.data_vars.items():
        np.testing.assert_allclose(table[name], values, rtol=1e-12, err_msg=str(name))


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_the_first_passes_that_fail_leave_nothing_behind(
    failures: int, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reducer that fails when others have added already: the whole batch is begun again."""
    from headscope.reducers import REDUCERS as ALL

    documents = read(CORPUS)
    expected = measure(model, documents, ["surface", "relations"])
    kind, left = ALL["relations"], [failures]
    observe = kind.observe

    def fail(self: Any, facts: Any, *attentions: Any) -> Any:
        if left[0] and attentions[0].layer == 2:
            left[0] -= 1
            raise OUT_OF_MEMORY
        return observe(self, facts, *attentions)

    monkeypatch.setattr(kind, "observe", fail)
    differ_by_rounding(measure(model, documents, ["surface", "relations"]), expected)
    assert left == [0]


def test_texts_that_are_left_out_count_once(tmp_path: Path, limit) -> None:
    """Documents whose outputs are not finite lie in one part, those that were skipped before in the first."""
    module, tokenizer = tiny.make("bert")
    with torch.no_grad():
        word = tokenizer.convert_tokens_to_ids("dog")
        module.get_input_embeddings().weight[word] = torch.nan
    model = Model.from_module(module, tokenizer)
    texts = [["the", "cat", "."]] * 37 + [["the", "dog", "."]] * 3 + [["a", "cat", "sees", "the", "cat", "."]] * 7
    documents, plan = [*read([*texts, ["a"] * 60])], Plan(max_tokens=50)
    expected = measure(model, documents, "surface", plan=plan)
    limit(24)
    table = measure(model, documents, "surface", plan=plan)
    skipped = json.loads(table.attrs["skipped"])
    assert sorted(skipped.values()) == [1, 3]
    assert skipped == json.loads(expected.attrs["skipped"])
    differ_by_rounding(table, expected)


def test_a_run_that_was_killed_goes_on_at_the_same_batch_with_less_memory(
    model: Model, limit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, plan, sums = read(CORPUS), Plan(batch_tokens=520), tmp_path / "sums.npz"
    expected = measure(model, documents, REDUCERS, plan=plan)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headscope.runner.local.SAVE_EVERY", 0.0)
    limit(300)
    with pytest.raises(KeyboardInterrupt):
        measure(model, documents, REDUCERS, plan=plan, checkpoint=sums, progress=stop)
    memory = limit(140)
    table = measure(model, documents, REDUCERS, plan=plan, checkpoint=sums, resume=True)
    assert False in memory.fits
    differ_by_rounding(table, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_text_that_does_not_fit_alone_is_named(dtype: torch.dtype, model: Model, limit) -> None:
    model.module.to(dtype)
    documents = [*read([["the", "cat", "."]] * 3 + [["a", "cat"] * 20])]
    length = next(iter(Stream(documents, (model,)))).batches[0].encoder.length
    limit(30)
    with pytest.raises(ModelError) as refused:
        measure(model, documents, "surface")
    advice = "lower `max_tokens`" + (" or set `dtype` to bfloat16" if dtype == torch.float32 else "")
    assert str(refused.value) == (
        f"the text {documents[3].id!r} of {length} tokens alone needs more memory than there is (CUDA out of memory. "
        f"Tried to allocate 2.00 GiB); {advice}."
    )
    assert length > 30


def test_the_room_of_a_gpu_is_found_from_its_free_memory(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = {torch.device("cuda:0"): 1 << 30, torch.device("cuda:1"): 1 << 35}
    monkeypatch.setattr(Model, "devices", property(lambda _: (*gpus,)))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (gpus[device], 1 << 36))
    free = 1 << 30
    (small, large) = (Room.measure(model, None).tokens, None)
    assert small == int(free * rooms.USED) // rooms.estimate_token_bytes(model)
    free = gpus[torch.device("cuda:0")] = 1 << 34
    large = Room.measure(model, None).tokens
    assert large is not None
    assert 15 < large / small < 17
    assert Room.measure(model, 512).tokens is None


def test_a_run_is_the_same_whether_the_tokens_of_its_batches_were_asked_for_or_are_those_of_the_device(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a run that was killed goes on, whoever names the number."""

    def identify(plan: Plan) -> str:
        return str(Run.open(model, read(CORPUS), ["surface"], plan=plan).identity["plan"])

    assert identify(Plan()) == identify(Plan(batch_tokens=BATCH_TOKENS)) != identify(Plan(batch_tokens=512))
    monkeypatch.setattr(Stream, "batch_tokens", 512)
    assert identify(Plan()) == identify(Plan(batch_tokens=512))


def test_other_errors_are_raised_as_they_are(model: Model, limit) -> None:
    memory = limit(0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(ModelError, match=r"cannot be run on text .* mat1 and mat2"):
        measure(model, read(CORPUS), "surface")
    assert len(memory.sizes) == 1
    assert not is_out_of_memory(ValueError("out of memory"))
    known = ModelError("too large")
    known.__cause__ = OUT_OF_MEMORY
    assert is_out_of_memory(known)
    assert not is_out_of_memory(ModelError("too large"))


def test_the_effects_of_heads_are_the_same_in_parts(limit, tmp_path: Path) -> None:
    """A batch fails within the passes of some head; a killed run goes on after its last whole batch."""
    model, task = plant_task([(2, 3)]), make_task()
    settings: dict[str, Any] = {
        "how": ["uniform", "mean", "resample"], "heads": "2-3,1-1", "placebos": 3, "progress": False
    }  # fmt: skip
    expected = headscope.measure_effects(model, task, tmp_path / "whole", **settings)
    memory = limit(100)
    table = headscope.measure_effects(model, task, tmp_path / "parts", **settings)
    assert memory.fits.count(False) > 1
    differ_by_rounding(table, expected)


@pytest.mark.parametrize("failing", [0, 1, 2, 5])
def test_an_ablation_that_fails_is_run_again_and_those_before_it_are_not(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = plant_task([(2, 3)])
    evaluation = prepare_task(model, make_task(), batch_tokens=200)
    ablations = [*list_ablations(list_units(model, ["2-3", "1-1", "3-2"]), ["uniform", "zero"], {})]
    capture = capture_model(model)
    projections = find_projections(capture, collate_sample(model))

    def run() -> Outcomes:
        outcomes = Outcomes.empty(evaluation, len(ablations))
        steps = [
            outcomes.steps for _ in measure_outcomes(capture, evaluation, ablations, Ways(), projections, outcomes)
        ]
        assert steps == sorted(set(steps))
        assert steps[-1] == len(evaluation.batches) * (len(ablations) + 1)
        return outcomes

    expected, quantify, calls = run(), evaluation.quantify, [0]

    def fail(batch: Any, logits: Any, whole: Any) -> Any:
        calls[0] += 1
        if calls[0] == failing + 1:
            raise OUT_OF_MEMORY
        return quantify(batch, logits, whole)

    evaluation = replace(evaluation, quantify=fail)
    outcomes = run()
    assert calls[0] > len(evaluation.batches) * (len(ablations) + 1)
    assert outcomes.tokens == expected.tokens
    for name in ("whole", "disabled", "squared_norms"):
        np.testing.assert_allclose(getattr(outcomes, name), getattr(expected, name), rtol=1e-4, atol=1e-5)


def test_sentences_texts_maps_and_mean_outputs_are_the_same_in_parts(limit, tmp_path: Path) -> None:
    base, tokenizer = tiny.make("bert")
    masked = Model.from_module(hf.BertForMaskedLM(base.config).eval(), tokenizer)
    model, documents = Model.from_module(base, tokenizer), [*read("grammar:17")]
    sentences = [" ".join(document.words) for document in documents if len(document.words) < 12]
    names = [MapName(document.id, 2, 3) for document in documents]

    def read_all() -> list[np.ndarray]:
        texts = read_texts(model, documents, Plan())
        return [
            np.array([each.log_probability for each in compute_likelihoods(masked, sentences)]),
            *(text.weights["encoder"] for text in texts),
            *(each.weights for each in read_maps(model, documents, names)),
            *(values for values in average_outputs(model, {("encoder", 2): (0, 1)}, documents).pooled.values()),
        ]

    expected = read_all()
    memory = limit(300)
    parts = read_all()
    assert memory.fits.count(False) > 3
    assert len(parts) == len(expected)
    for ours, theirs in zip(parts, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-3)
