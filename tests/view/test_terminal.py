"""What a terminal says of what it does not show."""

import io
import json
import re

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


def printed(table: xr.Dataset, **look) -> str:
    text = io.StringIO()
    print_table(table.assign_attrs(words=1511, tokens_unknown=0), Console(file=text, **look))
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
    text = printed(table, width=99)
    for name, mark in zip(verdicts, ("*", "", "?"), strict=True):
        row = table.sel(relation=name)
        head = f"{int(row['reported_layer'])}-{int(row['reported_head'])}{mark}"
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        assert line.split()[1] == head
    assert "\x1b" not in text
    plain = " ".join(text.split())
    assert plain.count("* and green: the interval of the lift lies above 0 for every rival, q is below 0.05, and") == 1
    assert plain.count("? and grey: too few texts to decide.") == 1
    assert "Held out: score, count, lift and the rival's score. Of all texts: q." in plain


def test_a_wide_terminal_has_plain_names_with_their_codes() -> None:
    table = with_verdicts(head_table(rare=()), "stands out", "does not stand out", "cannot decide")
    (report,) = read_reports(table)
    text = printed(table, width=160)
    for row in report.rows:
        (line,) = [line for line in text.splitlines() if line.startswith(f"{row.plain.title} ({row.name}) ")]
        assert row.strongest_rival is not None
        assert row.strongest_rival.plain in line


def test_without_permutations_the_q_is_that_of_the_lift() -> None:
    table = with_verdicts(head_table(rare=()), "stands out", "does not stand out", "cannot decide")
    without = table.drop_vars("reported_q").assign(lift_q=("relation", [0.01, 0.2, 0.3]))
    plain = " ".join(printed(without, width=120).split())
    assert "interval of the lift lies above 0 for every rival, the q of the lift is below 0.05, and the heads" in plain
    plain = " ".join(printed(without.drop_vars("lift_q"), width=120).split())
    assert "interval of the lift lies above 0 for every rival, and the heads" in plain


def test_no_number_is_cut_off_on_a_narrow_terminal() -> None:
    table = head_table(rare=())
    rows = {str(relation) for relation in table["relation"].values}
    narrow = printed(table, width=40)
    assert max(map(len, narrow.splitlines())) <= 40
    (needed,) = re.findall(
        r"The table here needs (\d+) columns, and the terminal has 40: widen it", " ".join(narrow.split())
    )
    for width in (int(needed) - 1, int(needed)):
        lines = printed(table, width=width).splitlines()
        assert any(line.split()[:1] == [row] for row in rows for line in lines) == (width == int(needed))
        assert "…" not in "".join(lines)


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
    plain = {kind: " ".join(printed(head_table().assign_attrs(paths=paths[kind]), width=120).split()) for kind in paths}
    sentence = "This model is causal: a word sees only itself and the words before it. Each direction"
    assert sentence in plain["decoder"]
    assert sentence not in plain["encoder"]
