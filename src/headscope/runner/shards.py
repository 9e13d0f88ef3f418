"""The sums over a shard of a corpus, in a file of its own, and the head table of all shards.

Run over a shard --ShardSums--> file;  files of all shards --merge_shards--> head table

A file says all that the table needs, so that neither the weights nor the corpus are read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from importlib import metadata
from itertools import islice
from operator import add
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.capture.model.shape import Shape
from headscope.corpora.originals import Originals
from headscope.corpora.shard import Shard
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError, first_line
from headscope.files import check_regular, parse_json
from headscope.identity import drop_remarks
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.reducers.settings import apply_settings, write_settings
from headscope.runner.checkpoint import RunSums, describe_key, load, save
from headscope.runner.completed_table import complete_table
from headscope.runner.impossible import refuse_impossible_numbers, refuse_impossible_values
from headscope.runner.local import Run
from headscope.runner.resolve import list_reducers, resolve_reducers
from headscope.runner.row_sample import find_other_kind

DEVICE = "device"
"""Several devices of one kind measure a corpus together."""

MODEL = "model"
"""Each machine has it in a place of its own; its weights are compared. The names of files are in those of texts."""

SHOWN = 200
"""Characters of values that differ; more would hide what is said."""

CONTENT = "the sums of a shard"
REMEASURE = "measure its shard again"
"""What to do with sums that cannot be."""

ADVICE = "give files that `headscope measure --shard` wrote"


@dataclass(frozen=True, eq=False)
class ShardSums:
    """The sums over a shard, and what the table of all of them needs.

    Attributes:
        shard: which of how many.
        done: the sums.
        identity: of the run, the same in all shards.
        summary: of the whole corpus.
        shape: of the model, without its vocabulary.
        reducers: the name and the settings of each (`headscope.reducers.settings`).
        view: what was measured in place of the weights; None for the weights.
    """

    shard: Shard
    done: RunSums
    identity: Mapping[str, Any]
    summary: CorpusSummary
    shape: Shape
    reducers: Sequence[tuple[str, Mapping[str, Any]]]
    view: str | None

    @classmethod
    def of_run(cls, run: Run, done: RunSums) -> "ShardSums":
        """What a run over a shard has added up.

        Raises:
            HeadscopeError: the run was over a whole corpus.
        """
        if run.shard is None:
            raise HeadscopeError("the run was over a whole corpus and has no shard; open it with one.")
        settings = [(reducer.name, write_settings(reducer)) for reducer in run.reducers]
        identity = {name: value for name, value in run.identity.items() if name != "shard"}
        # Nobody reads the documents again.
        summary = replace(run.summary, originals=Originals())
        return cls(run.shard, done, identity, summary, run.model.shape, settings, run.stream.plan.view)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of ``documents``, ``words`` and ``tokens`` that were read."""
        seen = self.done.select_run("seen")
        return {name: seen.get(name, 0) for name in ("documents", "words", "tokens")}

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            HeadscopeError: the disk refuses it.
        """
        shape = {field.name: dict(getattr(self.shape, field.name)) for field in fields(Shape)} | {"vocabulary": {}}
        summary = {name: values for name, values in asdict(self.summary).items() if name != "originals"}
        about: dict[str, Any] = {
            "shard": [self.shard.number, self.shard.count], "summary": summary, "shape": shape,
            "reducers": self.reducers, "view": self.view,
        }  # fmt: skip
        save(self.done, path, identity={**self.identity, "shards": about})

    @classmethod
    def read(cls, path: Path) -> "ShardSums":
        """The sums that `write` wrote.

        Raises:
            HeadscopeError: the file holds no sums of a shard, those of another version, or some that cannot be.
        """
        check_regular(path)
        if not path.is_file():
            raise HeadscopeError(f"there is no file {path}; {ADVICE}.")
        done, identity = load(path, content=CONTENT, advice=ADVICE)
        try:
            about, run = identity.pop("shards"), identity["about"]
            written = parse_json(run["versions"])["headscope"]
            number, count = about["shard"]
            shape = about["shape"]
            # JSON has only text for keys.
            others = {int(layer): kind for layer, kind in shape["without_attention"].items()}
            reducers = [(name, settings) for name, settings in about["reducers"]]
            whole = all(isinstance(run[name], str) for name in (DEVICE, MODEL)) and isinstance(identity["plan"], str)
            if not whole or len(identity["reducers"]) != len(reducers) or {type(number), type(count)} != {int}:
                raise ValueError("this is not what `write` wrote")
            sums = cls(
                Shard(number, count), done, identity, CorpusSummary(**about["summary"]),
                Shape(**shape | {"without_attention": others}), reducers, about["view"],
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HeadscopeError(f"{path} does not hold {CONTENT}; {ADVICE}.") from error
        if written != (ours := metadata.version("headscope")):
            raise HeadscopeError(
                f"{path} was written by headscope {written}, and this is headscope {ours}; join the shards with the "
                "version that measured them."
            )
        refuse_impossible_numbers(done, str(path), REMEASURE)
        return sums


def merge_shards(paths: Sequence[Path], reducers: str | Reducer | Sequence[str | Reducer] = ()) -> xr.Dataset:
    """The head table of all shards of a corpus.

    They are added up in the order of their numbers, whatever that of the files, so that the table is always the same
    to the last bit. It differs from that of one run over the whole corpus by rounding alone.

    Args:
        paths: the files of all shards.
        reducers: your own ones, which no file can bring, by ``module:Reducer`` or as objects.

    Raises:
        HeadscopeError: a shard is missing or given twice, two are of different runs, one holds sums that cannot be, or
            a reducer is not known.
    """
    shards = {path: ShardSums.read(path) for path in paths}
    _refuse_other_shards(paths, shards)
    ordered = sorted(shards.values(), key=lambda sums: sums.shard.number)
    first = ordered[0]
    try:
        resolved = _make_reducers(first, reducers)
        for path, sums in shards.items():
            refuse_impossible_values(sums.done, sums.shape, resolved, sums.summary, str(path), REMEASURE)
        done = reduce(add, (sums.done for sums in ordered))
        table = complete_table(done, first.summary, first.shape, resolved, first.identity, first.view)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if list_reducers(reducers):  # whose own errors are for who wrote them
            raise
        raise HeadscopeError(
            f"{paths[0]} and the shards next to it do not hold what their reducers add up ({first_line(error)}); "
            "measure them again."
        ) from error
    devices = dict.fromkeys(sums.identity["about"][DEVICE] for sums in ordered)
    return table.assign_attrs({DEVICE: ", ".join(devices), "shards": first.shard.count})


def _refuse_other_shards(paths: Sequence[Path], shards: Mapping[Path, ShardSums]) -> None:
    """Refuse shards that are not those of one run, each of them once."""
    if not paths:
        raise HeadscopeError("no shard was given; give the files of all shards of a corpus.")
    path, first = next(iter(shards.items()))
    for other, sums in shards.items():
        if difference := _find_difference(first, sums):
            raise HeadscopeError(
                f"{path} and {other} are shards of different runs (they differ in {difference}); give the shards of "
                "one run."
            )
        if key := find_other_kind(first.done.values, sums.done.values):
            raise HeadscopeError(
                f"{path} and {other} do not hold numbers of one kind for {describe_key(key)}; measure both shards "
                "again."
            )
    names: dict[int, Path] = {}
    for other in paths:
        number = shards[other].shard.number
        if number in names:
            raise HeadscopeError(
                f"shard {shards[other].shard} was given twice, as {names[number]} and {other}; give each shard once."
            )
        names[number] = other
    count = first.shard.count
    if missing := count - len(names):
        some = [*islice((f"{number}/{count}" for number in range(1, count + 1) if number not in names), 5)]
        shown = ", ".join(some) + (f" and {missing - len(some)} more" if missing > len(some) else "")
        raise HeadscopeError(
            f"of the {count} shards {missing} {'is' if missing == 1 else 'are'} missing ({shown}); measure "
            f"{'it' if missing == 1 else 'them'}, or give the files as well."
        )


def find_difference(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """In what two identities differ that shards of one run have in common; empty if in nothing."""
    ours, theirs = (drop_remarks(identity["about"]) for identity in (first, other))
    kinds = [about.pop(DEVICE).partition(":")[0] for about in (ours, theirs)]
    compared = (ours.keys() | theirs.keys()) - {MODEL}
    different = [name for name in compared if ours.get(name) != theirs.get(name)]
    if "versions" in different:
        ours, theirs = (dict(parse_json(about["versions"])) for about in (ours, theirs))
        different = [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)]
    if different:
        name = min(different)
        values = f"{ours.get(name)!r} and {theirs.get(name)!r}"
        return f"{name}, {values}" if len(values) <= SHOWN else name
    if kinds[0] != kinds[1]:
        return f"{DEVICE}, {kinds[0]!r} and {kinds[1]!r}"
    return next((name for name in ("format", "reducers", "plan") if first.get(name) != other.get(name)), "")


def _find_difference(first: ShardSums, other: ShardSums) -> str:
    """In what two shards differ that those of one run have in common; empty if in nothing."""
    if first.shard.count != other.shard.count:
        return f"the number of shards, {first.shard.count} and {other.shard.count}"
    different = find_difference(first.identity, other.identity)
    return different or ("what was read of the corpus" if first.summary != other.summary else "")


def _make_reducers(sums: ShardSums, own: str | Reducer | Sequence[str | Reducer]) -> list[Reducer]:
    """The reducers that added up a shard: headscope's own, and in the place of others those that are given."""
    given = list_reducers(own)
    brought = {reducer.name: reducer for reducer in (resolve_reducers(given, sums.summary) if given else [])}
    objects = {name for name, reducer in zip(brought, given, strict=True) if not isinstance(reducer, str)}
    names = [name for name, _ in sums.reducers]
    if unknown := next((name for name in brought if name not in names), None):
        raise HeadscopeError(
            f"the reducer `{unknown}` was not measured in these shards, which have {', '.join(names)}; leave it out."
        )
    resolved = []
    for (name, settings), wanted in zip(sums.reducers, sums.identity["reducers"], strict=True):
        if name not in brought and name not in REDUCERS:
            raise HeadscopeError(
                f"the shards were measured with the reducer `{name}`, which is not one of headscope's; give it again, "
                "as by -r module:Reducer."
            )
        reducer = brought[name] if name in brought else REDUCERS[name].for_corpus(sums.summary)
        if name not in objects:
            reducer = apply_settings(reducer, settings)
        if repr(reducer) != wanted:
            raise HeadscopeError(
                f"the reducer `{name}` has other settings ({reducer!r}) than the one of the shards ({wanted}); in "
                "Python, give `headscope.merge` the same object again."
            )
        resolved.append(reducer)
    return resolved
