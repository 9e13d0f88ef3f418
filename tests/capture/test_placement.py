"""On which device a model is run, and in which numerical type."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import transformers as hf
from torch import nn

import headscope
import tiny
from headscope.capture.model import placement
from headscope.capture.model.device_names import AUTO, DTYPES
from headscope.capture.open.loading import load
from headscope.capture.open.untrained import untrained_model
from headscope.commands.measure.request import Measure
from headscope.errors import HeadscopeError, ModelError
from headscope.identity import REMARKS
from headscope.runner.provenance import identify_model
from interruptions import interrupt_measuring

GIB = 1 << 30
MOVE = nn.Module.to


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.save(tmp_path / "model")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that lets torch report GPUs, which no tensor can be put on."""

    def install(*each: tuple[tuple[int, int], int], triton: bool = True, error: Exception | None = None) -> None:
        def number(device: object) -> int:
            return torch.device(str(device)).index or 0

        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(each))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(each))
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: each[number(device)][0])
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (each[number(device)][1], 80 * GIB))
        monkeypatch.setattr(placement, "find_spec", lambda name: SimpleNamespace() if triton else None)
        monkeypatch.setattr(placement, "try_device", Mock(side_effect=error))

    return install


CHOICES: dict[str, tuple[dict[str, Any], list[Any], tuple[str, str]]] = {
    "none": ({}, [], ("cpu", "")),
    "one that works": ({}, [((9, 0), 7 * GIB)], ("cuda:0", "")),
    "the least that compiles": ({}, [((8, 0), 7 * GIB)], ("cuda:0", "")),
    "an old one": (
        {}, [((7, 0), 7 * GIB)],
        ("cpu", "cuda:0 is not used, since it has compute capability 7.0, and Triton needs 8.0"),
    ),
    "no Triton": (
        {"triton": False}, [((9, 0), 7 * GIB)], ("cpu", "cuda:0 is not used, since Triton is not installed")
    ),
    "a full one": (
        {}, [((9, 0), GIB)],
        ("cpu", "cuda:0 is not used, since 1.0 GiB of its memory are free, and the model needs 3.5"),
    ),
    "just enough": ({}, [((9, 0), 3 * GIB + GIB // 2)], ("cuda:0", "")),
    "a broken one": (
        {"error": RuntimeError("no kernel image\nfor this GPU")}, [((9, 0), 7 * GIB)],
        ("cpu", "cuda:0 is not used, since it does not work (no kernel image)"),
    ),
    "the second of two": ({}, [((9, 0), GIB), ((9, 0), 7 * GIB)], ("cuda:1", "")),
    "neither of two": (
        {}, [((7, 5), 7 * GIB), ((9, 0), GIB)],
        (
            "cpu", "cuda:0 is not used, since it has compute capability 7.5, and Triton needs 8.0; cuda:1 is not used, "
            "since 1.0 GiB of its memory are free, and the model needs 3.5",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHOICES)
def test_the_gpu_is_used_if_there_is_one_that_works(case: str, gpus: Callable[..., None]) -> None:
    how, each, chosen = CHOICES[case]
    gpus(*each, **how)
    assert placement.choose_device(AUTO, 3 * GIB) == chosen
    for named in ("cpu", "cuda", "cuda:1"):
        assert placement.choose_device(named, 3 * GIB) == (named, "")


def test_why_a_gpu_is_not_used_is_said_and_stands_in_the_table(
    folder: Path, gpus: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    gpus(((7, 0), 7 * GIB))
    reason = "cuda:0 is not used, since it has compute capability 7.0, and Triton needs 8.0"
    table = headscope.measure(folder, "grammar:3", "surface", progress=False)
    assert table.attrs["device"] == "cpu"
    assert table.attrs["gpu_unused"] == reason
    assert [record.getMessage() for record in caplog.records] == [f"{folder} runs on the processor: {reason}."]


def test_where_there_is_no_gpu_nothing_is_said_of_it(folder: Path, caplog: pytest.LogCaptureFixture, gpus) -> None:
    gpus()
    table = headscope.measure(folder, "grammar:3", "surface", progress=False)
    assert table.attrs["device"] == "cpu"
    assert not REMARKS & table.attrs.keys()
    assert not caplog.records


@pytest.mark.parametrize("fails", [False, True], ids=["fits", "does not fit"])
def test_a_gpu_whose_memory_is_full_after_all_is_left_again(
    fails: bool, folder: Path, gpus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    moved = []

    def move(module: nn.Module, *where: Any, **how: Any) -> nn.Module:
        moved.append(str(where[0]))
        if str(where[0]).startswith("cuda"):
            if fails:
                raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")
            return module  # there is no GPU
        return MOVE(module, *where, **how)

    gpus(((9, 0), 7 * GIB))
    monkeypatch.setattr(nn.Module, "to", move)
    loaded = load(folder)
    reason = "cuda:0 is not used, since the model cannot be put there (CUDA out of memory)"
    assert moved == (["cuda:0", "cpu"] if fails else ["cuda:0"])
    assert loaded.gpu_unused == (reason if fails else "")
    said = f"{folder} runs on the processor: {reason}." if fails else f"{folder} runs on the GPU cuda:0."
    assert [record.getMessage() for record in caplog.records] == [said]

    if fails:
        monkeypatch.setattr("headscope.capture.open.loading.refuse_device", lambda name, device: None)
        with pytest.raises(ModelError) as refused:
            load(folder, device="cuda")
        assert str(refused.value) == (
            f"{str(folder)!r} cannot be put on the device 'cuda' (CUDA out of memory); give `dtype` bfloat16, a GPU "
            "with more free memory, or cpu."
        )


@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_a_gpu_that_is_named_and_is_not_there_is_refused_before_weights_are_read(
    device: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hf.AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("weights were read"))
    with pytest.raises(ModelError) as refused:
        load(folder, device=device)
    assert re.fullmatch(
        rf"{re.escape(repr(str(folder)))} cannot be put on the device '{device}' \(.*\); give cpu, or a GPU that is "
        r"there\.",
        str(refused.value),
    )


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_a_gpu_gives_the_numbers_of_the_processor(folder: Path, dtype: str | None) -> None:
    ours, theirs = (
        headscope.measure(
            folder, "grammar:29", ["surface", "relations"], permutations=0, device=device, dtype=dtype, progress=False
        )
        for device in (AUTO, "cpu")
    )
    assert ours.attrs["device"] == "cuda:0"
    assert theirs.attrs["device"] == "cpu"
    for name in ("mass_previous", "entropy"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-4 if dtype is None else 5e-2)


def test_a_reason_is_no_part_of_the_identity_of_a_run(
    folder: Path, gpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The free memory of a GPU differs from one shard to the next, and when a run goes on."""
    gpus()
    expected = headscope.measure(folder, "grammar:29", "surface", batch_tokens=23, progress=False)
    shards = [tmp_path / "1.npz", tmp_path / "2.npz"]
    for number, (free, path) in enumerate(zip((1, 2), shards, strict=True), start=1):
        gpus(((9, 0), free))
        headscope.measure_shard(folder, "grammar:29", "surface", f"{number}/2", out=path, progress=False)
    assert headscope.merge(shards).attrs["documents"] == 29

    out = tmp_path / "heads.nc"
    interrupt_measuring(monkeypatch, folder, "grammar:29", out=out, batch_tokens=23)
    gpus(((7, 0), GIB))
    table = headscope.measure(folder, "grammar:29", "surface", out=out, batch_tokens=23, resume=True, progress=False)
    assert table.identical(expected.assign_attrs(table.attrs))
    assert "7.0" in table.attrs["gpu_unused"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_model_runs_in_the_type_that_is_asked_for(family: str, dtype: str, tmp_path: Path, caplog) -> None:
    folder = tiny.save(tmp_path, family)
    expected = headscope.measure(folder, "grammar:29", ["surface", "relations"], permutations=0, progress=False)
    caplog.clear()
    table = headscope.measure(
        folder, "grammar:29", ["surface", "relations"], permutations=0, progress=False, dtype=dtype
    )
    assert table.attrs["dtype"] == dtype
    assert identify_model(load(folder, dtype=dtype))["dtype"] == dtype
    for name, values in expected.data_vars.items():
        assert table[name].dtype == values.dtype
    near = {"float32": 0.0, "bfloat16": 2e-2, "float16": 2e-3}[dtype]
    for name in ("mass_previous", "entropy"):
        differences = np.abs(table[name].values - expected[name].values)
        assert differences.max() <= near * max(1, expected[name].values.max())
        assert dtype == "float32" or differences.max() > 0
    said = f"{folder} runs in {dtype} on the processor, which is slower there than float32."
    assert {record.getMessage() for record in caplog.records} == ({said} if dtype != "float32" else set())


def test_sums_in_half_precision_lose_no_counts(tmp_path: Path) -> None:
    """Above 256 a number of bfloat16 no longer grows by 1: counts and sums must have other types."""
    folder = tiny.save(tmp_path)
    table, same = (
        headscope.measure(folder, "grammar:150", "relations", permutations=0, progress=False, dtype=dtype)
        for dtype in ("bfloat16", "float32")
    )
    assert table.attrs["words"] == same.attrs["words"] > 256
    counts = [name for name in same.data_vars if same[name].attrs["units"] == "links" and "head" not in same[name].dims]
    assert max(int(same[name].max()) for name in counts) > 256
    for name in counts:
        assert table[name].identical(same[name])


def test_a_type_is_declared_once_and_recorded(folder: Path, tmp_path: Path) -> None:
    assert Measure.options["dtype"].recorded
    out = tmp_path / "heads.nc"
    table = headscope.measure(folder, "grammar:13", "surface", out=out, dtype="bfloat16", progress=False)
    again = headscope.rerun(out, progress=False)
    assert not again.differing
    assert again.table.attrs["dtype"] == table.attrs["dtype"] == "bfloat16"
    other = headscope.rerun(out, dtype="float32", progress=False)
    assert other.differing
    assert other.table.attrs["dtype"] == "float32"
    assert untrained_model(load(folder, dtype="float16")).module.dtype == torch.float16


@pytest.mark.full
def test_an_atlas_in_half_precision_is_explored_and_checked_in_it(folder: Path, tmp_path: Path) -> None:
    atlas = tmp_path / "atlas"
    headscope.atlas(
        folder, "grammar:13", atlas, permutations=0, map_documents=0, examples=0, progress=False, dtype="float16"
    )
    with headscope.explore(atlas, no_browser=True) as explorer:  # another type is refused, as other weights are
        assert not explorer.notes
    with pytest.raises(HeadscopeError, match="in its numerical type; name the model"):
        headscope.explore(atlas, no_browser=True, dtype="float32")
    checked = headscope.check(folder, atlas, every=True, progress=False)
    assert not checked.table.attrs["differs_in"]


def test_a_loaded_model_stays_as_it_is(folder: Path) -> None:
    module, tokenizer = tiny.make("bert")
    pair, model = (module, tokenizer), load(folder)
    for loaded in (pair, model):
        assert load(loaded, dtype="float32").module.dtype == torch.float32
        with pytest.raises(ModelError) as refused:
            load(loaded, dtype="bfloat16")
        assert str(refused.value) == (
            f"the model {load(loaded).name!r} is loaded already, in float32, and `dtype` is 'bfloat16'; leave it out, "
            "or convert the model before, as with model.to(torch.bfloat16)."
        )


def test_a_type_in_which_no_model_is_run_is_refused(folder: Path, wrong_types: None) -> None:
    with pytest.raises(ModelError) as refused:
        load(folder, dtype="float8_e4m3fn")
    assert str(refused.value) == (
        "a model is not run in the numerical type 'float8_e4m3fn'; give float32, bfloat16, float16."
    )
    with pytest.raises(HeadscopeError) as refused:
        headscope.measure(folder, "grammar:3", "surface", dtype="float64")
    assert str(refused.value) == ("`dtype` is 'float64' (did you mean float16?); give float32, bfloat16 or float16.")
