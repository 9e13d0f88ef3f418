"""Heads of another model, checked against those that an atlas reports: do they still do what they did?

atlas --corpus, reducers, plan--> the new model is measured likewise --> change of each reported head --> verdicts
"""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.analyse.check import KEPT, LOST, TOLERANCE, check_heads, list_checked_scores
from headscope.analyse.comparable import describe_shape, name_table
from headscope.analyse.report import UNDECIDED
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.corpora import Corpus, CorpusSummary, summarize
from headscope.errors import HeadscopeError, ModelError
from headscope.heads import EDITED
from headscope.jobs.check_inputs import check_tolerance, open_against, open_corpus, open_new
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.inputs import find_head, make_plan
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.jobs.recorded_call import RecordedCall
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer, declared_scores
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, count_read, list_reducers, measure, resolve_reducers
from headscope.runner.table import NOT_FINITE
from headscope.score import Score
from headscope.view.check import make_check_frame
from headscope.view.headings import name_model


@dataclass(frozen=True)
class CheckResult:
    """What `check` decided.

    Attributes:
        table: a dataset over the heads that were checked (`headscope.analyse.check.check_heads`).
        folder: the folder that was written; None if none was asked for.
        files: all files, relative to the folder.
    """

    table: xr.Dataset
    folder: Path | None = None
    files: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The heads that still do what they did, as ``obj 3-1``."""
        return self._list(KEPT)

    @property
    def lost(self) -> tuple[str, ...]:
        """The heads that do not, as ``obj 3-1``."""
        return self._list(LOST)

    @property
    def undecided(self) -> tuple[str, ...]:
        """The heads of which the texts do not tell."""
        return self._list(UNDECIDED)

    def _list(self, verdict: str) -> tuple[str, ...]:
        frame = make_check_frame(self.table)
        chosen = frame[frame["verdict"] == verdict]
        return tuple(f"{label} {name}" for label, name in zip(chosen["row"], chosen["name"], strict=True))


@shows_progress
def check(
    new: Loadable | xr.Dataset,
    against: str | Path | xr.Dataset,
    *,
    out: str | Path | None = None,
    tolerance: float = TOLERANCE,
    every: bool = False,
    corpus: str | Path | Iterable[Any] | None = None,
    format: str | None = None,
    patterns: str | Path | None = None,
    reducers: str | Reducer | Sequence[str | Reducer] = (),
    device: str = "cpu",
    batch_tokens: int | None = None,
    trust_remote_code: bool = False,
    progress: Progress | bool | None = None,
) -> CheckResult:
    """Whether the heads of a model that was quantised, merged, exported or tuned still do what an atlas reports.

    Args:
        new: the model: a hub id, a folder, a ``.gguf`` file, ``minilm`` or ``smollm2`` (`headscope.load`), or a loaded
            model; or what was measured of it on the same corpus: the folder of an atlas, a head table or its file.
        against: the old model: the folder of an atlas, a head table or its file.
        out: the folder for ``check.json`` and ``check.csv``. Default: none; the result is returned only.
        tolerance: the loss of a score that still counts as none, such as 0.05.
        every: check all reported heads. Default: those that stand out.
        corpus: where the corpus is now. Default: where it was when `against` was measured.
        format: of the corpus. Default: as it was; where the table does not say, detected.
        patterns: the file of the patterns that were added to the corpus. Default: as it was.
        reducers: your own, with which `against` was measured, as ``module:Reducer`` or objects. Default: built-in ones
            only; code that a table names is never run unasked.
        device: where to run the model; a loaded model stays where it is.
        batch_tokens: tokens in a batch, padding included.
        trust_remote_code: run the Python code of the model's repository.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: in one sentence, what was wrong with a table, the corpus, the model or the folder; all but what
            is wrong inside a model is said before it runs.
    """
    progress = progress if callable(progress) else ignore_progress
    check_tolerance(tolerance)
    old, table = open_against(against, every=every), open_new(new)
    with nullcontext() if out is None else OutputFolder("the check", Path(out), "check.json", ()) as folder:
        if table is None:
            assert not isinstance(new, xr.Dataset)
            progress("reading the corpus", 0, 0)
            documents, call = open_corpus(old, corpus, format, patterns)
            summary = summarize(documents)
            wanted = list_checked_scores(old, every=every)
            chosen = _choose_reducers(wanted, call, list_reducers(reducers), summary, name_table(old, "the old table"))
            progress("loading the model", 0, 0)
            # A loss is compared with the same one, as recorded, whatever head the new weights would have by themselves.
            head = find_head(None, chosen, call.view)
            head = None if head is None else str(old.attrs.get("loss", head))
            model = load(new, device=device, trust_remote_code=trust_remote_code, task=head)
            plan = make_plan(
                call.max_tokens, call.cut, call.pair_tokens, batch_tokens or call.batch_tokens, call.view
            )  # fmt: skip
            _refuse_other_model(model, documents, chosen, plan, old, summary)
            table = measure(
                model, documents, chosen, plan=plan, summary=summary,
                progress=lambda done, total: progress(f"measuring {name_model(model.name)}", done, total),
            )  # fmt: skip
        checked = check_heads(old, table, tolerance=tolerance, every=every).assign_attrs(_describe(old, table))
        if folder is None:
            return CheckResult(checked)
        frame = make_check_frame(checked)
        about = {**checked.attrs, "heads": [_drop_unknown(row) for row in frame.to_dict("records")]}
        files = folder.write(lambda fresh: write_csv(frame, fresh / "check.csv"), about)
    return CheckResult(checked, folder.path, files)


def _choose_reducers(
    scores: Sequence[Score], call: RecordedCall, own: Sequence[str | Reducer], summary: CorpusSummary, name: str
) -> list[Reducer]:
    """The reducers that have these scores, for this corpus, without permutations; a user's own before built-in ones.

    Raises:
        HeadscopeError: the call names a reducer of a user's own, and none was given; or no reducer that is known has
            one of the scores.
    """
    named = [reducer for reducer in call.reducers if ":" in reducer and "(" not in reducer]
    if named and not own:
        raise HeadscopeError(
            f"{name} was measured with the reducer {named[0]!r} of your own, and code that a table names is not run "
            f"unasked; add --reducer {named[0]}."
        )
    wanted = {score.variable for score in scores}
    chosen: dict[str, Reducer] = {}
    for reducer in _resolve(own, summary):
        variables = {score.variable for score in declared_scores(reducer)}
        if wanted & variables and reducer.name not in chosen:
            chosen[reducer.name] = with_permutations(reducer, 0)
            wanted -= variables
    if wanted:
        raise HeadscopeError(
            f"no built-in reducer has the score {min(wanted)} of {name}; name your own with --reducer, such as "
            "repetition:Repetition."
        )
    return [*chosen.values()]


def _resolve(own: Sequence[str | Reducer], summary: CorpusSummary) -> Iterator[Reducer]:
    yield from resolve_reducers(own, summary) if own else ()
    for kind in REDUCERS.values():
        if kind.supports(summary):
            yield kind.for_corpus(summary)


def _refuse_other_model(
    model: Model, documents: Corpus, reducers: Sequence[Reducer], plan: Plan, old: xr.Dataset, summary: CorpusSummary
) -> None:
    """Refuse a model of another shape than that of a table, or one that reads the corpus as other tokens.

    Raises:
        ModelError: it is one.
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
    if NOT_FINITE in old.attrs["skipped"]:  # how many tokens these had is not known
        return
    read = count_read(model, documents, reducers, plan, summary)
    for what in ("documents", "tokens"):
        if read[what] != int(old.attrs[what]):
            raise ModelError(
                f"{model.name!r} reads the corpus as {read[what]:,} {what}, and the model of {name} as "
                f"{int(old.attrs[what]):,}; give a model with the same tokenizer."
            )


def _describe(old: xr.Dataset, new: xr.Dataset) -> dict[str, Any]:
    """Where the two tables came from."""
    about = {"corpus": str(old.attrs["corpus"]), "corpus_sha256": str(old.attrs["corpus_sha256"])}
    for side, table in (("old", old), ("new", new)):
        about |= {f"{side}_{key}": str(table.attrs[key]) for key in ("model", "weights_sha256")}
        about |= {f"{side}_{EDITED}": str(table.attrs[EDITED])} if EDITED in table.attrs else {}
    return about | {"created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}


def _drop_unknown(row: dict[Any, Any]) -> dict[str, Any]:
    """A row for JSON, which has no NaN."""
    return {str(key): None if value != value else value for key, value in row.items()}
