"""Models on several devices: accelerate has put their layers on GPUs, on the processor or on disk.

`from_pretrained(..., device_map=...)` and `accelerate.dispatch_model` give modules hooks. A hook moves the inputs of
its module to the device on which the module runs. It also brings weights there that are kept elsewhere; between calls,
such weights are on the device ``meta`` and hold nothing. This code finds hooks by their attributes and calls their
methods, so only a user who dispatches a model needs accelerate.
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
    """The device on which a part of a model runs, and whether the weights of the part are offloaded.

    Attributes:
        device: The device.
        offloaded: True if the weights are kept elsewhere, and are brought to the device when the part runs.
    """

    device: torch.device
    offloaded: bool

    def __str__(self) -> str:
        """Return the device in words, as tables state it."""
        return f"{self.device}, offloaded between passes" if self.offloaded else str(self.device)


def is_dispatched(module: nn.Module) -> bool:
    """Return whether accelerate has dispatched a model: its hooks move the inputs of some part."""
    return any(_find_hooked(part) is not None for part in module.modules())


def find_device(module: nn.Module) -> torch.device:
    """Return the device on which a module begins to run; the processor if it has neither hooks nor weights."""
    for part in module.modules():
        if (device := _find_hooked(part)) is not None:
            return device
        for weights in part.parameters(recurse=False):
            return weights.device
    return torch.device("cpu")


def list_devices(module: nn.Module) -> tuple[torch.device, ...]:
    """Return the devices on which the parts of a model run, in the order of the parts."""
    return tuple(dict.fromkeys(place.device for place in _find_places(module).values()))


def describe_placement(module: nn.Module) -> dict[str, str]:
    """Return the device of each part of a dispatched model, by the name of the part; empty if it is not dispatched.

    A part is the largest module whose weights are all on one device.
    """
    if not is_dispatched(module):
        return {}
    return {name or type(module).__name__: str(place) for name, place in _find_places(module).items()}


def place_alike(module: nn.Module, other: nn.Module) -> nn.Module:
    """Put the parts of `module` on the devices of the same parts of `other`, and return `module`.

    Weights that the other model keeps on disk are kept in the memory of the processor.
    """
    places = _find_places(other)
    devices = {place.device for place in places.values()}
    if len(devices) < 2 and not any(place.offloaded for place in places.values()):
        return module.to(find_device(other))
    main = next((place.device for place in places.values() if place.offloaded), find_device(other))
    # Parts that the other model lacks, such as a pooler, go to the main device.
    kept = {name.rpartition(".")[0] or name: str(main) for name in module.state_dict() if not _is_within(name, places)}
    # Offloaded weights, which a GPU uses and the processor keeps, are mapped to the processor; the GPU is the main
    # device.
    kept |= {name: "cpu" if place.offloaded else str(place.device) for name, place in places.items()}
    # accelerate is optional; it is installed if the other model was dispatched.
    dispatch: Any = importlib.import_module("accelerate").dispatch_model
    dispatched: nn.Module = dispatch(module, kept, main_device=str(main))
    return dispatched


@contextmanager
def hold_weights(module: nn.Module) -> Iterator[None]:
    """Bring the weights of a module and its parts into memory inside the ``with`` block, wherever they are kept."""
    with ExitStack() as held:
        for part in module.modules():
            held.enter_context(_bring_weights(part))
        yield


def read_weights(module: nn.Module, name: str) -> Any:
    """Return a parameter or other state of a model by its name; offloaded weights are brought into memory first."""
    *path, own = name.split(".")
    owner, held = module, ExitStack()
    with held:
        held.enter_context(_bring_weights(owner))
        for step in path:
            owner = owner.get_submodule(step)
            held.enter_context(_bring_weights(owner))
        return getattr(owner, own)


def refuse_unplaced(module: nn.Module, name: str) -> None:
    """Raise an error if weights are on several devices, or on none, and no hook brings them together.

    Raises:
        ModelError: There are such weights.
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
    """Return whether a weight is one of these parts of a model, or inside one of them."""
    return any(not part or name == part or name.startswith(f"{part}.") for part in parts)


def _list_hooks(part: nn.Module) -> list[Any]:
    """Return the hooks of accelerate that a module has; a sequence of hooks is replaced by its hooks."""
    hook = getattr(part, "_hf_hook", None)
    return [] if hook is None else [*getattr(hook, "hooks", (hook,))]


def _find_hooked(part: nn.Module) -> torch.device | None:
    """Return the device to which the hooks of a module move its inputs; None if no hook moves them."""
    devices = (getattr(hook, "execution_device", None) for hook in _list_hooks(part))
    return next((torch.device(device) for device in devices if device is not None), None)


def _offloads(part: nn.Module) -> bool:
    return any(getattr(hook, "offload", False) for hook in _list_hooks(part))


@contextmanager
def _bring_weights(part: nn.Module) -> Iterator[None]:
    """Bring the weights of a module itself to its device inside the ``with`` block, if its hook offloads them."""
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
    """Return the place of each part of a module, by name; a module whose parts are in one place counts as one part.

    `around` is the device of the hooks of an enclosing module. `offloaded` is True if those hooks also bring the
    weights of this module.
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
