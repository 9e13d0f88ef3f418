"""What public functions return: each result is a line in a console and HTML in a notebook."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
import tiny
from analyse.run_tables import simulate
from headscope.analyse.agreement import Consistencies, Consistency
from headscope.capture.model.model import Model
from headscope.commands.atlas.atlas_result import AtlasResult
from headscope.commands.check.run import CheckResult
from headscope.commands.compare.run import ComparisonResult
from headscope.commands.explore.run import Explorer
from headscope.commands.rerun.rerun_result import RerunResult
from headscope.commands.study.study_result import RecordedResult, StudyResult
from headscope.corpora import Corpus
from headscope.headlists.head_list import HeadList
from headscope.learn.task import Example, Task
from headscope.learn.tune import Tuned
from headscope.results import write_line, write_table
from headscope.runner.shards import ShardSums
from headscope.runs import Run, Runs
from headscope.studies import STUDIES
from headscope.studies.findings import judge
from headscope.view.attention_map import AttentionMap
from view.tables import head_table

HOSTILE = "<script>alert(1)</script>\n& so on"
OF_OTHERS = (xr.Dataset, xr.DataArray, pd.DataFrame, AttentionMap)
"""Tables and arrays, which their own libraries show."""

PLAIN = {str, Path, tuple}
"""What Python itself shows on a line."""

LINE = 300
"""Characters of a line."""


def make_explorer() -> Explorer:
    with headscope.explore(tiny.make("bert"), "grammar:7", no_browser=True) as explorer:
        return explorer


def make_runs() -> Runs:
    scores = ({"validation": {"f1": 0.5}}, {"validation": {"f1": 0.7}})
    return Runs(
        Path("runs"), HOSTILE, False, "minilm", "ab" * 32, "validation", "f1", {},
        (Run("seed-3", 3, 2, scores, "cd" * 32),),
    )  # fmt: skip


def check() -> CheckResult:
    table = headscope.measure(tiny.make("bert"), "grammar:97", "relations", permutations=0)
    table.attrs["model"] = HOSTILE
    return headscope.check(table, table, every=True)


def compare() -> ComparisonResult:
    shares = np.random.default_rng(1).beta(2, 6, (3, 5))
    before, after = (simulate(np.random.default_rng(seed), shares) for seed in (2, 3))
    return headscope.compare(before, after.assign_attrs(weights_sha256="ef" * 32))


def measure_shard(folder: Path) -> ShardSums:
    return headscope.measure_shard(tiny.make("bert"), ["a dog sees"] * 5, "surface", shard="1/3", out=folder / "a.npz")


CLARK = STUDIES["clark2019"]
FOLDER = Path("<b>atlas</b>")
EXAMPLES: dict[type, Callable[[Path], Any]] = {
    AtlasResult: lambda _: AtlasResult(head_table(model=HOSTILE), {}, None, None, ()),
    CheckResult: lambda _: check(),
    ComparisonResult: lambda _: compare(),
    Consistencies: lambda _: Consistencies(HOSTILE, 15, ("seed-1", "seed-2"), (0.25, 0.75), (0.5, 0.125)),
    Consistency: lambda _: Consistency(HOSTILE, 15, 0.25, 0.5, 0.125, 0.75),
    Corpus: lambda _: headscope.read("grammar:7"),
    Explorer: lambda _: make_explorer(),
    HeadList: lambda _: headscope.export(head_table(model=HOSTILE)),
    Model: lambda _: headscope.load(tiny.make("bert")),
    RecordedResult: lambda _: RecordedResult(CLARK, (), FOLDER, ()),
    RerunResult: lambda _: RerunResult(xr.Dataset(), "measure", 3, (HOSTILE,), ("torch 1, now 2",)),
    ShardSums: measure_shard,
    StudyResult: lambda _: StudyResult(CLARK, judge(CLARK, {}), {}, FOLDER, ()),
    Task: lambda _: Task(HOSTILE, "tagging", ("a", "b"), {"train": (Example("x"),) * 3}, "f1"),
    Tuned: lambda _: Tuned(make_runs()),
}


def resolve(function: Any) -> Any:
    """The type that a public function returns."""
    record = getattr(function, "record", None)
    if record is None:
        return get_type_hints(function)["return"]
    returned = function.__signature__.return_annotation
    if not isinstance(returned, str):
        return returned
    return eval(returned, {"xr": xr, **vars(import_module(record.locate(record.module)))})


def list_classes(kind: Any) -> Iterator[type]:
    """The classes in a type, of which one returns an object."""
    if get_origin(kind) in (Union, UnionType, list, AbstractContextManager):
        for each in get_args(kind):
            yield from list_classes(each)
    elif kind not in (None, type(None)):
        yield get_origin(kind) or kind


MODULES = (headscope, headscope.analyse, headscope.learn, headscope.headlists)
FUNCTIONS = [
    function
    for module in MODULES
    for name in module.__all__
    if callable(function := getattr(module, name)) and not isinstance(function, type)
]
RETURNED = {each for function in FUNCTIONS for each in list_classes(resolve(function))} - {bool, int, float}


class Text(HTMLParser):
    """The names of the elements of HTML, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def read_html(content: str) -> Text:
    parsed = Text()
    parsed.feed(content)
    return parsed


def test_there_is_an_example_of_all_that_is_returned() -> None:
    assert {*RETURNED} == {*EXAMPLES} | {*OF_OTHERS} | PLAIN


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_result_is_a_line_and_html(kind: type, tmp_path: Path) -> None:
    result = EXAMPLES[kind](tmp_path)
    line, shown = repr(result), result._repr_html_()
    assert isinstance(result, kind)
    assert re.fullmatch(rf"{kind.__name__}\(.+\)", line)
    assert len(line) <= LINE
    parsed = read_html(shown)
    assert "script" not in parsed.tags
    assert "b" not in parsed.tags
    assert parsed.tags & {"table", "code", "iframe"}
    assert len(shown.encode()) <= 1_000_000


@pytest.mark.parametrize("kind", OF_OTHERS)
def test_tables_are_shown_by_their_libraries(kind: type) -> None:
    assert callable(kind._repr_html_)


@pytest.mark.parametrize("runs", [None, make_runs()])
def test_facts_are_those_of_the_result(runs: Runs | None) -> None:
    tuned = Tuned(make_runs(), runs)
    assert "task='<script>alert(1)</script> & so on', model='minilm', metric='f1', runs=1, " in repr(tuned)
    assert ("control=1" in repr(tuned)) == (runs is not None)
    parsed = read_html(tuned._repr_html_())
    assert parsed.tags == {"table", "caption", "tbody", "tr", "th", "td"}
    assert HOSTILE in parsed.text
    assert parsed.text.count("seed-3: 0.700") == 1 + (runs is not None)


def test_heads_that_a_check_kept_are_counted_on_the_line_and_named_in_the_table() -> None:
    result = check()
    assert len(result.kept) > 12
    assert f"kept={len(result.kept)}, lost=0, undecided={len(result.undecided)}" in repr(result)
    text = read_html(result._repr_html_()).text
    assert ", ".join(result.kept[:12]) + f" and {len(result.kept) - 12} more" in text
    assert "lostnone" in text


def test_a_study_counts_its_verdicts() -> None:
    findings = judge(CLARK, {})
    assert f"not_measured={len(findings)}, tables=0" in repr(StudyResult(CLARK, findings, {}, None, ()))


def test_what_is_not_known_is_left_out_and_long_texts_are_cut_on_a_line() -> None:
    facts = {"a": None, "b": "", "c": 0, "d": "x" * 99, "e": (), "f": True, "g": 1234, "h": 0.12345}
    assert write_line("A", facts) == f"A(c=0, d='{'x' * 39}…', e=0, f=True, g=1234, h=0.123)"
    text = read_html(write_table("A", facts)).text
    assert text == f"Ac0d{'x' * 99}enonefyesg1,234h0.123"
