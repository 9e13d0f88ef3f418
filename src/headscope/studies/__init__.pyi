# What `headscope.studies` gives, loaded by `__init__.py` when it is first asked for.
from .findings import Finding as Finding
from .findings import judge as judge
from .study import Claim as Claim
from .study import Measurement as Measurement
from .study import Pattern as Pattern
from .study import Study as Study
from .study import Value as Value
from .study_registry import STUDIES as STUDIES
