"""Weights on disk: loaded without the library's own reports, refused if some are missing, and identified by a hash."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers.utils import logging as transformers_logging

from headscope.errors import ModelError


@contextmanager
def quiet() -> Iterator[None]:
    """Within, transformers logs errors alone and draws no progress bars."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def refuse_missing_weights(name: str, missing: set[str], task: str | None) -> None:
    """Refuse a model some of whose weights are not on the disk.

    Args:
        name: of the model, for the message.
        missing: the names of the weights.
        task: for which the model was loaded, if for one.

    Raises:
        ModelError: a weight is missing that something reads.
    """
    # A pooler stands above the last attention; sentence encoders are often saved without it, and classifiers read it.
    lost = sorted(key for key in missing if task is not None or "pooler" not in key)
    if not lost:
        return
    if task is None:
        raise ModelError(
            f"{name!r} lacks {len(lost)} of the weights that its configuration calls for, such as {lost[0]}; "
            "they would be random. Give a complete checkpoint."
        )
    raise ModelError(
        f"{name!r} lacks {len(lost)} of the weights that the task {task} calls for, such as {lost[0]}; they would be "
        "random. Give a checkpoint that was trained for this task, or load the model without a task."
    )


def sha256_of_weights(folder: Path) -> str:
    """Of the weights that transformers takes from `folder`, empty if there are none.

    `sha256sum` gives the same for a single file.
    """
    patterns = ("model.safetensors", "model-*-of-*.safetensors", "pytorch_model.bin", "pytorch_model-*-of-*.bin")
    files = next((parts for pattern in patterns if (parts := sorted(folder.glob(pattern)))), [])
    return hash_files(files) if files else ""


def hash_files(files: Iterable[Path]) -> str:
    """The SHA-256 of the bytes of some files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while chunk := opened.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
