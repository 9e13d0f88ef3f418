"""Placebo adapters: random adapters that update the same weights by the same amount as a trained one, as controls."""

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from headscope.capture.forward.installed import describe_edits
from headscope.capture.model.dispatched import is_dispatched
from headscope.capture.model.model import Model
from headscope.capture.model.parameters import hash_parameters
from headscope.capture.open.adapters import find_configs, list_adapted
from headscope.capture.open.loading import Loadable, load
from headscope.errors import HeadscopeError, ModelError
from headscope.first_guesses import explained

WANTED = "give the folder of an adapter by LoRA, or a PeftModel with one"
"""The models of which a placebo can be made, as errors list them."""

Factors = tuple[nn.Parameter, nn.Parameter]
"""The two factors of the update of a weight, up to its scale: matrices of rank x input and of output x rank."""


@explained
def placebo_adapter(model: Loadable, seed: int = 0) -> Model:
    """Return a model with a random adapter in place of its trained adapter, as a control.

    The random adapter updates the same weights. Each update has the singular values of the trained update, and so its
    rank and Frobenius norm, but random singular vectors. If an adapter changes a head more than many placebos change
    any head, the change comes from what the adapter has learnt, and not only from the size of its updates: see
    `headscope.compare`.

    >>> placebo = headscope.placebo_adapter("my-lora", seed=1)
    >>> table = headscope.measure(placebo, "grammar:211", "relations")

    Args:
        model: A model with a LoRA adapter, as for `headscope.load`: the folder of the adapter, or a ``PeftModel``. It
            is not changed, and shares all weights but the adapter with the returned model.
        seed: The seed of the random updates.

    Raises:
        HeadscopeError: The seed is not a whole number, or an edit such as `headscope.disable` is at work.
        ModelError: The model cannot be loaded, or its layers are on several devices. Or it has no adapter, several
            adapters, or an adapter that is not LoRA alone, is merged or switched off, or changes no weight.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise HeadscopeError(f"`seed` is {seed!r}; give a whole number.")
    loaded = load(model)
    factors = find_factors(loaded, model)
    adapter = {id(each) for pair in factors.values() for each in pair}
    shared = {id(part): part for part in (*loaded.module.parameters(), *loaded.module.buffers())}
    module = copy.deepcopy(loaded.module, {key: part for key, part in shared.items() if key not in adapter})
    with torch.no_grad():
        for name, pair in factors.items():
            own = _read_factors(module.get_submodule(name))
            for factor, values in zip(own or (), _draw_factors(*pair, f"{seed} {name}"), strict=True):
                factor.copy_(values)
    names = {name: name for name, part in loaded.module.named_parameters() if id(part) in adapter}
    digest = f"{loaded.weights_sha256} {hash_parameters(module, loaded.name, names)}"
    return replace(
        loaded,
        module=module,
        name=f"placebo (seed {seed}) of {loaded.name}",
        weights_sha256=hashlib.sha256(digest.encode()).hexdigest(),
        placebo_of=loaded.weights_sha256,
    )


def find_factors(model: Model, given: Any = None) -> dict[str, Factors]:
    """Return the factors of each weight update that the adapter of a model makes, by the name of the layer.

    Args:
        model: The model with an adapter.
        given: The same model as the user gave it; its configuration shows whether biases were trained as well.

    Raises:
        HeadscopeError: An edit is at work.
        ModelError: The model has no adapter of which a placebo can be made.
    """
    model.require_weights("a placebo adapter")
    adapted = list_adapted(model.module)
    if not adapted:
        raise ModelError(f"{model.name!r} has no adapter, and a placebo is a random one in its place; {WANTED}.")
    if edits := describe_edits(model.module):
        raise HeadscopeError(
            f"{model.name!r} runs with {edits}, and a placebo is made of a model without edits; make it outside of the "
            "block of the edit."
        )
    if is_dispatched(model.module):
        raise ModelError(
            f"the layers of {model.name!r} lie on several devices or are offloaded, and a placebo is made of a model "
            "in one place; load it on one device."
        )
    if fault := next(_list_faults(model.module, adapted, given), None):
        raise ModelError(f"no placebo can be made of {model.name!r}, whose adapter {fault}.")
    factors = {name: pair for name, layer in adapted.items() if (pair := _read_factors(layer)) is not None}
    if not any(bool(second.any()) and bool(first.any()) for first, second in factors.values()):
        raise ModelError(
            f"the adapter of {model.name!r} changes no weight, and so would a placebo; give a trained one."
        )
    return factors


def _list_faults(module: nn.Module, adapted: dict[str, Any], given: Any) -> Iterator[str]:
    """Yield each reason why an adapter can have no placebo, as words that follow "whose adapter" in a sentence."""
    for name, layer in adapted.items():
        active = [*layer.active_adapters]
        if getattr(layer, "merged", False):
            yield f"is merged into the weights of {name}; take it out, as by model.unmerge_adapter()"
        elif getattr(layer, "disable_adapters", False) or not active:
            yield f"is switched off at {name}; switch it on, as by model.enable_adapter_layers()"
        elif len(active) > 1:
            yield f"is one of {len(active)} that are active at {name} ({', '.join(active)}); choose one by set_adapter"
        elif not hasattr(layer, "lora_A"):
            yield f"is not by LoRA: {name} is a layer of the kind {type(layer).__module__}; {WANTED}"
        elif getattr(layer, "lora_variant", {}).get(active[0]) or getattr(layer, "lora_bias", {}).get(active[0]):
            yield f"is not by LoRA alone: {name} is scaled or shifted as well (such as by DoRA); {WANTED}"
        elif (pair := _read_factors(layer)) is not None and (
            {each.ndim for each in pair} != {2} or pair[0].shape[0] != pair[1].shape[1]
        ):
            yield f"updates {name} by no product of two matrices; {WANTED} of linear layers"
    for name, part in module.named_modules():
        if hasattr(part, "original_module"):
            yield f"has {name} trained as a whole, and not by LoRA; {WANTED} and without modules_to_save"
    for config in find_configs(given):
        if getattr(config, "bias", "none") != "none":
            yield f"has biases trained as well (bias={config.bias!r}); {WANTED} and without biases"


def _read_factors(layer: Any) -> Factors | None:
    """Return the factors of the update of a layer by its active adapter; None if the adapter does not update it."""
    (name,) = layer.active_adapters
    if name in layer.lora_A:
        return layer.lora_A[name].weight, layer.lora_B[name].weight
    if name in layer.lora_embedding_A:
        return layer.lora_embedding_A[name], layer.lora_embedding_B[name]
    return None


def _draw_factors(first: Tensor, second: Tensor, seed: str) -> tuple[Tensor, Tensor]:
    """Return two random factors whose product has the same singular values as the product of `first` and `second`."""
    rank = min(*first.shape, second.shape[0])
    # The singular values of the product are those of the small matrix between two orthonormal ones.
    inner, outer = (torch.linalg.qr(each.double().cpu()).R for each in (first.T, second))
    roots = torch.linalg.svdvals(outer @ inner.T)[:rank].sqrt()
    generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:7]))
    rows, columns = (_draw_orthonormal(size, rank, generator) * roots for size in (first.shape[1], second.shape[0]))
    inner, outer = (torch.zeros(each.shape, dtype=torch.double) for each in (first, second))
    inner[:rank], outer[:, :rank] = rows.T, columns
    return inner, outer


def _draw_orthonormal(size: int, count: int, generator: torch.Generator) -> Tensor:
    """Return orthonormal columns in random directions (Haar measure: Mezzadri 2007)."""
    basis, triangle = torch.linalg.qr(torch.randn(size, count, dtype=torch.double, generator=generator))
    signed: Tensor = basis * triangle.diagonal().sign()
    return signed
