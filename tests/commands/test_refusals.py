"""The terminal and Python refuse the same values in the same sentence, but for the names of options."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import headscope
from headscope.commands.align.request import Align
from headscope.commands.atlas.request import Atlas
from headscope.commands.check.request import TypedCheck
from headscope.commands.compare.request import Compare
from headscope.commands.disable.request import Disable
from headscope.commands.explore.request import Explore
from headscope.commands.export.request import TypedExport
from headscope.commands.ledger.request import Ledger
from headscope.commands.lesions.request import Lesions
from headscope.commands.measure.request import TypedMeasure
from headscope.commands.merge.request import Merge
from headscope.commands.patterns.request import TypedPatterns
from headscope.commands.probe.request import Probe
from headscope.commands.record import Request, spell
from headscope.commands.rerun.request import Rerun
from headscope.commands.study.request import TypedStudy
from headscope.commands.tune.request import TypedTune
from headscope.corpora import read, summarize
from headscope.errors import HeadscopeError
from headscope.runner import resolve_reducers

FILE = Path(__file__)
FOLDER = FILE.parent

PLACES: dict[type[Request[Any]], dict[str, Any]] = {
    Align: {"model": "minilm", "pairs": FILE},
    Atlas: {"model": "minilm", "corpus": "grammar:7"},
    Disable: {"model": "minilm", "task": "grammar:7"},
    Ledger: {"model": "minilm", "prompts": FILE},
    Lesions: {"model": "minilm", "task": "grammar:7", "sets": FILE},
    TypedStudy: {"name": "zhao2020"},
    TypedMeasure: {"model": "minilm", "corpus": "grammar:7", "reducers": "surface"},
    Merge: {"shards": FILE},
    Probe: {"model": "minilm", "treebank": "grammar:7"},
    TypedPatterns: {"model": "minilm", "corpus": "grammar:7"},
    TypedTune: {"task": "negation", "model": "minilm", "out": "runs"},
    TypedCheck: {"new": "minilm", "against": FILE},
    Compare: {"before": FILE, "after": FILE},
    Explore: {"source": "minilm"},
    TypedExport: {"source": FILE},
    Rerun: {"source": FILE},
}
"""The arguments without which a command cannot be called."""

WRONG: dict[str, tuple[Any, str]] = {
    "limit": (0, "`limit` is 0"),
    "sample": (0, "`sample` is 0; give 1 or more."),
    "seed": ("x", "`seed` is 'x'; give a whole number."),
    "batch_tokens": (0, "`batch_tokens` is 0; give 1 or more."),
    "top": (0, "`top` is 0"),
    "permutations": (-1, "`permutations` is -1; give 0 or more."),
    "tokens": (0, "`tokens` is 0; give 1 or more."),
    "step": ("writing", "`step` is 'writing'; give predicting or reading."),
    "how": ("burn", "`how` is 'burn'; give uniform, zero, mean or resample."),
    "match": ("colour", "`match` is 'colour'; give layer or size."),
    "placebos": (1, "`placebos` is 1, which shows no difference between placebos; give 2 or more, or 0 for none."),
    "pairs": (1, "`pairs` is 1, which makes no pair; give 2 or more, or 0 for no pairs."),
    "size": (0, "`size` is 0; give 1 or more."),
    "random": (3, "`random` is 3, which does not show how much random sets differ; give 4 or more."),
    "max_tokens": (2, "`max_tokens` is 2"),
    "seeds": (0, "`seeds` is 0; give 1 or more."),
    "epochs": (0, "`epochs` is 0; give 1 or more."),
    "learning_rate": ("fast", "`learning_rate` is 'fast'; give a number."),
    "select": ("train", "`select` is 'train'; give validation or test."),
    "max_examples": (0, "`max_examples` is 0; give 1 or more."),
    "model": ("./nowhere", "there is no folder"),
    "out": (FILE, f"{FILE} is a file"),
    "runs": (FOLDER / "nowhere", "nowhere"),
    "map_documents": (-1, "`map_documents` is -1; give 0 or more."),
    "examples": (-1, "`examples` is -1; give 0 or more."),
    "views": ("colour", "`views` is 'colour'; give norm"),
    "links": ("kinship", "`links` is 'kinship'; give dependency, role, coreference, scope or pattern."),
    "decode": ("beam", "`decode` is 'beam'; give word or tree."),
    "without": ("words", "`without` is 'words'; give untrained, control, code-length or structural."),
    "rank": (0, "`rank` is 0; give 1 or more."),
    "view": ("colour", "`view` is 'colour'; give norm"),
    "sample_queries": (3, "`sample_queries` is 3"),
    "engine": ("spark", "`engine` is 'spark'; give local or ray."),
    "workers": (0, "`workers` is 0; give 1 or more."),
    "precision": ("float8", "`precision` is 'float8' (did you mean float32?); give float32, bfloat16 or float16."),
    "batch_size": (0, "`batch_size` is 0; give 1 or more."),
    "tolerance": (2, "`tolerance` is 2"),
    "port": (-1, "`port` is -1; give 0 or more."),
    "key_value_heads": (0, "`key_value_heads` is 0; give 1 or more."),
    "hops": ("x", "`hops` is 'x'; give a whole number."),
    "pair_tokens": (4, "`pair_tokens` is 4; give 5 or more."),
}
"""A value of a field that is refused, and words of the sentence."""


OTHERWISE = [
    (Align, "pairs"),  # of sentences
    (TypedTune, "seeds"),  # may be the seeds themselves
    (Explore, "model"),  # the model of an atlas, and none is given here
    (TypedExport, "top"),  # may be 0
    (TypedMeasure, "placebos"),  # of an adapter
    (TypedMeasure, "out"),  # a file, as the two below
    (Merge, "out"),
    (TypedExport, "out"),
]
"""Fields that have another meaning."""


def list_cases() -> list[tuple[type[Request[Any]], str]]:
    cases = [(record, name) for record in PLACES for name in record.options if name in WRONG]
    shared = [(record, name) for record, name in cases if name in signature(find_function(record)).parameters]
    return [case for case in shared if case not in OTHERWISE]


def find_function(record: type[Request[Any]]) -> Callable[..., Any]:
    return getattr(headscope, record.function)


@pytest.mark.parametrize(("record", "field"), list_cases(), ids=lambda value: getattr(value, "command", value))
def test_both_say_the_same(run, record: type[Request[Any]], field: str) -> None:
    value, words = WRONG[field]
    values = {**PLACES[record], field: value}
    with pytest.raises(HeadscopeError) as caught:
        find_function(record)(**values, progress=False)
    assert words in str(caught.value)
    code, printed, complaint = run(*type_command(record, values))
    assert (code, printed) == (2, "")
    assert complaint.splitlines()[-1] == f"headscope: {spell(str(caught.value), record)}"


def type_command(record: type[Request[Any]], values: dict[str, Any]) -> list[str]:
    """The words that one types for a request."""
    words = [record.command]
    for name, value in values.items():
        typed = spell(f"`{name}`", record)
        words += [typed, str(value)] if typed.startswith("-") else [str(value)]
    return words


def test_several_values_of_a_mapping_are_refused_alike(run) -> None:
    for typed, sentence in (
        (["--corpus", "treebank"], "--corpus is 'treebank'; give TABLE=PATH."),
        (["--corpus", "a=b", "--corpus", "a=c"], "--corpus gives a twice, as b and as c; give it once."),
        (["--limit", "blimp=few"], "--limit is 'few'; give a whole number."),
    ):
        assert run("study", "clark2019", *typed) == (2, "", f"headscope: {sentence}\n")


NOT_READ = {
    "atlas": lambda model, corpus, out: headscope.atlas(model, corpus, out),
    "measure": lambda model, corpus, out: headscope.measure(model, corpus, ["surface"], out=out / "heads.nc"),
}


@pytest.mark.parametrize("command", NOT_READ)
def test_a_model_that_is_not_there_is_refused_before_the_corpus_is_read(command: str, tmp_path: Path) -> None:
    def documents():
        raise AssertionError("the corpus was read")
        yield

    with pytest.raises(HeadscopeError, match=r"^there is no folder"):
        NOT_READ[command](str(tmp_path / "nowhere"), documents(), tmp_path)
    assert not list(tmp_path.iterdir())


LATER = {
    "model": (lambda: Align("./nowhere", FILE), lambda: headscope.load("./nowhere")),
    "GGUF file": (lambda: Align("nowhere.gguf", FILE), lambda: headscope.load("nowhere.gguf")),
    "corpus": (lambda: Atlas("minilm", "nothing.txt"), lambda: headscope.read("nothing.txt")),
    "format": (lambda: Atlas("minilm", "setup.py", format="x"), lambda: headscope.read("setup.py", format="x")),
    "patterns": (
        lambda: Atlas("minilm", "grammar:7", patterns="nothing.json"),
        lambda: headscope.read("grammar:7", patterns="nothing.json"),
    ),
    "malformed patterns": (
        lambda: Atlas("minilm", "grammar:7", patterns=FILE),
        lambda: headscope.read("grammar:7", patterns=FILE),
    ),
    "reducer": (
        lambda: Atlas("minilm", "grammar:7", reducers="gaze"),
        lambda: resolve_reducers(["gaze"], summarize(read("grammar:7"))),
    ),
}


@pytest.mark.parametrize("case", LATER)
def test_a_request_is_refused_in_the_sentence_that_would_come_later(case: str) -> None:
    early, late = LATER[case]
    with pytest.raises(HeadscopeError) as checked:
        early().check(lambda *step: None)
    with pytest.raises(HeadscopeError) as used:
        late()
    assert (type(checked.value), str(checked.value)) == (type(used.value), str(used.value))


def test_none_is_a_value_of_a_field_that_takes_it_and_of_no_other() -> None:
    assert TypedPatterns("minilm", "grammar:7", sample=None).sample is None
    with pytest.raises(HeadscopeError, match=r"^`seed` is None; give a whole number\.$"):
        TypedPatterns("minilm", "grammar:7", seed=None)
