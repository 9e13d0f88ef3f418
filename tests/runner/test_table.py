"""Sums -> head table: the results of several reducers in one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import headscope
import tiny
from headscope import heads
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.runner import measure
from headscope.score import Score
from headscope.view.table_report import print_table
from own import LastToken


@dataclass(frozen=True)
class OtherOffsets(LastToken):
    """The same with a dimension that `relations` has otherwise."""

    name: ClassVar[str] = "other_offsets"

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        return super().result(sums, counts).assign_coords(offset=[-1, 1])


def test_results_that_do_not_go_into_one_table_are_refused_by_name() -> None:
    with pytest.raises(HeadscopeError) as refused:
        measure(Model.from_module(*tiny.make("bert"), name="bert"), tiny.documents(7), ["relations", OtherOffsets()])
    message = str(refused.value)
    assert message.startswith("the results of the reducers relations, other_offsets do not go into one table (")
    assert message.endswith("); give the variables and dimensions of your own reducer other names.")


def test_heads_of_an_encoder_decoder_are_reported_with_their_attention_type() -> None:
    documents = headscope.read("grammar:9")
    table = headscope.analyse.assess(
        measure(Model.from_module(*tiny.make("bart"), name="bart"), documents, ["relations"])
    )
    assert table["attention_type"].dtype.kind == "U"
    reported = table["reported_attention_type"].sel(relation="all").item()
    assert reported in ("encoder", "decoder", "cross")
    where = {dim: table[f"reported_{dim}"].sel(relation="all").item() for dim in ("attention_type", "layer", "head")}
    assert table["relation_accuracy"].sel(relation="all", **where).notnull().all()


@dataclass(frozen=True)
class Numbered(LastToken):
    """The same for three rows, which have numbers for names."""

    name: ClassVar[str] = "numbered"
    scores: ClassVar[tuple[Score, ...]] = (Score("numbered_mass", "Last token", "attention to it", rows="numbers"),)

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        mass = super().result(sums, counts)["mass_last"].values[..., None] * [1.0, 0.5, -1.0]
        about = {"name": "attention to the last token", "units": "share of attention", "source": "own"}
        dims, labels = ("layer", "head", "number"), ("number", [2, 3, 5], {"long_name": "a number"})
        return xr.Dataset({"numbered_mass": heads.variable(mass, dims, **about)}, coords={"number": labels})


def test_rows_with_numbers_for_names_are_shown() -> None:
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), tiny.documents(7), [Numbered()])
    assert table["number"].values.tolist() == ["2", "3", "5"]
    console = Console(width=100, record=True)
    print_table(table, console)
    first, *_, last = console.export_text().splitlines()[-3:]
    assert first.startswith("2 ")
    assert last.startswith("5 ")
    assert " -0." in last
    assert " -0." not in first
