"""Files of models that transformers does not load: other formats, and parts of a split GGUF file.

This module does not load torch.
"""

import re
from pathlib import Path

from headscope.errors import ModelError

EXPORTS = {
    "ONNX": (".onnx",),
    "OpenVINO": (".xml",),
    "TensorFlow": (".h5", ".pb", ".tflite"),
    "Flax": (".msgpack",),
    "Core ML": (".mlpackage", ".mlmodel"),
}
"""The formats to which models are exported, and the endings of their file names."""

SUBFOLDERS = ("onnx", "openvino")
"""The subfolders of a model's folder that may hold exports."""

_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE)
"""The name of a part of a GGUF file that llama.cpp has split."""


def refuse_other_formats(folder: Path) -> None:
    """Raise an error if a folder has weights of a model, but only in formats that transformers does not load.

    Raises:
        ModelError: The folder has only GGUF files or exports.
    """
    try:
        files = sorted(path for place in (folder, *(folder / name for name in SUBFOLDERS)) for path in place.glob("*"))
    except OSError:  # a folder that may not be read raises its error later, when it is loaded
        return
    if any(file.suffix == ".safetensors" or file.name.startswith("pytorch_model") for file in files):
        return
    begin = f"the folder {str(folder)!r} has no weights that transformers loads"
    if ggufs := [file for file in files if file.suffix.lower() == ".gguf"]:
        wanted = "give the file itself" if len(ggufs) == 1 else f"give one of its {len(ggufs)} GGUF files"
        raise ModelError(f"{begin}, and GGUF files are given by their own names; {wanted}: {str(ggufs[0])!r}.")
    for format, endings in EXPORTS.items():
        if file := next((file for file in files if file.suffix.lower() in endings), None):
            raise ModelError(
                f"{begin}, but those of an export to {format} ({file.relative_to(folder)}), which has no attention to "
                "observe; give the hub id or the folder of the model that was exported."
            )


def refuse_part(file: Path) -> None:
    """Raise an error if the name of a file says that it is a part of a split GGUF file.

    transformers reads one file.

    Raises:
        ModelError: The file is a part.
    """
    if (match := _PART.fullmatch(file.name)) and int(match[3]) > 1:
        count = int(match[3])
        names = [f"{match[1]}-{number:05}-of-{match[3]}{file.suffix}" for number in range(1, count + 1)]
        missing = sum(name != file.name and not file.with_name(name).exists() for name in names)
        raise make_part_error(file, int(match[2]), count, missing)


def make_part_error(file: Path, number: int, count: int, missing: int = 0) -> ModelError:
    """Make the error for a part of a split GGUF file.

    Args:
        file: The part.
        number: The number of the part, counted from 1.
        count: The number of parts.
        missing: The number of other parts that are not in the same folder.
    """
    lacking = f", of which {missing} {'is' if missing == 1 else 'are'} missing here" if missing else ""
    wanted = "download them, and join" if missing else "join"
    return ModelError(
        f"{str(file)!r} is part {number} of {count} of a split GGUF file{lacking}, and one whole file is read; "
        f"{wanted} all with `llama-gguf-split --merge FIRST-PART JOINED.gguf`, and give the joined file."
    )
