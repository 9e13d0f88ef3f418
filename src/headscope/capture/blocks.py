"""The blocks of a model, whose outputs on a batch can be kept, so that a pass that changes a layer begins at its block.

What lies below a changed head is the same in every pass. A block is the module that a model's list of layers holds: its
attention, its feed-forward part and its norms.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from headscope.capture.installed import pass_over
from headscope.capture.interface import Capture
from headscope.errors import ModelError

Layer = tuple[str, int]
"""A layer by attention type and number."""


@dataclass(eq=False)
class Recorded:
    """What the blocks of a model returned in one pass, in the order of their calls.

    Attributes:
        blocks: the modules, each once, though a model may call one again and again.
        outputs: of each call.
        attention: the modules of attention that were called in each of these calls.
        starts: of each layer, the number of calls that end before its attention begins.
    """

    blocks: tuple[nn.Module, ...]
    outputs: list[Any] = field(default_factory=list)
    attention: list[list[nn.Module]] = field(default_factory=lambda: [[]])
    starts: dict[Layer, int] = field(default_factory=dict)

    @contextmanager
    def skip_below(self, layer: Layer) -> Iterator[None]:
        """Within, one pass on the same batch takes from the record all that lies below a layer.

        The pass must not fill a cache of keys and values.
        """
        calls = 0

        def resume(block: nn.Module, run: Callable[..., Any]) -> Callable[..., Any]:
            def forward(*arguments: Any, **named: Any) -> Any:
                nonlocal calls
                if calls == self.starts[layer]:
                    return run(*arguments, **named)
                for module in self.attention[calls]:
                    pass_over(module)
                calls += 1
                return self.outputs[calls - 1]

            return forward

        with ExitStack() as restored:
            for block in self.blocks:
                restored.enter_context(_replace_forward(block, resume(block, block.forward)))
            yield


@contextmanager
def record_blocks(capture: Capture) -> Iterator[Recorded]:
    """Within, one pass of a model is recorded.

    Raises:
        ModelError: the layers of the model are in no list of modules.
    """
    blocks = _find_blocks(capture)
    recorded = Recorded(tuple({id(block): block for block in blocks.values()}.values()))
    layers: dict[int, list[Layer]] = {}
    for layer, module in capture.modules.items():
        layers.setdefault(id(module), []).append(layer)
    calls: dict[int, int] = {}

    def start(module: nn.Module, *_: Any) -> None:
        seen = calls[id(module)] = calls.get(id(module), 0) + 1
        recorded.starts[layers[id(module)][seen - 1]] = len(recorded.outputs)
        recorded.attention[-1].append(module)

    def keep(block: nn.Module, arguments: Any, output: Any) -> None:
        recorded.outputs.append(output)
        recorded.attention.append([])

    hooks = [
        module.register_forward_pre_hook(start) for module in {id(m): m for m in capture.modules.values()}.values()
    ]
    hooks += [block.register_forward_hook(keep) for block in recorded.blocks]
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _replace_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    own = vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def _find_blocks(capture: Capture) -> Mapping[Layer, nn.Module]:
    """The block of each layer: what the outermost list of modules around its attention holds."""
    modules = dict(capture.model.module.named_modules())
    paths = {id(module): path for path, module in modules.items()}
    blocks = {}
    for layer, module in capture.modules.items():
        parts = paths[id(module)].split(".")
        inside = (end for end in range(1, len(parts)) if isinstance(modules[".".join(parts[:end])], nn.ModuleList))
        end = next(inside, None)
        if end is None:
            raise ModelError(
                f"{capture.model.name!r} keeps the modules of its layers in no list, so that a pass cannot begin at a "
                "layer; its heads can be disabled one at a time, with headscope.disable."
            )
        blocks[layer] = modules[".".join(parts[: end + 1])]
    return blocks
