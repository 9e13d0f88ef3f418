"""The requests of `headscope study`: for a model, and for scores that were recorded elsewhere."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.model_options import LOADED_MODEL, MODELS, BatchOptions, RunOptions, check_model
from headscope.commands.option import CORPUS, MEASURED, MODEL, TRAINING, argument, option, output_folder, table_option
from headscope.commands.option_groups import LanguageOptions, TrainingOptions
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.progress import Progress, ignore_progress
from headscope.commands.record import HeadTable, Request
from headscope.commands.study.study_result import RecordedResult, StudyResult
from headscope.errors import HeadscopeError
from headscope.studies.study_names import check_name

if TYPE_CHECKING:
    from headscope.capture.open.loading import Loadable
    from headscope.commands.evaluations import EvaluationSource
    from headscope.corpora import Corpus
    from headscope.studies.study import Study as Paper
    from headscope.studies.tuning import TuningOptions, TuningPlan

PROBE_TABLE = "probe"
"""The name of the table of a study that comes from `headscope probe`."""


class Study(
    RunOptions,
    BatchOptions,
    TrainingOptions,
    LanguageOptions,
    Drawing,
    Resumable,
    Request[StudyResult],
    function="study",
):
    """Measure what a paper measured, and write its results and yours side by side.

    The folder holds STUDY.md (read this), STUDY.csv, a head table for each corpus (netCDF) and STUDY.json;
    with `seeds` also the tuned models, in runs/.

    Returns:
        The verdict on each claim, and the head tables.
    """

    usage = ("headscope study clark2019 --data corpora -o clark2019",)
    example = (
        'result = headscope.study("clark2019", "minilm", "corpora", "clark2019")',
        "[finding.verdict for finding in result.findings]",
    )
    name: str = argument("STUDY", "Name of the study, such as clark2019 (`headscope list studies`).", kw_only=False)
    model: "Loadable" = option(
        MODEL,
        MODELS,
        default="minilm",
        kw_only=False,
        metavar="MODEL",
        typed=str,
        python=LOADED_MODEL,
        basic=True,
    )
    data: str | Path = option(
        CORPUS,
        "Folder that holds the corpora, such as corpora.",
        default=".",
        kw_only=False,
        unset="the current folder",
        metavar="FOLDER",
        envvar="HEADSCOPE_DATA",
        basic=True,
    )
    out: str | Path | None = output_folder("clark", "headscope-study", default=None, kw_only=False)
    corpora: Mapping[str, str | Path | Iterable[Any]] | None = option(
        CORPUS,
        "Another corpus for one table of the study, such as treebank=wsj.conllu; may be repeated, for other tables.",
        "--corpus",
        default=None,
        form="TABLE=PATH",
        typed=str,
        python="A corpus is a file, a folder or texts in memory.",
        basic=True,
    )
    seed: int = option(CORPUS, "Random seed for sampling documents, such as 7.", default=0)
    seeds: int | None = option(
        TRAINING,
        "Number of fine-tuning runs on the study's task, and on its control, such as 10.",
        default=None,
        at_least=1,
    )
    task: str = option(
        TRAINING, "Task to fine-tune on, such as rte.", default="", unset="the first of the study", metavar="NAME"
    )
    epochs: int | None = option(
        TRAINING, "Passes over the training examples, such as 8.", default=None, unset="those of the paper", at_least=1
    )
    learning_rate: float | None = option(
        TRAINING,
        "Learning rate at the first step; a small model may need a larger one, such as 3e-4.",
        default=None,
        unset="that of the paper",
        metavar="RATE",
    )
    runs: str | Path | None = option(
        TRAINING,
        "Folder of runs that `headscope tune --control` wrote, such as headscope-runs, to measure instead of new ones.",
        default=None,
        metavar="FOLDER",
    )
    probe: "str | Path | HeadTable | None" = table_option(
        MEASURED,
        "Folder that `headscope probe` wrote of `model`, such as headscope-probe, for claims about probes.",
        default=None,
        metavar="FOLDER",
    )
    limits: Mapping[str, int] | None = option(
        CORPUS,
        "Number of examples on which sets of heads are disabled, such as blimp=20 (pairs of each paradigm) or "
        "last_words=300 (texts, at random); may be repeated, for other tables.",
        "--limit",
        default=None,
        unset="all",
        form="TABLE=N",
        typed=int,
    )

    @property
    def contents(self) -> Contents:
        """The files of the folder."""
        paper = self.paper
        repeated = paper.tuning.measured if paper.tuning else ()
        tables = (
            *paper.measurements,
            *(f"{table}_gradients" for table, measurement in paper.measurements.items() if measurement.loss),
            *(f"{table}_{group}" for table in repeated for group in ("task", "control")),
            *(f"{table}_{match}" for table in paper.lesions for match in ("layer", "size")),
        )
        return Contents("the study", f"{self.name}.json", tables)

    @cached_property
    def paper(self) -> "Paper":
        """The study: the measurements and claims of the paper."""
        from headscope.studies import STUDIES

        return STUDIES[self.name]

    @cached_property
    def corpora_of_tables(self) -> "dict[str, Path | Corpus]":
        """The corpora that the user gives, by the name of the measurement."""
        from headscope.corpora import read

        return {
            table: Path(corpus).expanduser() if isinstance(corpus, str | Path) else read(corpus)
            for table, corpus in (self.corpora or {}).items()
        }

    @cached_property
    def tuning_options(self) -> "TuningOptions":
        """The options for fine-tuning."""
        from headscope.studies.tuning import TuningOptions

        given = {each.name: getattr(self, each.name) for each in fields(TuningOptions)}
        return TuningOptions(**{**given, "runs": None if self.runs is None else Path(self.runs)})

    @cached_property
    def tuning(self) -> "TuningPlan | None":
        """The plan of the fine-tuning; None without `seeds` and `runs`."""
        from headscope.studies.tuning import plan_tuning

        folder = Path(self.data).expanduser()
        return plan_tuning(self.name, self.paper, self.tuning_options, folder, self.corpora_of_tables)

    @cached_property
    def paths(self) -> "dict[str, Path | Corpus]":
        """The corpora of all measurements and lesions, by name; for lesions, `evaluations` reads them."""
        from headscope.studies.locate import locate

        return locate(self.paper, Path(self.data).expanduser(), self.corpora_of_tables)

    @cached_property
    def evaluations(self) -> "dict[str, EvaluationSource]":
        """The examples on which sets of heads are disabled, by the name of the table of lesions."""
        from headscope.commands.evaluations import find_evaluation

        return {
            table: find_evaluation(
                f"{lesions.task}{self.paths[table]}", limit=(self.limits or {}).get(table), seed=self.seed
            )
            for table, lesions in self.paper.lesions.items()
        }

    @cached_property
    def probes(self) -> "HeadTable | None":
        """The table of probes; None if none is given."""
        if self.probe is None:
            return None
        from headscope.commands.tables import open_probes  # it takes time to import

        return open_probes(self.probe)

    def check(self, progress: Progress) -> None:
        """Raise an error for a study, a model, a folder, corpora, options, probes or limits that cannot be used."""
        check_name(self.name)
        check_model(self.model)
        check_folder(self)
        progress("loading matplotlib", 0, 0)
        from headscope.corpora import read

        self._check_probes()
        self._check_lesions()
        _ = self.tuning, self.evaluations, self.probes
        for table, corpus in self.paths.items():
            if table not in self.paper.lesions and isinstance(corpus, Path):
                read(corpus)

    def _check_probes(self) -> None:
        if self.probe is not None and not any(PROBE_TABLE in claim.on for claim in self.paper.claims):
            raise HeadscopeError(f"the study {self.name} says nothing of probes; leave out `probe`.")

    def _check_lesions(self) -> None:
        lesions = self.paper.lesions
        if (self.limits or self.start is not None) and not lesions:
            name = "`limits`" if self.limits else "`start`"
            raise HeadscopeError(f"the study {self.name} disables no sets of heads; leave out {name}.")
        for table, limit in (self.limits or {}).items():
            if table not in lesions:
                known = " or ".join(lesions)
                raise HeadscopeError(f"the study {self.name} has no lesions {table!r} to limit; name {known}.")
            if limit < 2:
                raise HeadscopeError(f"{limit} examples say nothing about heads; take 2 or more of {table}.")
        for table in lesions:
            if not isinstance(self.corpora_of_tables.get(table, Path()), Path):
                raise HeadscopeError(f"the examples of {table} are read from a file or folder; name one.")


class StudyRecorded(
    Drawing,
    Request[RecordedResult],
    function="study_recorded",
    module="recorded_scores",
    loading="loading matplotlib",
):
    """Make a paper's tables, tests and figures from recorded scores of heads.

    The folder holds STUDY.md (read this), STUDY.csv, and for each model a folder of tables.

    Returns:
        The tables and the verdicts on claims, by model.
    """

    example = ('result = headscope.study_recorded("zhao2020", "scores", "zhao2020")', "result.tables")

    name: str = argument("STUDY", "Name of the study, such as zhao2020.", kw_only=False)
    recorded: str | Path = argument(
        "FOLDER", "Folder of recorded scores, with one .npz file for each model.", kw_only=False
    )
    out: str | Path | None = output_folder("recorded", "headscope-study", default=None, kw_only=False)

    @property
    def contents(self) -> Contents:
        """The files of the folder."""
        return Contents("the study", f"{self.name}.json")

    def check(self, progress: Progress) -> None:
        """Raise an error for an unknown study, or for one without a layout of recorded scores."""
        check_name(self.name)
        check_folder(self)
        progress("loading matplotlib", 0, 0)
        from headscope.studies import STUDIES

        if STUDIES[self.name].recording is None:
            known = ", ".join(other for other, study in STUDIES.items() if study.recording is not None)
            raise HeadscopeError(
                f"there is no layout of recorded scores for the study {self.name}; there is one for {known}."
            )


class TypedStudy(Study, Listing, command="study", printer="show"):
    """With `recorded`, the results are those of scores that were recorded elsewhere, and no weights are needed."""

    recorded: str | Path | None = option(
        MODEL,
        "Folder of recorded scores (.npz), such as scores, to use instead of a model; no weights are needed.",
        default=None,
        metavar="FOLDER",
    )

    def run(self, progress: Progress = ignore_progress) -> Any:
        """Run the study; with `recorded`, run the study of recorded scores."""
        if self.recorded is None:
            return super().run(progress)
        if self.seeds is not None or self.runs is not None:
            other = "`seeds`" if self.runs is None else "`runs`"
            raise HeadscopeError(f"recorded scores need no fine-tuning; give `recorded` or {other}, not both.")
        drawing = {each.name: getattr(self, each.name) for each in fields(Drawing)}
        return StudyRecorded(self.name, self.recorded, self.out, **drawing).run(progress)


study = make_function(Study)
study_recorded = make_function(StudyRecorded)
