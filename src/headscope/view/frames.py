"""A head table as data frames: what the CSV files hold."""

from collections.abc import Mapping

import pandas as pd
import xarray as xr

from headscope.analyse.report import at_reported
from headscope.heads import DIMENSIONS


def frames(table: xr.Dataset) -> dict[str, pd.DataFrame]:
    """The tables by name: one row a head, a bucket of distance, a reported relation, an accuracy or an offset.

    The last, ``columns``, says what each column of the others is, in which unit, and which source defines it.
    """
    by_head = [
        name
        for name, v in table.data_vars.items()
        if {"layer", "head"} <= set(v.dims) <= {"attention_type", "layer", "head"}
    ]
    found = {
        "heads": table[by_head].to_dataframe().dropna(how="all").reset_index(),
        "distances": table[["mass_distance"]].to_dataframe().dropna(how="all").reset_index(),
    }
    if "relation_accuracy" in table:
        reported = [name for name, v in table.data_vars.items() if v.dims == ("relation",)]
        accuracies = _about(table, "relation_accuracy", "relation")
        found["relations"] = table[reported].to_dataframe().reset_index()
        found["accuracies"] = table[accuracies].to_dataframe().dropna(how="all").reset_index()
        found["lengths"] = _lengths(table)
        found["offsets"] = table[["offset_accuracy"]].to_dataframe().reset_index()
    if "antecedent_accuracy" in table:
        of_class = [name for name, values in table.data_vars.items() if values.dims == ("mention",)]
        accuracies = _about(table, "antecedent_accuracy", "antecedent")
        found["coreference"] = table[of_class].to_dataframe().reset_index()
        found["antecedents"] = table[accuracies].to_dataframe().dropna(how="all").reset_index()
        found["coreference-offsets"] = table[["antecedent_offset"]].to_dataframe().reset_index()
    if "scope_f1" in table:
        about = [name for name, v in table.data_vars.items() if str(name).startswith("scope_") and not v.dims]
        offsets = [f"scope_offset_{score}" for score in ("precision", "recall", "f1")]
        found["scope"] = pd.DataFrame([{str(name): table[name].item() for name in about}])
        found["scope-offsets"] = table[offsets].to_dataframe().reset_index()
    if "aspect_accuracy" in table:
        of_target = [name for name, values in table.data_vars.items() if values.dims == ("target",)]
        looked = ["aspect_mass", "aspect_mass_back", *(f"aspect_accuracy{end}" for end in ("", "_lower", "_upper"))]
        found["aspects"] = table[of_target].to_dataframe().reset_index()
        found["aspect-heads"] = table[looked].to_dataframe().dropna(how="all").reset_index()
        found["aspect-offsets"] = table[["aspect_offset"]].to_dataframe().reset_index()
    if "token_class_mass" in table:
        about = [name for name, values in table.data_vars.items() if values.dims == ("token_class",)]
        received = [f"token_class_{what}{whose}" for what in ("attention", "mass") for whose in ("", "_from_cls")]
        found["token-classes"] = table[about].to_dataframe().reset_index()
        found["token-class-heads"] = table[received].to_dataframe().dropna(how="all").reset_index()
    if "role_weight" in table:
        about = [name for name, v in table.data_vars.items() if str(name).startswith("role_") and not v.dims]
        found["roles"] = pd.DataFrame([{str(name): table[name].item() for name in about}])
        found["role-offsets"] = table[["role_weight_offset"]].to_dataframe().reset_index()
    return found | {"columns": _columns(found, table)}


def _columns(found: Mapping[str, pd.DataFrame], table: xr.Dataset) -> pd.DataFrame:
    """What each column of each table is: a variable, or a dimension of the head table."""
    rows = []
    for name, frame in found.items():
        for column in map(str, frame.columns):
            about = table[column].attrs if column in table.data_vars else {"long_name": DIMENSIONS[column]}
            rows.append((name, column, *(about.get(key, "") for key in ("long_name", "units", "source"))))
    return pd.DataFrame(rows, columns=["table", "column", "what", "units", "source"])


def _about(table: xr.Dataset, score: str, drawn: str) -> list[str]:
    """A score of all heads, its interval, and, where there were permutations, what it is against chance."""
    ends = (f"{drawn}_{end}" for end in ("permuted", "z", "p", "p_corrected", "q"))
    return [score, f"{score}_lower", f"{score}_upper", *(name for name in ends if name in table)]


def _lengths(table: xr.Dataset) -> pd.DataFrame:
    """For each reported head, how many links there are of each length, and how many of them it gets right."""
    head = [f"reported_{dim}" for dim in ("attention_type", "layer", "head", "direction") if f"reported_{dim}" in table]
    lengths = table[["length_count", *head]].assign(length_accuracy=at_reported(table, "length_accuracy"))
    there = lengths.sel(relation=lengths["reported_layer"] > 0)
    return there[["length_count", "length_accuracy", *head]].to_dataframe().reset_index()
