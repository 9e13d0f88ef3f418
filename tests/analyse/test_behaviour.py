"""What a head does, in a word: what it stands out for, then what it attends to, then how broadly."""

import numpy as np
import xarray as xr

import headscope
from headscope.analyse.behaviour import name_behaviours
from headscope.heads import variable
from headscope.score import Score, write_scores

SCORE = Score(
    "relation_accuracy", "Relations", "how often", ("fold_correct",), ("fold_link",), rows="relations", prefix=""
)


def tabulate() -> xr.Dataset:
    """Six heads: on the next token, on [CLS], broad, broad but on [CLS] by half, none of these, and one unknown."""
    values = {
        "mass_next": ([0.9, 0.1, 0.1, 0.1, 0.4, np.nan], "the next token"),
        "mass_cls": ([0.1, 0.5, 0.2, 0.6, 0.4, np.nan], "[CLS]"),
        "mass_first": ([0.1, 0.5, 0.2, 0.6, 0.4, np.nan], "the first token"),
        "entropy": ([1.0, 1.0, 3.7, 3.8, 3.5, np.nan], ""),
        "entropy_uniform": ([4.0] * 6, ""),
    }
    data = {
        name: variable(np.array(of_heads).reshape(2, 3), ("layer", "head"), name=name, units="-", source="-", target=to)
        for name, (of_heads, to) in values.items()
    }
    return xr.Dataset(data, coords={"layer": [1, 2], "head": [1, 2, 3]})


def test_what_a_head_attends_to_comes_before_how_broadly() -> None:
    behaviours = name_behaviours(headscope.analyse.add_behaviours(tabulate())).values.ravel().tolist()
    assert behaviours == ["the next token", "[CLS]", "broad", "[CLS]", "", ""]


def test_the_thresholds_are_parameters() -> None:
    behaviours = (
        name_behaviours(headscope.analyse.add_behaviours(tabulate(), share=0.7, breadth=0.85)).values.ravel().tolist()
    )
    assert behaviours == ["the next token", "", "broad", "broad", "broad", ""]


def test_a_head_that_stands_out_is_named_for_what_it_marks() -> None:
    table = tabulate().assign_coords(relation=["obj", "det", "case"])
    table.attrs["scores"] = write_scores([SCORE])
    report = {"verdict": ["stands out", "stands out", "does not stand out"], "layer": [1, 1, 2], "head": [1, 1, 2]}
    for name, of_rows in report.items():
        table[f"reported_{name}"] = ("relation", of_rows)
    table["relation_accuracy"] = (("layer", "head", "relation"), np.zeros((2, 3, 3)))
    behaviours = name_behaviours(headscope.analyse.add_behaviours(table)).values.ravel().tolist()
    assert behaviours == ["obj, det", "[CLS]", "broad", "[CLS]", "", ""]
