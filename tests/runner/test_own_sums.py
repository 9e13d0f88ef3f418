"""A reducer of one's own that is wrong: one sentence names it, what came and what was wanted, and nothing else."""

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import headscope
import own
import tiny
from headscope import HeadscopeError, heads
from headscope.reducers import Arrays, Reducer, Score, Surface

LAYERS, HEADS = 2, 5


def make_table(sums: Arrays) -> xr.Dataset:
    values = heads.variable(sums["mass"], ("layer", "head"), name="mass", units="share of attention", source="own")
    return xr.Dataset({"mass": values})


def make_reducer(scope: str = "layer", **functions: Callable[..., Any]) -> Reducer:
    """A reducer with some wrong functions."""
    right = {
        "prepare": lambda self, batch, attention_type: batch,
        "count": lambda self, facts: {"documents": torch.tensor(len(facts.documents))},
        "observe": lambda self, facts, attention: {"mass": attention.entropy().double().sum((0, 2))},
        "result": lambda self, sums, counts: make_table(sums),
    }
    kind = type("Own", (Reducer,), {"name": "own", "scope": scope, "max_tokens": 512, **right, **functions})
    return dataclass(frozen=True)(kind)()


def measure(reducer: object) -> xr.Dataset:
    model = tiny.make("bert")
    assert (model[0].config.num_hidden_layers, model[0].config.num_attention_heads) == (LAYERS, HEADS)
    return headscope.measure(
        model, [f"a dog sees {'cats ' * count}" for count in range(1, 30)], reducer, batch_tokens=64
    )


def scored(self: object, sums: Arrays, counts: Arrays) -> xr.Dataset:
    return make_table(sums)


WHOLE = "give a tensor of whole numbers or of float64, which add up without loss."
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a list": (
        {"observe": lambda self, facts, attention: [1]},
        '`observe` of the reducer `own` gives a list; give tensors by name, such as {"hits": tensor}.'),
    "nothing": (
        {"count": lambda self, facts: None},
        '`count` of the reducer `own` gives a NoneType; give tensors by name, such as {"hits": tensor}.'),
    "a tensor alone": (
        {"count": lambda self, facts: torch.ones(3)},
        '`count` of the reducer `own` gives a torch.Tensor; give tensors by name, such as {"hits": tensor}.'),
    "no name": (
        {"count": lambda self, facts: {3: torch.tensor(1)}},
        "`count` of the reducer `own` names a sum 3; give it a text as its name."),
    "an array": (
        {"observe": lambda self, facts, attention: {"mass": np.zeros(HEADS)}},
        f"`observe` of the reducer `own` gives the sum 'mass' as a numpy.ndarray; {WHOLE}"),
    "a number": (
        {"count": lambda self, facts: {"documents": 3}},
        f"`count` of the reducer `own` gives the sum 'documents' as a int; {WHOLE}"),
    "half of the digits": (
        {"observe": lambda self, facts, attention: {"mass": torch.zeros(HEADS)}},
        f"`observe` of the reducer `own` gives the sum 'mass' as a tensor of float32; {WHOLE}"),
    "truth": (
        {"count": lambda self, facts: {"any": torch.tensor(True)}},
        f"`count` of the reducer `own` gives the sum 'any' as a tensor of bool; {WHOLE}"),
    "no head": (
        {"observe": lambda self, facts, attention: {"mass": attention.entropy().double().sum()}},
        "`observe` of the reducer `own` gives the sum 'mass' with the shape (), and the first axis must be the 5 heads "
        "of the model; put that first."),
    "the head last": (
        {"observe": lambda self, facts, attention: {"mass": torch.zeros(7, HEADS, dtype=torch.long)}},
        "`observe` of the reducer `own` gives the sum 'mass' with the shape (7, 5), and the first axis must be the 5 "
        "heads of the model; put that first."),
    "no layer": (
        {"scope": "pass", "observe": lambda self, facts, *layers: {"mass": torch.zeros(HEADS, dtype=torch.long)}},
        "`observe` of the reducer `own` gives the sum 'mass' with the shape (5,), and the first axes must be the 2 "
        "layers and 5 heads of the model; put these first."),
    "a shape by batch": (
        {"count": lambda self, facts: {"documents": torch.ones(len(facts.documents), dtype=torch.long)}},
        "the reducer `own` gives the sum 'documents' with the shape (N,), and gave it with (N,) for another batch; "
        "give one shape for every batch."),
    "an argument too few": (
        {"observe": lambda self, facts: {}},
        "`observe` of the reducer `own` takes (facts), and is called with 2 arguments; write `def observe(self, facts, "
        "attention)`."),
    "an argument too many": (
        {"count": lambda self, facts, attention: {}},
        "`count` of the reducer `own` takes (facts, attention), and is called with 1 argument; write `def count(self, "
        "facts)`."),
    "the sums themselves": (
        {"result": lambda self, sums, counts: sums},
        "`result` of the reducer `own` gives a dict; give an xarray.Dataset, as `headscope.reducers.score_table` "
        "does."),
    "another sum": (
        {"result": lambda self, sums, counts: make_table({"mass": sums["hits"]})},
        "`result` of the reducer `own` ended with KeyError ('hits'), in line N of FILE; it was given the sums mass "
        "(2, 5), documents (), and layer and head are the first axes of those of `observe`."),
    "other axes": (
        {"result": lambda self, sums, counts: make_table(sums).rename(layer="block", head="unit")},
        "`result` of the reducer `own` gives mass with the dimensions block, unit; those of a value of heads are "
        "layer, head, and others behind them."),
    "a name that no axis has": (
        {"result": lambda self, sums, counts: make_table(sums).rename(heads="head")},
        "`result` of the reducer `own` ended with ValueError (cannot rename 'heads' because it is not a variable or "
        "dimension in this dataset), in line N of FILE; it was given the sums mass (2, 5), documents (), and layer and "
        "head are the first axes of those of `observe`."),
    "a score": (
        {"scores": (Score("hits", "Hits", "the share of hits"),), "result": scored},
        "`result` of the reducer `own` gives mass, and its scores name hits; give that too."),
    "a score with other axes": (
        {"scores": (Score("mass", "Mass", "the mass"),),
         "result": lambda self, sums, counts: make_table(sums).transpose("head", "layer")},
        "`result` of the reducer `own` gives mass with the dimensions head, layer; those of a value of heads are "
        "layer, head, and others behind them."),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_one_sentence(what: str) -> None:
    functions, sentence = WRONG[what]
    with pytest.raises(HeadscopeError) as refused:
        measure(make_reducer(**functions))
    numbered = re.sub(r"in line \d+ of \S+;", "in line N of FILE;", str(refused.value))
    assert re.sub(r"\(\d+,\)", "(N,)", numbered) == re.sub(r"\(\d+,\)", "(N,)", sentence)
    shown = "".join(traceback.format_exception(refused.value))
    assert shown.count("Traceback (most recent call last)") == 1  # no error of a library above or below it
    assert shown.rstrip().endswith(str(refused.value))


def test_right_ones_are_measured_as_before() -> None:
    table = measure(make_reducer())
    assert table["mass"].shape == (LAYERS, HEADS)
    assert measure(own.LastToken())["mass_last"].shape == (LAYERS, HEADS)
    assert "mass_previous" in measure(Surface())


def test_an_error_in_a_function_of_ones_own_ends_in_its_line() -> None:
    def fail(self: object, facts: object, attention: object) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match=r"^mine$") as raised:
        measure(make_reducer(observe=fail))
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "fail"
