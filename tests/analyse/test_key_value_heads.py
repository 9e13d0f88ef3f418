"""Values of key/value heads, against naive loops over the query heads that share them."""

import numpy as np
import pytest
import xarray as xr

import headscope
import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.errors import TableError
from headscope.heads import read_table, write_table
from headscope.runner import measure

DOCUMENTS = tiny.documents(11)
HEADS, SHARED = 6, 3  # query heads, and those that share a key/value head
GROUPS = HEADS // SHARED


@pytest.fixture(scope="module")
def model() -> Model:
    module, tokenizer = tiny.make("llama")
    assert (module.config.num_attention_heads, module.config.num_key_value_heads) == (HEADS, GROUPS)
    return Model.from_module(module, tokenizer, name="llama")


@pytest.fixture(scope="module")
def table(model: Model) -> xr.Dataset:
    return headscope.analyse.assess(measure(model, DOCUMENTS, ["surface", "relations", "scope"]))


@pytest.fixture(scope="module")
def seen(model: Model) -> list[witnesses.Seen]:
    return [witnesses.see(model.module, model.tokenizer, document)["decoder"] for document in DOCUMENTS]


def test_the_accuracy_is_that_of_all_answers_of_the_query_heads(table: xr.Dataset, seen: list) -> None:
    groups = headscope.analyse.group_heads(table)
    assert groups["key_value_head"].values.tolist() == [*range(1, GROUPS + 1)]
    for name, row in witnesses.relations(seen).items():
        ours = groups["relation_accuracy"].sel(relation=name)
        for layer in range(row.hits.shape[1]):
            for group in range(GROUPS):
                for way, direction in enumerate(witnesses.DIRECTIONS):
                    answers = [
                        row.hits[link, layer, head, way]
                        for link in range(row.count)
                        for head in range(HEADS)
                        if head // SHARED == group and not np.isnan(row.hits[link, layer, head, way])
                    ]
                    expected = np.mean(answers) if answers else np.nan
                    place = {"layer": layer + 1, "key_value_head": group + 1, "direction": direction}
                    assert ours.sel(place).item() == pytest.approx(expected, nan_ok=True)
        assert (groups["relation_count"].sel(relation=name) == table["relation_count"].sel(relation=name)).all()


def test_descriptions_are_means(table: xr.Dataset, seen: list) -> None:
    groups = headscope.analyse.group_heads(table)
    for name, expected in witnesses.surface(seen).items():
        mean = np.stack([expected[:, start : start + SHARED].mean(1) for start in range(0, HEADS, SHARED)], axis=1)
        np.testing.assert_allclose(groups[name].transpose("layer", "key_value_head"), mean, atol=1e-5, rtol=1e-6)
        assert groups[name].attrs == table[name].attrs


def test_an_f1_is_of_the_counts_of_all_query_heads_and_no_mean(table: xr.Dataset) -> None:
    groups = headscope.analyse.group_heads(table)
    (score,) = (score for score in headscope.score.read_scores(table) if score.variable == "scope_f1")
    above, below = (
        sum(table[name].sum("fold") for name in names).transpose("layer", "head").values
        for names in (score.numerator, score.denominator)
    )
    expected = above.reshape(-1, GROUPS, SHARED).sum(-1) / below.reshape(-1, GROUPS, SHARED).sum(-1)
    np.testing.assert_allclose(groups["scope_f1"].transpose("layer", "key_value_head"), expected)
    means = table["scope_f1"].transpose("layer", "head").values.reshape(-1, GROUPS, SHARED).mean(-1)
    assert np.abs(means - expected).max() > 1e-4


def test_heads_that_answer_alike_have_the_interval_of_one_of_them(table: xr.Dataset) -> None:
    first = table.isel(head=slice(0, None, SHARED))
    alike = first.isel(head=np.repeat(np.arange(GROUPS), SHARED)).assign_coords(head=table["head"])
    groups = headscope.analyse.group_heads(alike).rename(key_value_head="head")
    for name in ("relation_accuracy", "relation_accuracy_lower", "relation_accuracy_upper", "scope_f1_upper"):
        np.testing.assert_allclose(groups[name].transpose(*first[name].dims), first[name])


def test_what_is_reported_of_single_heads_is_left_out(table: xr.Dataset, tmp_path) -> None:
    groups = headscope.analyse.group_heads(table)
    begins = ("reported_", "heldout_", "lift")
    of_one = [name for name in table.variables if name.startswith(begins) or name.endswith("_p")]
    assert "reported_verdict" in of_one
    assert not {*of_one} & {*groups.variables}
    assert not {"head", "fold", "permutation"} & {*groups.dims}
    assert groups.attrs["corpus_sha256"] == table.attrs["corpus_sha256"]
    written = read_table(write_table(table, tmp_path / "heads.nc"))
    xr.testing.assert_allclose(headscope.analyse.group_heads(written), groups)


def test_a_number_of_key_value_heads_that_is_not_known_or_cannot_be() -> None:
    module, tokenizer = tiny.make("bert")
    table = measure(Model.from_module(module, tokenizer, name="bert"), DOCUMENTS, ["surface"])
    with pytest.raises(TableError) as unknown:
        headscope.analyse.group_heads(table)
    assert str(unknown.value) == (
        "the table does not say that query heads share keys; give key_value_heads=N, which the configuration of the "
        "model has as num_key_value_heads."
    )
    with pytest.raises(TableError) as unfit:
        headscope.analyse.group_heads(table, 3)
    assert str(unfit.value) == "3 key/value heads cannot be shared by 5 heads; give a number that divides 5."
    whole = headscope.analyse.group_heads(table, 5).rename(key_value_head="head")
    xr.testing.assert_allclose(whole["entropy"], table["entropy"].transpose(*whole["entropy"].dims))


def test_duo_attention_gets_the_key_value_heads_of_the_model(table: xr.Dataset, tmp_path) -> None:
    out = tmp_path / "full.tsv"
    headscope.export(table, out=out, format="duo-attention", row="scope_f1")
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert {len(row) for row in rows} == {GROUPS}
