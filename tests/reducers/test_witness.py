"""Every number of every reducer, against naive loops over the attention that the model returns itself."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tiny
import witnesses
from family_maps import ask, make, see_all
from headscope.capture.model.model import Model
from headscope.errors import ModelError
from headscope.reducers import Surface, WordClass
from headscope.reducers.roles import Roles
from headscope.runner import Plan, measure

DOCUMENTS = tuple(tiny.documents(11))


def of_attention_type(table: xr.Dataset, attention_type: str) -> xr.Dataset:
    """The table of one attention type, without the layers that only other attention types have."""
    if "attention_type" not in table.dims:
        return table
    by_head = next(
        name
        for name in ("entropy", "relation_accuracy", "scope_f1", "token_class_mass", "role_weight")
        if name in table
    )
    return table.sel(attention_type=attention_type).dropna("layer", how="all", subset=[by_head])


def beside(table: xr.Dataset, witness: Callable, family: str, attention_type: str) -> tuple[xr.Dataset, Any]:
    """What a table and what a witness say of one attention type."""
    return of_attention_type(table, attention_type), ask(witness, family, DOCUMENTS, attention_type)


PLANS = pytest.mark.parametrize(
    "plan",
    [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True), Plan(batch_tokens=1, fused=True)],
    ids=["batched", "alone, 3 rows", "batched, fused", "alone, fused"],
)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@PLANS
def test_surface(family: str, plan: Plan) -> None:
    table = measure(make(family), DOCUMENTS, ["surface"], plan=plan)
    for attention_type in make(family).layers:
        ours, theirs = beside(table, witnesses.surface, family, attention_type)
        assert set(ours.data_vars) == {*theirs, "mass_distance"}
        for name, expected in theirs.items():
            relative = 1e-6 if name == "mean_distance" else 0
            np.testing.assert_allclose(
                ours[name].values, expected, atol=1e-5, rtol=relative, err_msg=f"{attention_type} {name}"
            )


@pytest.mark.parametrize("family", tiny.FAMILIES)
@PLANS
def test_surface_by_distance_offset_and_class(family: str, plan: Plan) -> None:
    seen = see_all(family, DOCUMENTS)
    words = {"determiners": ("THE", "a"), "of nothing": ("zebra",), "split": ("walking", "readers", "naïve")}
    surface = Surface((-2, 3), tuple(WordClass(name, members) for name, members in words.items()), edges=(1, 2, 5, 11))
    table = measure(make(family), DOCUMENTS, [surface], plan=plan)
    buckets = {0: (0, 0), 1: (1, 1), 2: (2, 4), 5: (5, 10), 11: (11, 999)}
    buckets |= {-nearest: (-last, -first) for nearest, (first, last) in buckets.items()}
    assert sorted(buckets) == table["distance"].values.tolist()
    for attention_type, maps in seen.items():
        ours = of_attention_type(table, attention_type)
        for nearest, (first, last) in buckets.items():
            near = witnesses.masses(maps, lambda _, q, k, a=first, b=last: a <= k.position - q.position <= b)
            np.testing.assert_allclose(ours["mass_distance"].sel(distance=nearest), near, atol=1e-5, rtol=0)
        for offset in (-2, 3):
            places = {document.document.id: {key.position for key in document.keys} for document in maps}

            def at(document, query, key, offset=offset, places=places):
                place = query.position + offset
                return key.position == place if place in places[document.id] else None

            np.testing.assert_allclose(
                ours["mass_offset"].sel(token_offset=offset), witnesses.masses(maps, at), atol=1e-5, rtol=0
            )
        for name, members in words.items():
            folded = {word.lower() for word in members}

            def on(document, _, key, folded=folded):
                return key.word is not None and document.words[key.word].lower() in folded

            np.testing.assert_allclose(
                ours["mass_class"].sel({"class": name}), witnesses.masses(maps, on), atol=1e-5, rtol=0
            )
    encoder = seen["encoder" if "encoder" in seen else "decoder"]
    for name, members in words.items():
        shares = [
            np.mean(
                [
                    k.word is not None and s.document.words[k.word].lower() in {w.lower() for w in members}
                    for k in s.keys
                ]
            )
            for s in encoder
        ]
        assert table["class_share"].sel({"class": name}).item() == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_relations(family: str, plan: Plan) -> None:
    table = measure(make(family), DOCUMENTS, ["relations", "surface"], plan=plan)
    for attention_type in make(family).layers:
        ours, theirs = beside(table, witnesses.relations, family, attention_type)
        assert set(theirs) == set(ours["relation"].values)
        for name, expected in theirs.items():
            row = ours.sel(relation=name)
            counts = row["relation_count"]
            if family in witnesses.CAUSAL:  # each link counts in one direction
                counts = counts.sel(direction=list(witnesses.DIRECTIONS))
                assert (counts + row["relation_left_out"] == expected.count).all()
                assert counts.sum() == expected.count
                assert counts.values.tolist() == expected.counts
            else:
                assert counts == expected.count
                assert "relation_left_out" not in table
            accuracy = row["relation_accuracy"].sel(direction=list(witnesses.DIRECTIONS))
            np.testing.assert_allclose(accuracy.transpose("layer", "head", "direction").values, expected.accuracy)
            for offset, share in expected.offset.items():
                assert row["offset_accuracy"].sel(offset=offset).item() == pytest.approx(share)
            by_length = row["length_accuracy"].transpose("layer", "head", "direction", "length")
            for length in row["length"].values.tolist():
                links = expected.length.get(length, [])
                assert row["length_count"].sel(length=length) == len(links)
                shares = witnesses.shares(expected.hits[links])
                np.testing.assert_allclose(by_length.sel(length=length).values, shares)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_scope(family: str, plan: Plan) -> None:
    table = measure(make(family), DOCUMENTS, ["scope", "relations"], plan=plan)
    scores = ("precision", "recall", "f1")
    for attention_type in make(family).layers:
        ours, theirs = beside(table, witnesses.scope, family, attention_type)
        for place, score in enumerate(scores):
            np.testing.assert_allclose(ours[f"scope_{score}"].values, theirs["heads"][..., place])
            assert ours[f"scope_all_{score}"].item() == pytest.approx(theirs["all"][place])
            for offset, expected in theirs["offsets"].items():
                assert ours[f"scope_offset_{score}"].sel(offset=offset).item() == pytest.approx(expected[place])
        words = ask(witnesses.attention_to_cues, family, DOCUMENTS, attention_type)
        regressors = np.array([(1, word.in_scope, word.distance) for word in words])
        to_cue = np.stack([word.attention for word in words])
        np.testing.assert_array_equal(ours["fold_scope_regressors"].sum("fold"), regressors.T @ regressors)
        products = np.einsum("wlh,wr->lhr", to_cue, regressors)
        np.testing.assert_allclose(ours["fold_scope_products"].sum("fold"), products, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(ours["fold_scope_squares"].sum("fold"), (to_cue**2).sum(0), atol=1e-5, rtol=1e-5)
    labels = [{(span.label, span.kind) for span in document.spans} for document in DOCUMENTS]
    assert table["scope_count"] == sum(kind == "cue" for kinds in labels for _, kind in kinds) > 11
    assert table["scope_affixal"] == sum(kind == "affixal_cue" for kinds in labels for _, kind in kinds) > 3


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_classes(family: str, plan: Plan) -> None:
    table = measure(make(family), DOCUMENTS, ["classes"], plan=plan)
    for attention_type in make(family).layers:
        ours, theirs = beside(table, witnesses.classes, family, attention_type)
        assert tuple(ours["token_class"].values) == witnesses.CLASSES
        for name, expected in theirs.items():
            row = ours.sel(token_class=name)
            for variable in ("attention", "attention_from_cls", "mass", "mass_from_cls"):
                np.testing.assert_allclose(row[f"token_class_{variable}"], expected[variable], atol=1e-6, rtol=0)
    # What is counted without attention is that of the first attention type.
    first = next(iter(make(family).layers))
    for name, expected in ask(witnesses.classes, family, DOCUMENTS, first).items():
        for variable in ("share", "uniform"):
            value = table[f"token_class_{variable}"].sel(token_class=name).item()
            assert value == pytest.approx(expected[variable], nan_ok=True)
        assert table["token_class_count"].sel(token_class=name) == expected["count"]
        assert expected["count"] > 2 or name in ("cls", "sep")


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
@pytest.mark.parametrize(
    "limits", [{}, {"max_words": 13, "max_element": 2, "min_distance": 3}], ids=["paper", "others"]
)
def test_roles(family: str, plan: Plan, limits: dict[str, int]) -> None:
    documents = tuple(tiny.documents_with_roles(11))
    roles = Roles(("ARG0", "ARG1"), **limits)
    table = measure(make(family), documents, [roles], plan=plan)
    for attention_type, maps in see_all(family, documents).items():
        ours, theirs = of_attention_type(table, attention_type), witnesses.roles(maps, roles.labels, **limits)
        for variable in ("weight", "weight_from_argument", "weight_from_predicate", "weight_anywhere"):
            expected = theirs[variable.removeprefix("weight_")]
            np.testing.assert_allclose(ours[f"role_{variable}"].values, expected, atol=1e-6, rtol=0, err_msg=variable)
        for offset, expected in theirs["offset"].items():
            assert ours["role_weight_offset"].sel(offset=offset).item() == pytest.approx(expected)
        assert ours["role_count"] == theirs["count"] > 5
        for reason in ("role", "sentence", "element", "distance"):
            assert ours[f"role_left_out_{reason}"] == theirs["left_out"][reason] > 0


@pytest.mark.parametrize("family", sorted(set(tiny.UNSUPPORTED) - {"falcon"}))
def test_a_family_without_the_interface_is_measured_through_its_outputs(family: str) -> None:
    table = measure(make(family), DOCUMENTS, ["surface", "relations"])
    (attention_type,) = make(family).layers
    for name, expected in ask(witnesses.surface, family, DOCUMENTS, attention_type).items():
        relative = 1e-6 if name == "mean_distance" else 0
        np.testing.assert_allclose(table[name].values, expected, atol=1e-5, rtol=relative, err_msg=name)
    for name, relation in ask(witnesses.relations, family, DOCUMENTS, attention_type).items():
        accuracy = table["relation_accuracy"].sel(relation=name, direction=list(witnesses.DIRECTIONS))
        np.testing.assert_allclose(accuracy.transpose("layer", "head", "direction").values, relation.accuracy)


def test_falcon_is_refused_because_asking_for_its_attention_changes_it() -> None:
    module, tokenizer = tiny.make("falcon")
    with pytest.raises(ModelError) as refused:
        measure(Model.from_module(module, tokenizer, name="falcon"), DOCUMENTS, ["surface"])
    assert re.fullmatch(
        r"the outputs of 'falcon' differ by [\d.]+ from what the model computes by itself "
        r"\(at most [\de.-]+ is allowed\), so its attention cannot be captured.",
        str(refused.value),
    )
