"""Patterns of attention maps: Kovaleva et al. 2019, section 4.1 and figure 2.

The share of a head's maps that are vertical, diagonal, both, blocks or none of these, by a classifier of their images
(`headscope.reducers.support.pattern_network`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import one_hot

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.corpora.summary import CorpusSummary
from headscope.heads import describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.sparse_shapes import SparseShapes
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.maps import Maps
from headscope.reducers.support.pattern_network import LEAST_TOKENS, PATTERNS, MapClassifier, make_images
from headscope.reducers.support.ratios import score_table
from headscope.score import Score

KOVALEVA = "Kovaleva et al. 2019, section 4.1"

SHARE = Score(
    "pattern_share",
    "Patterns of attention maps",
    f"the share of a head's maps of {LEAST_TOKENS} tokens or more that show the pattern, one map a document",
    numerator=("fold_pattern",), denominator=("fold_maps",),
    items="maps", rows="patterns", attends="each token",
)  # fmt: skip


@dataclass(frozen=True)
class MapPatterns(Reducer):
    """How often the maps of a head show each of five patterns: vertical, diagonal, both, block or none of these.

    A map is the attention of a head on a document. It is classified as a whole, together with the positions where
    sentences end, so the share of a pattern is a share of documents. Maps of fewer than 6 tokens are counted but not
    classified.

    Attributes:
        classifier: The network that classifies maps; by default the one that comes with headscope.
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    classifier: MapClassifier = field(default_factory=MapClassifier.read)
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "map_patterns"
    scope = "layer"
    max_tokens = 512
    scores = (SHARE,)
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> Maps:
        """Return the tokens that are not padding, the ends of sentences, and the fold of each document."""
        keys = batch.keys(attention_type)
        separators = [tuple(sep[real].nonzero()[:, 0].tolist()) for sep, real in zip(keys.sep, keys.real, strict=True)]
        return Maps.of_batch(batch, attention_type, separators, self.fold_assignment)

    def count(self, facts: Maps) -> Sums:
        """Count the maps in each fold that are long enough to be classified, and all maps that are too short."""
        long = _find_long(facts).long()
        return {"fold_maps": total_by_fold(long, facts.folds), "short_maps": (1 - long).sum()}

    def observe(self, facts: Maps, attention: Attention) -> Sums:
        """Count by fold the maps of each head that show each pattern."""
        maps = facts.cut(attention.weights())
        patterns = [self.classifier.classify(make_images(real, separators)) for real, separators in maps]
        shown = one_hot(torch.stack(patterns), len(PATTERNS)).to(facts.folds.device) * _find_long(facts)[:, None, None]
        return {"fold_pattern": total_by_fold(shown, facts.folds).movedim(0, -1)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the share of each pattern among the maps of each head, and the sums by fold."""
        table = score_table(
            SHARE, {**sums, **counts}, {"pattern": list(PATTERNS)}, source=KOVALEVA, fold_unit=self.fold_assignment.unit
        )
        short = f"documents of fewer than {LEAST_TOKENS} tokens, whose maps are not classified"
        table = table.assign(describe({"pattern_left_out": (counts["short_maps"], (), short, "documents")}, KOVALEVA))
        return table.assign_attrs(pattern_classifier=f"{self.classifier.source}, SHA-256 {self.classifier.sha256}")


def _find_long(facts: Maps) -> Bool[Tensor, " document"]:
    """Return for each document whether it has enough tokens for its maps to be classified."""
    return torch.minimum(facts.queries.sum(1), facts.keys.sum(1)) >= LEAST_TOKENS


def list_map_reducers(classifier: MapClassifier, summary: CorpusSummary, *, causal: bool) -> list[Reducer]:
    """Return the reducers that read whole maps: `MapPatterns`, and for causal maps also `SparseShapes`."""
    patterns = MapPatterns(classifier, FoldAssignment.for_corpus(summary))
    return [patterns, SparseShapes.for_corpus(summary)] if causal else [patterns]
