"""Tokens that come again: naive loops over the maps of the model itself, random tokens as they are, and worlds of heads
that know nothing of tokens beside one that does.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import causal_heads
import tiny
import witnesses
from causal_heads import Scores, attend_evenly, like_tokens, look_back
from family_maps import make, see_all
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.corpora import Document, read, summarize
from headscope.errors import CorpusError
from headscope.reducers import REDUCERS, Induction
from headscope.reducers.induction import FARTHEST, MATCHES
from headscope.runner import Plan, measure

DOCUMENTS = tiny.documents(23)
HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "decoders.md"


def of_attention_type(values: xr.DataArray, attention_type: str) -> np.ndarray:
    if "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type).dropna("layer", how="all")
    return values.transpose("layer", "head").values


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize(
    "plan", [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True)], ids=["batched", "3 rows", "fused"]
)
def test_matches_equal_naive_loops(family: str, plan: Plan) -> None:
    seen = see_all(family, tuple(DOCUMENTS))
    table = measure(make(family), DOCUMENTS, ["induction"], plan=plan)
    for attention_type, maps in seen.items():
        for match, (means, count) in witnesses.induction(maps).items():
            ours = table["match_mass"].sel(match=match)
            assert count > 20
            np.testing.assert_allclose(of_attention_type(ours, attention_type), means, atol=1e-6, err_msg=match)
            if "attention_type" not in table.dims:
                assert int(table["match_count"].sel(match=match)) == count


@pytest.mark.parametrize(("family", "before", "after"), [("gpt2", ["<|endoftext|>"], []), ("llama", ["<s>"], []),
                                                         ("bert", ["[CLS]"], ["[SEP]"])])  # fmt: skip
def test_random_tokens_are_read_as_they_are(family: str, before: list[str], after: list[str]) -> None:
    """The mean of A[i, i - n + 1] and A[i, i - n] in the second half of [r, r], from what transformers returns."""
    module, tokenizer = tiny.make(family)
    special, random = {*tokenizer.all_special_ids}, np.random.default_rng(7)
    ordinary = [number for number in range(tokenizer.vocab_size) if number not in special]
    sums: list[np.ndarray | int] = [0, 0]
    counts, documents = [0, 0], []
    eager, _ = tiny.make(family)
    eager.set_attn_implementation("eager")
    for number, half in enumerate((5, 7, 11, 13, 17, 19, 23)):
        places = [*random.choice(len(ordinary), half, replace=False)] * 2
        where = tuple((float(place) + 0.5) / len(ordinary) for place in places)
        documents.append(Document(str(number), tuple(map(str, places)), random_tokens=where))
        drawn = [ordinary[place] for place in places]
        ids = [*tokenizer.convert_tokens_to_ids(before), *drawn, *tokenizer.convert_tokens_to_ids(after)]
        with torch.no_grad():
            maps = torch.stack(eager(input_ids=torch.tensor([ids]), output_attentions=True).attentions)[:, 0].numpy()
        for place in range(len(before) + half, len(before) + 2 * half):
            for match, target in enumerate((place - half + 1, place - half)):
                sums[match] += maps[:, :, place, target]
                counts[match] += 1
    table = measure(Model.from_module(module, tokenizer, name=family), documents, ["induction"])
    for match, name in enumerate(MATCHES):
        ours = table["match_mass"].sel(match=name).transpose("layer", "head")
        np.testing.assert_allclose(ours, sums[match] / counts[match], atol=1e-6)
        assert int(table["match_count"].sel(match=name)) == counts[match]


@pytest.mark.demo
def test_the_python_of_the_how_to_runs() -> None:
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["table"]["match_count"].min() > 20
    assert 0 < float(names["table"]["match_mass"].max()) < 1


def test_repeats_are_the_same_for_a_seed_and_have_different_lengths() -> None:
    documents = list(read("repeats:41:3"))
    assert documents == list(read("repeats:41:3"))
    assert documents[:7] == list(read("repeats:7:3"))
    assert documents[0].random_tokens != next(iter(read("repeats:1:4"))).random_tokens
    assert len({len(document.words) for document in documents}) > 15
    for document in documents:
        half = len(document.words) // 2
        assert document.words[:half] == document.words[half:]
        assert len({*document.random_tokens}) == half
    summary = summarize(read("repeats:41:3"))
    assert REDUCERS["induction"].supports(summary)
    assert not REDUCERS["induction"].supports(summarize(DOCUMENTS))


def test_texts_of_random_tokens_that_are_too_long_are_counted() -> None:
    documents = list(read("repeats:17"))
    aligned, skipped = Alignment.for_model(make("bert"), max_tokens=53, cut=True).align(documents)
    long = sum(len(document.words) + 2 > 53 for document in documents)
    assert 0 < long < 17
    assert len(aligned) == 17 - long
    assert skipped == {"documents longer than 53 tokens": long}


@pytest.mark.parametrize("where", [(0.5,), (0.5, 1.0), (-0.1, 0.5)])
def test_random_tokens_that_fit_no_words_are_refused(where: tuple[float, ...]) -> None:
    sentence = (
        f"document 'a' has 2 words and {len(where)} random tokens; each word needs one: a place in the vocabulary, "
        "from 0 up to 1."
    )
    with pytest.raises(CorpusError) as refused:
        Document("a", ("x", "y"), random_tokens=where)
    assert str(refused.value) == sentence


def test_a_part_of_a_text_has_a_part_of_the_tokens() -> None:
    document = next(iter(read("repeats:1")))
    assert document.truncate(5).random_tokens == document.random_tokens[:5]
    assert replace(document, spans=()).random_tokens == document.random_tokens


def match(shift: int, strength: float = 9) -> Scores:
    """To the token so far behind the last earlier place of the same token."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        scores = np.zeros((len(ids), len(ids)))
        for place, token in enumerate(ids):
            earlier = [other for other in range(place) if ids[other] == token]
            if earlier and earlier[-1] + shift < place:
                scores[place, earlier[-1] + shift] = strength
        return scores

    return attend


IGNORANT = [attend_evenly, look_back(1), look_back(2), look_back(40), like_tokens, match(2)]
"""Heads that attend evenly, to a place, to liked tokens, or to what followed two tokens later."""


def build(heads: Sequence[Scores], documents: Sequence[Document]) -> xr.Dataset:
    return causal_heads.build(Induction.for_corpus(summarize(documents)), make("gpt2"), heads, documents)


def test_no_head_stands_out_that_knows_no_tokens() -> None:
    for seed in range(3):
        documents = [each for each in read(f"repeats:150:{seed}") if len(each.words) < 120]
        table = build(IGNORANT, documents)
        assert table["match_reported_verdict"].values.tolist() == ["does not stand out"] * 2


@pytest.mark.parametrize(
    ("shift", "found", "strength"), [(1, "induction", 9), (0, "duplicate", 9), (1, "induction", 4)]
)
def test_a_head_that_finds_its_token_stands_out(shift: int, found: str, strength: float) -> None:
    documents = [each for each in read("repeats:150:7") if len(each.words) < 120]
    table = build([*IGNORANT, match(shift, strength)], documents)
    verdicts = dict(zip(table["match"].values.tolist(), table["match_reported_verdict"].values.tolist(), strict=True))
    assert verdicts[found] == "stands out"
    assert int(table["match_reported_head"].sel(match=found)) == len(IGNORANT) + 1
    other = next(name for name in MATCHES if name != found)
    assert verdicts[other] == "does not stand out"


def test_repeats_of_one_length_are_found_by_their_distance() -> None:
    """That is why lengths vary: of one length, the rule with a fixed distance is as good as any head."""
    random = np.random.default_rng(3)
    documents = []
    for number in range(150):
        places = [*random.choice(211, 19, replace=False)] * 2
        where = tuple((float(place) + 0.5) / 211 for place in places)
        documents.append(Document(str(number), tuple(map(str, places)), random_tokens=where))
    table = build([*IGNORANT, match(1)], documents)
    row = table.sel(match="induction")
    assert str(row["match_reported_verdict"].item()) == "does not stand out"
    assert int(row["match_heldout_back"]) == 18 < FARTHEST
    assert float(row["match_heldout_back_mass"]) == pytest.approx(1, abs=0.02)
