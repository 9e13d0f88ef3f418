"""Outputs of heads on a corpus, which can replace other outputs: the mean output, or the outputs on single texts.

documents --stream--> batches --capture, with an edit that only looks--> z of the selected layers --> `Mean`, `Resample`
"""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.capture.forward.head_edit import EditedLayer
from headscope.capture.model.model import Model
from headscope.capture.passes.blocks import Layer
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.intervene.replacement import Mean, Resample
from headscope.intervene.selected_heads import Selection


def average_outputs(
    model: Model, selection: Selection, documents: Iterable[Document], *, by_position: bool = False
) -> Mean:
    """Return the mean output of the heads of the selected layers over all tokens of a corpus.

    Args:
        model: The model that runs.
        selection: The heads whose layers are selected.
        documents: The texts of the corpus.
        by_position: Also return the mean at each position of a text.

    Raises:
        HeadscopeError: The model can read no document.
        ModelError: The attention of the model cannot be captured.
    """
    sums: dict[Layer, Tensor] = {}
    counts: dict[Layer, Tensor] = {}
    for outputs in _collect(model, selection, documents):
        for layer, (z, real) in outputs.items():
            by_place = torch.einsum("bhqw,bq->hqw", z.double(), real.double())
            sums[layer] = _add(sums.get(layer), by_place, dim=1)
            counts[layer] = _add(counts.get(layer), real.sum(0), dim=0)
    _refuse_nothing(sums, model)
    pooled = {layer: total.sum(1) / counts[layer].sum() for layer, total in sums.items()}
    places = {layer: total / counts[layer][:, None] for layer, total in sums.items()} if by_position else {}
    return Mean(pooled, places)


def record_outputs(model: Model, selection: Selection, documents: Iterable[Document], *, seed: int = 0) -> Resample:
    """Return the outputs of all heads of the selected layers on each document, with the documents in random order.

    The outputs are held in memory. The errors are the same as for `average_outputs`.
    """
    texts: dict[Layer, list[Tensor]] = {}
    for outputs in _collect(model, selection, documents):
        for layer, (z, real) in outputs.items():
            texts.setdefault(layer, []).extend(output[:, tokens] for output, tokens in zip(z, real, strict=True))
    _refuse_nothing(texts, model)
    count = len(next(iter(texts.values())))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()
    return Resample({layer: tuple(outputs[text] for text in order) for layer, outputs in texts.items()})


def _collect(
    model: Model, selection: Selection, documents: Iterable[Document]
) -> Iterator[dict[Layer, tuple[Tensor, Bool[Tensor, "batch query"]]]]:
    """Yield for each batch the output z of each selected layer, with a mask that is False for padding.

    Long texts are cut.
    """
    room = Room.measure(model, None)

    def read(portion: Portion) -> dict[Layer, tuple[Tensor, Bool[Tensor, "batch query"]]]:
        (capture,), (batch,) = portion.captures, portion.batches
        outputs: dict[Layer, Tensor] = {}

        def look(z: Tensor, layer: EditedLayer) -> Tensor:
            if (layer.attention_type, layer.layer) in selection:
                outputs[layer.attention_type, layer.layer] = z.clone()
            return z

        capture.run(batch, edit=look)
        return {layer: (z, batch.on(z.device).queries(layer[0]).real) for layer, z in outputs.items()}

    for portion in Stream(documents, (model,), Plan(cut=True)):
        if portion.batches:
            yield from room.run(portion, read)


def _add(total: Tensor | None, batch: Tensor, *, dim: int) -> Tensor:
    """Add a batch to a total; the tensor that is shorter along `dim` counts as 0 beyond its end."""
    if total is None:
        return batch
    longer, shorter = (total, batch) if total.shape[dim] >= batch.shape[dim] else (batch, total)
    longer = longer.clone()
    longer.narrow(dim, 0, shorter.shape[dim]).add_(shorter)
    return longer


def _refuse_nothing(collected: object, model: Model) -> None:
    if not collected:
        raise HeadscopeError(f"the corpus has no text that {model.name!r} can read; give one with texts.")
