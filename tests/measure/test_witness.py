"""Every number of every reducer, against naive loops over the attention that the model returns itself."""

import re

import numpy as np
import pytest
import xarray as xr

import tiny
import witnesses
from headscope.capture.model import Model
from headscope.errors import ModelError
from headscope.measure.run import Plan, measure

DOCUMENTS = tiny.documents(11)


def asked(family: str) -> tuple[Model, dict[str, list[witnesses.Seen]]]:
    """A tiny model, and what the witness saw of it in each stack."""
    module, tokenizer = tiny.make(family)
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in DOCUMENTS:
        for stack, one in witnesses.see(module, tokenizer, document).items():
            seen.setdefault(stack, []).append(one)
    return Model.of(module, tokenizer, name=family), seen


def of_stack(table: xr.Dataset, stack: str) -> xr.Dataset:
    """The table of one stack, without the layers that only other stacks have."""
    if "stack" not in table.dims:
        return table
    return table.sel(stack=stack).dropna("layer", how="all", subset=["entropy"])


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize(
    "plan",
    [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True), Plan(batch_tokens=1, fused=True)],
    ids=["batched", "alone, 3 rows", "batched, fused", "alone, fused"],
)
def test_surface(family: str, plan: Plan) -> None:
    model, seen = asked(family)
    table = measure(model, DOCUMENTS, ["surface"], plan=plan)
    for stack, one in seen.items():
        ours, theirs = of_stack(table, stack), witnesses.surface(one)
        assert set(theirs) == set(ours.data_vars)
        for name, expected in theirs.items():
            np.testing.assert_allclose(ours[name].values, expected, atol=1e-5, rtol=0, err_msg=f"{stack} {name}")


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_relations(family: str, plan: Plan) -> None:
    model, seen = asked(family)
    table = measure(model, DOCUMENTS, ["relations", "surface"], plan=plan)
    for stack, one in seen.items():
        ours, theirs = of_stack(table, stack), witnesses.relations(one)
        assert set(theirs) == set(ours["relation"].values)
        for name, expected in theirs.items():
            row = ours.sel(relation=name)
            assert row["relation_count"] == expected.count
            accuracy = row["relation_accuracy"].sel(direction=list(witnesses.DIRECTIONS))
            np.testing.assert_allclose(accuracy.transpose("layer", "head", "direction").values, expected.accuracy)
            for offset, share in expected.offset.items():
                assert row["offset_accuracy"].sel(offset=offset).item() == pytest.approx(share)


@pytest.mark.parametrize("family", sorted(set(tiny.UNSUPPORTED) - {"falcon"}))
def test_a_family_without_the_interface_is_measured_through_its_outputs(family: str) -> None:
    model, seen = asked(family)
    table = measure(model, DOCUMENTS, ["surface", "relations"])
    (one,) = seen.values()
    for name, expected in witnesses.surface(one).items():
        np.testing.assert_allclose(table[name].values, expected, atol=1e-5, rtol=0, err_msg=name)
    for name, relation in witnesses.relations(one).items():
        accuracy = table["relation_accuracy"].sel(relation=name, direction=list(witnesses.DIRECTIONS))
        np.testing.assert_allclose(accuracy.transpose("layer", "head", "direction").values, relation.accuracy)


def test_falcon_is_refused_because_asking_for_its_attention_changes_it() -> None:
    module, tokenizer = tiny.make("falcon")
    with pytest.raises(ModelError) as refused:
        measure(Model.of(module, tokenizer, name="falcon"), DOCUMENTS, ["surface"])
    assert re.fullmatch(
        r"the outputs of 'falcon' change by [\d.]+ under observation, more than [\de.-]+; "
        "what was captured is not what the model computes.",
        str(refused.value),
    )
