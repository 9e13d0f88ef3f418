"""The check of the heads that an atlas reports in another model: are their scores kept?

atlas --corpus, reducers, plan--> the new model is measured likewise --> change of each reported head --> verdicts
list --reducers--> the model is measured --> rank of each head of the list
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.check import KEPT, LOST, check_heads, list_checked_scores
from headscope.analyse.comparable import describe_shape, name_table
from headscope.analyse.report import UNDECIDED
from headscope.capture.model.model import Model
from headscope.commands.check.chosen_reducers import choose_reducers
from headscope.commands.check.list_ranks import rank_list
from headscope.commands.check.request import Check, TypedCheck
from headscope.commands.inputs import find_head, make_plan
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import find_dtype, record_request
from headscope.corpora import Corpus, CorpusSummary, summarize
from headscope.errors import ModelError
from headscope.heads import EDITED
from headscope.identity import DIFFERS_IN, name_differences
from headscope.reducers.reducer import Reducer
from headscope.results import Facts, Result
from headscope.runner import Plan, count_read, list_reducers, measure
from headscope.runner.completed_table import NOT_FINITE
from headscope.view.check_report import make_check_frame, print_check
from headscope.view.headings import name_model
from headscope.view.ranks_report import make_ranks_frame, print_ranks

HEADS_LOST, NOT_DECIDED = 3, 4
"""The exit codes if a head is lost, and if a head is not decided; the exit code of an error is 2."""


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """The verdicts of `check`.

    Attributes:
        table: A dataset over the checked heads (`headscope.analyse.check.check_heads`), or over the heads of a list
            with their ranks.
        folder: The folder; None if nothing was written.
        files: The names of all files, relative to the folder.
    """

    table: xr.Dataset
    folder: Path | None = None
    files: tuple[str, ...] = ()

    @property
    def facts(self) -> Facts:
        """The model, and the heads by verdict; for a list of heads, the number of ranked heads."""
        about = {"model": name_model(self.table.attrs.get("new_model") or self.table.attrs.get("model", ""))}
        if "verdict" not in self.table:
            return {**about, "ranked": len(make_ranks_frame(self.table)), "folder": self.folder}
        return {
            **about, "kept": self.kept, "lost": self.lost, "undecided": self.undecided, "folder": self.folder
        }  # fmt: skip

    @property
    def kept(self) -> tuple[str, ...]:
        """The heads whose score is kept, such as ``obj 3-1``."""
        return self._list(KEPT)

    @property
    def lost(self) -> tuple[str, ...]:
        """The heads whose score is lost, such as ``obj 3-1``."""
        return self._list(LOST)

    @property
    def undecided(self) -> tuple[str, ...]:
        """The heads that the texts cannot decide, such as ``obj 3-1``."""
        return self._list(UNDECIDED)

    def _list(self, verdict: str) -> tuple[str, ...]:
        if "verdict" not in self.table:
            return ()
        frame = make_check_frame(self.table)
        chosen = frame[frame["verdict"] == verdict]
        return tuple(f"{label} {name}" for label, name in zip(chosen["row"], chosen["name"], strict=True))


def run(request: Check, progress: Progress) -> CheckResult:
    """Measure the new model in the same way as the old one, unless its table is given, and judge each reported head.

    For a list of heads, rank its heads and judge nothing.
    """
    if request.heads is not None:
        return _rank(request, progress)
    old = request.old
    with open_folder(request, progress) as folder:
        table = _measure(request, progress) if request.measured is None else request.measured
        checked = check_heads(old, table, tolerance=request.tolerance, every=request.every)
        names = {
            "new": str(table.attrs["model"]),
            "against": str(old.attrs["model"]),
            "corpus": str(old.attrs["corpus"]),
        }
        checked = checked.assign_attrs(_describe(old, table) | record_request(request, **names))
        frame = make_check_frame(checked)
        about = {**checked.attrs, "heads": [_drop_unknown(row) for row in frame.to_dict("records")]}
        files = folder.write({"check.csv": frame}, about)
    return CheckResult(checked, folder.out, files)


def _rank(request: Check, progress: Progress) -> CheckResult:
    """Rank the heads of a list, and write the ranks to the folder."""
    with open_folder(request, progress) as folder:
        table = rank_list(request, progress)
        frame = make_ranks_frame(table)
        about = {**table.attrs, "heads": [_drop_unknown(row) for row in frame.to_dict("records")]}
        files = folder.write({"check.csv": frame}, about)
    return CheckResult(table, folder.out, files)


def _measure(request: Check, progress: Progress) -> xr.Dataset:
    """Measure the new model, with the scores by which heads are checked."""
    assert not isinstance(request.new, xr.Dataset)
    old, (documents, call) = request.old, request.corpus_and_call
    summary = summarize(documents)
    wanted = list_checked_scores(old, every=request.every)
    own = list_reducers(request.reducers)
    chosen = choose_reducers({score.variable for score in wanted}, call, own, summary, name_table(old, "the old table"))
    progress("loading the model", 0, 0)
    # Compare the recorded loss with the same loss, whatever task head the new weights have.
    head = find_head(None, chosen, call.view)
    head = None if head is None else str(old.attrs.get("loss", head))
    model = request.load_model(request.new, task=head, dtype=find_dtype(old.attrs))
    plan = make_plan(call, batch_tokens=request.batch_tokens or call.batch_tokens)
    _refuse_other_model(model, documents, chosen, plan, old, summary)
    label = f"measuring {name_model(model.name)}"
    return measure(
        model, documents, chosen, plan=plan, summary=summary, progress=lambda done, total: progress(label, done, total)
    )


def _refuse_other_model(
    model: Model, documents: Corpus, reducers: Sequence[Reducer], plan: Plan, old: xr.Dataset, summary: CorpusSummary
) -> None:
    """Raise an error for a model whose heads cannot be compared with the heads of a table.

    Raises:
        ModelError: The model has another shape than the model of the table, or reads the corpus as other documents or
            another number of tokens.
    """
    name, layers, heads = name_table(old, "the old table"), model.shape.layers, model.shape.heads
    types = [str(label) for label in old["attention_type"].values] if "attention_type" in old.dims else [*layers][:1]
    sizes = (max(layers.values()), max(heads.values()))
    if [*layers] != types or sizes != (old.sizes["layer"], old.sizes["head"]):
        ours = f"{len(layers)} attention types, " if len(layers) > 1 else ""
        raise ModelError(
            f"{model.name!r} has {ours}{sizes[0]} layers and {sizes[1]} heads, and {name} {describe_shape(old)}; heads "
            "can be checked in models of one architecture only."
        )
    if NOT_FINITE in old.attrs["skipped"]:  # the number of tokens of these documents is not known
        return
    read = count_read(model, documents, reducers, plan, summary)
    for what in ("documents", "tokens"):
        if read[what] != int(old.attrs[what]):
            raise ModelError(
                f"{model.name!r} reads the corpus as {read[what]:,} {what}, and the model of {name} as "
                f"{int(old.attrs[what]):,}; give a model with the same tokenizer."
            )


def _describe(old: xr.Dataset, new: xr.Dataset) -> dict[str, Any]:
    """Return the corpus, and the names and weights of both models, as attributes of the result."""
    about = {"corpus": str(old.attrs["corpus"]), "corpus_sha256": str(old.attrs["corpus_sha256"])}
    about |= {DIFFERS_IN: name_differences(old.attrs, new.attrs)}
    for side, table in (("old", old), ("new", new)):
        about |= {f"{side}_{key}": str(table.attrs[key]) for key in ("model", "weights_sha256")}
        about |= {f"{side}_{EDITED}": str(table.attrs[EDITED])} if EDITED in table.attrs else {}
    return about


def _drop_unknown(row: dict[Any, Any]) -> dict[str, Any]:
    """Return the row with None in place of NaN, since JSON has no NaN."""
    return {str(key): None if value != value else value for key, value in row.items()}


def show(request: TypedCheck, result: CheckResult, console: Console) -> int | None:
    """Print the verdicts or ranks of the heads, and warn of heads that cannot be decided.

    Returns:
        The exit code: `HEADS_LOST`, `NOT_DECIDED` (only with `strict`), or None for success.
    """
    if request.heads is not None:
        print_ranks(result.table, console, whole=request.whole)
    else:
        print_check(result.table, console, whole=request.whole)
    if result.folder is not None:
        console.print(f"\nWrote {escape(str(result.folder / 'check.json'))} and check.csv.", soft_wrap=True)
    if result.lost:
        return HEADS_LOST
    if result.undecided:
        count = len(result.undecided)
        sentence = f"{count} head{'' if count == 1 else 's'} cannot be decided; more texts decide more."
        warnings = Console(stderr=True, emoji=False)
        warnings.print(f"headscope: {sentence}", style="yellow", soft_wrap=True, highlight=False)
        return NOT_DECIDED if request.strict else None
    return None
