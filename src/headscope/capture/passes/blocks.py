"""One pass of a model on a batch, kept, so that passes that change a head begin at the head.

What lies below a changed head is the same in every pass: the blocks of the layers below, and the attention of the layer
itself. A block is the module that a model's list of layers holds: its attention, its feed-forward part and its norms.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headscope.capture.forward.head_edit import Edit, EditedLayer, apply_edits
from headscope.capture.forward.installed import pass_over
from headscope.capture.forward.interface import Capture
from headscope.capture.model.forward import run_model
from headscope.capture.passes.projection import Projection
from headscope.errors import ModelError

Layer = tuple[str, int]
"""A layer by attention type and number."""

DOUBLED = 0.05
"""The most that doubling the output of heads changes behind a norm, as a share of what the output itself changes."""


@dataclass(eq=False)
class Recorded:
    """What the blocks of a model and their modules of attention returned in one pass, in the order of their calls.

    Attributes:
        blocks: the modules, each once, though a model may call one again and again.
        modules: the module of attention of each layer.
        outputs: of each call of a block.
        inputs: the block of each of these calls, and what it was called with.
        attention: the modules of attention that were called in each of these calls.
        starts: of each layer, the number of calls that end before its attention begins.
        attended: what the module of attention of each layer returned.
        heads: z of each layer, and what a new z can be made from.
        streams: what the output of each layer is added to, as far as somebody has asked (`find_streams`).
    """

    blocks: tuple[nn.Module, ...]
    modules: Mapping[Layer, nn.Module]
    outputs: list[Any] = field(default_factory=list)
    inputs: list[tuple[nn.Module, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    attention: list[list[nn.Module]] = field(default_factory=lambda: [[]])
    starts: dict[Layer, int] = field(default_factory=dict)
    attended: dict[Layer, Any] = field(default_factory=dict)
    heads: dict[Layer, tuple[Tensor, EditedLayer]] = field(default_factory=dict)
    streams: dict[Layer, Tensor] = field(default_factory=dict)

    @torch.inference_mode()
    def find_streams(self, layers: Iterable[Layer], projections: Mapping[Layer, Projection]) -> Mapping[Layer, Tensor]:
        """Return what the output of each of some layers is added to: what its block reads; of those with a projection.

        That is the first tensor that the block is given. Where a norm scales the output before it is added, as in
        Gemma 2, the output is added to nothing that counts, and what is returned is 0: a change then has effect by its
        angle to the output itself.
        """
        layers = self.heads.keys() & projections.keys() & {*layers}
        for layer in layers - self.streams.keys():
            _, arguments, named = self.inputs[self.starts[layer]]
            tensors = [each for each in (*arguments, *named.values()) if isinstance(each, Tensor)]
            if tensors:
                is_scaled, read = self._is_scaled(layer, projections), tensors[0].to(self.heads[layer][0].device)
                self.streams[layer] = torch.zeros_like(read) if is_scaled else read
        return {layer: self.streams[layer] for layer in layers & self.streams.keys()}

    def _is_scaled(self, layer: Layer, projections: Mapping[Layer, Projection]) -> bool:
        """True where the block hardly hands on another stream if the output of its heads is twice as large."""
        without, once, twice = (
            self.run_block(layer, lambda z, _, factor=factor: factor * z, projections) for factor in (0, 1, 2)
        )
        return bool((twice - once).norm() < DOUBLED * (once - without).norm())

    @contextmanager
    def change(self, layer: Layer, edit: Edit, projections: Mapping[Layer, Projection]) -> Iterator[None]:
        """Within, one pass on the same batch begins behind the heads of a layer, whose output an edit has changed.

        What a module of attention returns is z, or z behind the output projection; with anything else the pass gives
        another result than an edit of a whole pass, which is to be checked.

        Raises:
            KeyError: the projection of the layer is needed, and is not among `projections`.
        """
        module, (z, about) = self.modules[layer], self.heads[layer]
        changed = self._put(layer, z, apply_edits([edit], z, about), projections)
        is_changed = False

        def forward(*arguments: Any, **named: Any) -> Any:
            nonlocal is_changed
            if is_changed:  # the module of a layer above is the same
                return run(*arguments, **named)
            is_changed = True
            pass_over(module)
            return changed

        run = module.forward
        with self.skip_below(layer), replace_forward(module, forward):
            yield

    def run_block(self, layer: Layer, edit: Edit, projections: Mapping[Layer, Projection]) -> Tensor:
        """What the block of a layer hands on as the stream, with the output of its heads changed by an edit.

        The errors, and what is to be checked, are those of `change`.
        """
        z, about = self.heads[layer]
        changed = self._put(layer, z, apply_edits([edit], z, about), projections)
        block, arguments, named = self.inputs[self.starts[layer]]
        with replace_forward(self.modules[layer], lambda *_, **__: changed):
            return get_first(block(*arguments, **named))

    def _put(self, layer: Layer, z: Tensor, edited: Tensor, projections: Mapping[Layer, Projection]) -> Any:
        """What the module of attention of a layer would have returned with another z."""
        returned = self.attended[layer]
        first, *others = returned if isinstance(returned, tuple) else (returned,)
        before, after = (each.transpose(1, 2).flatten(2).to(first.dtype) for each in (z, edited))
        if first.shape != before.shape or not torch.equal(first, before):
            every = torch.arange(z.shape[1], device=z.device)
            after = first + projections[layer].apply(edited - z, every).to(first.dtype)
        return (after, *others) if isinstance(returned, tuple) else after

    @contextmanager
    def skip_below(self, layer: Layer) -> Iterator[None]:
        """Within, one pass on the same batch takes from the record all that lies below a layer.

        The pass must not fill a cache of keys and values.
        """
        with self._replay(self.outputs[: self.starts[layer]]):
            yield

    @contextmanager
    def end_with(self, stream: Tensor) -> Iterator[None]:
        """Within, one pass on the same batch runs no block, and the last one returns another stream."""
        last = self.outputs[-1]
        with self._replay([*self.outputs[:-1], (stream, *last[1:]) if isinstance(last, tuple) else stream]):
            yield

    @contextmanager
    def _replay(self, outputs: Sequence[Any]) -> Iterator[None]:
        """Within, the first calls of blocks in one pass return these outputs, and run nothing."""
        calls = 0

        def resume(block: nn.Module, run: Callable[..., Any]) -> Callable[..., Any]:
            def forward(*arguments: Any, **named: Any) -> Any:
                nonlocal calls
                if calls == len(outputs):
                    return run(*arguments, **named)
                for module in self.attention[calls]:
                    pass_over(module)
                calls += 1
                return outputs[calls - 1]

            return forward

        with ExitStack() as restored:
            for block in self.blocks:
                restored.enter_context(replace_forward(block, resume(block, block.forward)))
            yield


def get_first(returned: Any) -> Tensor:
    """What a block or a module of attention adds to the stream or hands on as it: the first thing that it returns."""
    first: Tensor = returned[0] if isinstance(returned, tuple) else returned
    return first


@contextmanager
def record_blocks(capture: Capture) -> Iterator[Recorded]:
    """Within, one pass of a model is recorded.

    Raises:
        ModelError: the layers of the model are in no list of modules (`has_blocks`), or its heads cannot be edited.
    """
    blocks = _find_blocks(capture)
    if not has_blocks(capture):
        raise ModelError(
            f"{capture.model.name!r} keeps the modules of its layers in no list, so that a pass cannot begin at a "
            "layer; run it from the start."
        )
    recorded = Recorded(tuple({id(block): block for block in blocks.values()}.values()), capture.modules)
    layers: dict[int, list[Layer]] = {}
    for layer, module in capture.modules.items():
        layers.setdefault(id(module), []).append(layer)
    calls: dict[int, int] = {}

    def start(module: nn.Module, *_: Any) -> None:
        seen = calls[id(module)] = calls.get(id(module), 0) + 1
        recorded.starts[layers[id(module)][seen - 1]] = len(recorded.outputs)
        recorded.attention[-1].append(module)

    def end(module: nn.Module, arguments: Any, output: Any) -> None:
        recorded.attended[layers[id(module)][calls[id(module)] - 1]] = output

    def look(z: Tensor, layer: EditedLayer) -> Tensor:
        recorded.heads[layer.attention_type, layer.layer] = z, layer
        return z

    def begin(block: nn.Module, arguments: Any, named: Any) -> None:
        recorded.inputs.append((block, arguments, named))

    def keep(block: nn.Module, arguments: Any, output: Any) -> None:
        recorded.outputs.append(output)
        recorded.attention.append([])

    attention = {id(module): module for module in capture.modules.values()}.values()
    hooks = [module.register_forward_pre_hook(start) for module in attention]
    hooks += [module.register_forward_hook(end) for module in attention]
    hooks += [block.register_forward_pre_hook(begin, with_kwargs=True) for block in recorded.blocks]
    hooks += [block.register_forward_hook(keep) for block in recorded.blocks]
    with ExitStack() as hooked:
        for hook in hooks:
            hooked.enter_context(hook)
        hooked.enter_context(capture.editing(look))
        yield recorded


def record_pass(capture: Capture, inputs: Mapping[str, Tensor]) -> Recorded:
    """One pass of a model on some inputs, recorded; the errors are those of `record_blocks`."""
    with torch.inference_mode(), record_blocks(capture) as recorded:
        run_model(capture.model, inputs)
    return recorded


@contextmanager
def replace_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Within, a module runs another function in place of its own."""
    own = vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def has_blocks(capture: Capture) -> bool:
    """True if each layer of a model is in a list of modules."""
    return len(_find_blocks(capture)) == len(capture.modules)


def _find_blocks(capture: Capture) -> Mapping[Layer, nn.Module]:
    """The block of each layer that has one: what the outermost list of modules around its attention holds."""
    modules = dict(capture.model.module.named_modules())
    paths = {id(module): path for path, module in modules.items()}
    blocks = {}
    for layer, module in capture.modules.items():
        parts = paths[id(module)].split(".")
        for end in range(1, len(parts)):
            if isinstance(modules[".".join(parts[:end])], nn.ModuleList):
                blocks[layer] = modules[".".join(parts[: end + 1])]
                break
    return blocks
