"""The built-in reducers, by their names on the command line."""

from collections.abc import Mapping

from headscope.reducers.alignment import WordAlignment
from headscope.reducers.aspects import Aspects
from headscope.reducers.average_map import AverageMap
from headscope.reducers.copying import Copying
from headscope.reducers.coreference import Coreference
from headscope.reducers.gradients import Gradients
from headscope.reducers.head_distances import HeadDistances, HeadDistancesBefore
from headscope.reducers.induction import Induction
from headscope.reducers.map_patterns import MapPatterns
from headscope.reducers.nearby_tokens import NearbyTokens
from headscope.reducers.negation_scope import NegationScope
from headscope.reducers.reducer import Reducer
from headscope.reducers.relations import Relations
from headscope.reducers.retrieval import Retrieval
from headscope.reducers.roles import Roles
from headscope.reducers.similarity import Similarity
from headscope.reducers.sinks import Sinks
from headscope.reducers.sparse_shapes import SparseShapes
from headscope.reducers.streaming import Streaming
from headscope.reducers.surface import Surface
from headscope.reducers.token_classes import TokenClasses

REDUCERS: Mapping[str, type[Reducer]] = {
    reducer.name: reducer
    for reducer in (
        Surface, Relations, Coreference, NegationScope, Aspects, TokenClasses, Roles, Similarity, Gradients,
        HeadDistances, HeadDistancesBefore, MapPatterns, SparseShapes, AverageMap, Induction, NearbyTokens, Sinks,
        Retrieval, Copying, Streaming, WordAlignment,
    )
}  # fmt: skip
"""All built-in reducers by name."""

DEFAULT = ("surface",)
"""The reducers that are measured if none is named; they need no annotation."""
