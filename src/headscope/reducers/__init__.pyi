# What `headscope.reducers` gives, loaded by `__init__.py` when it is first asked for.
from .aspects import Aspects as Aspects
from .coreference import Coreference as Coreference
from .gradients import Gradients as Gradients
from .negation_scope import NegationScope as NegationScope
from .reducer import CorpusReducer as CorpusReducer
from .reducer import Reducer as Reducer
from .reducer import Sums as Sums
from .registry import DEFAULT as DEFAULT
from .registry import REDUCERS as REDUCERS
from .relations import Relations as Relations
from .roles import Roles as Roles
from .similarity import Similarity as Similarity
from .support.rules import Rule as Rule
from .support.word_class import WordClass as WordClass
from .surface import Surface as Surface
from .surface import add_offsets_and_classes as add_offsets_and_classes
from .token_classes import TokenClasses as TokenClasses
