"""The table of reported heads: which rows and columns it has, what each says, and that it sorts."""

import re

import numpy as np
import pytest
import xarray as xr

from headscope.view.glosses import gloss_row, gloss_rule
from headscope.view.page import render_page
from view.parsed import Browse, Page, codes_of_reported, rows_of_reported
from view.tables import head_table, with_mentions, with_verdicts


def list_explained(page: Page, tag: str) -> list[str]:
    """The names or the sentences of the columns that are explained below the table."""
    return [text for attrs, text in page.find(tag) if attrs.get("class") == "column"]


def shared(row: xr.Dataset, name: str) -> str:
    value, lower, upper = (float(row[f"{name}_{end}"]) for end in ("accuracy", "lower", "upper"))
    return f"{value:.2f} [{lower:.2f}, {upper:.2f}]"


def lifted(row: xr.Dataset) -> str:
    value, lower, upper = (float(row[f"lift{end}"]) for end in ("", "_lower", "_upper"))
    return f"{value:+.2f} [{lower:+.2f}, {upper:+.2f}]".replace("-", "−")


MARKS = {"stands out": "*", "does not stand out": "", "cannot decide": "?"}


def rivals_of(row: xr.Dataset) -> str:
    way = row["reported_direction"].item()
    offset = {"offset": row["heldout_offset"].item()}
    nearest = {"side": row["heldout_upos_side"].item(), "word_class": row["heldout_upos_word_class"].item()}
    return "\n".join([
        f"{float(row['heldout_offset_accuracy']):.2f} {gloss_rule('', '', offset, way)}",
        f"{float(row['heldout_upos_accuracy']):.2f} {gloss_rule('', '', nearest)}",
        f"{float(row['untrained_accuracy']):.2f} the same model with random weights",
    ])  # fmt: skip


def test_reported_heads_stand_beside_their_rivals() -> None:
    table = head_table()
    page = Page(render_page(table, figures={}))
    rows, row = rows_of_reported(page), table.sel(relation="obj")
    links = row["length_count"]
    chosen = {dim: row[f"reported_{dim}"].item() for dim in ("layer", "head", "direction")}
    lengths = "\n".join(
        f"{length:+d}{' and further' * (abs(length) == 6)}: "
        f"{row['length_accuracy'].sel(chosen).sel(length=length).item():.2f} of {links.sel(length=length).item()}"
        for length in links["length"].values[links.values > 0].tolist()
    )
    assert rows[1] == [
        f"{gloss_row('relation:obj', chosen['direction']).title} obj",
        f"{chosen['layer']:.0f}-{chosen['head']:.0f}{MARKS[row['reported_verdict'].item()]}",
        chosen["direction"].split("_")[0],
        shared(row, "heldout"),
        lifted(row),
        rivals_of(row),
        "",
        lengths.replace("-", "−"),
        f"{int(row['heldout_count']):,}",
        f"{float(row['reported_permuted']):.2f}",
        f"{float(row['verdict_p']):.3f}",
        f"+{float(row['lift_detectable']):.2f}",
        f"{float(row['reported_selection_frequency']):.0%}",
    ]
    assert codes_of_reported(page) == ["nsubj", "obj"]
    table = with_verdicts(head_table(attention_types=True, rare=()), *["does not stand out"] * 3)
    row = table.sel(relation="obj")
    wanted = f"{row['reported_attention_type'].item()} {int(row['reported_layer'])}-{int(row['reported_head'])}"
    assert rows_of_reported(Page(render_page(table, figures={})))[1][1] == wanted


def test_each_score_has_its_rows_below_its_heading() -> None:
    parsed = Page(render_page(with_mentions(head_table()), figures={}))
    assert codes_of_reported(parsed) == ["nsubj", "obj", "pronoun", "proper"]
    relations, mentions = (text for _, text in parsed.find("th", scope="rowgroup"))
    assert relations.startswith("Relations between wordsHow it is scoredScore: the share of links for which, ")
    assert relations.endswith(
        "Permuted: the score after moving each gold link to another place in its text, keeping its length."
    )
    assert mentions.startswith(
        "Antecedents of mentionsHow it is scoredScore: the share of mentions whose head word attends, "
    )
    assert "Permuted: the score after shifting the labels of the chains along the mentions of each text." in mentions
    # The first class has too few to be reported, so there is no head to compare with.
    assert mentions.endswith("To compare, on all documents: nearest earlier mention: pronoun 0.37, proper 0.41.")


def test_rows_with_few_items_are_folded_away_below_their_number() -> None:
    parsed = Page(render_page(with_mentions(head_table()), figures={}))
    assert [text for attrs, text in parsed.find("details") if attrs.get("class") == "rare"] == [
        "1 of 3 relations: too few links in a half of the corpus to report a headrowlinks in all"
        "subject of a passive → its verb nsubj:pass1,457",
        "1 of 3 classes of mentions: too few mentions in a half of the corpus to report a headrowmentions in "
        "allmention → an earlier one of the same all53",
    ]
    assert all("open" not in attrs for attrs, _ in parsed.find("details"))
    everything = Page(render_page(head_table(rare=("nsubj", "obj", "nsubj:pass")), figures={}))
    assert rows_of_reported(everything) == []
    (folded,) = (text for attrs, text in everything.find("details") if attrs.get("class") == "rare")
    assert folded.startswith("3 of 3 relations: ")
    ((section, _),) = everything.find("section", id="reported-rows")
    assert "hidden" not in section


@pytest.mark.parametrize(("dropped", "lost"), [
    (["lift", "lift_lower", "lift_upper"], ["lift, held out"]),
    (["lift_over_offset", "lift_over_upos", "lift_over_untrained"], ["rivals, held out"]),
    (["verdict_p", "reported_permuted"], ["permuted, all texts", "p, all texts"]),
    (["lift_detectable", "reported_selection_frequency"], ["detectable, held out", "selection frequency"]),
    (["length_accuracy", "length_count"], ["by length, all texts"]),
])  # fmt: skip
def test_what_was_not_measured_has_no_column_or_an_empty_cell(dropped, lost) -> None:
    every = list_explained(Page(render_page(head_table(), figures={})), "dt")
    parsed = Page(render_page(head_table().drop_vars(dropped), figures={}))
    kept = list_explained(parsed, "dt")
    assert kept == [name for name in every if name not in lost]
    assert len(kept) == len(every) - len(lost)
    assert {len(row) for row in rows_of_reported(parsed)} == {len(kept)}
    # What has it for mentions has the column; only the one by length is of relations alone.
    mixed = rows_of_reported(Page(render_page(with_mentions(head_table()).drop_vars(dropped), figures={})))
    for name in [name for name in lost if name != "by length, all texts"]:
        column = every.index(name)
        assert [row[column] for row in mixed[:2]] == ["–"] * 2
        assert "–" not in [row[column] for row in mixed[2:]]


def test_every_heading_says_in_a_sentence_what_it_is_and_where_it_comes_from() -> None:
    parsed = Page(render_page(head_table(), figures={}))
    told = [attrs["title"] or "" for attrs, _ in parsed.find("th", scope="col") if "title" in attrs]
    assert len(told) == 13
    assert all(re.fullmatch(r"[A-Z].+ \([^()]*(headscope|\d{4})[^()]*\)\.", text) for text in told)
    assert not [text for text in told if re.search(r"\. [A-Z]", text)]
    # The same for those who cannot point, and on paper.
    headings = [text for attrs, text in parsed.find("th", scope="col") if "title" in attrs]
    pictures = {"01picture": "picture"}
    assert list_explained(parsed, "dt") == [pictures.get(text, text) for text in headings]
    assert list_explained(parsed, "dd") == told


@pytest.mark.parametrize("strongest", ["offset", "upos", "untrained"])
def test_the_strongest_rival_is_in_bold_and_thick_in_the_picture(strongest: str) -> None:
    table = head_table(relations=["obj"], rare=())
    table["lift_rival"] = ("relation", [strongest], table["lift_rival"].attrs)
    table = with_verdicts(table, "does not stand out")
    row = table.sel(relation="obj")
    text = render_page(table, figures={})
    bold = dict(zip(("offset", "upos", "untrained"), rivals_of(row).split("\n"), strict=True))[strongest]
    parsed = Page(text)
    assert [said for _, said in parsed.find("strong") if said in rivals_of(row).split("\n")] == [bold]
    places = {name: f"{100 * float(row[f'heldout_{name}_accuracy']):.1f}" for name in ("offset", "upos")}
    for name, x in places.items():
        kind = "rival strongest" if name == strongest else "rival"
        assert f'<line class="{kind}" x1="{x}" x2="{x}" y1="2" y2="14"/>' in text
    assert f'<circle class="untrained" cx="{100 * float(row["untrained_accuracy"]):.1f}"' in text


def test_a_rival_that_does_not_apply_is_not_listed_and_the_page_says_so() -> None:
    lacking = [f"untrained_{end}" for end in ("accuracy", "lower", "upper")] + ["lift_over_untrained"]
    lacking += [f"heldout_upos_{end}" for end in ("accuracy", "lower", "upper", "side", "word_class")]
    table = head_table().drop_vars([*lacking, "lift_over_upos", "fold_upos"])
    parsed = Page(render_page(table, figures={}))
    columns = [text for _, text in parsed.find("dt")]
    said = rows_of_reported(parsed)[1][columns.index("rivals, held out")]
    assert said == rivals_of(head_table().sel(relation="obj")).split("\n")[0]
    ((_, heading),) = parsed.find("th", scope="rowgroup")
    assert heading.endswith(
        "Not compared with the nearest word of a part of speech: the corpus has no parts of speech."
    )
    notes = " ".join(text for attrs, text in parsed.find("p") if attrs.get("class") == "note")
    assert (
        "Each head was chosen on one half of the documents and scored on the other, and so were its rivals: best fixed "
        "offset. Lift: the score of the head less that of its strongest rival on the same items."
    ) in notes


def test_what_stands_out_is_marked_counted_and_explained() -> None:
    table = with_verdicts(with_mentions(head_table(rare=())), *MARKS)
    mentions = ["does not stand out"] * 3
    table["antecedent_reported_verdict"] = ("mention", mentions, table["reported_verdict"].attrs)
    parsed = Page(render_page(table, figures={}))
    kinds = [str(attrs["class"]) for attrs, _ in parsed.find("tr") if attrs.get("class", "group") != "group"]
    of_row = dict(zip(codes_of_reported(parsed), kinds, strict=True))
    assert (of_row["nsubj"], of_row["nsubj:pass"], of_row["obj"]) == ("stands-out", "undecided", "")
    marks = [re.sub("[^*?]", "", row[1]) for row in rows_of_reported(parsed)]
    assert marks == ["*", "", "?", "", "", ""]
    (said,) = [text for attrs, text in parsed.find("p") if attrs.get("class") == "summary"]
    assert said == (
        "1 of 3 relations and 0 of 3 classes of mentions have a head that beats all its rivals and chance. There are "
        "too few texts to decide about 1 of 3 relations."
    )
    notes = " ".join(text for attrs, text in parsed.find("p") if attrs.get("class") == "note")
    assert (
        "and so were its rivals: best fixed offset, nearest word of a part of speech and best head of the untrained "
        "model. Lift: "
    ) in notes
    assert (
        "* and teal: on 20 or more texts on which it was not chosen, the head beats every rule that it was compared "
        "with (p below 0.05); at most about one table in twenty has such a row by luck. ? and grey: too few texts to "
        "decide."
    ) in notes
    assert (
        "p: that of no lift over some rival, or of chance where links were permuted, the larger; corrected for" in notes
    )


def test_the_table_sorts_by_number_below_each_heading_and_puts_what_has_none_last(browse: Browse) -> None:
    table = head_table(rare=())
    table["heldout_accuracy"].loc[{"relation": "nsubj"}] = np.nan
    table = with_mentions(table)
    script = """
      const buttons = [...document.querySelectorAll(".sortable th button")];
      const b = buttons.find((button) => button.textContent === "score, held out");
    """
    falling = [["obj", "nsubj:pass"][place] for place in np.argsort(-table["heldout_accuracy"].values[1:])]
    mentions = [{"obj": "pronoun", "nsubj:pass": "all"}[name] for name in falling]
    parsed = browse(render_page(table, figures={}), script=script + "b.click();")
    assert codes_of_reported(parsed) == [*falling, "nsubj", *mentions, "proper"]
    parsed = browse(render_page(table, figures={}), script=script + "b.click(); b.click();")
    assert codes_of_reported(parsed) == [*falling[::-1], "nsubj", *mentions[::-1], "proper"]
    (attrs,) = [attrs for attrs, _ in parsed.find("th") if "aria-sort" in attrs]
    assert attrs["aria-sort"] == "ascending"
    scopes = [attrs["scope"] for attrs, _ in parsed.find("th")]
    first = scopes.index("rowgroup")
    assert scopes[first : first + 8] == ["rowgroup", "row", "row", "row"] * 2
