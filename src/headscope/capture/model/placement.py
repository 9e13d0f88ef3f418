"""Chooses the device of a model: the device that the user names, or a GPU that works, or the processor."""

import logging
from importlib.util import find_spec

import torch
from torch import nn

from headscope.capture.model.block_sizes import find_free_memory
from headscope.capture.model.device_names import AUTO, PROCESSOR
from headscope.capture.model.dtypes import is_half, spell_dtype
from headscope.errors import ModelError, first_line

logger = logging.getLogger("headscope")

LEAST_CAPABILITY = (8, 0)
"""The lowest compute capability of NVIDIA GPUs for which Triton compiles."""

WORKING_ROOM = 1 << 29
"""The bytes of a GPU's memory that must be free in addition to the bytes of the weights."""

GIB = 1 << 30


def choose_device(device: str, needed: int = 0) -> tuple[str, str]:
    """Choose the device of a model; return its name, and the reasons why available GPUs are not used.

    Args:
        device: The name of a device, or `AUTO`.
        needed: The bytes of the weights.

    Returns:
        The name of the device, and the reasons why GPUs are not used; empty if a GPU is used or none is available.
    """
    if device != AUTO:
        return device, ""
    faults = {}
    # A GPU may be available although torch counts none.
    for number in range(max(1, torch.cuda.device_count()) if torch.cuda.is_available() else 0):
        gpu = f"cuda:{number}"
        try:
            fault = _find_fault(gpu, needed)
        except (RuntimeError, AssertionError) as error:
            fault = f"it does not work ({first_line(error)})"
        if not fault:
            return gpu, ""
        faults[gpu] = fault
    return PROCESSOR, "; ".join(f"{gpu} is not used, since {fault}" for gpu, fault in faults.items())


def _find_fault(gpu: str, needed: int) -> str:
    """Return the reason why `AUTO` does not use a GPU; empty if it does."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    capability = torch.cuda.get_device_capability(gpu)
    if capability < LEAST_CAPABILITY:
        have, want = (".".join(map(str, each)) for each in (capability, LEAST_CAPABILITY))
        return f"it has compute capability {have}, and Triton needs {want}"
    free = find_free_memory(gpu)
    if free < needed + WORKING_ROOM:
        return f"{free / GIB:.1f} GiB of its memory are free, and the model needs {(needed + WORKING_ROOM) / GIB:.1f}"
    try_device(gpu)
    return ""


def refuse_device(name: str, device: str) -> None:
    """Raise an error if the device that the user named does not work, before weights are read.

    Raises:
        ModelError: Nothing can be computed on the device.
    """
    if device == AUTO:
        return
    try:
        try_device(device)
    except (RuntimeError, AssertionError) as error:
        raise _refuse(name, device, error) from error


def try_device(device: str) -> None:
    """Compute a sum on a device, which raises the device's own error if it does not work."""
    torch.ones(2, device=device).sum()


def put_model(module: nn.Module, device: str, name: str) -> str:
    """Put a model on a device, and return the reason why an available GPU is not used; empty if there is no reason.

    A log message names the GPU that `AUTO` chose, or states that reason.

    Raises:
        ModelError: The model cannot be put on the device.
    """
    chosen, reason = choose_device(device, count_bytes(module))
    try:
        module.to(chosen)
    except (RuntimeError, AssertionError) as error:
        if device != AUTO or chosen == PROCESSOR:
            raise _refuse(name, chosen, error) from error
        reason, chosen = f"{chosen} is not used, since the model cannot be put there ({first_line(error)})", PROCESSOR
        module.to(chosen)  # some weights were moved before the memory was full
    if reason:
        logger.warning("%s runs on the processor: %s.", name, reason)
    elif device == AUTO and chosen != PROCESSOR:
        logger.warning("%s runs on the GPU %s.", name, chosen)
    return reason


def warn_of_half_precision(name: str, device: torch.device, dtype: torch.dtype) -> None:
    """Log a warning if a model runs in half precision on the processor, which is slower."""
    if device.type == PROCESSOR and is_half(dtype):
        logger.warning("%s runs in %s on the processor, which is slower there than float32.", name, spell_dtype(dtype))


def count_bytes(module: nn.Module) -> int:
    """Count the bytes of the weights and the buffers of a model."""
    return sum(each.numel() * each.element_size() for each in (*module.parameters(), *module.buffers()))


def _refuse(name: str, device: str, error: Exception) -> ModelError:
    if isinstance(error, torch.OutOfMemoryError):
        advice = "give `dtype` bfloat16, a GPU with more free memory, or cpu"
    else:
        advice = "give cpu, or a GPU that is there"
    return ModelError(f"{name!r} cannot be put on the device {device!r} ({first_line(error)}); {advice}.")
