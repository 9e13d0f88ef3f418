"""Adapters such as LoRA: weights that were trained in addition to a model's weights, in a folder that PEFT wrote."""

import hashlib
import importlib
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from headscope.capture.model.parameters import hash_parameters
from headscope.capture.model.unwrap import unwrap
from headscope.capture.model.weights import hash_files, quiet
from headscope.errors import ModelError, first_line

WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
"""The files that PEFT writes the weights of an adapter to."""


def attach_adapter(module: PreTrainedModel, folder: Path, base: str) -> frozenset[str]:
    """Load the adapter in a folder into the model that it was trained for, whose name is `base`.

    Returns:
        The names of the modules that the adapter replaces as a whole, such as a classifier.

    Raises:
        ModelError: The adapter belongs to another model, is incomplete, or consists of prompts.
    """
    # PEFT is optional.
    config = importlib.import_module("peft").PeftConfig.from_pretrained(str(folder))
    if is_prompt(config):
        raise _refuse_prompt(f"the adapter in {str(folder)!r}", config)
    try:
        with quiet():
            loading = module.load_adapter(str(folder))
    except Exception as error:  # PEFT, safetensors and torch each raise their own
        raise _refuse(folder, base, first_line(error)) from None
    trained = frozenset(name for config in module.peft_config.values() for name in config.modules_to_save or ())
    # A classifier that was trained beside the adapter has no place in the model below it.
    absent = trained - {part for name, _ in module.named_modules() for part in name.split(".")}
    unexpected = {key for key in loading.unexpected_keys if absent.isdisjoint(key.split("."))}
    faults = {"lacks": loading.missing_keys, "has too many": unexpected}
    faults["has of another size"] = {str(key[0]) for key in loading.mismatched_keys}
    for fault, keys in faults.items():
        if keys:
            raise _refuse(folder, base, f"it {fault} {len(keys)} weights, such as {min(keys)}")
    return trained


def unwrap_adapted(module: Any) -> Any:
    """Return the transformers model inside a PEFT model, with its adapters; return any other object unchanged.

    Raises:
        ModelError: An adapter consists of prompts, which are not in the transformers model.
    """
    if not hasattr(module, "get_base_model"):
        return module
    for config in module.peft_config.values():
        if is_prompt(config):
            raise _refuse_prompt("the adapter of the loaded model", config)
    return module.get_base_model()


def list_adapted(module: nn.Module) -> dict[str, Any]:
    """Return the layers that adapters change, by name; inside such a layer, PEFT keeps the original layer."""
    return {
        name: part
        for name, part in module.named_modules()
        if hasattr(part, "base_layer") and hasattr(part, "active_adapters")
    }


def name_base(module: Any) -> str:
    """Return the name of the model that the adapters in memory were trained for; empty without adapters or a name."""
    names = [str(config.base_model_name_or_path or "") for config in find_configs(module)]
    return next(filter(None, names), "")


def find_configs(model: Any) -> list[Any]:
    """Return the configurations of the adapters in a loaded model; empty without adapters.

    The model may be in a pair with its tokenizer.
    """
    module, _ = unwrap(model[0] if isinstance(model, tuple) else model)
    configs = getattr(module, "peft_config", None)
    return [*configs.values()] if configs and isinstance(module, nn.Module) and list_adapted(module) else []


def hash_without_adapters(module: nn.Module, name: str) -> str:
    """Return the hash of a model's weights as they are without adapters; empty if an adapter is merged into them."""
    adapted = list_adapted(module)
    if any(getattr(part, "merged", False) for part in adapted.values()):
        return ""
    kept = dict.fromkeys(adapted, "base_layer")
    kept |= {place: "original_module" for place, part in module.named_modules() if hasattr(part, "original_module")}
    names = {}
    for key in module.state_dict():
        around = {place: within for place, within in kept.items() if key.startswith(f"{place}.")}
        if all(key.startswith(f"{place}.{within}.") for place, within in around.items()):
            names[key] = ".".join(part for part in key.split(".") if part not in around.values())
    return hash_parameters(module, name, names)


def is_prompt(config: Any) -> bool:
    """Return whether an adapter with this PEFT configuration consists of trained prompts, and updates no weights."""
    return bool(config.is_prompt_learning or getattr(config, "is_adaption_prompt", False))


def hash_adapted(folder: Path, weights_sha256: str) -> str:
    """Return the hash of a model with an adapter, from the adapter's files and the hash of the model's weights."""
    adapter = hash_files([folder / name for name in WEIGHTS if (folder / name).is_file()])
    return hashlib.sha256(f"{weights_sha256} {adapter}".encode()).hexdigest()


def _refuse_prompt(name: str, config: Any) -> ModelError:
    kind = str(getattr(config.peft_type, "value", config.peft_type))
    return ModelError(
        f"{name} is of trained prompts ({kind}), which stand before a text and are tokens of no word of it, and with "
        "them attention is not measured; give an adapter of weights, such as LoRA, or the model without the adapter."
    )


def _refuse(folder: Path, base: str, reason: str) -> ModelError:
    return ModelError(
        f"the adapter in {str(folder)!r} does not go into the model {base!r} that its adapter_config.json names "
        f"({reason}); give the adapter that was trained for this model, whole, or name its own model there."
    )
