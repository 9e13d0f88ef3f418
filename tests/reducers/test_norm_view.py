"""Reducers through the norm view: the same statistics as of attention, of what flows."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import entropy

import planted
import rivals
import tiny
import tuned
import witnesses
from headscope.capture.model.model import Model
from headscope.capture.passes.views import VIEWS
from headscope.corpora import summarize
from headscope.errors import HeadscopeError
from headscope.runner import Plan, measure, resolve_reducers
from headscope.runner.completed_table import name_view
from plain_reducers import PLAIN

DOCUMENTS = tiny.documents(7)
FAMILIES = ("distilbert", "gpt2", "llama", "bart")
"""One of each way to the values: a matrix of their own, one with queries and keys, grouped, and crossing over."""


@cache
def see(family: str) -> dict[str, list[witnesses.Seen]]:
    """What flows, by attention type."""
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in DOCUMENTS:
        for attention_type, maps in witnesses.see_norms(*tiny.make(family), document).items():
            seen.setdefault(attention_type, []).append(maps)
    return seen


@pytest.mark.parametrize("plan", [Plan(view="norm"), Plan(batch_tokens=1, fused=True, view="norm")], ids=["", "fused"])
@pytest.mark.parametrize("family", FAMILIES)
def test_reducers_count_what_flows(family: str, plan: Plan) -> None:
    seen, model = see(family), Model.from_module(*tiny.make(family), name=family)
    surface = measure(model, DOCUMENTS, "surface", plan=plan)
    relations = measure(model, DOCUMENTS, ["relations", "classes"], plan=plan)
    for attention_type, maps in seen.items():
        place = {"attention_type": attention_type} if "attention_type" in surface.dims else {}
        layers = slice(0, len(maps[0].weights))
        ours = surface.sel(place).isel(layer=layers)
        for name, expected in witnesses.surface(maps).items():
            np.testing.assert_allclose(ours[name], expected, atol=1e-5, rtol=1e-6, err_msg=name)
        ours = relations.sel(place).isel(layer=layers)
        for name, expected in witnesses.relations(maps).items():
            row = ours["relation_accuracy"].sel(relation=name, direction=list(witnesses.DIRECTIONS))
            np.testing.assert_allclose(row.transpose("layer", "head", "direction"), expected.accuracy)
        for name, expected in witnesses.classes(maps).items():
            row = ours.sel(token_class=name)
            for variable in ("attention", "mass", "mass_from_cls"):
                np.testing.assert_allclose(row[f"token_class_{variable}"], expected[variable], atol=1e-5, rtol=0)


def plant_values(length: float) -> Model:
    """A planted model whose heads 3-1 and 3-2 attend to [SEP] and to all alike, with a value of [SEP] of this length.

    The values of all other words have length 1, and the other heads have none. 3-1 leaves a little to other tokens.
    """
    model = planted.plant({(3, 1): planted.separator})
    layer = model.module.encoder.layer[2].attention
    with torch.no_grad():
        layer.self.query.weight *= 8 / planted.STRENGTH
        for head in (0, 1):
            row = head * planted.SIZE
            layer.self.value.weight[row, planted.SIZE : planted.SIZE + len(planted.WORDS)] = 1
            layer.self.value.weight[row, planted.SIZE + planted.WORDS.index("[SEP]")] = length
            layer.output.dense.weight[:7, row] = 7**-0.5
    return model


def test_nothing_flows_from_a_token_whose_value_is_zero() -> None:
    model, documents = plant_values(0), planted.documents(7)
    weights, norms = (measure(model, documents, "surface", plan=Plan(fused=True, view=view)) for view in (None, "norm"))
    raw, flows = (table["mass_sep"].sel(layer=3) for table in (weights, norms))
    assert raw.sel(head=1) > 0.99
    assert flows.sel(head=1) == pytest.approx(0, abs=1e-4)
    assert raw.sel(head=2) > 0.05
    assert flows.sel(head=2) == pytest.approx(0, abs=1e-6)
    # From a head without values nothing flows at all.
    assert norms["mass_distance"].sel(head=3, layer=3).sum() == 0
    assert norms["entropy"].sel(head=3, layer=3) == 0
    ways = [way for way in json.loads(norms.attrs["paths"]) if way.startswith("encoder 3")]
    assert ways == ["encoder 3 with the matrix: nothing flows from some of its tokens"]


def test_a_longer_value_weighs_more() -> None:
    model, documents = plant_values(3), planted.documents(7)
    table = measure(model, documents, "surface", plan=Plan(view="norm")).sel(layer=3)
    tokens = [len(document.words) + 2 for document in documents]
    for head, weight in ((1, np.exp(8)), (2, 1)):
        shares = [3 * weight / (3 * weight + count - 1) for count in tokens]
        assert table["mass_sep"].sel(head=head).item() == pytest.approx(np.mean(shares), rel=1e-5)
        rows = [[share, *[(1 - share) / (n - 1)] * (n - 1)] for share, n in zip(shares, tokens, strict=True)]
        expected = np.mean([entropy(row) for row in rows])
        assert table["entropy"].sel(head=head).item() == pytest.approx(expected, rel=1e-4)


def test_a_table_says_which_view_it_is() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    weights, norms = (measure(model, DOCUMENTS, ["surface", "relations"], plan=Plan(view=v)) for v in (None, "norm"))
    assert "view" not in weights.attrs
    assert norms.attrs["view"] == "norm"
    units = {"share of attention": "share of what flows"}
    for name, values in weights.data_vars.items():
        assert norms[name].attrs["units"] == units.get(values.attrs["units"], values.attrs["units"])
    assert norms["mass_sep"].attrs["units"] == "share of what flows"
    assert name_view(weights, None) is weights


def test_every_reducer_answers_through_the_view() -> None:
    """None needs what the view has not, and each says something else of what flows than of the weights."""
    documents = rivals.add_rivals(tiny.documents_with_roles(7))
    module, tokenizer = tiny.make("bert")
    model, before = (Model.from_module(part, tokenizer, name="bert") for part in (module, tuned.perturb(module, 5)))
    reducers = resolve_reducers(PLAIN, summarize(documents))
    weights, norms = (
        measure(model, documents, reducers, plan=Plan(view=view), before=before) for view in (None, "norm")
    )
    for reducer in reducers:
        own = measure(model, documents, [reducer], plan=Plan(view="norm"), before=before)
        assert any(not weights[name].equals(norms[name]) for name in own.data_vars), reducer.name


def test_a_view_that_there_is_not_is_refused_at_once() -> None:
    with pytest.raises(HeadscopeError) as refused:
        Plan(view="roll")
    assert str(refused.value) == f"there is no view 'roll'; name one of {', '.join(VIEWS)}, or none for the weights."


def test_a_run_through_another_view_is_not_resumed(tmp_path) -> None:
    model, saved = Model.from_module(*tiny.make("bert"), name="bert"), tmp_path / "sums.npz"
    measure(model, DOCUMENTS, "surface", checkpoint=saved)
    with pytest.raises(HeadscopeError, match=r"\(its plan differ from what is asked for now\)"):
        measure(model, DOCUMENTS, "surface", checkpoint=saved, resume=True, plan=Plan(view="norm"))
