"""The laws, over all reducers at once: any order, split, padding, batch size or block of rows, the same table."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import laws
import own
import rivals
import tiny
import tuned
from headscope.capture.model.model import Model
from headscope.capture.passes.views import VIEWS
from headscope.corpora import Document, summarize
from headscope.errors import HeadscopeError
from headscope.reducers import REDUCERS, HeadDistances, Reducer, Relations, Rule, Surface, WordClass
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, measure, resolve_reducers
from headscope.runner import local as run
from headscope.runner.checkpoint import RunSums, load, save
from plain_reducers import PLAIN

DOCUMENTS = rivals.add_rivals(tiny.documents_with_roles(13))
# One attention type, causal windows without and with other terms, three attention types; all reducers together, own
# ones too, and those that can do without the matrix by themselves, since others would keep it for all.
FAMILIES = ("bert", "mistral", "gemma2", "bart")
EVERY = (*PLAIN, *own.OWN)
WITHOUT_MATRIX = tuple(
    reducer for reducer in EVERY if (REDUCERS[reducer] if isinstance(reducer, str) else reducer).scope == "rows"
)
# Through a view, those with windows and groups, and with three attention types.
# Those of a loss need a task head, and are in `test_gradient_view`.
SHOWN = [name for name, view in VIEWS.items() if not view.of_loss]
SEEN = [(family, view) for family in ("mistral", "bart") for view in SHOWN]
SEEN.remove(("bart", "value-zeroing"))  # which runs each block for each head and token


def mark_laws(cases: Sequence[tuple[str, str | None]]) -> pytest.MarkDecorator:
    """A test of each case with all reducers, and with those that can do without the matrix.

    A view of texts of a limited length has the matrix for all reducers alike, so it is enough to run all of them.
    """
    return pytest.mark.parametrize(
        ("family", "view", "names"),
        [
            pytest.param(family, view, names, id=f"{family}-{view or 'weights'}-{which}")
            for family, view in cases
            for which, names in (("all", EVERY), ("without the matrix", WITHOUT_MATRIX))
            if names is EVERY or view is None or VIEWS[view].max_tokens is None
        ],
    )


CUTS = given(
    plan=laws.PLANS,
    order=st.permutations(range(len(DOCUMENTS))),
    cuts=st.sets(st.integers(1, len(DOCUMENTS) - 1), max_size=5),
    data=st.data(),
)
"""A plan, an order, a split and, by `data`, an order of merging."""


@cache
def model(family: str) -> Model:
    """A tiny model; in float64 where its own rounding, from padding to padding, grows to that of the statistics."""
    module, tokenizer = tiny.make(family)
    return Model.from_module(module.double() if family == "bart" else module, tokenizer, name=family)


@cache
def before(family: str, names: tuple[str | Reducer, ...] = EVERY) -> Model | None:
    """What the model was tuned from, for those who compare the two."""
    if "similarity" not in names:
        return None
    module, tokenizer = tiny.make(family)
    module = tuned.perturb(module, 5).to(model(family).module.dtype)
    return Model.from_module(module, tokenizer, name=f"{family} before")


@cache
def reducers(names: tuple[str | Reducer, ...] = EVERY) -> tuple[Reducer, ...]:
    """The reducers of these names; `surface` and `relations` with all that can be asked of them."""
    classes = (WordClass("determiners", ("the", "a")), WordClass("first", lambda document: [0]))
    surface = Surface(offsets=(-2, 3), classes=classes, edges=(1, 2, 5, 11))
    rules = [Rule("next", lambda document: [*range(1, len(document.words)), None])]
    own = {
        "surface": surface,
        "relations": Relations.for_corpus(summarize(DOCUMENTS), rules),
        "head_distances": HeadDistances(rows=5),
    }
    resolved = resolve_reducers([own.get(str(name), name) for name in names], summarize(DOCUMENTS))
    return tuple(with_permutations(reducer, 7) for reducer in resolved)


@cache
def alone(family: str, view: str | None) -> RunSums:
    """The sums of all reducers; those that can do without the matrix must agree with what they are with it."""
    return laws.add_up_alone(model(family), DOCUMENTS, reducers(), Plan(view=view), before=before(family))


@cache
def expected(family: str, names: tuple[str | Reducer, ...], view: str | None) -> xr.Dataset:
    return laws.tabulate_sums(alone(family, view), model(family), reducers(names))


ONE_PLAN = Plan(batch_tokens=47, rows=3, fused=True)


@mark_laws([*((family, None) for family in FAMILIES), ("mistral", "norm"), ("mistral", "rollout")])
def test_one_order_split_padding_batch_block_and_order_of_merging(family: str, view: str | None, names: tuple) -> None:
    check_law(family, view, names, ONE_PLAN, range(len(DOCUMENTS))[::-1], {2, 3, 11}, lambda parts: parts[::-1])


@pytest.mark.full
@mark_laws([(family, None) for family in FAMILIES])
@settings(max_examples=7)
@CUTS
def test_any_order_split_padding_batch_block_and_order_of_merging(
    family: str, view: None, names: tuple, plan: Plan, order: list, cuts: set, data: st.DataObject
) -> None:
    check_law(family, view, names, plan, order, cuts, lambda parts: data.draw(st.permutations(parts)))


@pytest.mark.full
@mark_laws(SEEN)
@settings(max_examples=3)
@CUTS
def test_through_a_view_too(
    family: str, view: str, names: tuple, plan: Plan, order: list, cuts: set, data: st.DataObject
) -> None:
    check_law(family, view, names, plan, order, cuts, lambda parts: data.draw(st.permutations(parts)))


def check_law(
    family: str,
    view: str | None,
    names: tuple,
    plan: Plan,
    order: Sequence[int],
    cuts: set[int],
    shuffle: Callable[[list[RunSums]], list[RunSums]],
) -> None:
    """The table of parts of the reordered documents, merged as `shuffle` orders them, is that of single documents."""
    permuted, plan = [DOCUMENTS[place] for place in order], replace(plan, view=view)
    sums = laws.add_up_parts(model(family), permuted, cuts, reducers(names), plan, before=before(family, names))
    merged = laws.merge(shuffle(sums))
    laws.assert_same(laws.tabulate_sums(merged, model(family), reducers(names)), expected(family, names, view))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_result_changes_nothing_and_can_be_asked_for_twice(family: str) -> None:
    done = laws.add_up(model(family), DOCUMENTS, reducers(), Plan(), before=before(family))
    unchanged = {key: np.copy(value) for key, value in done.values.items()}
    first, second = (laws.tabulate_sums(done, model(family), reducers()) for _ in range(2))
    xr.testing.assert_identical(first, second)
    for key, value in unchanged.items():
        np.testing.assert_array_equal(done.values[key], value)


def test_sums_survive_the_disk(tmp_path) -> None:
    done = laws.add_up(model("bert"), DOCUMENTS, reducers(), Plan(), before=before("bert"))
    save(done, tmp_path / "sums.npz", identity={"model": "this"})
    again, identity = load(tmp_path / "sums.npz")
    assert identity == {"model": "this"}
    assert again.values.keys() == done.values.keys()
    for key, value in done.values.items():
        assert again.values[key].dtype == value.dtype
        np.testing.assert_array_equal(again.values[key], value)


class KilledError(Exception):
    """What ends a run in the middle."""


IN_BATCHES = {"reducers": list(EVERY), "plan": Plan(batch_tokens=31)}


@pytest.fixture(scope="module")
def whole() -> tuple[xr.Dataset, int]:
    """The table of a run that nothing kills, and its number of batches."""
    done = laws.add_up(model("bert"), DOCUMENTS, reducers(), IN_BATCHES["plan"], before=before("bert"))
    table = measure(model("bert"), DOCUMENTS, **IN_BATCHES, before=before("bert"))
    return table, done.select_run("seen")["portions"]


@pytest.mark.parametrize("after", [2, *(pytest.param(after, marks=pytest.mark.full) for after in (1, 5))])
def test_a_killed_run_goes_on_to_the_same_table_to_the_last_bit(tmp_path, monkeypatch, whole, after: int) -> None:
    monkeypatch.setattr(run, "SAVE_EVERY", 0.0)
    asked = {**IN_BATCHES, "before": before("bert")}
    table, portions = whole
    saved = tmp_path / "sums.npz"
    reports = []

    def kill(done: int, total: int) -> None:
        reports.append((done, total))
        if len(reports) == after:
            raise KilledError

    with pytest.raises(KilledError):
        measure(model("bert"), DOCUMENTS, **asked, checkpoint=saved, progress=kill)
    finished, _ = load(saved)
    assert finished.select_run("seen")["portions"] == after
    batches = []
    resumed = measure(
        model("bert"), DOCUMENTS, **asked, checkpoint=saved, resume=True,
        progress=lambda done, total: batches.append(done),
    )  # fmt: skip
    assert len(batches) == portions - after
    xr.testing.assert_equal(resumed, table)
    assert resumed.attrs | {"created": ""} == table.attrs | {"created": ""}


def test_another_run_cannot_be_resumed(tmp_path) -> None:
    saved = tmp_path / "sums.npz"
    measure(model("bert"), DOCUMENTS, ["surface"], checkpoint=saved)
    with pytest.raises(HeadscopeError) as refused:
        measure(model("bert"), DOCUMENTS, ["relations"], checkpoint=saved, resume=True)
    assert str(refused.value) == (
        f"{saved} was left by another run (its reducers differ from what is asked for now); "
        "delete it, or run without --resume."
    )
    other = [replace(DOCUMENTS[0], words=("another", *DOCUMENTS[0].words[1:])), *DOCUMENTS[1:]]
    with pytest.raises(HeadscopeError, match=r"\(its corpus_sha256 differ from what is asked for now\)"):
        measure(model("bert"), other, ["surface"], checkpoint=saved, resume=True)


def test_what_is_not_a_checkpoint_is_refused(tmp_path) -> None:
    saved = tmp_path / "sums.npz"
    saved.write_bytes(b"not a zip file")
    with pytest.raises(HeadscopeError) as refused:
        measure(model("bert"), DOCUMENTS, ["surface"], checkpoint=saved, resume=True)
    assert str(refused.value) == (
        f"{saved} does not hold the sums of an interrupted run; delete it, or run without --resume."
    )


@pytest.mark.parametrize("schema", [1, 2, 3, 4, 5])
def test_a_checkpoint_of_another_version_is_refused(tmp_path, schema: int) -> None:
    saved = tmp_path / "sums.npz"
    sums = {"seen/batches": np.array(1), "surface/encoder/-/defined": np.array([1])}
    header = {"facts": "{}"} if schema == 1 else {"header": f'{{"schema": {schema}, "identity": {{}}}}'}
    np.savez(saved, allow_pickle=False, **{name: np.array(text) for name, text in header.items()}, **sums)
    with pytest.raises(HeadscopeError) as refused:
        measure(model("bert"), DOCUMENTS, ["surface"], checkpoint=saved, resume=True)
    assert str(refused.value) == (
        f"{saved} was written by another version of headscope (its schema is {schema}, not 6), so it cannot be used; "
        "delete it, or run without --resume."
    )


def rarest(document: Document) -> list[int]:
    """A word class."""
    return [0]


def longest(document: Document) -> list[int]:
    """Another word class."""
    return [0]


def test_a_word_class_is_known_by_the_name_of_its_function(tmp_path) -> None:
    saved = tmp_path / "sums.npz"
    reducers = {word.__name__: Surface(classes=(WordClass("some", word),)) for word in (rarest, longest)}
    table = measure(model("bert"), DOCUMENTS, [reducers["rarest"]], checkpoint=saved)
    again = measure(model("bert"), DOCUMENTS, [reducers["rarest"]], checkpoint=saved, resume=True)
    xr.testing.assert_equal(again, table)
    with pytest.raises(HeadscopeError, match=r"\(its reducers differ from what is asked for now\)"):
        measure(model("bert"), DOCUMENTS, [reducers["longest"]], checkpoint=saved, resume=True)
    assert repr(WordClass("some", rarest)) == f"WordClass(name='some', words={__name__}.rarest)"
    unnamed = repr(WordClass("some", lambda document: [0]))
    assert unnamed.endswith("test_a_word_class_is_known_by_the_name_of_its_function.<locals>.<lambda>)")
    assert repr(WordClass("some", partial(rarest))) == "WordClass(name='some', words=functools.partial)"
