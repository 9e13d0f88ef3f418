"""Sums -> head table: the results of several reducers in one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import tiny
from headscope.capture.model import Model
from headscope.errors import HeadscopeError
from headscope.runner import measure
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
