"""headscope: what each attention head looks at, which relation it marks, and how sure we are.

::

    files --corpora--> Document --capture--> Attention --measure--> head table --analyse--> head table --view--> page

=============================================  ================================================
`read(corpus)`                                 annotated files -> documents
`load(model)`                                  a transformer and its tokenizer, identified
`measure(model, documents, reducers)`          -> head table, an `xarray.Dataset` over layer, head
`measure_runs(model, runs, documents, ...)`    the same for each model that was tuned from one
`similarity(before, after, documents)`         how alike the attention of each head is in two models
`atlas(model, corpus, out)`                    everything at once, into a folder
`study(name, model, data, out)`                a paper's figures beside one's own, into a folder
`tune(read_task(name, data), model, out)`      fine-tune for several seeds, and on `control_of(task)`: a folder of runs
`untrained_model(model)`                           the same shape, untrained: a control
`analysed(table, untrained)`                        how sure we are: the next four at once
`with_intervals(table)`, `with_report(table)`  intervals; the head to report, beside its controls
`with_significance(table)`                     p-values, corrected
`with_regression(table)`                       what attention to a negation's cue depends on
`consistency(one, other)`                      whether the same heads score well on two corpora
`consistencies(one, other)`                    the same, run by run
`compare(before, after, control)`              what tuning changed in the heads, and more than its control?
`read_table(path)`, `write_table(table, path)`  head tables on disk
`HeadscopeError`                               what is raised, in one sentence
=============================================  ================================================

>>> import headscope
>>> table = headscope.measure("minilm", headscope.read("grammar"), ["surface"])  # doctest: +SKIP
>>> float(table.mass_previous.sel(layer=1, head=3))  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.analyse import (
        analysed,
        consistencies,
        consistency,
        with_intervals,
        with_regression,
        with_report,
        with_significance,
    )
    from headscope.analyse.compare import compare
    from headscope.capture import load, untrained_model
    from headscope.corpora import read
    from headscope.heads import read as read_table
    from headscope.heads import write as write_table
    from headscope.jobs.atlas import atlas
    from headscope.learn.control import control_of
    from headscope.learn.tasks import read_task
    from headscope.learn.tune import tune
    from headscope.runner.local import measure
    from headscope.runner.runs import measure_pair as similarity
    from headscope.runner.runs import measure_runs
    from headscope.studies.run import study

__all__ = [
    "HeadscopeError",
    "analysed",
    "atlas",
    "compare",
    "consistencies",
    "consistency",
    "control_of",
    "load",
    "measure",
    "measure_runs",
    "read",
    "read_table",
    "read_task",
    "similarity",
    "study",
    "tune",
    "untrained_model",
    "with_intervals",
    "with_regression",
    "with_report",
    "with_significance",
    "write_table",
]

# Found when first asked for: reading a table or drawing it must not load torch.
_HOMES = {
    "analysed": ("headscope.analyse", "analysed"),
    "atlas": ("headscope.jobs.atlas", "atlas"),
    "load": ("headscope.capture", "load"),
    "measure": ("headscope.runner.local", "measure"),
    "measure_runs": ("headscope.runner.runs", "measure_runs"),
    "similarity": ("headscope.runner.runs", "measure_pair"),
    "study": ("headscope.studies.run", "study"),
    "tune": ("headscope.learn.tune", "tune"),
    "read_task": ("headscope.learn.tasks", "read_task"),
    "control_of": ("headscope.learn.control", "control_of"),
    "untrained_model": ("headscope.capture", "untrained_model"),
    "read": ("headscope.corpora", "read"),
    "read_table": ("headscope.heads", "read"),
    "write_table": ("headscope.heads", "write"),
    "compare": ("headscope.analyse", "compare"),
    "consistencies": ("headscope.analyse", "consistencies"),
    "consistency": ("headscope.analyse", "consistency"),
    "with_intervals": ("headscope.analyse", "with_intervals"),
    "with_regression": ("headscope.analyse", "with_regression"),
    "with_report": ("headscope.analyse", "with_report"),
    "with_significance": ("headscope.analyse", "with_significance"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headscope' has no attribute {name!r}; it has {', '.join(__all__)}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
