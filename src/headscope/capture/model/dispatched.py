"""Models over several devices: layers that accelerate has put on GPUs, on the processor or on disk.

`from_pretrained(..., device_map=...)` and `accelerate.dispatch_model` give modules hooks. A hook moves what its module
is called with to the device on which the module runs, and brings weights there that are kept elsewhere; between calls
such weights are on the device ``meta`` and hold nothing. A hook is known by what it has, and does itself what is asked
for here, so that only who dispatches a model needs accelerate.
"""

import importlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from headscope.errors import ModelError

NOWHERE = "meta"
"""The device of weights that hold nothing."""


class Place(NamedTuple):
    """Where a part of a model runs.

    Attributes:
        device: on which it runs.
        offloaded: its weights are kept elsewhere, and brought there when it runs.
    """

    device: torch.device
    offloaded: bool

    def __str__(self) -> str:
        """Return the device as a table states it."""
        return f"{self.device}, offloaded between passes" if self.offloaded else str(self.device)


def is_dispatched(module: nn.Module) -> bool:
    """Return whether accelerate moves what the parts of a model are called with."""
    return any(_find_hooked(part) is not None for part in module.modules())


def find_device(module: nn.Module) -> torch.device:
    """Return the device on which a module begins to run; of one without weights, the processor."""
    for part in module.modules():
        if (device := _find_hooked(part)) is not None:
            return device
        for weights in part.parameters(recurse=False):
            return weights.device
    return torch.device("cpu")


def list_devices(module: nn.Module) -> tuple[torch.device, ...]:
    """Return the devices on which the parts of a model run, in their order."""
    return tuple(dict.fromkeys(place.device for place in _find_places(module).values()))


def describe_placement(module: nn.Module) -> dict[str, str]:
    """Return where the parts of a dispatched model run, by their names: the largest ones that are in one place.

    Of a model that is not dispatched nothing is returned.
    """
    if not is_dispatched(module):
        return {}
    return {name or type(module).__name__: str(place) for name, place in _find_places(module).items()}


def place_alike(module: nn.Module, other: nn.Module) -> nn.Module:
    """Return a model with its parts placed like those of another model of its shape.

    What the other one keeps on disk, this one keeps in the memory of the processor.
    """
    places = _find_places(other)
    devices = {place.device for place in places.values()}
    if len(devices) < 2 and not any(place.offloaded for place in places.values()):
        return module.to(find_device(other))
    main = next((place.device for place in places.values() if place.offloaded), find_device(other))
    # What the other one does not have, such as a pooler that it was loaded without, is with its first part.
    kept = {name.rpartition(".")[0] or name: str(main) for name in module.state_dict() if not _is_within(name, places)}
    # Weights that a GPU runs and the processor keeps are mapped to the processor, and the GPU is the main device.
    kept |= {name: "cpu" if place.offloaded else str(place.device) for name, place in places.items()}
    # Who has dispatched the other one has accelerate, which is optional.
    dispatch: Any = importlib.import_module("accelerate").dispatch_model
    dispatched: nn.Module = dispatch(module, kept, main_device=str(main))
    return dispatched


@contextmanager
def hold_weights(module: nn.Module) -> Iterator[None]:
    """Hold the weights of a module and of its parts in memory within a block, wherever they are kept."""
    with ExitStack() as held:
        for part in module.modules():
            held.enter_context(_bring_weights(part))
        yield


def read_weights(module: nn.Module, name: str) -> Any:
    """Return a part of the state of a model by its name, as it is while its module runs."""
    *path, own = name.split(".")
    owner, held = module, ExitStack()
    with held:
        held.enter_context(_bring_weights(owner))
        for step in path:
            owner = owner.get_submodule(step)
            held.enter_context(_bring_weights(owner))
        return getattr(owner, own)


def refuse_unplaced(module: nn.Module, name: str) -> None:
    """Refuse weights on several devices, or on none, where nothing brings them together.

    Raises:
        ModelError: there are such weights.
    """
    if is_dispatched(module) and not any(device.type == NOWHERE for device in list_devices(module)):
        return
    devices = sorted({str(parameter.device) for parameter in module.parameters()})
    if len(devices) > 1 or devices == [NOWHERE]:
        there = " and ".join(devices).replace(NOWHERE, f"no device ({NOWHERE})")
        raise ModelError(
            f"the weights of {name!r} lie on {there}, and no hook of accelerate brings them together when it runs; "
            "load it with device_map, or put all of it on one device."
        )


def _is_within(name: str, parts: Collection[str]) -> bool:
    """Return whether a weight is one of some parts of a model, or in one of them."""
    return any(not part or name == part or name.startswith(f"{part}.") for part in parts)


def _list_hooks(part: nn.Module) -> list[Any]:
    """Return the hooks of accelerate that a module has, without those that are made of others."""
    hook = getattr(part, "_hf_hook", None)
    return [] if hook is None else [*getattr(hook, "hooks", (hook,))]


def _find_hooked(part: nn.Module) -> torch.device | None:
    """Return the device to which the hooks of a module move what it is called with, if they do."""
    devices = (getattr(hook, "execution_device", None) for hook in _list_hooks(part))
    return next((torch.device(device) for device in devices if device is not None), None)


def _offloads(part: nn.Module) -> bool:
    return any(getattr(hook, "offload", False) for hook in _list_hooks(part))


@contextmanager
def _bring_weights(part: nn.Module) -> Iterator[None]:
    """Hold the weights of a module itself within a block where its hook brings them when it runs."""
    if not _offloads(part):
        yield
        return
    hook: Any = part._hf_hook
    hook.pre_forward(part)
    try:
        yield
    finally:
        hook.post_forward(part, None)


def _find_places(
    part: nn.Module, name: str = "", around: torch.device | None = None, *, offloaded: bool = False
) -> dict[str, Place]:
    """Return where the parts of a module run, by their names; parts that are all in one place are one part.

    `around` is the device of the hooks around the module, and `offloaded` says that these bring its weights as well.
    """
    around = _find_hooked(part) or around
    brings_all = any(getattr(hook, "place_submodules", False) for hook in _list_hooks(part))
    offloaded = offloaded or (brings_all and _offloads(part))
    places: dict[str, Place] = {}
    for child_name, child in part.named_children():
        places |= _find_places(child, f"{name}.{child_name}".lstrip("."), around, offloaded=offloaded)
    for weights in part.parameters(recurse=False):
        is_brought = weights.device.type == NOWHERE and (offloaded or _offloads(part))
        places[name] = Place(around if around and is_brought else weights.device, is_brought)
    return {name: next(iter(places.values()))} if len({*places.values()}) == 1 else places
