"""A GGUF file -> a folder that transformers loads, which is converted once and kept in the user's cache."""

import logging
import shutil
from glob import escape
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GgufConfig
from transformers.utils import logging as transformers_logging

from headscope.capture.model.weights import quiet, refuse_missing_weights
from headscope.capture.open.gguf_config import check_tensors, configure, refuse_layers
from headscope.capture.open.gguf_metadata import ADVICE, Metadata
from headscope.capture.open.gguf_rope import check_rope
from headscope.capture.open.gguf_tokenizer import check_saved_tokenizer, read_tokenizer
from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.files import cache_folder, lock
from headscope.guards.gguf import open_gguf

logger = logging.getLogger("headscope")

_VERSION = 2
"""The version of the conversion. Folders of earlier versions are not used, since they may lack a part of the file."""


def convert(file: Path, sha256: str) -> Path:
    """Convert a GGUF file to a folder with weights in float32, language-model head and tokenizer; return the folder.

    The folder is written the first time, completely or not at all, even if several processes ask for it at once. Later
    calls find it by the SHA-256 of the file.

    Raises:
        ModelError: The file is damaged or incomplete, has no language model that transformers converts, or declares
            settings that would get lost in the conversion.
        HeadscopeError: The cache cannot be written to.
    """
    cache = cache_folder("gguf")
    folder = cache / f"{file.stem}-{sha256[:16]}-{_VERSION}"
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with lock(cache / ".lock") as is_alone:  # for all files, since two conversions at once need twice the memory
            if not folder.is_dir():
                # A conversion takes a while and much disk space. Python shows warnings by default, but not less.
                logger.warning("converting %s once; later loads use %s", file, folder)
                _write(file.absolute(), folder, is_alone=is_alone)
    except OSError as error:
        raise _refuse_cache(file, cache, error) from error
    return folder


def _write(file: Path, folder: Path, *, is_alone: bool) -> None:
    for killed in folder.parent.glob(f".{escape(folder.name)}.*") if is_alone else ():
        shutil.rmtree(killed, ignore_errors=True)
    unfinished = folder.with_name(f".{folder.name}.{uuid4().hex}")
    unfinished.mkdir()
    try:
        metadata, module, tokenizer = _read(file, unfinished)
        try:
            with quiet():
                module.save_pretrained(unfinished)
                tokenizer.save_pretrained(unfinished)
        except Exception as error:  # safetensors and tokenizers each raise their own
            raise _refuse_cache(file, folder.parent, error) from error
        with quiet():
            check_saved_tokenizer(metadata, tokenizer, unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():  # on a disk without locks, another process may have written the folder
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _read(file: Path, empty: Path) -> tuple[Metadata, Any, Any]:
    """Read the metadata, the language model and the tokenizer of a GGUF file.

    Encoder-decoders raise an error, because transformers loads every T5 with the activation function of T5 1.0
    (``findings/gguf-t5-activation.sh``).

    transformers gets the full path of the file and an empty folder. With the file's own folder, it would also load a
    tokenizer.json or an adapter that lies there.
    """
    from transformers import modeling_gguf_pytorch_utils  # imported here, since only GGUF files need it

    # The progress bar of transformers' loop ignores the library's setting; this one follows it.
    modeling_gguf_pytorch_utils.tqdm = transformers_logging.tqdm
    try:
        with quiet():
            metadata = Metadata.read(file)
            refuse_layers(metadata)
            config = AutoConfig.from_pretrained(empty, gguf_file=str(file))
            tokenizer = read_tokenizer(metadata, empty)
            module, loading = AutoModelForCausalLM.from_pretrained(
                empty,
                gguf_file=str(file),
                config=config if config.is_encoder_decoder else configure(metadata, config),
                dtype=torch.float32,
                quantization_config=GgufConfig(dequantize=True),
                output_loading_info=True,
            )
        refuse_missing_weights(str(file), loading["missing_keys"], None)
        check_rope(metadata, module)
        check_tensors(metadata, module)
    except HeadscopeError:
        raise
    except Exception as error:  # gguf, numpy, struct and transformers each raise their own
        raise _explain(file, error) from error
    return metadata, module, tokenizer


def _explain(file: Path, error: Exception) -> ModelError:
    """Make the error for a file that transformers does not load: the file is damaged, or its model is unknown."""
    try:
        architecture = open_gguf(file).fields["general.architecture"].contents()
    except Exception as damage:  # gguf, numpy and struct each raise their own
        return ModelError(
            f"the GGUF file {str(file)!r} is damaged or incomplete ({first_line(damage)}); download it again."
        )
    return ModelError(
        f"the architecture {architecture!r} of the GGUF file {str(file)!r} cannot be converted ({first_line(error)}); "
        f"{ADVICE}."
    )


def _refuse_cache(file: Path, cache: Path, error: Exception) -> HeadscopeError:
    reason = getattr(error, "strerror", None) or first_line(error)
    return HeadscopeError(
        f"{str(file)!r} could not be converted to a folder in {cache} ({reason}); free some space, or name another "
        "place in the environment variable HEADSCOPE_CACHE."
    )
