"""Attention -> sums -> head table: the fold over batches.

==============  ================================================================================
`measure`       model and documents -> head table; ``headscope.measure`` is this function
`measure_runs`  the same for all models of a folder of runs, with the dimension ``run``
`Plan`          how to batch
==============  ================================================================================
"""

from headscope.runner.local import Plan, measure
from headscope.runner.runs import measure_runs

__all__ = ["Plan", "measure", "measure_runs"]
