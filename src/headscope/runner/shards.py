"""The sums over a shard of a corpus, in a file, and the head table of all shards.

Run over a shard --ShardSums--> file;  files of all shards --merge_shards--> head table

A file holds everything that the table needs, so that neither the weights nor the corpus are read again.
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
from headscope.results import Facts, Result
from headscope.runner.checkpoint import RunSums, describe_key, load, save
from headscope.runner.completed_table import complete_table
from headscope.runner.impossible import refuse_impossible_numbers, refuse_impossible_values
from headscope.runner.local import Run
from headscope.runner.resolve import list_reducers, resolve_reducers
from headscope.runner.row_sample import find_other_kind

DEVICE = "device"
"""The attribute with the device. It may differ between shards: devices of one kind can measure a corpus together."""

MODEL = "model"
"""The attribute with the model's name. It may differ between shards: paths differ, but weights are compared.

The names of corpora must not differ, since the names of their files are part of the names of texts.
"""

SHOWN = 200
"""The largest number of characters of two differing values that an error message shows."""

CONTENT = "the sums of a shard"
REMEASURE = "measure its shard again"
"""The advice for impossible sums."""

ADVICE = "give files that `headscope measure --shard` wrote"


@dataclass(frozen=True, eq=False, repr=False)
class ShardSums(Result):
    """The sums over a shard, and all other information that the table of all shards needs.

    Attributes:
        shard: The number of this shard, and the number of all shards.
        done: The sums.
        identity: The identity of the run, the same in all shards.
        summary: The summary of the whole corpus.
        shape: The shape of the model, without its vocabulary.
        reducers: The name and the settings of each reducer (`headscope.reducers.settings`).
        view: The view that was measured in place of the weights; None for the weights.
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
        """Return the sums of a run over a shard, with all information that the table of all shards needs.

        Raises:
            HeadscopeError: The run was over a whole corpus.
        """
        if run.shard is None:
            raise HeadscopeError("the run was over a whole corpus and has no shard; open it with one.")
        settings = [(reducer.name, write_settings(reducer)) for reducer in run.reducers]
        identity = {name: value for name, value in run.identity.items() if name != "shard"}
        # The documents are not read again, so nothing needs their originals.
        summary = replace(run.summary, originals=Originals())
        return cls(run.shard, done, identity, summary, run.model.shape, settings, run.stream.plan.view)

    @property
    def facts(self) -> Facts:
        """The shard, its reducers and view, and the numbers of documents, words and tokens that were read."""
        names = tuple(name for name, _ in self.reducers)
        return {"shard": f"{self.shard.number}/{self.shard.count}", "reducers": names, "view": self.view, **self.counts}

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of ``documents``, ``words`` and ``tokens`` that were read."""
        seen = self.done.select_run("seen")
        return {name: seen.get(name, 0) for name in ("documents", "words", "tokens")}

    def write(self, path: Path) -> None:
        """Write the sums to the file `path` in one step, so that no partial file remains.

        Raises:
            HeadscopeError: The disk refuses the file.
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
        """Read the sums that `write` wrote.

        Raises:
            HeadscopeError: The file holds no sums of a shard, sums of another version, or impossible sums.
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
            # The keys of JSON are always text.
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
    """Merge all shards of a corpus into one head table.

    The sums are added up in the order of the shard numbers, whatever the order of the files, so that the table is
    always the same to the last bit. It differs from the table of one run over the whole corpus only by rounding.

    Args:
        paths: The files of all shards.
        reducers: Your own reducers, which no file can hold, by ``module:Reducer`` or as objects.

    Raises:
        HeadscopeError: A shard is missing or given twice, two shards are of different runs, a shard holds impossible
            sums, or a reducer is unknown.
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
        if list_reducers(reducers):  # the errors of a user's own reducers are for their author
            raise
        raise HeadscopeError(
            f"{paths[0]} and the shards next to it do not hold what their reducers add up ({first_line(error)}); "
            "measure them again."
        ) from error
    devices = dict.fromkeys(sums.identity["about"][DEVICE] for sums in ordered)
    return table.assign_attrs({DEVICE: ", ".join(devices), "shards": first.shard.count})


def _refuse_other_shards(paths: Sequence[Path], shards: Mapping[Path, ShardSums]) -> None:
    """Raise an error if shards are of different runs, if one is missing, or if one is given twice."""
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
    """Return a difference between two identities that shards of one run cannot have; empty if there is none."""
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
    """Return a difference between two shards that shards of one run cannot have; empty if there is none."""
    if first.shard.count != other.shard.count:
        return f"the number of shards, {first.shard.count} and {other.shard.count}"
    different = find_difference(first.identity, other.identity)
    return different or ("what was read of the corpus" if first.summary != other.summary else "")


def _make_reducers(sums: ShardSums, own: str | Reducer | Sequence[str | Reducer]) -> list[Reducer]:
    """Return the reducers that measured a shard: built-in reducers with its settings, or reducers in `own`."""
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
