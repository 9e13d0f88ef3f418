"""Shards of a corpus: their sums in files, the table of all of them, and what is refused."""

import itertools
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope
import laws
import tiny
from headscope.capture.model.model import Model
from headscope.corpora import CorpusSummary, Document, Shard, summarize
from headscope.errors import CorpusError, HeadscopeError
from headscope.reducers import Surface, WordClass
from headscope.runner import Plan, Run, ShardSums, local, measure, merge_shards, resolve_reducers
from headscope.runner.checkpoint import RunSums, load, save
from own import LastToken
from plain_reducers import OF_ONE_MODEL

DOCUMENTS = tiny.documents_with_roles(17)
COUNT = 3


def make(family: str = "bert") -> Model:
    """A tiny model; in float64 where its own rounding, from padding to padding, grows to that of the statistics."""
    module, tokenizer = tiny.make(family)
    return Model.from_module(module.double() if family == "bart" else module, tokenizer, name=family)


def measure_shard(
    model: Model,
    documents: Sequence[Document],
    reducers: Sequence,
    shard: Shard,
    *,
    plan: Plan | None = None,
    summary: CorpusSummary | None = None,
    **settings,
) -> ShardSums:
    run = Run.open(model, documents, reducers, plan=plan, summary=summary).select(shard)
    return ShardSums.of_run(run, run.add_up(**settings))


def write(
    folder: Path, reducers: Sequence, *, model: Model | None = None, count: int = COUNT, name: str = "", **settings
) -> list[Path]:
    """The files of all shards."""
    paths = [folder / f"{name}{number}.npz" for number in range(1, count + 1)]
    for number, path in enumerate(paths, start=1):
        measure_shard(model or make(), DOCUMENTS, reducers, Shard(number, count), **settings).write(path)
    return paths


def without_time(table: xr.Dataset) -> xr.Dataset:
    return table.drop_attrs(deep=False).assign_attrs({k: v for k, v in table.attrs.items() if k != "created"})


@pytest.mark.parametrize("family", ["bert", "mistral", "bart"])
def test_the_table_of_shards_is_that_of_the_whole_corpus_for_all_reducers(family: str, tmp_path: Path) -> None:
    model = make(family)
    reducers = resolve_reducers(OF_ONE_MODEL, summarize(DOCUMENTS))
    whole = without_time(measure(model, DOCUMENTS, reducers))
    joined = without_time(merge_shards(write(tmp_path, OF_ONE_MODEL, model=model)))
    assert joined.attrs.pop("shards") == COUNT
    laws.assert_same(joined, whole)


def test_any_order_of_files_gives_the_same_table_to_the_last_bit(tmp_path: Path) -> None:
    paths = write(tmp_path, ["surface", "relations"])
    first, *others = (without_time(merge_shards(order)) for order in itertools.permutations(paths))
    assert all(table.identical(first) for table in others)


def test_a_shard_says_what_is_needed_without_weights_and_corpus(tmp_path: Path, monkeypatch) -> None:
    paths = write(tmp_path, ["surface"], plan=Plan(view="norm"))
    monkeypatch.setattr("headscope.runner.local.load", None)
    table = merge_shards(paths)
    assert (table.attrs["view"], table.attrs["documents"]) == ("norm", len(DOCUMENTS))
    read = ShardSums.read(paths[1])
    assert (read.shard, read.shape.layers, read.summary) == (Shard(2, 3), {"encoder": 2}, summarize(DOCUMENTS))


def test_what_readers_left_out_is_counted_once(tmp_path: Path) -> None:
    long = Document("long", ("the",) * 61)
    summary = summarize(DOCUMENTS)
    paths = [tmp_path / f"{number}.npz" for number in (1, 2)]
    for number, path in enumerate(paths, start=1):
        sums = measure_shard(
            make(), [long, *DOCUMENTS], ["surface"], Shard(number, 2), plan=Plan(max_tokens=48, cut=False),
            summary=CorpusSummary(**{**vars(summary), "skipped": {"lines without words": 5}}),
        )  # fmt: skip
        sums.write(path)
    skipped = json.loads(merge_shards(paths).attrs["skipped"])
    assert skipped.pop("lines without words") == 5
    assert sum(skipped.values()) >= 1


def test_a_shard_may_have_nothing_that_can_be_measured(tmp_path: Path) -> None:
    documents = [Document("long", ("the",) * 61), Document("short", ("the",) * 7)]
    paths = [tmp_path / "1.npz", tmp_path / "2.npz"]
    for number, path in enumerate(paths, start=1):
        plan = Plan(max_tokens=30, cut=False)
        measure_shard(make(), documents, ["surface"], Shard(number, 2), plan=plan).write(path)
    assert [ShardSums.read(path).counts["documents"] for path in paths] == [0, 1]
    assert merge_shards(paths).attrs["documents"] == 1


def test_nothing_in_any_shard_is_refused_at_the_end(tmp_path: Path) -> None:
    documents = [Document(name, ("the",) * 61) for name in ("first", "second")]
    paths = [tmp_path / "1.npz", tmp_path / "2.npz"]
    for number, path in enumerate(paths, start=1):
        plan = Plan(max_tokens=30, cut=False)
        measure_shard(make(), documents, ["surface"], Shard(number, 2), plan=plan).write(path)
    with pytest.raises(CorpusError, match="none of the 2 documents could be measured"):
        merge_shards(paths)


def test_a_killed_shard_goes_on_to_the_same_file(tmp_path: Path, monkeypatch) -> None:
    settings = {"reducers": ["surface", "relations"], "shard": Shard(2, 3), "plan": Plan(batch_tokens=47)}
    whole, resumed, checkpoint = tmp_path / "whole.npz", tmp_path / "resumed.npz", tmp_path / "partial.npz"
    measure_shard(make(), DOCUMENTS, **settings).write(whole)
    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    calls = []

    def stop(done: int, words: int) -> None:
        calls.append(done)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_shard(make(), DOCUMENTS, **settings, checkpoint=checkpoint, progress=stop)
    again = measure_shard(make(), DOCUMENTS, **settings, checkpoint=checkpoint, resume=True)
    again.write(resumed)
    assert 0 < calls[1] < again.counts["words"]
    assert resumed.read_bytes() == whole.read_bytes()
    other = settings | {"shard": Shard(1, 3)}
    with pytest.raises(HeadscopeError, match="was left by another run"):
        measure_shard(make(), DOCUMENTS, **other, checkpoint=checkpoint, resume=True)


def refuse(paths: Sequence[Path], reducers: Sequence = ()) -> str:
    with pytest.raises(HeadscopeError) as refused:
        merge_shards(paths, reducers)
    return str(refused.value)


def test_shards_missing_or_doubled_are_refused(tmp_path: Path) -> None:
    first, second, third = write(tmp_path, ["surface"])
    assert refuse([]) == "no shard was given; give the files of all shards of a corpus."
    assert refuse([first, third]) == ("of the 3 shards 1 is missing (2/3); measure it, or give the files as well.")
    assert refuse([third]) == "of the 3 shards 2 are missing (1/3, 2/3); measure them, or give the files as well."
    copy = shutil.copy(second, tmp_path / "copy.npz")
    for paths in ([first, second, copy, third], [first, second, copy]):
        assert refuse(paths) == f"shard 2/3 was given twice, as {second} and {copy}; give each shard once."
    assert refuse([first, second, second, third]).startswith(f"shard 2/3 was given twice, as {second} and {second};")


def test_shards_of_different_runs_are_refused(tmp_path: Path, monkeypatch) -> None:
    paths = write(tmp_path, ["surface"])

    def refuse_with(other: Path) -> str:
        message = refuse([paths[0], other, paths[2]])
        assert message.startswith(f"{paths[0]} and {other} are shards of different runs (they differ in ")
        assert message.endswith("); give the shards of one run.")
        return message.partition("differ in ")[2].rpartition(")")[0]

    assert refuse_with(write(tmp_path, ["surface"], count=5, name="five-")[1]) == "the number of shards, 3 and 5"
    assert refuse_with(write(tmp_path, [Surface(offsets=(-2,))], name="offsets-")[1]) == "reducers"
    assert refuse_with(write(tmp_path, ["surface"], plan=Plan(max_tokens=40), name="limit-")[1]) == "plan"
    untrained = headscope.untrained_model(make())
    assert refuse_with(write(tmp_path, ["surface"], model=untrained, name="other-")[1]).startswith("weights_sha256, ")
    sums = ShardSums.read(paths[1])
    versions = json.loads(sums.identity["about"]["versions"])
    for attribute, value, difference in (
        ("weights_sha256", "0" * 64, f"weights_sha256, {sums.identity['about']['weights_sha256']!r} and {'0' * 64!r}"),
        ("versions", json.dumps(versions | {"torch": "2.1"}), f"torch, {versions['torch']!r} and '2.1'"),
        ("patterns", "long " * 100, "patterns"),
    ):
        other = tmp_path / f"{attribute}.npz"
        change(sums, {attribute: value}).write(other)
        assert refuse_with(other) == difference


def change(sums: ShardSums, about: dict) -> ShardSums:
    """The same sums, said to be of something else."""
    return replace(sums, identity=sums.identity | {"about": sums.identity["about"] | about})


def test_shards_are_joined_by_the_version_that_measured_them(tmp_path: Path) -> None:
    path = write(tmp_path, ["surface"])[0]
    change(ShardSums.read(path), {"versions": '{"headscope": "0.0.1"}'}).write(path)
    assert refuse([path]) == (
        f"{path} was written by headscope 0.0.1, and this is headscope {version('headscope')}; join the shards with "
        "the version that measured them."
    )


def test_shards_may_come_from_several_devices_of_a_kind(tmp_path: Path) -> None:
    paths = write(tmp_path, ["surface"])
    for number, path in enumerate(paths):
        sums = ShardSums.read(path)
        change(sums, {"device": f"cuda:{number}"}).write(path)
    assert merge_shards(paths).attrs["device"] == "cuda:0, cuda:1, cuda:2"
    sums = ShardSums.read(paths[0])
    change(sums, {"device": "cpu"}).write(paths[0])
    assert "they differ in device, 'cpu' and 'cuda'" in refuse(paths)


def test_machines_may_have_the_model_in_other_places(tmp_path: Path) -> None:
    paths = write(tmp_path, ["surface"])
    sums = ShardSums.read(paths[1])
    change(sums, {"model": "/mnt/model"}).write(paths[1])
    assert merge_shards(paths).attrs["model"] == "bert"


def test_a_run_over_a_whole_corpus_is_no_shard() -> None:
    run = Run.open(make(), DOCUMENTS, ["surface"])
    with pytest.raises(HeadscopeError) as refused:
        ShardSums.of_run(run, run.add_up())
    assert str(refused.value) == "the run was over a whole corpus and has no shard; open it with one."


def test_what_is_no_shard_is_refused(tmp_path: Path) -> None:
    text, partial, table = tmp_path / "text.npz", tmp_path / "partial.npz", tmp_path / "heads.nc"
    text.write_text("not sums")
    whole = measure(make(), DOCUMENTS, ["surface"], checkpoint=partial)
    headscope.write_table(whole, table)
    for path in (text, partial, table):
        assert refuse([path]) == (
            f"{path} does not hold the sums of a shard; give files that `headscope measure --shard` wrote."
        )
    none = tmp_path / "heads.*.npz"
    assert refuse([none]) == f"there is no file {none}; give files that `headscope measure --shard` wrote."
    with pytest.raises(HeadscopeError) as refused:
        headscope.read_table(write(tmp_path, ["surface"])[0])
    assert "headscope merge" in str(refused.value)


def test_own_reducers_are_given_again(tmp_path: Path) -> None:
    paths = write(tmp_path, ["surface", LastToken()])
    assert refuse(paths) == (
        "the shards were measured with the reducer `last_token`, which is not one of headscope's; give it again, as by "
        "-r module:Reducer."
    )
    whole = measure(make(), DOCUMENTS, ["surface", LastToken()])
    for own in (LastToken(), "own:LastToken", [LastToken()]):
        np.testing.assert_allclose(merge_shards(paths, own)["mass_last"], whole["mass_last"], atol=1e-7)
    assert refuse(write(tmp_path, ["surface"], name="plain-"), [LastToken()]) == (
        "the reducer `last_token` was not measured in these shards, which have surface; leave it out."
    )


def test_settings_that_no_file_can_keep_are_given_again(tmp_path: Path) -> None:
    surface = Surface(classes=(WordClass("odd", find_odd),))
    paths = write(tmp_path, [surface])
    assert refuse(paths).startswith("the reducer `surface` has other settings (Surface(offsets=(), classes=()")
    assert "odd" in merge_shards(paths, [surface])["class"]


def test_a_named_reducer_is_made_with_what_it_was_measured_with(tmp_path: Path) -> None:
    reducer = "headscope.reducers:Surface"
    paths = write(tmp_path, [Surface(offsets=(-2,))])
    assert -2 in merge_shards(paths, reducer)["token_offset"]
    assert refuse(paths, [Surface()]).startswith("the reducer `surface` has other settings (Surface(offsets=(),")


def find_odd(document: Document) -> range:
    return range(1, len(document.words), 2)


@pytest.mark.parametrize(
    "header",
    [
        {"shard": [1, 3]}, {"shard": [1.0, 1.5]}, {"shard": "1/3"}, {"reducers": []}, {"summary": {"documents": 3}},
        {"shape": {"layers": {"encoder": 2}}}, {"versions": None}, {"model": 5}, {"plan": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_header_that_was_not_written_so_is_refused(tmp_path: Path, header: dict) -> None:
    path = write(tmp_path, ["surface"])[0]
    done, identity = load(path)
    shards, about = identity["shards"], identity["about"]
    if header == {"shard": [1, 3]}:
        shards = header
    shards |= {name: value for name, value in header.items() if name in shards}
    about |= {name: value for name, value in header.items() if name in about}
    plan = header.get("plan", identity["plan"])
    save(done, path, identity={**identity, "about": about, "shards": shards, "plan": plan})
    assert refuse([path]) == (
        f"{path} does not hold the sums of a shard; give files that `headscope measure --shard` wrote."
    )


def test_sums_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, ["surface"])
    sums = ShardSums.read(paths[1])
    beginning = f"{paths[0]} and the shards next to it do not hold what their reducers add up ("
    other_kind = f"{paths[0]} and {paths[1]} do not hold numbers of one kind for surface defined of encoder; measure "
    other_shapes = {
        key: np.zeros((13, 17)) if key[0] == "surface" else value for key, value in sums.done.values.items()
    }
    for values, settings, message in (
        (other_shapes, sums.reducers[0][1], other_kind), (sums.done.values, {"part": 1}, beginning),
        (sums.done.values, {"edges": {"part": "os"}}, beginning),
    ):  # fmt: skip
        for path in paths:
            changed = replace(ShardSums.read(path), reducers=[("surface", settings)])
            (replace(changed, done=RunSums(values)) if path == paths[1] else changed).write(path)
        assert refuse(paths).startswith(message)
    fewer = {key: value for key, value in sums.done.values.items() if key[-1] != "means"}
    paths = write(tmp_path, ["surface"])
    replace(sums, done=RunSums(fewer)).write(paths[1])
    assert refuse(paths).startswith(f"{paths[1]} does not hold what the reducer `surface` adds up (")


def test_many_missing_shards_are_counted_and_some_named(tmp_path: Path) -> None:
    path = write(tmp_path, ["surface"])[0]
    replace(ShardSums.read(path), shard=Shard(2, 10**9)).write(path)
    some = ", ".join(f"{number}/1000000000" for number in (1, 3, 4, 5, 6))
    assert refuse([path]) == (
        f"of the 1000000000 shards 999999999 are missing ({some} and 999999994 more); measure them, or give the files "
        "as well."
    )


def test_what_a_killed_run_was_of_is_named(tmp_path: Path) -> None:
    checkpoint, text = tmp_path / "partial.npz", tmp_path / "text.txt"
    measure_shard(make(), DOCUMENTS, ["surface"], Shard(1, 2), checkpoint=checkpoint)
    with pytest.raises(HeadscopeError, match=r"\(its shard differ from what is asked for now\)"):
        measure(make(), DOCUMENTS, ["surface"], checkpoint=checkpoint, resume=True)
    text.write_text(" ".join(["the"] * 23) + "\n" + " ".join(["old"] * 23) + "\n")
    measure(make(), headscope.read(text, format="text-lines"), ["surface"], checkpoint=checkpoint)
    with pytest.raises(HeadscopeError, match=r"\(its format differ from what is asked for now\)"):
        measure(make(), headscope.read(text, format="sentences"), ["surface"], checkpoint=checkpoint, resume=True)
