"""Adapters such as LoRA: what was trained beside the weights of a model, in a folder of its own, by PEFT."""

import hashlib
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headscope.capture.weights import hash_files, quiet
from headscope.errors import ModelError, first_line

WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
"""The files that PEFT writes the weights of an adapter to."""


def attach_adapter(module: PreTrainedModel, folder: Path, base: str) -> frozenset[str]:
    """Put the adapter in a folder into the model that it was trained for.

    Args:
        module: the model.
        folder: where PEFT saved the adapter.
        base: the name of the model, for messages.

    Returns:
        The names of modules that the adapter replaces as a whole, such as a classifier.

    Raises:
        ModelError: the adapter belongs to another model, or is not whole.
    """
    try:
        with quiet():
            loading = module.load_adapter(str(folder))
    except Exception as error:  # PEFT, safetensors and torch each raise their own
        raise _refuse(folder, base, first_line(error)) from error
    faults = {"lacks": loading.missing_keys, "has too many": loading.unexpected_keys}
    faults["has of another size"] = {str(key[0]) for key in loading.mismatched_keys}
    for fault, keys in faults.items():
        if keys:
            raise _refuse(folder, base, f"it {fault} {len(keys)} weights, such as {min(keys)}")
    return frozenset(name for config in module.peft_config.values() for name in config.modules_to_save or ())


def unwrap_adapted(module: Any) -> Any:
    """The model of transformers within a model of PEFT, its adapters in place; anything else as it is."""
    return module.get_base_model() if hasattr(module, "get_base_model") else module


def hash_adapted(folder: Path, weights_sha256: str) -> str:
    """Of an adapter and of the weights of the model that it was trained for, whose hash is given."""
    adapter = hash_files([folder / name for name in WEIGHTS if (folder / name).is_file()])
    return hashlib.sha256(f"{weights_sha256} {adapter}".encode()).hexdigest()


def _refuse(folder: Path, base: str, reason: str) -> ModelError:
    return ModelError(
        f"the adapter in {str(folder)!r} does not go into the model {base!r} that its adapter_config.json names "
        f"({reason}); give the adapter that was trained for this model, whole, or name its own model there."
    )
