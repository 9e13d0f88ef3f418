"""Statistics of heads: one file a statistic; what several of them share is in `support`.

`REDUCERS` lists those that headscope brings, by the name that the command line has for them. `Reducer` is what a new
one has to provide; `headscope.measure` takes it as an object.
"""

from collections.abc import Mapping

from headscope.reducers.aspects import Aspects
from headscope.reducers.coreference import Coreference
from headscope.reducers.negation_scope import NegationScope
from headscope.reducers.reducer import CorpusReducer, Reducer, Sums
from headscope.reducers.relations import Relations
from headscope.reducers.roles import Roles
from headscope.reducers.similarity import Similarity
from headscope.reducers.support.rules import Rule
from headscope.reducers.support.word_class import WordClass
from headscope.reducers.surface import Surface, add_offsets_and_classes
from headscope.reducers.token_classes import TokenClasses

__all__ = [
    "DEFAULT", "REDUCERS", "Aspects", "Coreference", "CorpusReducer", "NegationScope", "Reducer", "Relations", "Roles",
    "Rule", "Similarity", "Sums", "Surface", "TokenClasses", "WordClass", "add_offsets_and_classes",
]  # fmt: skip

REDUCERS: Mapping[str, type[CorpusReducer]] = {
    "surface": Surface,
    "relations": Relations,
    "coreference": Coreference,
    "scope": NegationScope,
    "aspects": Aspects,
    "classes": TokenClasses,
    "roles": Roles,
    "similarity": Similarity,
}
"""All reducers by name."""

DEFAULT = ("surface",)
"""The reducer of any text, measured where none is named."""
