"""What the layers of a batch are asked: reducers ask each for the same, so a pass can answer what they asked the last.

An answer from what is remembered is the same as one that is found when it is asked for; it only takes no pass of its
own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

BEFORE_LAYERS = 0
"""In place of a layer's number, which are counted from 1: what all of them are going to be asked."""

MOST_COLUMNS = 128
"""More columns are not remembered: they are the words of a text, say, laid out anew for each layer."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What one layer was asked.

    Attributes:
        edges: of the buckets of distance (`headscope.capture.rows.attention.Attention.distances`).
        columns: which were averaged; the same tensors, unchanged, mean the same question.
        versions: how often each was changed in place when that was asked.
    """

    edges: list[tuple[int, ...]] = field(default_factory=list)
    columns: list[Float[Tensor, "batch key _"]] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def find(self, columns: Float[Tensor, "batch key feature"]) -> int | None:
        """The place of some columns among those that were averaged; None if they were not."""
        for place, (each, version) in enumerate(zip(self.columns, self.versions, strict=True)):
            if each is columns and each._version == version:
                return place
        return None


@dataclass(frozen=True, eq=False)
class Questions:
    """What each layer was asked, by attention type and number."""

    _by_layer: dict[tuple[str, int], Asked] = field(default_factory=dict)
    _laid: dict[tuple[tuple[int, int], ...], Any] = field(default_factory=dict)

    def lay(self, question: Asked, lay: Callable[[Sequence[Float[Tensor, "batch 1 key _"]]], Any]) -> Any:
        """Return the columns of a question as a kernel wants them, laid out once for all layers; None without any."""
        if not question.columns:
            return None
        # The columns are kept with the questions, so that their numbers stay theirs.
        names = tuple(zip(map(id, question.columns), question.versions, strict=True))
        if names not in self._laid:
            self._laid[names] = lay([each[:, None] for each in question.columns])
        return self._laid[names]

    def expect(self, attention_type: str, edges: tuple[int, ...], columns: Float[Tensor, "batch key feature"]) -> None:
        """Announce what every layer of a type will be asked, so that the first one's pass can answer it too."""
        self.note_edges(attention_type, BEFORE_LAYERS, edges)
        self.note_columns(attention_type, BEFORE_LAYERS, columns)

    def note_edges(self, attention_type: str, layer: int, edges: tuple[int, ...]) -> None:
        """Remember that a layer was asked for buckets."""
        known = self._get(attention_type, layer).edges
        if edges not in known:
            known.append(edges)

    def note_columns(self, attention_type: str, layer: int, columns: Float[Tensor, "batch key feature"]) -> None:
        """Remember that a layer was asked for averages, if they are not too many."""
        known = self._get(attention_type, layer)
        # A tensor that is made while the model runs is made anew for the next layer.
        if columns.shape[-1] > MOST_COLUMNS or columns.is_inference() or known.find(columns) is not None:
            return
        known.columns.append(columns)
        known.versions.append(columns._version)

    def recall(self, attention_type: str, layer: int) -> Asked:
        """What the last other layer of this type was asked; nothing if this is the first."""
        layers = [key for key in self._by_layer if key[0] == attention_type and key != (attention_type, layer)]
        if not layers:
            return Asked()
        last = self._by_layer[layers[-1]]
        unchanged = [place for place, each in enumerate(last.columns) if each._version == last.versions[place]]
        columns = [last.columns[place] for place in unchanged]
        return Asked([*last.edges], columns, [last.versions[place] for place in unchanged])

    def _get(self, attention_type: str, layer: int) -> Asked:
        return self._by_layer.setdefault((attention_type, layer), Asked())
