"""The table of reported heads: which rows and columns it has, what each says, and that it sorts."""

import re

import numpy as np
import pytest
import xarray as xr

from headscope.view.page import render_page
from view.parsed import Browse, Page, rows_of_reported
from view.tables import head_table, with_mentions


def shared(row: xr.Dataset, name: str) -> str:
    value, lower, upper = (float(row[f"{name}_{end}"]) for end in ("accuracy", "lower", "upper"))
    return f"{value:.2f} [{lower:.2f}, {upper:.2f}]"


def test_reported_heads_stand_beside_their_controls() -> None:
    table = head_table()
    rows = rows_of_reported(Page(render_page(table, figures={})))
    row = table.sel(relation="obj")
    links = row["length_count"]
    chosen = {dim: row[f"reported_{dim}"].item() for dim in ("layer", "head", "direction")}
    lengths = "\n".join(
        f"{length:+d}{' and further' * (abs(length) == 6)}: "
        f"{row['length_accuracy'].sel(chosen).sel(length=length).item():.2f} of {links.sel(length=length).item()}"
        for length in links["length"].values[links.values > 0].tolist()
    )
    assert rows[1] == [
        "obj",
        f"{chosen['layer']}-{chosen['head']}",
        chosen["direction"].split("_")[0],
        shared(row, "heldout"),
        "",
        lengths.replace("-", "−"),
        f"{int(row['heldout_count']):,}",
        f"{float(row['heldout_offset_accuracy']):.2f} at {int(row['heldout_offset']):+d}".replace("-", "−"),
        shared(row, "untrained"),
        f"{float(row['reported_permuted']):.2f}",
        f"{float(row['reported_q']):.3f}",
        f"+{float(row['heldout_detectable']):.2f}",
        f"{float(row['reported_selection_frequency']):.0%}",
    ]
    assert [row[0] for row in rows] == ["nsubj", "obj", "nsubj:pass"]
    assert rows[2] == ["nsubj:pass", "too rare", *["–"] * 4, "1,457 in all", *["–"] * 6]
    table = head_table(attention_types=True, rare=())
    row = table.sel(relation="obj")
    wanted = f"{row['reported_attention_type'].item()} {int(row['reported_layer'])}-{int(row['reported_head'])}"
    assert rows_of_reported(Page(render_page(table, figures={})))[1][1] == wanted


def test_each_score_has_its_rows_below_its_heading() -> None:
    parsed = Page(render_page(with_mentions(head_table()), figures={}))
    assert [row[0] for row in rows_of_reported(parsed)] == ["nsubj", "obj", "nsubj:pass", "all", "pronoun", "proper"]
    relations, mentions = (text for _, text in parsed.find("th", scope="rowgroup"))
    assert relations.startswith("Relations between wordsScore: the share of links for which, ")
    assert mentions.startswith("Antecedents of mentionsScore: the share of mentions whose head word attends, ")
    assert "Permuted: the score after rotating the antecedents of each mention among its earlier mentions." in mentions
    # The first class has too few to be reported, so there is no head to compare with.
    assert mentions.endswith("To compare, on all documents: nearest earlier mention: pronoun 0.37, proper 0.41.")
    assert rows_of_reported(parsed)[3][1:7] == ["too rare", "–", "–", "–", "–", "53 in all"]


@pytest.mark.parametrize(("dropped", "lost"), [
    (["untrained_accuracy", "untrained_lower", "untrained_upper"], ["untrained"]),
    (["reported_q", "reported_permuted"], ["permuted", "q"]),
    (["heldout_detectable", "reported_selection_frequency"], ["detectable", "selection frequency"]),
    (["length_accuracy", "length_count"], ["by length"]),
])  # fmt: skip
def test_what_was_not_measured_has_no_column_or_an_empty_cell(dropped, lost) -> None:
    every = [text for _, text in Page(render_page(head_table(), figures={})).find("dt")]
    parsed = Page(render_page(head_table().drop_vars(dropped), figures={}))
    kept = [text for _, text in parsed.find("dt")]
    assert kept == [name for name in every if name not in lost]
    assert len(kept) == len(every) - len(lost)
    assert {len(row) for row in rows_of_reported(parsed)} == {len(kept)}
    # What has it for mentions has the column; only the one by length is of relations alone.
    mixed = rows_of_reported(Page(render_page(with_mentions(head_table()).drop_vars(dropped), figures={})))
    for name in [name for name in lost if name != "by length"]:
        column = every.index(name)
        assert [row[column] for row in mixed[:4]] == ["–"] * 4
        assert "–" not in [row[column] for row in mixed[4:]]


def test_every_heading_says_in_a_sentence_what_it_is_and_where_it_comes_from() -> None:
    parsed = Page(render_page(head_table(), figures={}))
    told = [attrs["title"] or "" for attrs, _ in parsed.find("th", scope="col") if "title" in attrs]
    assert len(told) == 13
    assert all(re.fullmatch(r"[A-Z].+ \([^()]*(headscope|\d{4})[^()]*\)\.", text) for text in told)
    assert not [text for text in told if re.search(r"\. [A-Z]", text)]
    # The same for those who cannot point, and on paper.
    assert [text for _, text in parsed.find("dd")] == told


def test_what_stands_out_is_marked_counted_and_explained() -> None:
    table = with_mentions(head_table(rare=()))
    table["heldout_lower"] = ("relation", [0.9, 0.9, 0.0], table["heldout_lower"].attrs)
    table["reported_q"] = ("relation", [0.01, 0.05, 0.01], table["reported_q"].attrs)
    table["antecedent_heldout_lower"] = ("mention", [0.0, 0.0, 0.0], table["heldout_lower"].attrs)
    parsed = Page(render_page(table, figures={}))
    (row,) = [text for attrs, text in parsed.find("tr") if attrs.get("class") == "stands-out"]
    assert row.startswith("nsubj")
    (said,) = [text for attrs, text in parsed.find("p") if attrs.get("class") == "summary"]
    assert said == "A head stands out from its baselines for 1 of 3 relations and 0 of 3 classes of mentions."
    notes = " ".join(text for attrs, text in parsed.find("p") if attrs.get("class") == "note")
    assert "Bold green: the interval lies above those of all baselines, and q is below 0.05." in notes
    assert "q: permutation p-value, corrected for the number of heads and rows." in notes


def test_the_table_sorts_by_number_below_each_heading_and_puts_what_has_none_last(browse: Browse) -> None:
    table = with_mentions(head_table(rare=["nsubj"]))
    script = """
      const buttons = [...document.querySelectorAll(".sortable th button")];
      const b = buttons.find((button) => button.textContent === "score, held out");
    """
    falling = [["obj", "nsubj:pass"][place] for place in np.argsort(-table["heldout_accuracy"].values[1:])]
    mentions = [{"obj": "pronoun", "nsubj:pass": "all"}[name] for name in falling]
    parsed = browse(render_page(table, figures={}), script=script + "b.click();")
    assert [row[0] for row in rows_of_reported(parsed)] == [*falling, "nsubj", *mentions, "proper"]
    parsed = browse(render_page(table, figures={}), script=script + "b.click(); b.click();")
    assert [row[0] for row in rows_of_reported(parsed)] == [*falling[::-1], "nsubj", *mentions[::-1], "proper"]
    (attrs,) = [attrs for attrs, _ in parsed.find("th") if "aria-sort" in attrs]
    assert attrs["aria-sort"] == "ascending"
    kinds = [attrs.get("class") for attrs, _ in parsed.find("tr") if attrs.get("class") in ("group", "rare")]
    assert kinds == ["group", "rare"] * 2
