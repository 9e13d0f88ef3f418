"""Reducers that are none of ours: all that a scope promises, against naive loops; how they are named and refused."""

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

import own
import tiny
import tiny_pairs
import tuned
import witnesses
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.words import Words
from headscope.corpora import summarize
from headscope.errors import HeadscopeError
from headscope.reducers import REDUCERS, Reducer, Surface
from headscope.runner import Plan, measure, resolve_reducers
from plain_reducers import PLAIN

DOCUMENTS = tiny.documents(7)
SUMMARY = summarize(DOCUMENTS)


@cache
def model(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


def see(family: str) -> dict[str, list[witnesses.Seen]]:
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in DOCUMENTS:
        for attention_type, maps in witnesses.see(*tiny.make(family), document).items():
            seen.setdefault(attention_type, []).append(maps)
    return seen


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_a_pass_is_all_layers_of_an_attention_type_in_order(family: str, plan: Plan) -> None:
    table = measure(model(family), DOCUMENTS, [own.HeadCosines(), own.LastToken()], plan=plan)
    for attention_type, maps in see(family).items():
        ours = table.sel(attention_type=attention_type) if "attention_type" in table.dims else table
        layers, heads = maps[0].weights.shape[:2]
        for layer, head, layer_other, head_other in np.ndindex(layers, heads, layers, heads):
            cosines = []
            for document in maps:
                first, second = document.weights[layer, head], document.weights[layer_other, head_other]
                cosines.append((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))
            place = {"layer": layer + 1, "head": head + 1, "layer_other": layer_other + 1, "head_other": head_other + 1}
            assert ours["head_cosine"].sel(place).item() == pytest.approx(np.mean(cosines), abs=1e-6)
        last = [document.weights[..., -1].mean(-1) for document in maps]
        values = ours["mass_last"].dropna("layer", how="all")
        np.testing.assert_allclose(values, np.mean(last, axis=0), atol=1e-6)


def test_a_reducer_may_compare_two_models_and_all_their_layers() -> None:
    @dataclass(frozen=True)
    class Both(own.HeadCosines):
        name: ClassVar[str] = "both"
        models: ClassVar[int] = 2

        def observe(self, facts, *attentions):
            assert [attention.layer for attention in attentions] == [1, 2, 1, 2]
            assert {attention.heads for attention in attentions} == {5}
            return super().observe(facts, *attentions[:2])

    before = Model.from_module(tuned.perturb(model("bert").module, 5), model("bert").tokenizer, name="before")
    table = measure(model("bert"), DOCUMENTS, [Both(), "similarity", own.LastToken()], before=before)
    alone = measure(model("bert"), DOCUMENTS, [own.HeadCosines()])
    np.testing.assert_allclose(table["head_cosine"], alone["head_cosine"], atol=1e-12)


def test_facts_are_prepared_once_a_batch_and_attention_type(monkeypatch) -> None:
    prepared = []
    reducers = resolve_reducers(PLAIN, summarize(tiny.documents_with_roles(5)))
    for kind in map(type, reducers):

        def prepare(self, batch, attention_type, real=kind.prepare):
            prepared.append((self.name, attention_type, tuple(document.id for document in batch.documents)))
            return real(self, batch, attention_type)

        monkeypatch.setattr(kind, "prepare", prepare)
    measure(model("bart"), tiny.documents_with_roles(5), reducers, plan=Plan(batch_tokens=47), before=model("bart"))
    assert len(prepared) == len(set(prepared))
    assert {attention_type for _, attention_type, _ in prepared} == {"encoder", "decoder", "cross"}


def test_words_are_worked_out_once_for_all_who_ask(monkeypatch) -> None:
    times = []
    real = Words.from_average.__func__

    def from_average(cls, *arguments):
        times.append(arguments)
        return real(cls, *arguments)

    monkeypatch.setattr(Words, "from_average", classmethod(from_average))
    measure(model("bert"), DOCUMENTS, ["relations", "coreference", "scope"], plan=Plan(batch_tokens=10**6))
    assert len(times) == model("bert").layers["encoder"]


OWN_FILE = """
from own import HeadCosines, LastToken
from headscope.reducers import Reducer, Surface
ready = Surface(offsets=(-3,))
number = 3

class Grown(LastToken):
    def __init__(self, size): ...

class Half(Reducer):
    name = "half"
    def count(self, facts): ...
    def result(self, sums, counts): ...

class Alone:
    name, scope, models, max_tokens = "alone", "rows", 1, None
    def prepare(self, batch, attention_type): ...
    def count(self, facts): ...
    def observe(self, facts, attention): ...
    def result(self, sums, counts): ...
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a module of somebody's own."""
    (tmp_path / "mine.py").write_text(OWN_FILE, encoding="utf-8")
    (tmp_path / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "needy.py").write_text("import no_such_package\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("mine", "broken", "needy"):
        sys.modules.pop(name, None)


def test_module_and_name_stand_for_a_class_an_object_or_a_reducer_of_ours(folder) -> None:
    path = list(sys.path)
    names = ["mine:LastToken", "mine:ready", "relations", "headscope.reducers:Coreference"]
    last, surface, relations, coreference = resolve_reducers(names, SUMMARY)
    assert last == own.LastToken()
    assert surface == Surface(offsets=(-3,))
    assert relations == REDUCERS["relations"].for_corpus(SUMMARY)
    assert coreference == REDUCERS["coreference"].for_corpus(SUMMARY)
    assert sys.path == path
    table = measure(model("bert"), DOCUMENTS, ["mine:LastToken"])
    assert table.attrs["call"].startswith("measure(model='bert', reducers=['last_token'], plan=")


def test_all_reducers_are_reducers() -> None:
    documents = [*tiny.documents_with_roles(5), *tiny_pairs.pairs(5)]
    reducers = resolve_reducers([*REDUCERS, *own.OWN], summarize(documents))
    assert all(isinstance(reducer, Reducer) for reducer in reducers)


def declared(**parts) -> Reducer:
    """A reducer that declares some of its parts otherwise."""
    return type("Declared", (own.LastToken,), parts)()


NOT_REDUCERS = {
    "nosuch": "there is no reducer 'nosuch'; there are surface, relations, coreference, scope, aspects, classes, "
    "roles, similarity, gradients, head_distances, head_distances_before, map_patterns, "
    "sparse_shapes, average_map, induction, nearby_tokens, sinks, retrieval, copying, streaming, alignment, "
    "and your own as module:Reducer.",
    "nosuch:Reducer": "the reducer 'nosuch:Reducer' needs a module 'nosuch', and none was found in FOLDER or among the "
    "installed packages; name it as in `import`, without .py.",
    "broken:Reducer": "the module of the reducer 'broken:Reducer' cannot be imported (ZeroDivisionError: division by "
    "zero); correct it, and try `python -c 'import broken'`.",
    "needy:Reducer": "the module of the reducer 'needy:Reducer' cannot be imported (ModuleNotFoundError: No module "
    "named 'no_such_package'); correct it, and try `python -c 'import needy'`.",
    "mine:Nothing": "the module 'mine' (FOLDER/mine.py) has no 'Nothing'; name a reducer that it defines.",
    "mine:number": "'mine:number' is not a reducer: it does not inherit from `headscope.reducers.Reducer`; write it as "
    "in `class Mine(Reducer)`.",
    "mine:Alone": "'mine:Alone' is not a reducer: it does not inherit from `headscope.reducers.Reducer`; write it as "
    "in `class Mine(Reducer)`.",
    "mine:Half": "'mine:Half' is not a reducer: it has no scope, prepare, observe; see `headscope.reducers.Reducer`.",
    "mine:Grown": "the reducer 'mine:Grown' cannot be made without arguments (Grown.__init__() missing 1 required "
    "positional argument: 'size'); give its fields defaults, or name an object that is ready.",
}


@pytest.mark.parametrize("name", NOT_REDUCERS)
def test_a_name_that_stands_for_no_reducer_is_refused(folder, name: str) -> None:
    with pytest.raises(HeadscopeError) as refused:
        resolve_reducers([name], SUMMARY)
    assert str(refused.value) == NOT_REDUCERS[name].replace("FOLDER", str(folder))


def test_what_a_reducer_declares_must_hold_together() -> None:
    refusals = {
        "the reducer `last_token` declares scope = 'row'; it can be one of 'rows', 'layer', 'pass', 'gradient'.": {
            "scope": "row"
        },
        "the reducer `last_token` declares models = 3; it can be one of 1, 2.": {"models": 3},
        "the reducer `last_token` holds all layers of a text at once and sets no limit to its length; declare "
        "max_tokens, such as 512.": {"scope": "pass"},
    }
    for sentence, parts in refusals.items():
        with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
            resolve_reducers([declared(**parts)], SUMMARY)
    sentence = (
        "<class 'own.LastToken'> is not a reducer: it is a class and not an object; see `headscope.reducers.Reducer`."
    )
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        resolve_reducers([own.LastToken], SUMMARY)


def test_an_attention_has_the_questions_of_the_protocol() -> None:
    assert not hasattr(Attention, "before")
    assert hasattr(Attention, "words")
