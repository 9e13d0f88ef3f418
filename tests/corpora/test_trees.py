"""Sentences of a treebank that are no trees: their links are kept, and they are counted."""

import io
import json
from collections import Counter
from pathlib import Path

import networkx
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import tiny
from headscope.corpora import Document, read, summarize
from headscope.corpora.trees import CYCLE, NO_ROOT, SEVERAL_ROOTS, find_fault
from headscope.runner import measure
from headscope.view.page import render_page
from headscope.view.table_report import print_table
from view.tables import head_table

BANKS = ("English-EWT/en_ewt", "English-GUM/en_gum", "German-GSD/de_gsd", "Turkish-BOUN/tr_boun")
UP = (*range(2, 2000), 0)


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ((0,), ""),
        ((2, 0, 2), ""),
        (UP, ""),
        ((0, *range(1, 1999)), ""),
        (UP[::-1], CYCLE),
        ((2, 3, 2), NO_ROOT),
        ((2, 1), NO_ROOT),
        ((2, 0, 0), SEVERAL_ROOTS),
        ((0, 0, 0), SEVERAL_ROOTS),
        ((0, 3, 2), CYCLE),
        ((0, 0, 4, 3), CYCLE),
        ((0, 3, 4, 2, 2), CYCLE),
        ((2, None, 2), ""),
        ((None, 3, 2), ""),
        ((None, None), ""),
    ],
)
def test_a_fault_is_known_by_the_heads(heads: tuple[int | None, ...], fault: str) -> None:
    assert find_fault(heads) == fault


@given(st.data(), st.integers(1, 11))
def test_faults_are_those_of_networkx(data: st.DataObject, count: int) -> None:
    choices = [st.sampled_from([head for head in range(count + 1) if head != word]) for word in range(1, count + 1)]
    heads = data.draw(st.tuples(*choices))
    graph = networkx.DiGraph((head, word) for word, head in enumerate(heads, start=1))
    graph.add_node(0)
    is_tree = networkx.is_arborescence(graph) and heads.count(0) == 1
    assert (not find_fault(heads)) == is_tree
    has_cycle = not networkx.is_directed_acyclic_graph(graph)
    assert (find_fault(heads) in (CYCLE, NO_ROOT)) == has_cycle


def write(path: Path, *sentences: tuple[int | str, ...], before: str = "") -> Path:
    rows = [
        "".join(f"{i}\tw{i}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for i, head in enumerate(heads, start=1))
        for heads in sentences
    ]
    path.write_text(before + "\n".join(rows))
    return path


SENTENCES = ((2, 0, 2), (2, 3, 2), (2, 0, 0), (0, 3, 2), (0, 0), (2, "_"), ("_", "_"), (0, 0, 4, 3))
COUNTS = {NO_ROOT: 1, SEVERAL_ROOTS: 2, CYCLE: 2}


def test_sentences_that_are_no_trees_keep_their_links_and_are_counted(tmp_path: Path) -> None:
    summary = summarize(corpus := read(write(tmp_path / "a.conllu", *SENTENCES)))
    links = sum(head not in (0, "_") for heads in SENTENCES for head in heads)
    assert (summary.documents, summary.links, summary.skipped) == (len(SENTENCES), {"dependency": {"dep": links}}, {})
    assert summary.tree_faults == COUNTS
    assert [document.tree_faults for document in corpus][:2] == [(), (NO_ROOT,)]
    assert summarize(read(tmp_path / "a.conllu", limit=2)).tree_faults == {NO_ROOT: 1}
    assert summarize([Document("1", ("a",))]).tree_faults == {}


def test_each_sentence_of_a_whole_text_is_counted(tmp_path: Path) -> None:
    before = "# newdoc id = text\n# global.Entity = eid-etype\n"
    summary = summarize(read(write(tmp_path / "a.conllu", *SENTENCES, before=before), format="corefud"))
    assert (summary.documents, summary.tree_faults) == (1, COUNTS)


def test_further_columns_leave_the_count_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", *SENTENCES)
    path.write_text(path.read_text().replace("\t_\t_\n", "\t_\t_\t_\n"))
    assert summarize(read(path, format="propbank")).tree_faults == COUNTS


def test_the_table_has_the_count_only_where_there_is_one(tmp_path: Path) -> None:
    model, corpus = tiny.make("bert"), read(write(tmp_path / "a.conllu", *SENTENCES))
    assert json.loads(measure(model, corpus, ["surface"]).attrs["tree_faults"]) == COUNTS
    trees = read(write(tmp_path / "b.conllu", *SENTENCES[:1]))
    assert "tree_faults" not in measure(model, trees, ["surface"]).attrs


def test_the_count_is_on_the_terminal_and_on_the_page() -> None:
    table = head_table().assign_attrs(words=1511, tokens_unknown=0)
    counted = table.assign_attrs(tree_faults=json.dumps({CYCLE: 2, NO_ROOT: 1201}))
    sentence = (
        "Sentences that are no trees: 1,203 (2 with a cycle, 1,201 without a root, and so with a cycle). Their links "
        "are measured all the same."
    )
    for shown in (show(counted), render_page(counted, figures={})):
        assert sentence in shown
    for shown in (show(table), render_page(table, figures={})):
        assert "no trees" not in shown


def show(table: xr.Dataset) -> str:
    text = io.StringIO()
    print_table(table, Console(file=text, width=200))
    return text.getvalue()


@pytest.mark.data
@pytest.mark.parametrize("bank", BANKS)
def test_real_treebanks_are_trees(data: Path, bank: str, read_real) -> None:
    path = data / f"ud/UD_{bank}-ud-dev.conllu"
    parts = read_real("conllu", path)[path]
    assert Counter(fault for part in parts if isinstance(part, Document) for fault in part.tree_faults) == {}
