"""Hybrid models: the layers that have attention are measured under their numbers in the model, and the others named."""

import json
import re
from pathlib import Path

import numpy as np
import playwright.sync_api as playwright
import pytest
import torch
import xarray as xr
from playwright.sync_api import expect
from transformers import MambaConfig, MambaModel

import headscope
import hybrids
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.model.shape import Shape
from headscope.capture.open.untrained import untrained_model
from headscope.capture.passes.projection import find_projections
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import HeadscopeError, ModelError
from headscope.heads import write_table
from headscope.intervene.ablation import list_units
from headscope.intervene.selected_heads import select_heads
from headscope.layers import describe_without_attention, read_without_attention
from headscope.reducers import HeadDistances, Surface
from headscope.runner import measure

FAMILIES = pytest.mark.parametrize("family", hybrids.HYBRIDS)
MIXED = pytest.mark.parametrize("family", [name for name in hybrids.HYBRIDS if name != "granite_swa"])
DOCUMENTS = tiny.documents(7)


def load(family: str) -> Model:
    return Model.from_module(*hybrids.make(family), name=family)


def one_batch(model: Model) -> Batch:
    return collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])


def observe(model: Model, batch: Batch, **how) -> dict[int, torch.Tensor]:
    weights: dict[int, torch.Tensor] = {}

    def keep(attention: Attention) -> None:
        weights[attention.layer] = attention.weights()

    Capture.verified(model, batch).run(batch, keep, whole=True, **how)
    return weights


@FAMILIES
def test_layers_have_the_numbers_of_their_blocks(family: str) -> None:
    """The blocks themselves know their number; ours comes from the configuration and the order of calls."""
    model = load(family)
    modules = Capture.verified(model, one_batch(model)).modules
    assert tuple(layer for _, layer in modules) == hybrids.ATTENTION_LAYERS[family]
    for (_, layer), module in modules.items():
        assert module.layer_idx + 1 == layer


@pytest.mark.parametrize("model_type", hybrids.FURTHER)
def test_further_families_are_verified_too(model_type: str) -> None:
    model = Model.from_module(*hybrids.make_further(model_type), name=model_type)
    assert [*Capture.verified(model, one_batch(model)).modules] == [("decoder", 2), ("decoder", 4)]
    assert set(model.shape.without_attention) == {1, 3}


@MIXED
def test_statistics_are_those_of_a_naive_loop(family: str) -> None:
    model = load(family)
    table = measure(model, DOCUMENTS, [Surface()])
    seen = [witnesses.see(model.module, model.tokenizer, document)["decoder"] for document in DOCUMENTS]
    expected, layers = witnesses.surface(seen), list(hybrids.ATTENTION_LAYERS[family])
    assert table["layer"].values.tolist() == [*range(1, hybrids.HYBRIDS[family].attention_types["decoder"] + 1)]
    for name in ("mass_first", "mass_previous", "entropy", "mean_distance"):
        values = table[name]
        np.testing.assert_allclose(values.sel(layer=layers), expected[name], atol=1e-4, err_msg=name)
        assert values.drop_sel(layer=layers).isnull().all()


def test_distances_are_between_layers_by_their_numbers() -> None:
    model = load("qwen3_5")
    table = measure(model, DOCUMENTS, [HeadDistances()])
    distance = table["js_distance"]
    assert distance.sizes["layer"] == distance.sizes["layer_other"] == 5
    between = distance.sel(layer=[2, 5], layer_other=[2, 5])
    assert between.notnull().all()
    assert int(distance.notnull().sum()) == between.size


def test_a_sink_within_the_output_is_taken_from_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Granite scales its output by a sink and returns weights without it; a softmax with the sink gives the same z."""
    from transformers.models.granite_swa import modeling_granite_swa

    expected: dict[int, torch.Tensor] = {}

    def attend(module, query, key, value, mask, scaling, **terms):
        key, value = (side.repeat_interleave(module.num_key_value_groups, dim=1) for side in (key, value))
        scores = query @ key.mT * scaling + mask
        sinks = module.sinks[None, :, None, None].expand(*scores.shape[:3], 1)
        weights = torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]
        expected[module.layer_idx + 1] = weights
        return (weights @ value).transpose(1, 2).contiguous(), weights

    model = load("granite_swa")
    batch = one_batch(model)
    weights = observe(model, batch, rows=3)
    model.module.set_attn_implementation("eager")
    with torch.no_grad():
        untouched = model.module(**batch.inputs).last_hidden_state
        monkeypatch.setattr(modeling_granite_swa, "eager_attention_forward", attend)
        with_sink = model.module(**batch.inputs).last_hidden_state
    real = batch.encoder.real
    torch.testing.assert_close(with_sink[real], untouched[real], atol=1e-4, rtol=1e-4)
    assert weights.keys() == expected.keys()
    for layer, given in weights.items():
        shown, sums = expected[layer].movedim(2, 1)[real], given.sum(-1).movedim(2, 1)[real]
        # What the layers below differ by in the last bits grows with each.
        torch.testing.assert_close(given.movedim(2, 1)[real], shown, atol=1e-5 if layer == 1 else 1e-4, rtol=0)
        assert float(sums.min()) < 0.9


def test_an_untrained_model_of_it_is_measured_too() -> None:
    model = load("nemotron_h")
    untrained = untrained_model(model)
    assert untrained.attention_layers == model.attention_layers == {"decoder": (2, 4)}
    assert measure(untrained, DOCUMENTS[:2], [Surface()])["entropy"].sel(layer=4).notnull().all()


def test_an_edit_changes_the_layer_that_it_names() -> None:
    model = load("qwen3_5")
    batch = one_batch(model)
    assert [unit.name for unit in list_units(model) if unit.kind == "layer"] == ["2", "5"]
    projection = model.module.layers[4].self_attn.o_proj
    given: list[torch.Tensor] = []
    projection.register_forward_pre_hook(lambda module, arguments: given.append(arguments[0].clone()))
    before = model.module(**batch.inputs).last_hidden_state
    with headscope.disable(model, ["5-3"], how="zero"):
        after = model.module(**batch.inputs).last_hidden_state
    plain, edited = (each.unflatten(-1, (6, 14)) for each in (given[0], given[-1]))
    assert torch.equal(edited[..., 2, :], torch.zeros_like(edited[..., 2, :]))
    torch.testing.assert_close(edited[..., [0, 1, 3, 4, 5], :], plain[..., [0, 1, 3, 4, 5], :], atol=1e-4, rtol=0)
    assert not torch.allclose(before, after)


def test_what_heads_add_is_found_by_layer() -> None:
    model = load("nemotron_h")
    batch = one_batch(model)
    projections = find_projections(Capture.verified(model, batch), batch)
    assert [*projections] == [("decoder", 2), ("decoder", 4)]
    for (_, layer), projection in projections.items():
        weight = model.module.layers[layer - 1].mixer.o_proj.weight.detach()
        torch.testing.assert_close(projection.parts, weight.T.unflatten(0, (6, 14)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["3-1", "3", "3-kv1"])
def test_a_layer_without_attention_has_no_head_to_name(name: str) -> None:
    with pytest.raises(HeadscopeError) as refused:
        select_heads(load("nemotron_h"), name)
    assert str(refused.value) == "layer 3 has no attention (moe); name a head of another layer than 1, 3, 5."


def test_a_configuration_of_another_order_is_noticed() -> None:
    model = load("qwen3_5")
    batch = one_batch(model)
    first, second, *others = model.module.config.layer_types
    model.module.config.layer_types = [second, first, *others]
    with pytest.raises(ModelError) as refused:
        Capture.verified(model, batch)
    assert re.fullmatch(
        r"the attention of 'qwen3_5' cannot be captured: by its configuration decoder layer 1 has attention, and what "
        r"was seen is that of block 2\.|'qwen3_5' .* cannot be run on text .*",
        str(refused.value),
    )


def test_a_model_without_any_attention_is_refused() -> None:
    config = MambaConfig(hidden_size=14, num_hidden_layers=2, state_size=5, vocab_size=tiny.BYTE_VOCABULARY)
    with pytest.raises(ModelError) as refused:
        Model.from_module(MambaModel(config), tiny.tokenizer(tiny.LLAMA), name="mamba")
    assert str(refused.value) == (
        "no layer of 'mamba' (MambaModel) has attention heads, but only linear attention; give a model with heads."
    )


@pytest.mark.full
def test_a_damaged_list_of_layers_is_noticed(atlas: Path, tmp_path: Path) -> None:
    table = headscope.read_table(atlas / "heads.nc").assign_attrs(layers_without_attention='{"first": "moe"}')
    with pytest.raises(HeadscopeError, match="is damaged or incomplete"):
        headscope.read_table(write_table(table, tmp_path / "heads.nc"))


def test_shapes_differ_by_the_layers_without_attention() -> None:
    config = load("qwen3_5").module.config
    shape = Shape.from_config(config)
    assert shape.together == 12
    config.layer_types = ["linear_attention", *["full_attention"] * 4]
    assert shape.difference(Shape.from_config(config)) == "their layers without attention (1, 3-4; 1)"


def test_sentences_name_the_layers() -> None:
    assert describe_without_attention({}) == ""
    assert describe_without_attention({2: "conv"}) == "Layer 2 has no attention (conv)."
    several = {1: "linear_attention", 2: "linear_attention", 4: "moe"}
    assert describe_without_attention(several) == "Layers 1-2, 4 have no attention (linear attention, moe)."


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an atlas of a hybrid model."""
    folder = tmp_path_factory.mktemp("hybrid")
    for part in hybrids.make("qwen3_5"):
        part.save_pretrained(folder / "model")
    corpus = folder / "corpus.jsonl"
    lines = [{"text": " ".join(document.words)} for document in DOCUMENTS]
    corpus.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    headscope.atlas(folder / "model", corpus, folder / "atlas", progress=False)
    return folder / "atlas"


def test_an_atlas_says_which_layers_have_no_attention(atlas: Path) -> None:
    table = headscope.read_table(atlas / "heads.nc")
    assert read_without_attention(table) == dict.fromkeys((1, 3, 4), "linear_attention")
    page = (atlas / "atlas.html").read_text(encoding="utf-8")
    assert "5 layers of 6 heads. Layers 1, 3-4 have no attention (linear attention)." in page
    assert headscope.head(table, "5-6")["entropy"].notnull()
    with pytest.raises(HeadscopeError) as refused:
        headscope.head(table, "4-1")
    assert str(refused.value).startswith("layer 4 has no attention (linear attention)")


def test_the_page_says_that_a_chosen_layer_has_no_attention(atlas: Path, browser: playwright.Browser) -> None:
    page = browser.new_page()
    try:
        page.goto(f"{(atlas / 'atlas.html').as_uri()}#head=3-2")
        expect(page.locator("#sentence-about")).to_have_text("Layer 3 has no attention (linear attention).")
        page.goto(f"{(atlas / 'atlas.html').as_uri()}#head=5-2")
        expect(page.locator("#sentence-about")).not_to_contain_text("no attention")
    finally:
        page.close()


def test_the_ledger_of_a_hybrid_model_has_its_layers(tmp_path: Path) -> None:
    from transformers import Qwen3_5ForCausalLM

    module, tokenizer = hybrids.make("qwen3_5")
    full = Qwen3_5ForCausalLM(module.config).eval()
    full.model.load_state_dict(module.state_dict())
    prompts = [
        {"id": str(number), "documents": ["the old dog", "a red cat"], "question": "the dog", "answer": "the cat"}
        for number in range(3)
    ]
    table = headscope.ledger((full, tokenizer), prompts, tmp_path, tokens=3, progress=False)
    mass: xr.DataArray = table["ledger_mass"]
    assert mass.sel(layer=[2, 5]).notnull().all()
    assert mass.sel(layer=[1, 3, 4]).isnull().all()
    np.testing.assert_allclose(mass.sel(layer=[2, 5]).sum("part"), 1, atol=1e-5)
