"""A head table as data frames: what the CSV files hold."""

import pandas as pd
import xarray as xr


def frames(table: xr.Dataset) -> dict[str, pd.DataFrame]:
    """The tables by name: one row a head, a bucket of distance, a reported relation, an accuracy or an offset."""
    by_head = [
        name for name, v in table.data_vars.items() if {"layer", "head"} <= set(v.dims) <= {"stack", "layer", "head"}
    ]
    found = {
        "heads": table[by_head].to_dataframe().dropna(how="all").reset_index(),
        "distances": table[["mass_distance"]].to_dataframe().dropna(how="all").reset_index(),
    }
    if "relation_accuracy" in table:
        reported = [name for name, v in table.data_vars.items() if v.dims == ("relation",)]
        accuracies = ["relation_accuracy", "relation_accuracy_lower", "relation_accuracy_upper"]
        found["relations"] = table[reported].to_dataframe().reset_index()
        found["accuracies"] = table[accuracies].to_dataframe().dropna(how="all").reset_index()
        found["offsets"] = table[["offset_accuracy"]].to_dataframe().reset_index()
    if "antecedent_accuracy" in table:
        of_class = [name for name, values in table.data_vars.items() if values.dims == ("mention",)]
        accuracies = [f"antecedent_accuracy{end}" for end in ("", "_lower", "_upper")]
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
    return found
