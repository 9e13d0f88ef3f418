"""What a terminal says of what it does not show."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import tiny
from headscope.analyse import assess
from headscope.capture import Model
from headscope.runner import measure
from headscope.view.terminal import print_table


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    module, tokenizer = tiny.make("bert")
    found = measure(
        Model.from_module(module, tokenizer, name="bert"), tiny.documents_with_roles(23), ["relations", "scope"]
    )
    return assess(found)


@pytest.mark.parametrize(
    ("rare", "said"),
    [(1, "1 has too few links in a half to report."), (2, "2 have too few links in a half to report.")],
)
def test_relations_with_too_few_links_are_counted(table, rare, said) -> None:
    every = table.sizes["relation"]
    assert every > rare
    layer = np.where(np.arange(every) < every - rare, 1, np.nan)
    table = table.assign({
        "reported_layer": ("relation", layer), "reported_head": ("relation", layer),
        "reported_direction": ("relation", np.full(every, "head_to_dependent")),
    })  # fmt: skip
    text = io.StringIO()
    print_table(table, Console(file=text, width=120))
    assert said in text.getvalue()


@pytest.mark.parametrize(("count", "said"), [(1, "the only row"), (2, "any of 2 rows")])
def test_a_corpus_too_small_to_report_a_head_says_so(table, count, said) -> None:
    few = table[["relation_accuracy", "relation_count"]].isel(relation=slice(count))
    few = few.assign(reported_layer=("relation", np.full(count, np.nan))).assign_attrs(table.attrs)
    text = io.StringIO()
    print_table(few, Console(file=text, width=120))
    assert f"Each half of the corpus has too few links to report a head for {said}." in text.getvalue()
