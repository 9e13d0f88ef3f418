"""Edits that stay installed while a model runs as usual: each call of its own attention implementation is edited.

Nothing is observed here, so the model keeps its kernel, its cache and its dropout. The keys that a query sees are read
from the mask that the implementation gets. Without a mask, they follow from the implementation's own rules.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.capture.forward.head_edit import Edit, EditedLayer, apply_edits, silence
from headscope.capture.forward.path import find_scale
from headscope.capture.model.dtypes import widen
from headscope.capture.model.mask import hide, shown
from headscope.errors import HeadscopeError

Implementation = Callable[..., tuple[Tensor, Tensor | None]]
"""An attention function of transformers."""


@dataclass(eq=False)
class Installed:
    """The edits that are installed on an attention module.

    Attributes:
        layers: The attention type and number of each layer that uses the module. There are several layers if a model
            uses one module again and again.
        edits: The edits, in the order in which they change z.
        calls: The number of calls of the module in this forward pass.
        read: The number of earlier tokens, whose keys and values were in the cache when this pass began.
    """

    layers: Sequence[tuple[str, int]]
    edits: tuple[Edit, ...]
    calls: int = 0
    read: int = 0


_installed: ContextVar[Mapping[int, Installed]] = ContextVar("edits by module", default=MappingProxyType({}))
"""The edits of each module, by the module's id, in the thread that installed them."""

_suspended: ContextVar[bool] = ContextVar("edits do nothing", default=False)


def find_edits(module: nn.Module) -> tuple[Edit, ...]:
    """Return the edits that are installed on an attention module; an empty tuple while edits are suspended."""
    installed = _installed.get().get(id(module))
    return installed.edits if installed and not _suspended.get() else ()


def describe_edits(model: nn.Module) -> str:
    """Return the descriptions of the edits on a model as one text, outermost edit first; empty without edits.

    An edit describes itself by a method ``describe``. Without that method, or if it returns nothing, the name of the
    edit is used.
    """
    installed: dict[int, Edit] = {id(edit): edit for module in model.modules() for edit in find_edits(module)}
    edits = [edit.func if isinstance(edit, partial) else edit for edit in installed.values()]
    return "; ".join(map(_describe, edits))


def _describe(edit: Any) -> str:
    """Return an edit's own description, or else the name of its function or class."""
    described = str(edit.describe()) if hasattr(edit, "describe") else ""
    kind = edit if hasattr(edit, "__qualname__") else type(edit)
    return described or f"an edit, {kind.__module__}.{kind.__qualname__}"


def pass_over(module: nn.Module) -> None:
    """Count a skipped call of an attention module, so that the module's next call gets the right layer number."""
    if installed := _installed.get().get(id(module)):
        installed.calls += 1


@contextmanager
def suspend_edits() -> Iterator[None]:
    """Suspend installed edits, so that they change nothing inside the ``with`` block."""
    token = _suspended.set(True)
    try:
        yield
    finally:
        _suspended.reset(token)


@contextmanager
def install(
    model: nn.Module, modules: Mapping[tuple[str, int], nn.Module], edit: Edit, names: Collection[str]
) -> Iterator[None]:
    """Install an edit inside the ``with`` block, after the edits that the attention modules of a model already have.

    Several such blocks of one model may end in any order. A pass under an attention implementation that is not in
    `names` raises an error, since it would not be edited.
    """
    layers: dict[int, list[tuple[str, int]]] = {}
    for layer, module in modules.items():
        layers.setdefault(id(module), []).append(layer)
    own = partial(edit)  # a new object, so that it is told apart if `edit` is installed twice

    def start_pass(part: PreTrainedModel, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        _refuse_other_implementation(part, names)
        read = _count_read(part, arguments, named)
        for key in layers:
            if installed := _installed.get().get(key):
                # An error may have ended an earlier pass in the middle.
                installed.calls, installed.read = 0, read

    before = _installed.get()
    edits = {key: (*(before[key].edits if key in before else ()), own) for key in layers}
    _installed.set({**before, **{key: Installed(layers[key], edits[key]) for key in layers}})
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    hooks = [part.register_forward_pre_hook(start_pass, with_kwargs=True) for part in parts]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        left: dict[int, Installed] = {}
        for key, installed in _installed.get().items():
            if others := tuple(other for other in installed.edits if other is not own):
                left[key] = Installed(installed.layers, others)
        _installed.set(left)


def _refuse_other_implementation(part: PreTrainedModel, names: Collection[str]) -> None:
    name = part.config._attn_implementation
    if name not in names:
        raise HeadscopeError(
            f"the attention implementation of {type(part).__name__} became {name!r} while its heads are edited; choose "
            "it before, and leave it until the block ends."
        )


def _count_read(part: PreTrainedModel, arguments: tuple[Any, ...], named: dict[str, Any]) -> int:
    """Count the tokens in the cache that a call of a model (or of its encoder or decoder) gets; 0 without a cache."""
    given = inspect.signature(part.forward).bind_partial(*arguments, **named).arguments
    cache = given.get("past_key_values", given.get("kwargs", {}).get("past_key_values"))
    return 0 if cache is None else int(cache.get_seq_length())


def attend_edited(
    is_causal: bool,
    implementation: Implementation,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **terms: Any,
) -> tuple[Tensor, Tensor | None]:
    """Run a model's own attention function; return its output after all edits, and its weights, if it returns any.

    `is_causal` is True if `implementation`, an attention function of transformers, hides later tokens when it gets no
    mask and the module is causal. The other arguments are those that transformers passes to `implementation`.

    Raises:
        HeadscopeError: The model runs in another thread than the thread that edits it.
    """
    installed = _installed.get().get(id(module))
    if installed is None:
        raise HeadscopeError(
            "a model was run while its heads are edited in another thread; run it in the thread that edits it, or run "
            "a copy of the model that was made before."
        )
    attention_type, number = installed.layers[installed.calls % len(installed.layers)]
    installed.calls += 1
    output, weights = implementation(module, query, key, value, attention_mask, **terms)
    queries, keys = query.shape[2], key.shape[2]
    ahead = None
    if attention_mask is None and is_causal and queries > 1 and _hides_what_lies_ahead(module, terms):
        ahead = torch.ones(queries, keys, dtype=torch.bool, device=query.device).triu(1)[None, None]

    def visible(rows: slice) -> Bool[Tensor, "batch query key"]:
        size = (len(query), len(range(queries)[rows]), keys)
        if ahead is not None:
            return ~ahead[:, 0, rows].expand(size)
        if attention_mask is None:
            return torch.ones(size, dtype=torch.bool, device=query.device)
        mask = attention_mask[..., :keys]
        return shown(mask if mask.shape[-2] == 1 else mask[:, :, rows])[:, 0].expand(size)

    def attend_without(edges: Bool[Tensor, "#batch #head query key"]) -> Float[Tensor, "batch head query width"]:
        hidden = edges if ahead is None else edges | ahead
        mask = hide(attention_mask, hidden, query.dtype)
        output, _ = implementation(module, query, key, value, mask, **terms)
        return silence(widen(output.transpose(1, 2)), visible(slice(0, queries)), hidden)

    first = 0 if attention_type == "encoder" else installed.read
    # A cache may hold only the last keys, or have room for more keys than were read.
    first_key = 0 if attention_type == "cross" else max(0, first + queries - keys)
    layer = EditedLayer(
        attention_type, number, query.shape[1], widen(query), widen(key),
        find_scale(terms, query.shape[-1]), widen(value),
        torch.arange(first, first + queries, device=query.device),
        torch.arange(first_key, first_key + keys, device=query.device),
        visible, attend_without,
    )  # fmt: skip
    z = apply_edits(find_edits(module), widen(output.transpose(1, 2)), layer)
    return z.transpose(1, 2).to(output.dtype).contiguous(), weights


def _hides_what_lies_ahead(module: nn.Module, terms: Mapping[str, Any]) -> bool:
    """Return whether transformers' ``sdpa_attention_forward`` hides later tokens if a module passes it no mask."""
    stated = terms.get("is_causal")
    return bool(getattr(module, "is_causal", True) if stated is None else stated)
