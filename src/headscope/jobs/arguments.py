"""The arguments of a job, checked before anything is imported that takes seconds. No torch here.

A command calls these before it imports its job. The jobs call them first of all too, or what they call, so that a
script gets the same sentences before anything is read or loaded. What a function returns, a command hands to its job,
so that it is not read twice.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.capture import names as model_names
from headscope.capture.views import check_view as check_view
from headscope.corpora import patterns as pattern_files
from headscope.corpora import read
from headscope.errors import HeadscopeError, TableError
from headscope.files import writable
from headscope.learn import tasks
from headscope.learn.choices import DEPENDENCY, KINDS
from headscope.learn.settings import LEAST_TOKENS, Settings, check_seeds
from headscope.learn.tasks import read_task as read_task
from headscope.reducers import names as reducer_names
from headscope.runs import CONTROL, Runs
from headscope.runs import read as read_runs

if TYPE_CHECKING:
    import xarray as xr

WAYS = ("uniform", "zero", "mean", "resample")
"""What can take the place of a disabled head's output."""

DECODING = ("word", "tree")
"""How a probe's choices are decoded."""

PROBE_PARTS = ("untrained", "control", "code-length", "structural")
"""Parts of `headscope probe` that can be left out."""

FIGURES = ("reported", "all", "none")
"""Of which rows an atlas has heatmaps."""


def check_model(model: object) -> None:
    """Refuse a path at which there is no folder, as `headscope.load` would.

    Args:
        model: a name or path; a loaded model is not looked at.

    Raises:
        ModelError: it begins as no hub id does, and there is no such folder.
    """
    if isinstance(model, str | Path):
        model_names.check_name(str(model))


def is_adapter(model: object) -> bool:
    """True for a model with an adapter, which can be compared with the model without it.

    Raises:
        ModelError: the folder of an adapter does not say which model it was trained for.
    """
    return bool(
        model_names.find_base(str(model)) if isinstance(model, str | Path) else getattr(model, "adapter_of", "")
    )


def check_head(task: str | None, runs: object) -> None:
    """Refuse a task head that there is not, or that runs are not to have.

    Raises:
        HeadscopeError: no model can be loaded for the task, or there are runs, which have the head of theirs.
    """
    if task is None:
        return
    model_names.check_task(task)
    if runs is not None:
        raise HeadscopeError("runs have the head of the task that they were tuned on; leave out --task.")


def check_reducers(reducers: object) -> None:
    """Refuse the name of a reducer that there is not.

    Args:
        reducers: a name, or several names and reducers; what is no name is not looked at.

    Raises:
        HeadscopeError: a name is neither one of a built-in reducer nor of the form ``module:Reducer``.
    """
    named = [reducers] if isinstance(reducers, str) or not isinstance(reducers, Iterable) else reducers
    for reducer in named:
        if isinstance(reducer, str):
            reducer_names.check_name(reducer)


def check_corpora(*corpora: str | Path | None, patterns: str | Path | None = None, **settings: Any) -> None:
    """Refuse a corpus or a file of patterns that `headscope.read` would refuse; None is none.

    Args:
        corpora: files or folders, or the name of the generated one.
        patterns: a file of patterns. What spaCy says of them is left to the job, since spaCy takes seconds.
        settings: what else `headscope.read` takes.

    Raises:
        CorpusError: there is no such file, folder or format, the patterns are malformed, or no such part of a corpus
            can be taken.
    """
    for corpus in corpora:
        if corpus is not None:
            read(corpus, **settings)
    if patterns is not None:
        pattern_files.check(patterns)


def open_runs(runs: str | Path | Runs | None, replicate: object) -> Runs | None:
    """The runs to measure, or None if the model itself is to be measured.

    Args:
        runs: the folder of the runs, or what was read from it.
        replicate: the corpus to replicate on, if there is one.

    Raises:
        HeadscopeError: the folder holds no runs, or there is a corpus to replicate on as well.
    """
    if runs is None:
        return None
    if replicate is not None:
        raise HeadscopeError(
            "the heads of runs are not replicated, only those of one model; measure the runs on each corpus, and leave "
            "out --replicate."
        )
    return runs if isinstance(runs, Runs) else read_runs(runs)


def open_effects(effects: "str | Path | xr.Dataset | None") -> "xr.Dataset | None":
    """The effects of disabling heads, or None if there are none.

    Args:
        effects: the folder that `headscope disable` wrote, its ``effects.nc``, or the table itself.

    Raises:
        TableError: there is no such table, it is damaged, or it does not tell which heads are needed.
    """
    if effects is None:
        return None
    # Tables are read with xarray, which takes half a second.
    from headscope.analyse.need import check_effects
    from headscope.heads import read_table

    if not isinstance(effects, str | Path):
        return check_effects(effects, "the table of effects")
    path = Path(effects).expanduser()
    path = path / "effects.nc" if path.is_dir() else path
    if not path.is_file():
        raise TableError(f"there is no file {path}; effects are written by `headscope disable`, into the folder -o.")
    return check_effects(read_table(path), str(path))


def open_probes(probes: "str | Path | xr.Dataset | None") -> "xr.Dataset | None":
    """The table of probes, or None if there is none.

    Args:
        probes: the folder that `headscope probe` wrote, its ``probe.nc``, or the table itself.

    Raises:
        TableError: there is no such table, or it is none of probes.
    """
    if probes is None:
        return None
    # Tables are read with xarray, which takes half a second.
    from headscope.heads import read_table

    if isinstance(probes, str | Path):
        path = Path(probes).expanduser()
        path = path / "probe.nc" if path.is_dir() else path
        if not path.is_file():
            raise TableError(f"there is no file {path}; probes are written by `headscope probe`, into the folder -o.")
        probes = read_table(path)
    if "probe_accuracy" not in probes:
        raise TableError("the table given as probes has no accuracies of probes; give one of `headscope probe`.")
    return probes


def check_views(views: Sequence[str]) -> None:
    """Refuse views that there are not, or one that is named twice.

    Raises:
        HeadscopeError: a name is none of `headscope.capture.views.VIEWS`, or stands there twice.
    """
    for view in views:
        check_view(view)
    if len(set(views)) < len(views):
        raise HeadscopeError(f"of the views {', '.join(views)} one is named twice; name each once.")


def check_task(name: str) -> None:
    """Refuse a task that there is not; its corpus is looked at by `read_task`.

    Raises:
        HeadscopeError: it is the name of no task, no set of the library `datasets`, and no file or folder.
    """
    tasks.check_name(name)


def check_training(seeds: int | Iterable[int], **settings: Any) -> None:
    """Refuse seeds and settings with which nothing can be trained.

    Args:
        seeds: how many runs, or the seeds of the runs.
        settings: the fields of `headscope.learn.settings.Settings`.

    Raises:
        HeadscopeError: nothing can be trained with a value.
    """
    Settings(**settings)
    if not isinstance(seeds, int):
        check_seeds([*seeds])


def check_disabling(
    ways: Iterable[str],
    placebos: int,
    top: int | None,
    pairs: int,
    max_tokens: int | None = None,
    runs: Runs | None = None,
) -> None:
    """Refuse ways to disable heads that there are not, and numbers of placebos or heads that say nothing.

    Raises:
        HeadscopeError: there is no such way, none or one twice; a number is too small; or heads are to be chosen by
            what disabling them changes, which differs from run to run.
    """
    named = [*ways]
    for how in named:
        if how not in WAYS:
            raise HeadscopeError(f"heads cannot be disabled by {how!r}; name one or more of {', '.join(WAYS)}.")
    if len(set(named)) < max(1, len(named)):
        raise HeadscopeError("no way to disable heads is named, or one is named twice; name each once.")
    if placebos < 0 or placebos == 1:
        raise HeadscopeError(f"{placebos} placebos do not show how placebos differ; give 2 or more, or 0 for none.")
    if top is not None and top < 2:
        raise HeadscopeError(f"on {top} heads no estimate can be checked; give 2 or more as the number of top heads.")
    if pairs < 0 or pairs == 1:
        raise HeadscopeError(f"{pairs} heads make no pair; give 2 or more, or 0 for no pairs.")
    if runs is not None and (top is not None or pairs):
        raise HeadscopeError(
            "the top heads and pairs are chosen by their effects, which differ from run to run; with runs name the "
            "heads (--heads), or disable all."
        )
    if max_tokens is not None and max_tokens < LEAST_TOKENS:
        raise HeadscopeError(f"{max_tokens} tokens leave no room for an example; give {LEAST_TOKENS} or more.")


def check_probing(links: str | None, seeds: int, decode: str, rank: int, without: Iterable[str] = ()) -> None:
    """Refuse links that no probe finds, and numbers with which none can be trained.

    Raises:
        HeadscopeError: there is no such kind of links, way to decode or part to leave out, there are no seeds, or the
            rank is below 1.
    """
    for part in without:
        if part not in PROBE_PARTS:
            raise HeadscopeError(f"probes have no part {part!r} to leave out; name one of {', '.join(PROBE_PARTS)}.")
    if links is not None and links not in KINDS:
        raise HeadscopeError(f"there are no links of the kind {links!r}; name one of {', '.join(KINDS)}.")
    if decode not in DECODING:
        raise HeadscopeError(f"choices cannot be decoded by {decode!r}; name one of {', '.join(DECODING)}.")
    if decode == "tree" and links not in (None, DEPENDENCY):
        raise HeadscopeError(f"links of the kind {links} form no tree; leave out decode, or choose {DEPENDENCY} links.")
    if seeds < 1:
        raise HeadscopeError(f"probes cannot be trained with {seeds} seeds; give 1 or more.")
    if rank < 1:
        raise HeadscopeError(f"the structural probe cannot have the rank {rank}; give 1 or more.")


def check_figures(figures: str) -> None:
    """Refuse a choice of figures that there is not.

    Raises:
        HeadscopeError: it is none of `FIGURES`.
    """
    if figures not in FIGURES:
        raise HeadscopeError(f"there is no choice of figures {figures!r}; name one of {', '.join(FIGURES)}.")


def check_map_documents(count: int) -> None:
    """Refuse a number of documents that cannot be taken.

    Raises:
        HeadscopeError: it is negative.
    """
    if count < 0:
        raise HeadscopeError(f"a map of heads of {count} documents was asked for; ask for 0 (no map) or more.")


def check_other_tables(control: object, other_before: object, other_after: object, other_control: object) -> None:
    """Refuse tables of another corpus that have no counterpart; None is none.

    Raises:
        HeadscopeError: one of the tables before and after is missing, or a control is given for the other corpus alone.
    """
    if (other_before is None) != (other_after is None) or (other_control is not None and other_before is None):
        raise HeadscopeError("--other-before and --other-after go together, and --other-control goes with both.")
    if other_control is not None and control is None:
        raise HeadscopeError("--other-control is the control on another corpus; give it on this one too, as --control.")


def read_tables(**paths: Path | None) -> dict[str, Any]:
    """The head tables in some files, by the arguments that name them; None stays None.

    Raises:
        TableError: a file is not there or is no head table.
    """
    from headscope.heads import read_table

    return {name: path and read_table(path) for name, path in paths.items()}


def check_output_file(out: Path) -> None:
    """Refuse a place at which no file can be written.

    Raises:
        HeadscopeError: it is a folder or a device, or its folder cannot be written to.
    """
    writable(out)


def check_output_folder(out: Path, content: str, manifest: str) -> None:
    """Refuse a folder that a job cannot fill.

    Args:
        out: the folder.
        content: what the job writes to it, as `headscope.jobs.folder.OutputFolder` has it.
        manifest: the name of the file that lists the others.

    Raises:
        HeadscopeError: it is a file, cannot be written to, or holds another file of the name of the manifest.
    """
    from headscope.jobs.folder import OutputFolder

    OutputFolder(content, out, manifest, ()).check()


def check_runs_folder(out: Path, *, control: bool, resume: bool) -> None:
    """Refuse a folder in which no runs can be tuned.

    Raises:
        HeadscopeError: it is a file, cannot be written to, or holds runs, and `resume` does not ask to go on with them;
            or that of the control in it does.
    """
    from headscope.learn.folder import check_folder

    for folder in (out, out / CONTROL) if control else (out,):
        check_folder(folder, resume)
