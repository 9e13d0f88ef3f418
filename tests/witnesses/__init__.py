"""What the reducers must say, worked out by naive loops over the attention that the model itself returns.

Nothing here comes from `headscope.capture` or `headscope.reducers`. One document at a time, unpadded, eager attention
with ``output_attentions=True``, plain loops in float64. Each reducer has a function of its name, in a file of its name.
"""

from witnesses.alignment import alignment
from witnesses.aspects import aspects
from witnesses.average_map import average_map
from witnesses.candidates import candidates, permuted_candidates
from witnesses.classes import CLASSES, classes
from witnesses.copying import copying
from witnesses.coreference import coreference
from witnesses.gradients import gradients, hold_attention, see_gradients
from witnesses.head_distances import head_distances
from witnesses.head_distances_before import head_distances_before
from witnesses.induction import induction
from witnesses.ledger import Step, content_effect, force_steps, generate_steps, ledger, mark_pieces, mark_prompt
from witnesses.map_patterns import map_patterns
from witnesses.means import clustered_error, effective_clusters
from witnesses.nearby_tokens import nearby_tokens
from witnesses.norms import see_norms
from witnesses.paths import paths
from witnesses.permuted import permuted_coreference, permuted_relations, permuted_scope
from witnesses.relations import DIRECTIONS, Relation, relations, shares
from witnesses.retrieval import Retrieved, retrieval
from witnesses.roles import roles
from witnesses.rollout import see_rollout
from witnesses.scope import ToCue, attention_to_cues, scope
from witnesses.seen import CAUSAL, Seen, Token, see
from witnesses.similarity import similarity
from witnesses.sinks import sinks
from witnesses.sparse_shapes import sparse_shapes
from witnesses.streaming import streaming
from witnesses.surface import SURFACE, masses, surface
from witnesses.words import best_other, word_weights
from witnesses.zeroing import see_zeroed

__all__ = [
    "CAUSAL",
    "CLASSES",
    "DIRECTIONS",
    "SURFACE",
    "Relation",
    "Retrieved",
    "Seen",
    "Step",
    "ToCue",
    "Token",
    "alignment",
    "aspects",
    "attention_to_cues",
    "average_map",
    "best_other",
    "candidates",
    "classes",
    "clustered_error",
    "content_effect",
    "copying",
    "coreference",
    "effective_clusters",
    "force_steps",
    "generate_steps",
    "gradients",
    "head_distances",
    "head_distances_before",
    "hold_attention",
    "induction",
    "ledger",
    "map_patterns",
    "mark_pieces",
    "mark_prompt",
    "masses",
    "nearby_tokens",
    "paths",
    "permuted_candidates",
    "permuted_coreference",
    "permuted_relations",
    "permuted_scope",
    "relations",
    "retrieval",
    "roles",
    "scope",
    "see",
    "see_gradients",
    "see_norms",
    "see_rollout",
    "see_zeroed",
    "shares",
    "similarity",
    "sinks",
    "sparse_shapes",
    "streaming",
    "surface",
    "word_weights",
]
