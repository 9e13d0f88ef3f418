"""Models that accelerate has put in two places: blocks by turns in either, and all else in the first."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import accelerate
from torch import nn


def dispatch(module: nn.Module, second: str, folder: Path, *, first: str = "cpu") -> nn.Module:
    """The model, every other block of which is in a second place: ``disk``, in a folder, or a device."""
    number, places = 0, dict[str, str]()
    for name, is_block in list_parts(module):
        number += is_block
        places[name] = second if is_block and number % 2 == 0 else first
    with warnings.catch_warnings(category=UserWarning, action="ignore"):  # of a name that is no module but a tensor
        dispatched: nn.Module = accelerate.dispatch_model(module, places, main_device=first, offload_dir=str(folder))
    return dispatched


def list_parts(module: nn.Module, name: str = "") -> Iterator[tuple[str, bool]]:
    """The names of the parts of a model, and whether a part is a block: one of a list of modules."""
    for own, _ in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        yield f"{name}{own}", False
    for own, part in module.named_children():
        if isinstance(part, nn.ModuleList):
            yield from ((f"{name}{own}.{number}", True) for number in range(len(part)))
        elif any(isinstance(each, nn.ModuleList) for each in part.modules()):
            yield from list_parts(part, f"{name}{own}.")
        elif part.state_dict() or [*part.buffers()]:
            yield f"{name}{own}", False
