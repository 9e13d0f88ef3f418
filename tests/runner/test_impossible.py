"""Sums that cannot be, in the file of a shard or of an interrupted run, are refused by name."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rivals
import tiny
from headscope.capture.model.model import Model
from headscope.corpora import Shard, summarize
from headscope.errors import HeadscopeError
from headscope.reducers import Streaming
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, Run, ShardSums, measure, merge_shards, resolve_reducers
from headscope.runner.accumulate import accumulate
from headscope.runner.checkpoint import COUNTED, Key, RunSums, load, save
from headscope.runner.impossible import refuse_impossible_numbers, refuse_impossible_values
from own import OWN
from plain_reducers import OF_ONE_MODEL

DOCUMENTS = rivals.add_rivals(tiny.documents_with_roles(13))
SUMS = {
    "hits": ("relations", "encoder", "1", "correct"),
    "hits of a rival": ("relations", "encoder", COUNTED, "offset"),
    "hits of choices": ("relations", "encoder", "2", "candidate_correct"),
    "permuted hits": ("relations", "encoder", "2", "permuted"),
    "hits of an F1": ("scope", "encoder", "1", "fold_scope_said_hits"),
    "weights": ("average_map", "encoder", "1", "attention"),
    "hits of lengths": ("relations", "encoder", "1", "at_length"),
}


@cache
def run() -> Run:
    module, tokenizer = tiny.make("bert")
    reducers = [with_permutations(each, 7) for each in resolve_reducers(OF_ONE_MODEL, summarize(DOCUMENTS))]
    return Run.open(Model.from_module(module, tokenizer, name="bert"), DOCUMENTS, [*reducers, *OWN])


@cache
def done() -> RunSums:
    return run().add_up()


def change(key: Key, value: float, *, factor: float = 0) -> RunSums:
    """The sums with one number changed: a random one, or the largest if it is multiplied."""
    sums = np.array(done().values[key])
    place = sums.argmax() if factor else np.random.default_rng(7).integers(sums.size)
    sums = sums if factor or float(value).is_integer() else sums.astype(float)
    sums.flat[place] = sums.flat[place] * factor if factor else value
    return RunSums({**done().values, key: sums})


def refuse(sums: RunSums) -> None:
    refuse_impossible_numbers(sums, "sums.npz", "measure again")
    opened = run()
    refuse_impossible_values(sums, opened.model.shape, opened.reducers, opened.summary, "sums.npz", "measure again")


def list_keys() -> Iterator[Key]:
    return (key for key, values in done().values.items() if values.size and key[2:3] != ("2",))


def test_honest_sums_are_taken() -> None:
    refuse(done())
    refuse(RunSums({}))


def test_a_head_whose_output_changes_by_more_than_its_length_is_honest() -> None:
    module, tokenizer = tiny.make("gpt2")
    model = Model.from_module(module, tokenizer, name="gpt2")
    opened = Run.open(model, tiny.documents(11), [Streaming(first=2, recent=3)])
    sums = opened.add_up()
    table = measure(model, tiny.documents(11), opened.reducers)
    assert float(table["streaming_change"].max()) > 1.01
    refuse_impossible_values(sums, model.shape, opened.reducers, opened.summary, "sums.npz", "measure again")
    key = ("streaming", "decoder", "1", "change")
    negative = RunSums({**sums.values, key: -sums.values[key]})
    with pytest.raises(
        HeadscopeError, match=r"streaming_change is -[0-9.]+, and it is a multiple of the output's length;"
    ):
        refuse_impossible_values(negative, model.shape, opened.reducers, opened.summary, "sums.npz", "measure again")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_number_that_is_not_finite_gets_through(value: float) -> None:
    for key in list_keys():
        with pytest.raises(HeadscopeError, match=r"^sums.npz holds a sum that cannot be: ") as caught:
            refuse(change(key, value))
        assert key[0] in str(caught.value)
        assert key[-1] in str(caught.value)


def test_no_count_below_zero_gets_through() -> None:
    counts = [key for key in list_keys() if done().values[key].dtype.kind == "i"]
    assert len(counts) > 50
    for key in counts:
        with pytest.raises(
            HeadscopeError, match=r"^sums.npz holds a sum that cannot be: .* is -1, and a count is 0 or"
        ):
            refuse(change(key, -1))


def test_what_a_reducer_of_ones_own_adds_up_may_be_below_zero() -> None:
    values = np.array([[3, -5], [-7, 11]])
    refuse_impossible_numbers(RunSums({("mine", "encoder", "1", "signed"): values}), "sums.npz", "measure again")
    counted = RunSums({("mine", "encoder", COUNTED, "signed"): values})
    with pytest.raises(HeadscopeError, match="mine signed of encoder is -7, and a count is 0 or more"):
        refuse_impossible_numbers(counted, "sums.npz", "measure again")


def test_a_head_may_have_no_value_as_a_whole() -> None:
    key = ("relations", "encoder", "1", "correct")
    values = done().values[key].astype(float)
    values[2] = np.nan
    refuse(RunSums({**done().values, key: values}))
    values[3, 0] = np.nan
    with pytest.raises(HeadscopeError, match="relations correct of encoder layer 1 is NaN; measure again"):
        refuse(RunSums({**done().values, key: values}))


@pytest.mark.parametrize("name", SUMS)
def test_more_hits_than_items_do_not_get_through(name: str) -> None:
    with pytest.raises(HeadscopeError, match=r"^sums.npz holds sums that cannot be: by them \w+.* is [0-9.e+]+[, ]"):
        refuse(change(SUMS[name], 0, factor=1000))


@pytest.mark.parametrize("name", ["portions", "documents", "words", "unknown"])
def test_no_more_is_read_than_there_is(name: str) -> None:
    pattern = rf"^sums.npz holds a sum that cannot be: seen {name} is [0-9,]+, and there are [0-9,]+; measure again"
    sums = RunSums({**done().values, ("seen", name): np.asarray(10**6)})
    with pytest.raises(HeadscopeError, match=pattern):
        refuse(sums)


def write(folder: Path) -> list[Path]:
    paths = [folder / f"{number}.npz" for number in (1, 2)]
    for number, path in enumerate(paths, start=1):
        part = run().select(Shard(number, 2))
        ShardSums.of_run(part, part.add_up()).write(path)
    return paths


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "holds a sum that cannot be: relations correct of encoder layer 1 is NaN; measure its shard again."),
        (-1, "holds a sum that cannot be: relations correct of encoder layer 1 is -1, and a count is 0 or more; "
         "measure its shard again."),
        (10**6, "holds sums that cannot be: by them fold_correct is 1e+06 in a fold with 0 links; "
         "measure its shard again."),
    ],
)  # fmt: skip
def test_a_shard_with_a_sum_that_cannot_be_is_refused(tmp_path: Path, value: float, message: str) -> None:
    paths = write(tmp_path)
    sums, identity = load(paths[1])
    key = ("relations", "encoder", "1", "correct")
    values = sums.values[key].astype(float if np.isnan(value) else int)
    values[0, 0, 0, np.argmin(sums.values["relations", "encoder", COUNTED, "link"][0, :, 0])] = value
    save(RunSums({**sums.values, key: values}), paths[1], identity=identity)
    with pytest.raises(HeadscopeError) as caught:
        merge_shards(paths, OWN)
    assert str(caught.value) == f"{paths[1]} {message}"


def test_counts_with_a_fraction_do_not_get_through(tmp_path: Path) -> None:
    paths, key = write(tmp_path), ("relations", "encoder", "1", "correct")
    sums, identity = load(paths[0])
    save(RunSums({**sums.values, key: sums.values[key] / 2}), paths[0], identity=identity)
    message = "do not hold numbers of one kind for relations correct of encoder layer 1; measure both shards again"
    with pytest.raises(HeadscopeError, match=message):
        merge_shards(paths, OWN)


def test_a_file_that_a_program_has_changed_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)[0]
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays[json.dumps(["seen", "tokens"])] += 1
    np.savez(path, allow_pickle=False, **arrays)
    with pytest.raises(HeadscopeError, match="does not hold the numbers that were written, as its checksum says; give"):
        ShardSums.read(path)


def test_an_interrupted_run_with_a_sum_that_cannot_be_is_refused(tmp_path: Path) -> None:
    opened, path = run(), tmp_path / "sums.npz"
    for sums, message in (
        (change(SUMS["hits"], np.nan), "holds a sum that cannot be: relations correct of encoder layer 1 is NaN"),
        (change(SUMS["hits"], 0, factor=1000), "holds sums that cannot be: by them fold_correct is"),
        (change(("seen", "portions"), 10**6), "seen portions is 1,000,000, and there are 13"),
        (RunSums({key: value for key, value in done().values.items() if key[-1] != "correct"}),
         "does not hold what the reducer `relations` adds up"),
    ):  # fmt: skip
        save(sums, path, identity=opened.identity)
        with pytest.raises(HeadscopeError, match=message) as caught:
            opened.add_up(checkpoint=path, resume=True)
        assert str(caught.value).startswith(str(path))
        assert str(caught.value).endswith("; delete it, or run without --resume.")


def test_a_run_does_not_go_on_from_sums_of_another_kind(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("bert")
    model, path = Model.from_module(module, tokenizer, name="bert"), tmp_path / "sums.npz"
    opened = Run.open(model, DOCUMENTS, ["relations"], plan=Plan(batch_tokens=47))
    sums = RunSums.from_tensors(next(accumulate(opened.stream, opened.reducers)))
    key = SUMS["hits"]
    save(RunSums({**sums.values, key: sums.values[key] / 2}), path, identity=opened.identity)
    message = r"do not hold numbers of the kind that relations correct of encoder layer 1 adds up; delete it"
    with pytest.raises(HeadscopeError, match=message):
        measure(model, DOCUMENTS, ["relations"], plan=Plan(batch_tokens=47), checkpoint=path, resume=True)
