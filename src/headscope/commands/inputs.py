"""Options that several commands have in common, turned into a task head and a plan."""

from collections.abc import Sequence

import xarray as xr

from headscope.capture.model import Model
from headscope.capture.names import OWN_HEAD
from headscope.errors import TableError
from headscope.identity import name_differences
from headscope.reducers.reducer import Reducer
from headscope.runner import Plan, needs_head
from headscope.runner.provenance import identify_model


def find_head(task: str | None, reducers: Sequence[Reducer], view: str | None = None) -> str | None:
    """The task head with which a model is loaded: the one that is named, or its own where something needs one."""
    return task or (OWN_HEAD if needs_head(reducers, view) else None)


def make_plan(
    max_tokens: int | None,
    cut: bool | None,
    pair_tokens: int | None,
    batch_tokens: int | None,
    view: str | None = None,
    sample_queries: int | None = None,
    seed: int = 0,
) -> Plan:
    """The plan of these options; a size that is None has the default of `Plan`.

    The seed is that of the sample of query rows; without one it changes nothing, and is left out.
    """
    return Plan(
        max_tokens=max_tokens,
        cut=cut,
        pair_tokens=Plan.pair_tokens if pair_tokens is None else pair_tokens,
        batch_tokens=Plan.batch_tokens if batch_tokens is None else batch_tokens,
        view=view,
        sample_queries=sample_queries,
        seed=Plan.seed if sample_queries is None else seed,
    )


def refuse_other_probes(probes: xr.Dataset | None, model: Model) -> None:
    """Raise an error if probes are of another model, unless there are no probes.

    Raises:
        TableError: the models differ.
    """
    if probes is not None and (differences := name_differences(probes.attrs, identify_model(model))):
        raise TableError(
            f"the probes are those of {probes.attrs['model']!r}, which differs from {model.name!r} in its "
            f"{differences}; train probes of the same model."
        )
