"""Streaming heads: against plain loops and the model's own masks, whatever the batch, planted, and where are none."""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import headscope
import laws
import planted_decoder
import tiny
import witnesses
from family_maps import make
from headscope.analyse import assess
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.model import Model
from headscope.capture.passes.views import VIEWS
from headscope.corpora import Document
from headscope.errors import HeadscopeError, ModelError
from headscope.headlists import duo_attention
from headscope.headlists.list_formats import read_heads
from headscope.reducers import Reducer, Streaming, Surface
from headscope.reducers.support.folds import FoldAssignment
from headscope.runner import Plan, measure
from planted import Rule
from witnesses.streaming import choose

DOCUMENTS = tiny.documents(11)
FIRST, RECENT = 2, 3
SHORT = Streaming(first=FIRST, recent=RECENT)
FAMILIES = ("gpt2", "llama", "qwen3", "mistral", "gemma2", "gpt_oss")
"""Plain; with key/value groups; with norms; a window; a softcap; a sink that is no token."""


@cache
def expect(family: str) -> dict[str, np.ndarray]:
    return witnesses.streaming(*tiny.make(family), DOCUMENTS, first=FIRST, recent=RECENT)


@pytest.mark.parametrize(
    "plan", [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True)], ids=["batched", "alone, 3 rows", "fused"]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_streaming_is_what_plain_loops_say(family: str, plan: Plan) -> None:
    expected, table = expect(family), measure(make(family), DOCUMENTS, [SHORT], plan=plan)
    tokens = expected["tokens"]
    assert tokens.min() > 11
    np.testing.assert_array_equal(table["fold_streaming"].sum("fold"), tokens)
    names = {
        "streaming_kept": "kept", "streaming_change": "change", "streaming_mass": "mass",
        "streaming_uniform": "uniform_mass",
    }  # fmt: skip
    for name, of_witness in names.items():
        np.testing.assert_allclose(table[name], expected[of_witness], atol=1e-5, rtol=1e-5, err_msg=name)
    for name in ("others", "uniform"):
        sums = table[f"fold_streaming_{name}"].sum("fold") / tokens
        np.testing.assert_allclose(sums, expected[name], atol=1e-5, err_msg=name)
        assert float(sums.max()) > 0.05
    assert 0.05 < float(table["streaming_kept"].max()) < 1
    if family not in ("mistral", "gemma2", "gpt_oss"):  # in a window other tokens count
        assert int(table["streaming_count"]) == tokens.max()


def see_outputs(module: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
    """Of the first layer the output of each head before the output projection, by head, query and width."""
    held = []
    projection = next(part for name, part in module.named_modules() if name.endswith("o_proj"))
    hook = projection.register_forward_pre_hook(lambda part, given: held.append(given[0]))
    with torch.no_grad():
        module(ids, attention_mask=torch.where(mask, 0.0, torch.finfo(torch.float32).min)[None, None])
    hook.remove()
    return held[0][0].unflatten(-1, (module.config.num_attention_heads, -1)).transpose(0, 1).double().numpy()


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss"])
def test_a_cut_is_what_the_model_itself_makes_of_such_a_mask(family: str) -> None:
    """In the first layer, below which nothing is cut: with a softcap and with a sink that is no token as well."""
    module, tokenizer = tiny.make(family)
    module.set_attn_implementation("eager")
    totals = []
    for document in DOCUMENTS:
        seen = witnesses.see(module, tokenizer, document)["decoder"]
        visible = torch.tensor(seen.visible[0])
        kept, counts = visible.clone(), []
        for query in range(len(visible)):
            if keys := choose(seen.visible[0, query], query, FIRST, RECENT)[0]:
                counts.append(query)
                kept[query] = False
                kept[query, keys] = True
        ids = torch.tensor([[token.id for token in seen.keys]])
        whole, cut = (see_outputs(module, ids, mask)[:, counts] for mask in (visible, kept))
        length, change = (np.linalg.norm(side, axis=-1) for side in (whole, cut - whole))
        left = np.maximum(length - change, 0).sum(1) / np.maximum(length.sum(1), 1e-30)
        totals.append((len(counts) * left, len(counts)))
    expected = sum(part for part, _ in totals) / sum(count for _, count in totals)
    table = measure(Model.from_module(module, tokenizer, name=family), DOCUMENTS, [SHORT])
    np.testing.assert_allclose(table["streaming_kept"].sel(layer=1), expected, atol=1e-5)


LAWFUL = DOCUMENTS[:7]


@cache
def add_up_alone(family: str) -> xr.Dataset:
    return laws.tabulate_alone(make(family), LAWFUL, [SHORT])


@settings(max_examples=6, deadline=None)
@given(plan=laws.PLANS, order=st.permutations(range(len(LAWFUL))), cut=st.integers(1, len(LAWFUL) - 1))
@pytest.mark.parametrize("family", ["mistral", "gemma2"])
def test_any_order_split_padding_batch_and_block(family: str, plan: Plan, order: list, cut: int) -> None:
    permuted = [LAWFUL[place] for place in order]
    done = laws.merge(laws.add_up_parts(make(family), permuted, [cut], [SHORT], plan)[::-1])
    laws.assert_same(laws.tabulate_sums(done, make(family), [SHORT]), add_up_alone(family))


def test_blocks_of_tokens_add_up(monkeypatch) -> None:
    whole = laws.add_up(make("llama"), DOCUMENTS, [SHORT], Plan())
    monkeypatch.setattr(BlockSizes, "measure", lambda device: BlockSizes(held=1))
    one_by_one = laws.add_up(make("llama"), DOCUMENTS, [SHORT], Plan())
    laws.assert_same(*(laws.tabulate_sums(done, make("llama"), [SHORT]) for done in (one_by_one, whole)))


@pytest.mark.parametrize("family", ["bert", "bart", "t5"])
def test_models_that_are_no_decoder_alone_are_refused(family: str) -> None:
    with pytest.raises(ModelError) as refused:
        measure(make(family), DOCUMENTS, ["streaming"])
    assert str(refused.value) == (
        "the reducer `streaming` cuts each token off from those before it, and a model that is not a decoder alone "
        "sees what comes after it as well; measure a decoder, or leave the reducer out."
    )


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_output(view: str) -> None:
    with pytest.raises(HeadscopeError) as refused:
        measure(make("llama"), DOCUMENTS, [SHORT], plan=Plan(view=view))
    assert str(refused.value) == (
        f"the reducer `streaming` reads the values that attention averages, so it has no view `{view}`; measure it "
        "apart, without --view."
    )


class Asks(Surface):
    """A reducer that asks what it has not declared."""

    def observe(self, facts, attention):
        attention.values()
        return super().observe(facts, attention)


@pytest.mark.parametrize("view", ["norm", "rollout"])
@pytest.mark.parametrize("fused", [None, True])
def test_who_asks_a_view_for_values_is_told_that_it_has_none(view: str, fused: bool | None) -> None:
    asks: Reducer = Asks()
    measure(make("llama"), DOCUMENTS[:1], [asks])
    with pytest.raises(HeadscopeError, match="declare reads_values = True in the reducer"):
        measure(make("llama"), DOCUMENTS[:1], [asks], plan=Plan(view=view, fused=fused if view == "norm" else None))


@pytest.mark.parametrize(("first", "recent"), [(-1, 3), (2, 0)])
def test_numbers_of_tokens_that_cannot_be_kept_are_refused(first: int, recent: int) -> None:
    with pytest.raises(HeadscopeError) as refused:
        Streaming(first=first, recent=recent)
    assert str(refused.value) == (
        f"the first {first} and the most recent {recent} tokens cannot be kept; keep 0 or more of the first, and 1 or "
        "more of the most recent."
    )


SIZE, MARKER, PLAIN = planted_decoder.SIZE, planted_decoder.MARKER, planted_decoder.PLAIN
KEEPS = Streaming(first=2, recent=6)


def near(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the two tokens before."""
    for position in range(2, SIZE):
        query[[position - 1, position - 2], position] = 1
        key[position, position] = 1


def first_or_previous(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the first token and to the one before alike."""
    planted_decoder.place(0)(query, key)
    for position in range(2, SIZE):
        query[position - 1, position] = key[position, position] = 1


def halfway(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the middle of what is read so far."""
    for position in range(SIZE):
        query[position // 2, position] = key[position, position] = 1


def rest_on_first(query: torch.Tensor, key: torch.Tensor) -> None:
    """Most of it to the first token, and the rest to all tokens alike."""
    planted_decoder.place(0)(query, key)
    query *= 5.5 / planted_decoder.STRENGTH


ELSEWHERE: dict[tuple[int, int], Rule] = {(1, 1): planted_decoder.word(MARKER), (2, 1): halfway}
"""Heads that look for what stands far away; those without a rule attend to all tokens alike."""


def plant(rules: Mapping[tuple[int, int], Rule], *, alike: float = 0.0) -> Model:
    """A decoder with these rules, whose values are random numbers of each word, the first token's nothing.

    They have so much in common, as a multiple of what they do not.
    """
    module, tokenizer = planted_decoder.plant(rules)
    generator = torch.Generator().manual_seed(5)
    width, words = module.config.n_embd, len(planted_decoder.WORDS)
    with torch.no_grad():
        for layer in module.transformer.h:
            values = torch.randn(words, width, generator=generator) + alike * torch.randn(width, generator=generator)
            values[planted_decoder.WORDS.index("<s>")] = 0
            layer.attn.c_attn.weight[SIZE : SIZE + words, 2 * width :] = values
    return Model.from_module(module, tokenizer, name="planted")


def texts() -> list[Document]:
    """Random words, among which the marker stands once, far behind the first and before the last."""
    sampler, made = random.Random(7), []
    for number in range(90):
        words = sampler.choices(PLAIN, k=sampler.randint(40, SIZE - 1))
        words[sampler.randint(8, 20)] = MARKER
        made.append(Document(f"text-{number}", tuple(words)))
    return made


def judge(rules: Mapping[tuple[int, int], Rule], **values: float) -> xr.Dataset:
    return assess(
        measure(plant(rules, **values), texts(), [replace(KEEPS, fold_assignment=FoldAssignment("document"))])
    )


@pytest.mark.parametrize("rule", [near, first_or_previous])
def test_a_planted_streaming_head_is_reported_and_its_neighbours_are_not(rule: Rule) -> None:
    table = judge({**ELSEWHERE, (1, 3): rule})
    kept = table["streaming_kept"]
    assert (int(table["streaming_reported_layer"]), int(table["streaming_reported_head"])) == (1, 3)
    assert str(table["streaming_reported_verdict"].values) == "stands out"
    assert float(kept.sel(layer=1, head=3)) > 0.99
    assert float(kept.stack(place=("layer", "head")).drop_sel(place=[(1, 3)]).max()) < 0.6
    assert float(kept.sel(layer=2, head=1)) < 0.2
    assert "documents are taken as independent" in table.attrs["split"]
    assert float(kept.sel(layer=1, head=1)) < 0.2


def test_attention_to_the_first_token_is_not_enough() -> None:
    """Nearly all of it rests on a token without a value, and the output comes from everywhere."""
    table = judge({**ELSEWHERE, (1, 3): rest_on_first}).sel(layer=1, head=3)
    assert float(table["streaming_mass"]) > 0.8
    assert float(table["streaming_kept"]) < 0.4


@pytest.mark.parametrize("alike", [0.0, 3.0, 30.0])
def test_among_heads_that_look_elsewhere_or_everywhere_none_stands_out(alike: float) -> None:
    """Also where the values resemble each other, so that any head keeps its output."""
    table = judge(ELSEWHERE, alike=alike)
    assert str(table["streaming_reported_verdict"].values) == "does not stand out"
    assert (float(table["streaming_kept"].max()) > 0.9) == (alike == 30)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_in_an_untrained_model_none_stands_out(family: str) -> None:
    sampler = random.Random(3)
    documents = [Document(str(number), tuple(sampler.choices(tiny.WHOLE, k=40))) for number in range(90)]
    table = assess(measure(headscope.untrained_model(make(family)), documents, [KEEPS]))
    assert str(table["streaming_reported_verdict"].values) == "does not stand out"


def test_what_duo_attention_gets_is_high_where_the_whole_text_is_needed(tmp_path) -> None:
    table = judge({**ELSEWHERE, (1, 3): near})
    kept = table["streaming_kept"].transpose("layer", "head").values
    path, groups, turned = (tmp_path / name for name in ("full_attention_heads.tsv", "groups.tsv", "turned.tsv"))
    listed = tmp_path / "heads.json"
    headscope.export(table, out=path, format="duo-attention")
    np.testing.assert_array_equal(np.loadtxt(path, delimiter="\t"), 1 - kept)
    assert read_heads(path).entries[2].value == 1 - kept[0, 2] < 0.01
    # The key/value head is needed as much as the query head that needs it most.
    headscope.export(table, out=groups, format="duo-attention", key_value_heads=1)
    np.testing.assert_array_equal(np.loadtxt(groups, delimiter="\t"), (1 - kept).max(1))
    assert Streaming.scores[0].variable == duo_attention.STREAMING
    everything = headscope.export(table, out=listed, top=6)
    assert len(everything.entries) == 6
    # From a list of our own the numbers are turned around as well, and once; its reported head has its held-out score.
    headscope.export(listed, out=turned, format="duo-attention")
    np.testing.assert_allclose(np.loadtxt(turned, delimiter="\t"), 1 - kept, atol=1e-6)
