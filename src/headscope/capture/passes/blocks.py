"""A record of one pass of a model on a batch, so that later passes that change a head can begin at that head.

Everything below a changed head is the same in every pass: the blocks of the layers below, and the attention of its own
layer. A block is a module in the model's list of layers: attention, feed-forward part and norms.
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
"""The share below which a norm is assumed to scale the output of heads before it is added to the stream.

It is the change of a block's output if the output of its heads is doubled, divided by the change if it is set to 0.
"""


@dataclass(eq=False)
class Recorded:
    """A record of one pass: the outputs of a model's blocks and attention modules, in the order of their calls.

    Attributes:
        blocks: The blocks, each once, even if a model calls one again and again.
        modules: The attention module of each layer.
        outputs: The output of each call of a block.
        inputs: The block of each call, and its arguments.
        attention: The attention modules that ran in each call.
        starts: The number of calls of blocks that end before the attention of a layer begins, for each layer.
        attended: The output of the attention module of each layer.
        heads: z of each layer, and the layer as an edit gets it.
        streams: The stream that the output of each layer is added to, as far as `find_streams` has found it.
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
        """Return the stream to which the output of a layer is added, for each of `layers` that has a projection.

        The stream is the first tensor that the block gets. If a norm scales the output before it is added, as in
        Gemma 2, the stream is returned as 0: then only the angle between a change and the output matters.
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
        """Return whether a norm scales the heads' output, so that doubling it hardly changes the block's output."""
        without, once, twice = (
            self.run_block(layer, lambda z, _, factor=factor: factor * z, projections) for factor in (0, 1, 2)
        )
        return bool((twice - once).norm() < DOUBLED * (once - without).norm())

    @contextmanager
    def change(self, layer: Layer, edit: Edit, projections: Mapping[Layer, Projection]) -> Iterator[None]:
        """Let one pass on the same batch, inside the ``with`` block, begin at a layer whose heads are already edited.

        This assumes that an attention module returns z, or z after the output projection. Otherwise the pass differs
        from a whole pass with the edit, so callers must check that it does not.

        Raises:
            KeyError: The projection of the layer is needed, and is not in `projections`.
        """
        module, (z, about) = self.modules[layer], self.heads[layer]
        changed = self._put(layer, z, apply_edits([edit], z, about), projections)
        is_changed = False

        def forward(*arguments: Any, **named: Any) -> Any:
            nonlocal is_changed
            if is_changed:  # a layer above uses the same module
                return run(*arguments, **named)
            is_changed = True
            pass_over(module)
            return changed

        run = module.forward
        with self.skip_below(layer), replace_forward(module, forward):
            yield

    def run_block(self, layer: Layer, edit: Edit, projections: Mapping[Layer, Projection]) -> Tensor:
        """Run the block of a layer with the output of its heads edited, and return the stream that it passes on.

        The errors, and the check that callers must make, are as in `change`.
        """
        z, about = self.heads[layer]
        changed = self._put(layer, z, apply_edits([edit], z, about), projections)
        block, arguments, named = self.inputs[self.starts[layer]]
        with replace_forward(self.modules[layer], lambda *_, **__: changed):
            return get_first(block(*arguments, **named))

    def _put(self, layer: Layer, z: Tensor, edited: Tensor, projections: Mapping[Layer, Projection]) -> Any:
        """Return the output that a layer's attention module would have returned with `edited` in place of `z`."""
        returned = self.attended[layer]
        first, *others = returned if isinstance(returned, tuple) else (returned,)
        before, after = (each.transpose(1, 2).flatten(2).to(first.dtype) for each in (z, edited))
        if first.shape != before.shape or not torch.equal(first, before):
            every = torch.arange(z.shape[1], device=z.device)
            after = first + projections[layer].apply(edited - z, every).to(first.dtype)
        return (after, *others) if isinstance(returned, tuple) else after

    @contextmanager
    def skip_below(self, layer: Layer) -> Iterator[None]:
        """Let one pass on the same batch skip the blocks below a layer, within a ``with`` block.

        The pass takes the recorded outputs of these blocks.

        The pass must not fill a cache of keys and values.
        """
        with self._replay(self.outputs[: self.starts[layer]]):
            yield

    @contextmanager
    def end_with(self, stream: Tensor) -> Iterator[None]:
        """Let one pass on the same batch, inside the ``with`` block, run no blocks; the last block returns `stream`."""
        last = self.outputs[-1]
        with self._replay([*self.outputs[:-1], (stream, *last[1:]) if isinstance(last, tuple) else stream]):
            yield

    @contextmanager
    def _replay(self, outputs: Sequence[Any]) -> Iterator[None]:
        """Let the first calls of blocks in one pass inside the ``with`` block return these outputs without running."""
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
    """Return the first output of a block or an attention module, which is the stream or is added to it."""
    first: Tensor = returned[0] if isinstance(returned, tuple) else returned
    return first


@contextmanager
def record_blocks(capture: Capture) -> Iterator[Recorded]:
    """Record one pass of a model inside the ``with`` block.

    Raises:
        ModelError: The layers of the model are not in a list of modules (`has_blocks`), or its heads cannot be edited.
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
    """Run a model on inputs, and return the record of the pass; the errors are as in `record_blocks`."""
    with torch.inference_mode(), record_blocks(capture) as recorded:
        run_model(capture.model, inputs)
    return recorded


@contextmanager
def replace_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Replace the forward function of a module inside the ``with`` block."""
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
    """Return whether the attention module of each layer is inside a list of modules (``nn.ModuleList``)."""
    return len(_find_blocks(capture)) == len(capture.modules)


def _find_blocks(capture: Capture) -> Mapping[Layer, nn.Module]:
    """Find the block of each layer: the item, of the outermost list of modules, that contains its attention module.

    A layer outside of any list of modules has no block, and is left out.
    """
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
