"""What a terminal says of what it does not show."""

import io
import json

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import tiny
from headscope.analyse import assess
from headscope.capture import Model
from headscope.runner import measure
from headscope.view.reports import read_reports
from headscope.view.table_report import print_table
from view.tables import head_table, with_verdicts


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    module, tokenizer = tiny.make("bert")
    found = measure(
        Model.from_module(module, tokenizer, name="bert"), tiny.documents_with_roles(23), ["relations", "scope"]
    )
    return assess(found)


@pytest.mark.parametrize(
    ("rare", "said"),
    [(1, "1 has too few links in a half to report."), (2, "2 have too few links in a half to report.")],
)
def test_relations_with_too_few_links_are_counted(table, rare, said) -> None:
    every = table.sizes["relation"]
    assert every > rare
    layer = np.where(np.arange(every) < every - rare, 1, np.nan)
    table = table.assign({
        "reported_layer": ("relation", layer), "reported_head": ("relation", layer),
        "reported_direction": ("relation", np.full(every, "head_to_dependent")),
    })  # fmt: skip
    text = io.StringIO()
    print_table(table, Console(file=text, width=120))
    assert said in text.getvalue()


@pytest.mark.parametrize(("count", "said"), [(1, "the only row"), (2, "any of 2 rows")])
def test_a_corpus_too_small_to_report_a_head_says_so(table, count, said) -> None:
    few = table[["relation_accuracy", "relation_count"]].isel(relation=slice(count))
    few = few.assign(reported_layer=("relation", np.full(count, np.nan))).assign_attrs(table.attrs)
    text = io.StringIO()
    print_table(few, Console(file=text, width=120))
    assert f"Each half of the corpus has too few links to report a head for {said}." in text.getvalue()


def printed(table: xr.Dataset, *, whole: bool = False, **look) -> str:
    text = io.StringIO()
    print_table(table.assign_attrs(words=1511, tokens_unknown=0), Console(file=text, **look), whole=whole)
    return text.getvalue()


def test_what_was_found_stands_above_the_table() -> None:
    table = with_verdicts(head_table(rare=()), "stands out", "does not stand out", "cannot decide")
    lines = [line for line in printed(table, width=150).splitlines() if line]
    sentence = "1 of 3 relations has a head that beats all its rivals and chance."
    (place,) = [number for number, line in enumerate(lines) if line.startswith(sentence)]
    assert lines[place - 1] == "Skipped: 17 longer than 128 tokens"
    assert lines[place] == f"{sentence} There are too few texts to decide about 1 of 3 relations."


def test_marks_are_characters_that_a_pipe_keeps_and_are_explained_once() -> None:
    verdicts = {"nsubj": "stands out", "obj": "does not stand out", "nsubj:pass": "cannot decide"}
    table = with_verdicts(head_table(rare=()), *verdicts.values())
    text = printed(table, width=99, whole=True)
    for name, mark in zip(verdicts, ("*", "", "?"), strict=True):
        row = table.sel(relation=name)
        head = f"{int(row['reported_layer'])}-{int(row['reported_head'])}{mark}"
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        assert line.split()[1] == head
    assert "\x1b" not in text
    plain = " ".join(text.split())
    assert plain.count("* and green: on 20 or more texts on which it was not chosen, the head beats every rule") == 1
    assert plain.count("? and grey: too few texts to decide.") == 1
    assert "Held out: score, count, lift and the rival's score." in plain


def test_a_wide_terminal_has_plain_names_with_their_codes() -> None:
    table = with_verdicts(head_table(rare=()), "stands out", "does not stand out", "cannot decide")
    (report,) = read_reports(table)
    text = printed(table, width=160)
    for row in report.rows:
        (line,) = [line for line in text.splitlines() if line.startswith(f"{row.plain.title} ({row.name}) ")]
        assert row.strongest_rival is not None
        assert row.strongest_rival.plain in line


def test_a_mark_is_explained_with_a_level_where_verdicts_have_p_values() -> None:
    table = with_verdicts(head_table(rare=()), "stands out", "does not stand out", "cannot decide")
    plain = " ".join(printed(table, width=120).split())
    assert "the head beats every rule that it was compared with (p below 0.05); at most about one table" in plain
    plain = " ".join(printed(table.drop_vars("verdict_p"), width=120).split())
    assert "the head beats every rule that it was compared with; at most about one table" in plain


def test_the_table_fits_eighty_columns_without_broken_words() -> None:
    table = with_verdicts(head_table(relations=("obl:npmod", "nsubj:pass", "obj"), rare=()), *["stands out"] * 3)
    lines = printed(table, width=80, whole=True).splitlines()
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert {word for line in printed(table, width=99, whole=True).splitlines() for word in line.split()} == words


def test_columns_without_room_are_left_out_and_named_and_no_number_is_cut_off() -> None:
    table = with_verdicts(head_table(rare=()), "stands out", "does not stand out", "cannot decide")
    wide = printed(table, width=99).splitlines()
    (heading,) = [line for line in wide if line.startswith("row ")]
    text = printed(table, width=40)
    narrow = text.splitlines()
    assert max(map(len, narrow)) <= 40
    (kept,) = [line for line in narrow if line.startswith("row ")]
    shown = kept.split()
    assert heading.split()[: len(shown)] == shown
    columns = ["row", "head", "from", "score", "count", "lift", "[95 %]", "strongest rival", "p"]
    left_out = ", ".join(columns[len(shown) :])
    assert f"The terminal has 40 columns, no room for: {left_out}." in " ".join(text.split())
    for name in table["relation"].values:
        (cells,) = [line.split() for line in narrow if line.startswith(f"{name} ")]
        (full,) = [line.split() for line in wide if line.startswith(f"{name} ")]
        assert full[: len(shown)] == cells


def test_a_corpus_is_called_by_its_name_and_no_name_becomes_a_picture() -> None:
    table = head_table(relations=("a:100:b", "obj", "nsubj"), rare=()).assign_attrs(
        corpus="/home/someone/grammar:100:7"
    )
    text = printed(table, width=150, force_terminal=True)
    assert "/home/someone" not in text
    assert "grammar:100:7" in text
    assert "a:100:b" in text
    assert "\N{HUNDRED POINTS SYMBOL}" not in text


def test_a_causal_model_is_said_to_count_each_link_in_one_direction() -> None:
    paths = {kind: json.dumps({f"{kind} 1 fused": 211}) for kind in ("encoder", "decoder")}
    plain = {
        kind: " ".join(printed(head_table().assign_attrs(paths=paths[kind]), width=120, whole=True).split())
        for kind in paths
    }
    sentence = "This model is causal: a word sees only itself and the words before it. Each direction"
    assert sentence in plain["decoder"]
    assert sentence not in plain["encoder"]
