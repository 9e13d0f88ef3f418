"""The rounding noise of a model: the change of its outputs if its numbers are rounded differently.

Processors and libraries round in different places, and a model carries each rounding through all later layers. Some
models multiply it by ten, others (with recurrent layers, for example) by a thousand. So no fixed bound on the
difference of two outputs holds for all models on all processors, but a multiple of the model's own noise does.

The noise is not measured with another attention kernel: if that kernel were wrong, the noise would hide the error.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

NOISE_FACTOR = 3
"""The multiple of the noise by which outputs may differ.

In 27 tiny models, with 1, 2 and 4 threads, three instruction sets, with and without oneDNN, valid outputs differ by at
most 1.04 times the noise. An error of 0.1 % in any head changes them by at least 5 times the noise, except in one model
with almost uniform attention.
"""


def measure_noise(module: nn.Module, run: Callable[[], Tensor]) -> float:
    """Measure the largest change of a model's outputs if each module's output is off by one unit in the last place.

    `run` runs the model on one batch, and returns the outputs to compare, without padding.
    """
    expected = run()
    with _shift_last_places(module):
        shifted = run()
    return float((shifted.float() - expected.float()).abs().max())


@contextmanager
def _shift_last_places(module: nn.Module) -> Iterator[None]:
    """Shift each output of modules without submodules by at most one last place, inside the ``with`` block."""
    generators: dict[torch.device, torch.Generator] = {}

    def shift(part: nn.Module, arguments: tuple[Any, ...], returned: Any) -> Any:
        if not isinstance(returned, Tensor) or not returned.is_floating_point():
            return returned
        device = returned.device
        generator = generators.setdefault(device, torch.Generator(device).manual_seed(0))
        steps = torch.randint(-1, 2, returned.shape, generator=generator, device=device)
        return returned * (1 + steps.to(returned.dtype) * torch.finfo(returned.dtype).eps)

    with ExitStack() as hooked:
        for part in module.modules():
            if not any(part.children()):
                hooked.enter_context(part.register_forward_hook(shift))
        yield
