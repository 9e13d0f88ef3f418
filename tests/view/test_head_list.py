"""The list of heads of a table, and its section of a model card, against the table itself, read entry by entry."""

import json
import math

import numpy as np
import pytest
import xarray as xr

from analyse.tables import RELATIONS, head_table, stacked, texts, two_stacks
from headscope.analyse import add_intervals, add_report
from headscope.errors import TableError
from headscope.headlists import HeadEntry, HeadList, ListedModel
from headscope.headlists.head_list import GROUP
from headscope.view.listed_heads import list_all_heads, list_heads
from headscope.view.model_card import render_model_card


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    """Three layers of five heads, seven relations, of which some have a reported head."""
    made = head_table(texts(np.random.default_rng(7)), RELATIONS)
    reported = add_report(add_intervals(made), minimum=11)
    assert 0 < int((reported["reported_layer"] > 0).sum()) < len(RELATIONS)
    return reported.assign_attrs(versions=json.dumps({"headscope": "0.1.0"}), created="2026-11-25")


def known(value: xr.DataArray) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number


@pytest.mark.parametrize("top", [0, 3])
def test_each_row_has_its_reported_head_and_the_best_others(table, top: int) -> None:
    heads = list_heads(table, top)
    entries = iter(heads.entries)
    for relation in RELATIONS:
        row = table.sel(relation=relation)
        if not row["reported_layer"] > 0:
            continue
        first = next(entries)
        place = (int(row["reported_layer"]), int(row["reported_head"]))
        assert (first.layer, first.head) == place
        assert (first.row, first.score, first.heldout) == (relation, "relation_accuracy", True)
        assert (first.value, first.lower, first.upper) == tuple(
            known(row[name]) for name in ("heldout_accuracy", "heldout_lower", "heldout_upper")
        )
        assert (first.count, first.verdict) == (int(row["heldout_count"]), row["reported_verdict"].item())
        assert first.direction == row["reported_direction"].item()
        assert first.rival_value == known(row[f"heldout_{row['lift_rival'].item()}_accuracy"])
        here = row.sel(direction=first.direction)
        every = [(layer, head) for layer in (1, 2, 3) for head in (1, 2, 3, 4, 5) if (layer, head) != place]
        every.sort(key=lambda where: -float(here["relation_accuracy"].sel(layer=where[0], head=where[1])))
        for layer, head in every[:top]:
            other, values = next(entries), here.sel(layer=layer, head=head)
            assert (other.layer, other.head, other.heldout, other.verdict) == (layer, head, False, "")
            assert (other.value, other.lower, other.upper) == tuple(
                known(values[f"relation_accuracy{end}"]) for end in ("", "_lower", "_upper")
            )
            assert other.count == int(row["relation_count"])
    assert not [*entries]


def test_the_list_says_where_it_came_from(table) -> None:
    heads = list_heads(table)
    assert heads.model == ListedModel("made/up", "ab" * 32, 3, 5, None)
    assert (heads.corpus, heads.corpus_sha256) == ("made-up.conllu", "cd" * 32)
    assert (heads.headscope, heads.created, heads.unit) == ("0.1.0", "2026-11-25", "head")
    assert heads.method.endswith(table.attrs["split"])


def test_a_table_without_intervals_has_none_in_its_list() -> None:
    made = add_report(head_table(texts(np.random.default_rng(7)), RELATIONS), minimum=11)
    others = [entry for entry in list_heads(made).entries if not entry.heldout]
    assert others
    assert all((entry.lower, entry.upper) == (None, None) for entry in others)


def test_all_heads_of_a_row_are_those_of_the_table(table) -> None:
    relation = list_heads(table, 0).entries[0].row
    heads = list_all_heads(table, relation)
    assert [(entry.layer, entry.head) for entry in heads.entries] == [
        (layer, head) for layer in (1, 2, 3) for head in (1, 2, 3, 4, 5)
    ]
    here = table["relation_accuracy"].sel(relation=relation, direction=heads.entries[0].direction)
    assert [entry.value for entry in heads.entries] == here.transpose("layer", "head").values.ravel().tolist()
    assert not any(entry.heldout for entry in heads.entries)


def test_heads_of_several_attention_types_are_told_apart() -> None:
    encoder, decoder = two_stacks(11)
    made = add_report(add_intervals(stacked({"encoder": encoder, "decoder": decoder})), minimum=11)
    heads = list_heads(made, 17)
    types = {entry.attention_type for entry in heads.entries}
    assert types <= {"encoder", "decoder"}
    for entry in heads.entries:
        assert entry.layer <= (3 if entry.attention_type == "encoder" else 2)
        assert entry.place == f"{entry.attention_type} {entry.layer}-{entry.head}"


def test_a_table_without_reported_heads_is_refused(table) -> None:
    with pytest.raises(TableError) as caught:
        list_heads(head_table(texts(np.random.default_rng(7)), RELATIONS))
    assert str(caught.value) == (
        "the head table has no reported heads, so there is nothing to list; measure a statistic by which heads are "
        "chosen (`headscope list reducers`), on more texts."
    )
    with pytest.raises(TableError) as caught:
        list_heads(table.expand_dims(run=7))
    assert str(caught.value) == (
        "the head table holds 7 runs, which have no heads in common; export that of one model."
    )


# --------------------------------------------------------------- model card


def test_the_model_card_has_a_line_for_each_reported_head(table) -> None:
    heads = list_heads(table, 3)
    card = render_model_card(heads).splitlines()
    rows = [line for line in card if line.startswith("| ")][1:]
    reported = [entry for entry in heads.entries if entry.heldout]
    assert len(rows) == len(reported) + 1  # below the head is a rule
    for entry, line in zip(reported, rows[1:], strict=True):
        rival = f"{entry.rival} ({entry.rival_value:.3f})"
        score = f"{entry.value:.3f} [{entry.lower:.3f}, {entry.upper:.3f}]"
        cells = [entry.row, entry.place, score, f"{entry.count:,}", rival, entry.verdict]
        assert line == f"| {' | '.join(cells)} |"
    assert card[0] == "## Attention heads"
    assert card[2] == (
        "What attention heads of `made/up` do, on the corpus `made-up.conllu`, by headscope 0.1.0. Layer and head "
        "count from 1. SHA-256: weights `abababababab`, corpus `cdcdcdcdcdcd`."
    )
    assert table.attrs["split"] in "\n".join(card).replace("\\", "")


def test_no_text_of_a_list_is_markup_in_the_model_card() -> None:
    bad = "a|`b`\n# <b>[c](d) *e* &lt; ~~f~~"
    entry = HeadEntry(1, 2, 0.5, verdict=bad, title=bad, attention_type=bad, rival=bad)
    card = render_model_card(HeadList((entry,), ListedModel(bad, "`<b>\n"), "head", bad, bad, bad, bad, bad))
    shown = "a\\|\\`b\\` \\# \\<b\\>\\[c](d) \\*e\\* \\&lt; \\~\\~f\\~\\~"
    assert card.splitlines() == [
        "## Attention heads", "",
        f"What attention heads of `a| b # <b>[c](d) *e* &lt; ~~f~~` do, on the corpus `a| b # <b>[c](d) *e* &lt; "
        f"~~f~~`, by headscope {shown}. Layer and head count from 1. SHA-256: weights `<b>`, corpus `a| b # <b>[`.", "",
        "| row | head | score [95 %] | items | strongest rival | verdict |", "| --- | --- | --- | --- | --- | --- |",
        f"| {shown} | {shown} 1-2 | 0.500 |  | {shown} | {shown} |", "", shown,
    ]  # fmt: skip


def test_a_list_without_reported_heads_shows_all_and_no_more_than_it_knows() -> None:
    entries = (HeadEntry(1, 2, 0.5, title="a|b*"), HeadEntry(3, 5, score="alignment_heads"))
    card = render_model_card(HeadList(entries, unit=GROUP)).splitlines()
    assert card == [
        "## Attention heads", "", "What attention heads do. Layer and head count from 1.", "",
        "| row | head | score [95 %] | items | strongest rival | verdict |", "| --- | --- | --- | --- | --- | --- |",
        "| a\\|b\\* | 1-2 | 0.500 |  |  |  |", "| alignment\\_heads | 3-5 |  |  |  |  |", "",
        "A number is a key/value head, with all query heads that share it.",
    ]  # fmt: skip
