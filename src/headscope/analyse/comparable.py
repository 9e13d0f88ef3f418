"""Checks that head tables can be compared; each error message names the tables."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import TableError
from headscope.heads import EDITED
from headscope.score import Score
from headscope.text_forms import GIVEN, find_form


def name_table(table: xr.Dataset, otherwise: str) -> str:
    """Return the file that a table was read from, or else the name `otherwise`."""
    return str(table.encoding.get("source", otherwise))


def describe_shape(table: xr.Dataset) -> str:
    """Describe the layers and heads of a table in words: ``6 layers and 12 heads``."""
    return " and ".join(
        f"{table.sizes[dim]} {dim}s" for dim in ("attention_type", "layer", "head") if dim in table.sizes
    )


def runs_of(table: xr.Dataset) -> list[dict[str, Any]]:
    """Return the description of each run of a table; empty if the table does not describe runs."""
    return list(json.loads(table.attrs["runs"])) if "runs" in table.attrs else []


def split_runs(table: xr.Dataset) -> list[xr.Dataset]:
    """Split a table into one table for each run; the table of a single model gives a list of one."""
    return [table.isel(run=run) for run in range(table.sizes["run"])] if "run" in table.dims else [table]


def seeds_of(table: xr.Dataset) -> list[int]:
    """Return the seed of each run of a table; each seed is -1 if the table states no seeds."""
    if "run" in table.dims and "seed" in table.coords:
        return [int(seed) for seed in table["seed"].values]
    return [-1] * table.sizes.get("run", 1)


def check_before_after(before: xr.Dataset, after: xr.Dataset, control: xr.Dataset | None) -> None:
    """Raise an error unless the tables are of a model, of runs tuned from it on a task, and of runs on its control.

    Raises:
        TableError: The table before holds runs; shapes, corpora, edits or the model that was tuned differ; the runs
            after are runs of a control, or the runs of the control are not; a seed occurs twice; or a run is both in
            the table after and in the table of the control.
    """
    first = name_table(before, "the table before")
    if "run" in before.dims:
        raise TableError(
            f"{first} holds {before.sizes['run']} runs; give the table of the model before it was tuned first, and "
            "that of the runs second."
        )
    second = name_table(after, "the table after")
    _check_after(before, first, after, second)
    _check_group(after, second, is_control=False)
    if control is not None:
        third = name_table(control, "the table of the control")
        _check_after(before, first, control, third)
        _check_group(control, third, is_control=True)
        _check_apart(after, second, control, third)


def check_measured_alike(before: xr.Dataset, first: str, table: xr.Dataset, name: str) -> None:
    """Raise an error if a table has other heads, other texts or another view than `before`.

    In messages, `first` is the name of `before`, and `name` the name of `table`.

    Raises:
        TableError: Shapes, corpora, documents, their counts, folds, classifiers of maps or views differ.
    """
    if describe_shape(table) != describe_shape(before):
        raise TableError(
            f"{name} has {describe_shape(table)} and {first} {describe_shape(before)}; give tables of one architecture."
        )
    if table.attrs.get("corpus_sha256") != before.attrs.get("corpus_sha256"):
        raise TableError(
            f"{name} is of the corpus {table.attrs.get('corpus')!r} and {first} of {before.attrs.get('corpus')!r}; "
            "measure both on the same corpus."
        )
    if table.attrs.get("documents") != before.attrs.get("documents"):
        raise TableError(
            f"{name} is of {table.attrs.get('documents')} documents and {first} of {before.attrs.get('documents')}; "
            "measure both with the same options, so that both skip the same documents."
        )
    check_read_alike(before, first, table, name)
    _check_counts_alike(before, first, table, name)
    _check_folds_alike(before, first, table, name)
    classifiers = [each.attrs["pattern_classifier"] for each in (table, before) if "pattern_classifier" in each.attrs]
    if len(set(classifiers)) > 1:
        raise TableError(
            f"the maps of {name} were labelled by another classifier ({classifiers[0]}) than those of {first} "
            f"({classifiers[1]}); measure both with one."
        )
    if table.attrs.get("view") != before.attrs.get("view"):
        views = [
            f"the view `{each.attrs['view']}`" if "view" in each.attrs else "the weights" for each in (table, before)
        ]
        raise TableError(f"{name} is of {views[0]} and {first} of {views[1]}; measure both with the same --view.")


def check_items_alike(before: xr.Dataset, first: str, table: xr.Dataset, name: str, score: Score) -> None:
    """Raise an error if two tables count different items of a score, or have the items in different folds.

    Raises:
        TableError: A sum that does not depend on heads differs in a fold, for example because the tokenizers differ.
    """
    for part in score.denominator:
        old, new = before[part], table[part]
        if "head" in old.dims and "head" in new.dims and old.sizes == new.sizes:
            continue
        if {*old.dims} != {*new.dims} or not np.array_equal(old, new.transpose(*old.dims), equal_nan=True):
            raise TableError(
                f"{name} has other {score.items} of {score.variable} in some fold than {first}; measure both "
                "with the same tokenizer, options and version of headscope, on files of the same names."
            )


def have_same_weights(before: xr.Dataset, table: xr.Dataset, scores: Sequence[Score]) -> bool:
    """Return whether two tables come from the same weights: their hashes and their sums of the scores are equal.

    The sums are compared too because the hash of a loaded model stays the same if its weights are changed later.
    """
    names = {name for score in scores for name in score.numerator}
    first, second = (each.reset_coords(drop=True) for each in (before, table))  # only one may have verdicts
    equal = all(name in second and first[name].equals(second[name]) for name in names)
    return equal and before.attrs["weights_sha256"] == table.attrs["weights_sha256"] != ""


def check_read_alike(table: xr.Dataset, name: str, other: xr.Dataset, other_name: str) -> None:
    """Raise an error if a model read the texts of two tables in different forms, as written or with spaces.

    A table that does not state the form counts as read with spaces. Given tokens can be compared with either form.

    Raises:
        TableError: One table is of texts as they are written, and the other of words with spaces between them.
    """
    texts = [find_form(each.attrs) for each in (other, table)]
    if texts[0] != texts[1] and GIVEN not in texts:
        raise TableError(
            f"{other_name} is of texts read as {texts[0]} and {name} as {texts[1]}; measure both with one --text."
        )


def _check_counts_alike(before: xr.Dataset, first: str, table: xr.Dataset, name: str) -> None:
    """Raise an error if a variable that counts documents differs between a table and `before`."""
    runs = [split_runs(each)[0] for each in (before, table)]
    for variable in sorted(map(str, before.data_vars.keys() & table.data_vars.keys())):
        old, new = (run[variable] for run in runs)
        if old.attrs.get("units") == "documents" and old.sizes == new.sizes and not np.array_equal(old, new):
            raise TableError(
                f"{name} counts other documents in {variable} than {first}, since another version of headscope "
                "measured it; measure both with one version."
            )


def _check_folds_alike(before: xr.Dataset, first: str, table: xr.Dataset, name: str) -> None:
    """Raise an error if a variable has the same total in a table and in `before`, but other counts by fold."""
    runs = [split_runs(each)[0] for each in (before, table)]
    for variable in sorted(map(str, before.data_vars.keys() & table.data_vars.keys())):
        old, new = (run[variable] for run in runs)
        if "fold" not in old.dims or "head" in old.dims or old.sizes != new.sizes:
            continue
        if np.array_equal(old.sum("fold"), new.sum("fold")) and not np.array_equal(old, new):
            raise TableError(
                f"the documents of {name} are in other folds than those of {first}, as versions of headscope assign "
                "them differently; measure both with one version."
            )


def _check_after(before: xr.Dataset, first: str, table: xr.Dataset, name: str) -> None:
    """Raise an error if a table has other heads, texts or edits than `before`, or was not tuned from its model."""
    check_measured_alike(before, first, table, name)
    if table.attrs.get(EDITED) != before.attrs.get(EDITED):
        edits = [each.attrs.get(EDITED, "no edit") for each in (table, before)]
        raise TableError(
            f"{name} was measured within {edits[0]} and {first} within {edits[1]}, so that their difference is not "
            "that of the weights; measure both within the same edits, or within none."
        )
    # A table of runs knows the weights that they were tuned from. A single model only has other weights.
    same = table.attrs.get("weights_sha256") == before.attrs.get("weights_sha256")
    if "run" in table.dims and not same:
        raise TableError(
            f"the runs of {name} were tuned from {table.attrs.get('model')!r}, whose weights are not those that "
            f"{first} is of; measure the model that they were tuned from."
        )
    if "run" not in table.dims and same:
        raise TableError(f"{name} is of the same weights as {first}; give a table of the model after it was tuned.")


def _check_group(table: xr.Dataset, name: str, is_control: bool) -> None:
    control = table.attrs.get("control")  # tables of models that headscope did not tune lack it
    if is_control and control == 0:
        raise TableError(f"the runs of {name} are those of a task, not of a control; give it as the table after.")
    if not is_control and control == 1:
        raise TableError(f"the runs of {name} are those of a control; give them with --control, and the task's.")
    seeds = [seed for seed in seeds_of(table) if seed >= 0]
    twice = [seed for seed in np.unique(seeds) if seeds.count(int(seed)) > 1]
    if twice:
        raise TableError(f"{name} has the seed {twice[0]} more than once; runs of one seed are one run.")


def _check_apart(after: xr.Dataset, first: str, control: xr.Dataset, second: str) -> None:
    """Raise an error if the same weights are in both tables, for example because one file is given twice."""
    if after.identical(control):
        raise TableError(f"{first} and {second} are the same table; give that of the runs of the control.")
    both = [_weights(table) for table in (after, control)]
    for weights in sorted(both[0].keys() & both[1].keys()):
        raise TableError(
            f"{both[0][weights]} of {first} has the same weights as {both[1][weights]} of {second}; give runs of the "
            "task and runs of its control."
        )


def _weights(table: xr.Dataset) -> dict[str, str]:
    """Return the name of the model, or of each run, by the hash of its weights; runs without a hash are left out."""
    if "run" not in table.dims:
        return {str(table.attrs.get("weights_sha256")): "the model"}
    return {
        str(run["weights_sha256"]): f"the run {run.get('name')}" for run in runs_of(table) if "weights_sha256" in run
    }
