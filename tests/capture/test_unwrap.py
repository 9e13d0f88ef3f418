"""A model that is compiled, distributed, in a pipeline or in a sentence encoder is measured as the model in it."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers as hf
import xarray as xr
from torch import nn

import headed
import headscope
import tiny
from headscope.capture.model.configuration import read_config
from headscope.capture.open.generation_settings import read_generation_settings
from headscope.capture.open.loading import load
from headscope.corpora.document import Document
from headscope.errors import ModelError

# What torch and accelerate tell about their own insides.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

DOCUMENTS = [Document(document.id, document.words) for document in tiny.documents(5)]


class FirstModule(nn.Module):
    """What a SentenceTransformer begins with."""

    def __init__(self, module: nn.Module, words: Any) -> None:
        super().__init__()
        self.auto_model, self.tokenizer = module, words


class Scorer(nn.Module):
    """A CrossEncoder, which holds a model with its head."""

    def __init__(self, module: nn.Module, words: Any) -> None:
        super().__init__()
        self.model, self.tokenizer = module, words


WITH_TOKENIZER: dict[str, Callable[[Any, Any], Any]] = {
    "a pipeline": lambda module, words: hf.pipeline("feature-extraction", model=module, tokenizer=words, device="cpu"),
    "a sentence encoder": lambda module, words: nn.Sequential(FirstModule(module, words), nn.Identity()),
    "a cross-encoder": Scorer,
    "a pipeline of a compiled model": lambda module, words: SimpleNamespace(
        model=torch.compile(module, backend="eager"), tokenizer=words
    ),
}
WITHOUT: dict[str, Callable[[Any], Any]] = {
    "compiled": lambda module: torch.compile(module, backend="eager"),
    "distributed": nn.DataParallel,
    "both": lambda module: torch.compile(nn.DataParallel(module), backend="eager"),
}


def measure(model: Any) -> xr.Dataset:
    return headscope.measure(model, DOCUMENTS, "surface")


@pytest.mark.parametrize("kind", WITH_TOKENIZER)
def test_a_wrapper_with_a_tokenizer_is_its_model(kind: str) -> None:
    module, words = tiny.make("bert")
    wrapper, expected = WITH_TOKENIZER[kind](module, words), measure((module, words))
    xr.testing.assert_equal(measure(wrapper).drop_attrs(), expected.drop_attrs())
    model = load(wrapper)
    assert model.weights_sha256 == expected.attrs["weights_sha256"]
    assert model.module is module
    assert read_generation_settings(wrapper) == read_generation_settings(module)


@pytest.mark.parametrize("kind", WITHOUT)
def test_a_wrapper_without_a_tokenizer_is_its_model(kind: str) -> None:
    module, words = tiny.make("bert")
    table, expected = measure((WITHOUT[kind](module), words)), measure((module, words))
    xr.testing.assert_equal(table.drop_attrs(), expected.drop_attrs())
    assert table.attrs["weights_sha256"] == expected.attrs["weights_sha256"]


@pytest.mark.parametrize("where", ["the model", "a layer", "a layer in a wrapper"])
def test_compiled_parts_run_as_they_are_written(where: str) -> None:
    module, words = tiny.make("bert")
    expected = measure(tiny.make("bert"))
    if where == "the model":
        module.compile(backend="eager")
    elif where == "a layer":
        module.encoder.layer[1].compile(backend="eager")
    else:
        module.encoder.layer[1] = torch.compile(module.encoder.layer[1], backend="eager")
    xr.testing.assert_allclose(measure((module, words)).drop_attrs(), expected.drop_attrs(), atol=1e-5)


def test_the_head_of_a_pipeline_is_kept_where_a_task_is_named() -> None:
    module, words = headed.make("bert", "classification")
    pipeline = hf.pipeline("text-classification", model=module, tokenizer=words, device="cpu")
    assert load(pipeline, task="classification").module is module
    assert load(pipeline).module is module.base_model


def test_another_tokenizer_is_that_which_is_named() -> None:
    module, words = tiny.make("bert")
    assert load(Scorer(module, None), words).module is module
    assert load((Scorer(module, tiny.slow_tokenizer()), words)).module is module


def test_other_things_are_no_models() -> None:
    with pytest.raises(ModelError, match=r"^the model is of type Linear; give "):
        load(nn.Linear(2, 3), tiny.tokenizer(tiny.BERT))
    with pytest.raises(ModelError, match=r"^the model is of type Sequential; give "):
        load(nn.Sequential(), tiny.tokenizer(tiny.BERT))


KERNEL = "kernels-community/flash-attn"


@pytest.mark.parametrize("name", [KERNEL, f"paged|{KERNEL}:forward", "flash_attention_2"])
@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_no_kernel_that_a_configuration_names_is_fetched(key: str, name: str, tmp_path: Path) -> None:
    expected, file = measure(tiny.save(tmp_path, "llama")), tmp_path / "config.json"
    file.write_text(file.read_text().replace("{", f'{{"{key}": "{name}", ', 1))
    assert load(tmp_path).module.config._attn_implementation == "sdpa"
    xr.testing.assert_equal(measure(tmp_path).drop_attrs(), expected.drop_attrs())


def test_neither_is_one_of_experts_or_of_a_part(tmp_path: Path) -> None:
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7}
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(**sizes, vocab_size=31), vision_config=hf.CLIPVisionConfig(**sizes)
    )
    config.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    content = json.loads(file.read_text())
    content |= {"attn_implementation": KERNEL, "experts_implementation": "sonicmoe"}
    file.write_text(json.dumps(content))
    plain = hf.AutoConfig.from_pretrained(tmp_path).text_config
    assert (plain._attn_implementation, plain._experts_implementation) == (KERNEL, "sonicmoe")
    read = read_config(str(tmp_path)).text_config
    assert (read._attn_implementation, read._experts_implementation) == (None, None)
