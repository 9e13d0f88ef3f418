"""The residual stream, through which the output of a head also reaches the end of the model directly.

In a model with an additive residual stream, attention modules and feed-forward modules add their outputs to a sum, and
a norm reads the sum at the end (Elhage et al. 2021, "Residual stream"). The output of a head is a part of that last
sum, so its *direct* effect there is found without the layers above it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.capture.forward.interface import Capture
from headscope.capture.forward.unembedding import Unembedding
from headscope.capture.forward.verify import is_same
from headscope.capture.model.dispatched import hold_weights
from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.passes.blocks import Layer, Recorded, get_first, has_blocks, record_pass, replace_forward
from headscope.capture.passes.projection import Projection, find_projections
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError

Stream = Float[Tensor, "batch token model"]


@dataclass(frozen=True, eq=False)
class ResidualStream:
    """The end of a model's residual stream.

    Attributes:
        norm: The module that reads the last sum.
        centers: True if the norm subtracts the mean of the sum before it scales it, as a layer norm does.
    """

    norm: nn.Module
    centers: bool

    @contextmanager
    def freeze_scale(self, stream: Stream) -> Iterator[None]:
        """Let the norm scale every input as it scales `stream`, inside the ``with`` block; the norm is then linear."""
        with replace_forward(self.norm, freeze_norm(self.norm.forward, stream, centers=self.centers)):
            yield


def freeze_norm(norm: Callable[[Tensor], Tensor], stream: Stream, *, centers: bool) -> Callable[[Tensor], Tensor]:
    """Return a norm that scales every input as it scales `stream`."""

    def measure_size(values: Tensor) -> Tensor:
        centered = values - values.mean(-1, keepdim=True) if centers else values
        return centered.square().mean(-1, keepdim=True).sqrt()

    base, shift = norm(stream), norm(torch.zeros_like(stream))
    stream = stream.to(base.device)
    size = measure_size(stream)

    def forward(read: Tensor) -> Tensor:
        change = read.to(stream.device) - stream
        share = measure_size(change) / size
        # The change is made as large as the stream, so the norm scales it by the same number, even with the small
        # number that the norm adds to its divisor.
        scaled = torch.where(share > 0, change / share.clamp_min(torch.finfo(share.dtype).tiny), 0)
        return base + (norm(scaled) - shift) * share

    return forward


def find_residual_stream(capture: Capture, batch: Batch, projections: Mapping[Layer, Projection]) -> ResidualStream:
    """Find the residual stream of a model, and verify on a batch that it is a sum.

    Raises:
        ModelError: The model has no additive residual stream.
    """
    model = capture.model
    if len(model.layers) > 1 or not has_blocks(capture):
        raise _refuse(model, "it has not one sequence of blocks")
    watch = _Watch()
    with ExitStack() as hooked:
        for module in model.module.modules():
            hooked.enter_context(module.register_forward_hook(watch.see, with_kwargs=True))
        recorded = record_pass(capture, batch.inputs)
    if len(recorded.blocks) < len(capture.modules):
        raise _refuse(model, "its layers are one block that is called again and again")
    with torch.inference_mode():
        _check_sums(model, recorded, watch, projections)
        return _find_norm(model, recorded, watch)


def find_unembedding(capture: Capture, batch: Batch) -> Unembedding:
    """Find the map from the values of each head of a causal language model directly to its logits.

    A run on `batch` verifies that heads add to a sum, and that the output embeddings read the norm of this sum.

    Raises:
        ModelError: The model does not return logits of tokens, has no additive residual stream, or its output
            embeddings do not read the last norm.
    """
    model, name = capture.model, capture.model.title
    embeddings = model.module.get_output_embeddings()
    if set(model.layers) != {"decoder"} or embeddings is None:
        raise ModelError(
            f"which tokens the heads of {name} copy is read from the logits of a causal language model, and it has "
            "none; load one with its head, as by --task causal-lm."
        )
    projections = find_projections(capture, batch)
    stream = find_residual_stream(capture, batch, projections)
    with torch.no_grad():
        if not _reads_norm(capture, batch, stream.norm, embeddings):
            raise ModelError(
                f"which tokens the heads of {name} copy cannot be seen: its output embeddings read something else than "
                "its last norm; leave out the reducer that asks for it."
            )
        parts = {layer: projection.parts for layer, projection in projections.items()}
        with hold_weights(embeddings):
            weights = embeddings.weight
        return Unembedding(parts, _read_norm(stream, weights), weights)


def _reads_norm(capture: Capture, batch: Batch, norm: nn.Module, embeddings: nn.Module) -> bool:
    """Return whether the input of the output embeddings is the output of the last norm."""
    given: list[Tensor] = []

    def keep(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        given.append(arguments[0])

    def keep_returned(module: nn.Module, arguments: tuple[Any, ...], returned: Tensor) -> None:
        given.append(returned)

    with norm.register_forward_hook(keep_returned), embeddings.register_forward_pre_hook(keep):
        run_model(capture.model, batch.inputs)
    return len(given) == 2 and given[0].shape == given[1].shape and is_same(capture.model, *given)


def _read_norm(stream: ResidualStream, embeddings: Tensor) -> Float[Tensor, "model model"]:
    """Return the last norm with its scale frozen, as a matrix by which output embeddings are multiplied."""
    size = embeddings.shape[1]
    # Any vector with different entries will do; if all entries were the same, a layer norm would have no scale.
    some = torch.linspace(-1, 1, size, device=embeddings.device, dtype=embeddings.dtype).expand(1, size, -1)
    frozen = freeze_norm(stream.norm.forward, some, centers=stream.centers)
    steps = torch.eye(size, device=embeddings.device, dtype=embeddings.dtype)
    return (frozen(some + steps) - frozen(some))[0].float().mT


@dataclass(eq=False)
class _Watch:
    """A hook that notes the calls of all modules in a forward pass, in the order in which the calls end.

    Attributes:
        calls: Each module, its first input tensor, and its first output tensor.
    """

    calls: list[tuple[nn.Module, Tensor, Tensor]] = field(default_factory=list)

    def see(self, module: nn.Module, arguments: tuple[Any, ...], named: Mapping[str, Any], returned: Any) -> None:
        given = next((each for each in (*arguments, *named.values()) if isinstance(each, Tensor)), None)
        first = returned[0] if isinstance(returned, tuple) and returned else returned
        if given is not None and isinstance(first, Tensor):
            self.calls.append((module, given, first))


def _check_sums(model: Model, recorded: Recorded, watch: _Watch, projections: Mapping[Layer, Projection]) -> None:
    """Raise an error unless each block adds its projected attention and one other module's output to its input."""
    given_to = {id(module): given for module, given, _ in watch.calls}
    stream = given_to[id(recorded.blocks[0])]
    for number, (block, returned) in enumerate(zip(recorded.blocks, recorded.outputs, strict=True)):
        after, name = get_first(returned), f"block {number + 1}"
        if not torch.equal(given_to[id(block)].to(stream.device), stream):
            raise _refuse(model, f"{name} does not read what the block before has returned")
        ((layer, module),) = [item for item in recorded.modules.items() if recorded.starts[item[0]] == number]
        z, attended = recorded.heads[layer][0], get_first(recorded.attended[layer])
        projected = projections[layer].apply(z, torch.arange(z.shape[1], device=z.device)).to(attended.dtype)
        offset = (attended - projected)[:1, :1]
        if not is_same(model, attended, projected + offset):
            raise _refuse(model, f"the attention of {name} does more than to project the output of its heads")
        inside = {id(part) for part in block.modules()} - {id(part) for part in module.modules()}
        others = [returned for part, _, returned in watch.calls if id(part) in inside and returned.shape == after.shape]
        added = stream.to(after.device) + attended
        if not any(is_same(model, after, added + other) for other in others):
            raise _refuse(model, f"{name} does more than to add the output of its attention to what it reads")
        stream = after


def _find_norm(model: Model, recorded: Recorded, watch: _Watch) -> ResidualStream:
    """Find the norm that reads the last sum, or raise an error."""
    last = get_first(recorded.outputs[-1])
    end = next(place for place, (module, *_) in enumerate(watch.calls) if module is recorded.blocks[-1])
    for norm, given, returned in watch.calls[end + 1 :]:
        if given.shape == last.shape == returned.shape and torch.equal(given, last):
            for centers in (False, True):
                if _scales(model, norm, last, centers=centers):
                    return ResidualStream(norm, centers)
            break
    raise _refuse(model, "what reads the output of its last block is no norm")


def _scales(model: Model, norm: nn.Module, stream: Stream, *, centers: bool) -> bool:
    """Return whether a module acts as a norm: its input's size does not matter; with a fixed scale it is affine."""
    frozen = freeze_norm(norm.forward, stream, centers=centers)
    first, second = stream.roll(1, -1), stream.flip(-1)  # two arbitrary changes
    base = frozen(stream)
    parts = frozen(stream + first) + frozen(stream + second) - base
    return is_same(model, norm(stream), norm(4 * stream)) and is_same(model, frozen(stream + first + second), parts)


def _refuse(model: Model, why: str) -> ModelError:
    return ModelError(
        f"{model.title} has no direct effects of heads: {why}; leave out --direct, or the reducer that reads logits."
    )
