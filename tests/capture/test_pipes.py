"""A pipe among the files of a model is refused before a library waits for it."""

import json
import os
from pathlib import Path

import pytest
from safetensors import safe_open

import tiny
from headscope.capture.open.loading import load, read_identity
from headscope.errors import HeadscopeError
from mutations import ending


def put_pipe(path: Path) -> Path:
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    return path


def put_shard(model: Path) -> Path:
    """Name a file of weights in another folder, as an index may."""
    with safe_open(model / "model.safetensors", framework="pt") as tensors:
        places = dict.fromkeys(tensors.keys(), "parts/model.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (model / "model.safetensors").unlink()
    return put_pipe(model / "parts" / "model.safetensors")


def refuse(model: Path, pipe: Path, read=load) -> None:
    with ending(pipe, 10), pytest.raises(HeadscopeError) as refused:
        read(model)
    assert str(refused.value) == f"{pipe} is a device or a pipe; copy what it gives to a file, and name that file."


def test_in_place_of_the_weights(tmp_path: Path) -> None:
    model = tiny.save(tmp_path)
    for read in (load, read_identity):
        refuse(model, put_pipe(model / "model.safetensors"), read)


def test_in_place_of_weights_that_an_index_names(tmp_path: Path) -> None:
    model = tiny.save(tmp_path)
    refuse(model, put_shard(model))


def test_in_the_model_of_an_adapter(tmp_path: Path) -> None:
    base, adapter = tiny.save(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(base), "peft_type": "LORA"})
    )
    refuse(adapter, put_pipe(base / "config.json"))


def test_pipes_of_the_folder_in_which_a_command_runs_are_none_of_the_model(tmp_path: Path, monkeypatch) -> None:
    model = tiny.save(tmp_path / "elsewhere" / "model")
    here = tmp_path / "here"
    here.mkdir()
    put_pipe(here / "browser" / "socket")
    monkeypatch.chdir(here)
    assert load(model).name == str(model)
