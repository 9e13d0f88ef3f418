"""Files of models that transformers does not load: other formats, and the parts of a split GGUF file. No torch here."""

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
"""Formats to which models are exported, and how the names of their files end."""

SUBFOLDERS = ("onnx", "openvino")
"""The folders in that of a model where exports lie too."""

_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE)
"""The name of a part of a GGUF file, as llama.cpp splits it."""


def refuse_other_formats(folder: Path) -> None:
    """Raise an error if a folder of a model has no weights that transformers loads, and others in their place.

    Raises:
        ModelError: it has GGUF files, or exports, alone.
    """
    try:
        files = sorted(path for place in (folder, *(folder / name for name in SUBFOLDERS)) for path in place.glob("*"))
    except OSError:  # who may not look into a folder is told so when it is loaded
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
    """Raise an error if a file is a part of a split GGUF file, by its name; transformers reads one file.

    Raises:
        ModelError: it is.
    """
    if (match := _PART.fullmatch(file.name)) and int(match[3]) > 1:
        count = int(match[3])
        names = [f"{match[1]}-{number:05}-of-{match[3]}{file.suffix}" for number in range(1, count + 1)]
        missing = sum(name != file.name and not file.with_name(name).exists() for name in names)
        raise make_part_error(file, int(match[2]), count, missing)


def make_part_error(file: Path, number: int, count: int, missing: int = 0) -> ModelError:
    """Return the error for a part of a split GGUF file.

    Args:
        file: the part.
        number: of the part, counted from 1.
        count: the number of parts.
        missing: the number of other parts that are not next to it.
    """
    lacking = f", of which {missing} {'is' if missing == 1 else 'are'} missing here" if missing else ""
    wanted = "download them, and join" if missing else "join"
    return ModelError(
        f"{str(file)!r} is part {number} of {count} of a split GGUF file{lacking}, and one whole file is read; "
        f"{wanted} all with `llama-gguf-split --merge FIRST-PART JOINED.gguf`, and give the joined file."
    )
