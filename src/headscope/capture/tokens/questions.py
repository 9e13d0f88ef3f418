"""The statistics that reducers ask of the layers of a batch: distances and averages of columns.

Reducers ask each layer for the same statistics. So the pass over a layer computes all statistics that the layer before
was asked for. This only saves passes: a statistic has the same value, whether it is computed in advance or later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

BEFORE_LAYERS = 0
"""The number in place of a layer number (which counts from 1), for statistics that every layer will be asked for."""

MOST_COLUMNS = 128
"""The most columns of a remembered tensor. Larger tensors, such as for the words of a text, are made for each layer."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The statistics that one layer was asked for.

    Attributes:
        edges: The edges of buckets of distance (`headscope.capture.rows.attention.Attention.distances`).
        columns: The tensors of columns that were averaged.
        versions: The version of each tensor of columns when it was averaged: the number of its changes in place.
    """

    edges: list[tuple[int, ...]] = field(default_factory=list)
    columns: list[Float[Tensor, "batch key _"]] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def find(self, columns: Float[Tensor, "batch key feature"]) -> int | None:
        """Return the index of a tensor among the averaged tensors; None if it is not there, or has changed since."""
        for place, (each, version) in enumerate(zip(self.columns, self.versions, strict=True)):
            if each is columns and each._version == version:
                return place
        return None


@dataclass(frozen=True, eq=False)
class Questions:
    """The statistics that each layer of a batch was asked for."""

    _by_layer: dict[tuple[str, int], Asked] = field(default_factory=dict)
    _laid: dict[tuple[tuple[int, int], ...], Any] = field(default_factory=dict)

    def lay(self, question: Asked, lay: Callable[[Sequence[Float[Tensor, "batch 1 key _"]]], Any]) -> Any:
        """Return the columns of `question` as `lay` lays them out, once for all layers; None without columns."""
        if not question.columns:
            return None
        # The questions keep the columns alive, so an id cannot mean another tensor.
        names = tuple(zip(map(id, question.columns), question.versions, strict=True))
        if names not in self._laid:
            self._laid[names] = lay([each[:, None] for each in question.columns])
        return self._laid[names]

    def expect(self, attention_type: str, edges: tuple[int, ...], columns: Float[Tensor, "batch key feature"]) -> None:
        """Announce statistics that every layer of a type will be asked for, so that the first pass computes them."""
        self.note_edges(attention_type, BEFORE_LAYERS, edges)
        self.note_columns(attention_type, BEFORE_LAYERS, columns)

    def note_edges(self, attention_type: str, layer: int, edges: tuple[int, ...]) -> None:
        """Note that a layer was asked for distances in buckets that begin at `edges`."""
        known = self._get(attention_type, layer).edges
        if edges not in known:
            known.append(edges)

    def note_columns(self, attention_type: str, layer: int, columns: Float[Tensor, "batch key feature"]) -> None:
        """Note that a layer was asked for averages of columns, if the next layer may be asked for the same tensor.

        Tensors of more than `MOST_COLUMNS` columns, and tensors that are made while the model runs, are not noted.
        """
        known = self._get(attention_type, layer)
        # A tensor that is made while the model runs is made again for the next layer.
        if columns.shape[-1] > MOST_COLUMNS or columns.is_inference() or known.find(columns) is not None:
            return
        known.columns.append(columns)
        known.versions.append(columns._version)

    def recall(self, attention_type: str, layer: int) -> Asked:
        """Return the statistics that the previous layer of a type was asked for, or else those that are expected.

        Columns that have changed since are left out. The result is empty if nothing was asked or expected.
        """
        layers = [key for key in self._by_layer if key[0] == attention_type and key != (attention_type, layer)]
        if not layers:
            return Asked()
        last = self._by_layer[layers[-1]]
        unchanged = [place for place, each in enumerate(last.columns) if each._version == last.versions[place]]
        columns = [last.columns[place] for place in unchanged]
        return Asked([*last.edges], columns, [last.versions[place] for place in unchanged])

    def _get(self, attention_type: str, layer: int) -> Asked:
        return self._by_layer.setdefault((attention_type, layer), Asked())
