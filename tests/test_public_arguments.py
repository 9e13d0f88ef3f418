"""What a function takes as a model, a corpus or a table, it takes in each form; anything else is one sentence."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headscope
import tiny

TEXTS = ["the dog sees the old house", "a cat sees the dog by the house", "the old dog is in the house"]
PUBLIC = {name: each for name in headscope.__all__ if inspect.isfunction(each := getattr(headscope, name))}
MODELS = {"model", "new"}
"""Parameters that are a model; two functions have others, `before` and `after`."""
CORPORA = {"corpus", "pairs", "treebank"}
TABLES = {"table", "source", "against", "before", "after", "control", "a", "b", "sets"}
NOT_READ = {"study", "study_recorded", "read_task", "make_control", "label_maps"}
"""What takes no model or corpus that could be wrong, or waits for a person."""


class Odd:
    """Something that is nothing that any function takes."""


def list_cases(parameters: set[str]) -> list[Any]:
    """Each public function with each of its parameters among these."""
    return [
        pytest.param(name, each, id=f"{name}-{each}")
        for name, function in PUBLIC.items()
        for each in inspect.signature(function).parameters
        if each in parameters and name not in NOT_READ and (name, each) != ("tune", "control")
    ]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A value for each required parameter of a public function."""
    folder = tmp_path_factory.mktemp("given")
    model, documents = headscope.Model.from_module(*tiny.make("bert")), tiny.documents(13)
    table = headscope.measure(model, documents, "relations", permutations=9, progress=False)
    path = headscope.write_table(table, folder / "heads.nc")
    for part in tiny.make("bert"):
        part.save_pretrained(folder / "model")
    return {
        "model": model, "new": model, "corpus": TEXTS, "text": TEXTS[0], "reducers": "surface", "heads": "1-1",
        "table": table, "a": table, "b": table, "before": table, "after": table, "source": path, "name": "1-1",
        "path": path, "pairs": documents, "treebank": documents, "prompts": [{"documents": ["a"], "question": "b"}],
        "task": TEXTS, "sets": {"mine": ["1-1"]}, "shard": "1/2", "out": folder / "out", "shards": [path], "runs": path,
        "folder": folder / "folder", "recorded": folder,
    }  # fmt: skip


def call(name: str, given: dict[str, Any], **changes: Any) -> Any:
    """Call a function with what it requires, of which some differs."""
    parameters = inspect.signature(PUBLIC[name]).parameters
    required = [each.name for each in parameters.values() if each.default is each.empty and each.name != "options"]
    arguments = {each: given[each] for each in required}
    if name == "tune":
        arguments["task"] = "negation"
    if name == "measure_pair":
        arguments |= {"before": given["model"], "after": given["model"]}
    if "progress" in parameters and name not in ("measure_pair", "measure_runs"):
        arguments["progress"] = False
    if name == "disable" and "corpus" in changes:
        arguments["how"] = "mean"
    if name == "explore":
        arguments["no_browser"] = True
    result = PUBLIC[name](**(arguments | changes))
    return result.__enter__() if name == "disable" else result


@pytest.mark.parametrize("value", [Odd(), 3, ["x", 1.5], np.eye(3)], ids=["object", "number", "list", "array"])
@pytest.mark.parametrize(("name", "parameter"), list_cases(MODELS | CORPORA | TABLES | {"heads", "runs", "prompts"}))
def test_what_is_no_such_thing_is_one_sentence(given: dict[str, Any], name: str, parameter: str, value: Any) -> None:
    with pytest.raises(headscope.HeadscopeError) as raised:
        call(name, given, **{parameter: value})
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert " --" not in sentence  # no option of the terminal
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


FORMS = {
    "name": lambda folder: str(folder),
    "pair": lambda _: tiny.make("bert"),
    "loaded": lambda _: headscope.Model.from_module(*tiny.make("bert")),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_a_name_a_pair_or_what_was_loaded(given: dict[str, Any], tmp_path: Path, form: str) -> None:
    model = FORMS[form](given["path"].parent / "model")
    weights = headscope.load(model).weights_sha256
    table = headscope.measure(model, TEXTS, "surface", progress=False)
    assert table.attrs["weights_sha256"] == weights
    assert headscope.attend(model, TEXTS[0], "1-1").sizes["layer"] == 1
    assert headscope.untrained_model(model).layers == given["model"].layers
    pair = headscope.measure_pair(model, model, TEXTS)
    assert np.nanmin(pair["similarity"]) == pytest.approx(1)
    result = headscope.atlas(model, given["treebank"], permutations=0, progress=False)
    assert result.table.attrs["weights_sha256"] == weights
    assert "pattern_share" in headscope.patterns(model, TEXTS, progress=False)
    with headscope.disable(model, "1-1") as edited:
        assert edited.weights_sha256 == weights
    with headscope.explore(result, no_browser=True) as explorer:
        assert not explorer.notes
        assert explorer.widget is not None
        assert explorer._model is not None


def test_a_page_of_a_model_takes_texts() -> None:
    with headscope.explore(tiny.make("bert"), TEXTS, no_browser=True) as explorer:
        assert not explorer.notes


OF_CORPORA = [name for name, _ in (each.values for each in list_cases({"corpus"})) if name not in ("check", "explore")]
"""Functions that always read their corpus."""


@pytest.mark.parametrize("name", OF_CORPORA)
def test_a_sentence_alone_is_no_corpus(given: dict[str, Any], name: str) -> None:
    with pytest.raises(headscope.HeadscopeError) as raised:
        call(name, given, corpus="The dog sees it.")
    assert str(raised.value) == (
        "there is no corpus 'The dog sees it.'; to measure a sentence itself, write it to a file or, in Python, into a "
        "list."
    )


def test_errors_in_python_speak_of_parameters(given: dict[str, Any]) -> None:
    table = given["table"].assign_coords(reported_verdict=("relation", ["does not"] * given["table"].sizes["relation"]))
    with pytest.raises(headscope.HeadscopeError, match=r"so none can be lost; add `every` to check them all\.$"):
        headscope.check(given["model"], table)
    with pytest.raises(headscope.HeadscopeError, match=r"leave out `sample_queries`, or measure"):
        headscope.measure(given["model"], TEXTS, "surface", view="rollout", sample_queries=64, progress=False)
