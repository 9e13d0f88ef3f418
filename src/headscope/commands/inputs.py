"""Options that several commands share, converted to a task head and a plan."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import xarray as xr

from headscope.capture.model.model import Model
from headscope.capture.model.model_names import OWN_HEAD
from headscope.errors import TableError
from headscope.identity import name_differences
from headscope.reducers.reducer import Reducer
from headscope.runner import Plan, needs_head
from headscope.runner.provenance import identify_model
from headscope.text_forms import find_form


def find_head(task: str | None, reducers: Sequence[Reducer], view: str | None = None) -> str | None:
    """Return the task head to load with a model: the named one; the model's own, if a reducer needs it; or None."""
    return task or (OWN_HEAD if needs_head(reducers, view) else None)


def make_plan(source: object, **changes: Any) -> Plan:
    """Return the plan of a request or of a recorded call, from its fields that have the name of a field of `Plan`.

    Fields that are None keep the default of `Plan`. The seed is left out unless queries are sampled.

    Args:
        source: The request or the recorded call.
        changes: Fields with other values than in the source.
    """
    given = {each.name: changes.get(each.name, getattr(source, each.name, None)) for each in fields(Plan)}
    if given["sample_queries"] is None:
        given["seed"] = None
    return Plan(**{name: value for name, value in given.items() if value is not None})


def refuse_other_probes(probes: xr.Dataset | None, model: Model, plan: Plan) -> None:
    """Raise an error if the table of probes is of another model or of texts in another form; None is accepted.

    Raises:
        TableError: The models or the forms differ.
    """
    if probes is not None and (differences := name_differences(probes.attrs, identify_model(model))):
        raise TableError(
            f"the probes are those of {probes.attrs['model']!r}, which differs from {model.name!r} in its "
            f"{differences}; train probes of the same model."
        )
    if probes is not None and (form := find_form(probes.attrs)) != plan.text:
        raise TableError(
            f"the probes are of {form} texts, and here texts are read as {plan.text}; train them with --text "
            f"{plan.text}."
        )
