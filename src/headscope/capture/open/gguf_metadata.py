"""The keys and the tensor names of a GGUF file, and the errors that name one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.capture.model.model_files import make_part_error
from headscope.errors import ModelError
from headscope.guards.gguf import check_gguf, open_gguf

ADVICE = "give the model's hub id, or a folder with config.json, weights and tokenizer"

ROPE_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""The tensors that become part of a model's configuration, and not a parameter of the model."""


@dataclass(frozen=True)
class Metadata:
    """The keys of a GGUF file, and the names of its tensors.

    Attributes:
        file: The file.
        architecture: The architecture, as llama.cpp calls it, such as ``llama``.
        settings: The values of the architecture's keys, without its name, such as ``rope.freq_base``.
        tokenizer: The values of the tokenizer's keys, without ``tokenizer.ggml.``; a list of texts is only its length.
        tensors: The names of all tensors.
        divisors: The divisors of the frequencies of rotary embeddings, by the name of their tensor.
    """

    file: Path
    architecture: str
    settings: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    tensors: tuple[str, ...]
    divisors: Mapping[str, list[float]]

    @classmethod
    def read(cls, file: Path) -> "Metadata":
        """Read the metadata of a GGUF file.

        Damage after the header raises the errors of transformers' reader.

        Raises:
            HeadscopeError: The path is not a file.
            ModelError: The header is damaged, or the file says that it is a part of a split file, whatever its name.
        """
        from transformers.integrations.gguf import read_gguf_metadata  # imported here, since older releases lack it

        check_gguf(file)
        declared, tensors = read_gguf_metadata(str(file))
        if (count := int(declared.get("split.count", 0))) > 1:
            raise make_part_error(file, int(declared["split.no"]) + 1, count)
        architecture = declared["general.architecture"]
        settings, tokenizer = (_select(declared, prefix) for prefix in (f"{architecture}.", "tokenizer.ggml."))
        divisors = _read_divisors(file) if {*tensors} & {*ROPE_TENSORS} else {}
        return cls(file, architecture, settings, tokenizer, tensors, divisors)

    def refuse(self, key: str) -> ModelError:
        """Make the error for a key of the architecture, or a tensor of divisors, that the model would not follow."""
        if key in self.divisors:
            return self.refuse_tensors([key])
        return self.refuse_declared(f"{self.architecture}.{key}", self.settings[key])

    def refuse_declared(self, key: str, value: Any) -> ModelError:
        """Make the error for any key that the model would not follow."""
        return ModelError(
            f"the GGUF file {str(self.file)!r} declares {key} = {value!r}, which would get lost on the way to "
            f"transformers, and other attention would be measured; {ADVICE}."
        )

    def refuse_tensors(self, names: list[str]) -> ModelError:
        """Make the error for tensors that no parameter of the model takes."""
        return ModelError(
            f"the GGUF file {str(self.file)!r} holds {len(names)} of {len(self.tensors)} tensors that would get lost "
            f"on the way to transformers, such as {names[0]}, and other attention would be measured; {ADVICE}."
        )


def _select(declared: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in declared.items() if key.startswith(prefix)}


def _read_divisors(file: Path) -> dict[str, list[float]]:
    tensors = [tensor for tensor in open_gguf(file).tensors if tensor.name in ROPE_TENSORS]
    return {tensor.name: np.asarray(tensor.data, np.float64).tolist() for tensor in tensors}
