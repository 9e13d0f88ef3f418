"""Attention -> sums -> head table: the fold over the stream of batches.

==================  ============================================================================
`measure`           model and documents -> head table; ``headscope.measure`` adds the analysis
`measure_runs`      the same for all models of a folder of runs, with the dimension ``run``
`measure_placebos`  the same for placebos of an adapter
`measure_pair`      two models of one shape, compared; this is ``headscope.measure_pair``
`Run`               a model, documents and reducers, checked together -> sums, of a shard if there is one
`ShardSums`         the sums of a run over a shard, in a file
`merge_shards`      the files of all shards -> head table
`count_read`        the number of documents and tokens that `measure` would read
`list_reducers`     one reducer, one name or several of them -> a list
`needs_head`        whether reducers need gradients, and so a model with a task head
`refuse_view`       raises an error for a view through which a reducer cannot be measured
`refuse_sample`     raises an error for a sample of query rows if a reducer needs all of them
`try_views`         checks that a model can be seen through views
`resolve_reducers`  names, ``module:Reducer`` and objects -> reducers for a corpus
`Plan`              how to batch
==================  ============================================================================
"""

from headscope.capture.passes.stream import Plan
from headscope.runner.local import Run, count_read, measure, try_views
from headscope.runner.placebos import measure_placebos
from headscope.runner.resolve import list_reducers, needs_head, refuse_sample, refuse_view, resolve_reducers
from headscope.runner.several_runs import measure_pair, measure_runs
from headscope.runner.shards import ShardSums, merge_shards

__all__ = [
    "Plan",
    "Run",
    "ShardSums",
    "count_read",
    "list_reducers",
    "measure",
    "measure_pair",
    "measure_placebos",
    "measure_runs",
    "merge_shards",
    "needs_head",
    "refuse_sample",
    "refuse_view",
    "resolve_reducers",
    "try_views",
]
