"""Attention -> sums -> head table.

==============  ================================================================================
`measure`       model and documents -> head table; ``headscope.measure`` is this function
`measure_runs`  the same for all models of a folder of runs, with the dimension ``run``
`REDUCERS`      what can be measured, by name: `Surface`, `Relations`, `Coreference`, `Scope`, `Aspects`, `Classes`,
                `Roles`, `Similarity`
`Plan`          how to batch
`Reducer`       what a new statistic has to provide
==============  ================================================================================
"""

import sys
from types import ModuleType
from typing import Any

import xarray as xr

from headscope.measure.aspects import Aspects
from headscope.measure.classes import Classes
from headscope.measure.coreference import Coreference
from headscope.measure.family import measure_runs
from headscope.measure.reducer import Reducer, Sums
from headscope.measure.relations import Relations
from headscope.measure.roles import Roles
from headscope.measure.run import REDUCERS, Plan, measure
from headscope.measure.scope import Scope
from headscope.measure.similarity import Similarity
from headscope.measure.surface import KeyClass, Surface

__all__ = [
    "REDUCERS",
    "Aspects",
    "Classes",
    "Coreference",
    "KeyClass",
    "Plan",
    "Reducer",
    "Relations",
    "Roles",
    "Scope",
    "Similarity",
    "Sums",
    "Surface",
    "measure",
    "measure_runs",
]


class _CallableModule(ModuleType):
    """``headscope.measure`` names both this package and its main function, so the package can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> xr.Dataset:
        return measure(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
