"""The requests of `headscope patterns`: for classifying attention maps, and for labelling some by eye."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.model_options import LoadOptions, ModelOptions
from headscope.commands.option import CORPUS, LABELLING, MEASURED, MODEL, OUTPUT, argument, option, output_folder
from headscope.commands.option_groups import CorpusFormat, CorpusPart, PairLength, ShortTexts, TaskData, TextForm
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Options, Request
from headscope.errors import CorpusError, HeadscopeError

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.runs import Runs

TABLE, RUNS = "patterns", "runs"
"""The names of the head tables in the folder: of the model, and of the runs that were tuned from it."""

MAPS = "maps.csv"
"""The file that marks a folder as a folder of maps to label."""


class TextOptions(CorpusFormat, CorpusPart, TextForm, TaskData):
    """The options for the texts whose maps are used: the texts of a corpus, or the test texts of a task."""

    corpus: str | Path | Iterable[Any] = argument(
        "CORPUS",
        "Task such as mrpc, of which the test texts are read (`headscope list tasks`); file or folder, such as "
        "en_ewt-ud-dev.conllu (`headscope list corpora`); or grammar:COUNT.",
        kw_only=False,
        typed=str,
        python="Or texts in memory, as `headscope.read` takes them.",
    )
    sample: int | None = option(
        CORPUS,
        "Take N documents at random, such as 300; all of a corpus that has no more.",
        default=1000,
        at_least=1,
        python="None takes all.",
        basic=True,
    )
    seed: int = option(CORPUS, "Random seed of `sample`, of the choice of maps and of training, such as 7.", default=0)

    @cached_property
    def documents(self) -> "Corpus":
        """The texts.

        Raises:
            HeadscopeError: The corpus or the task cannot be read, or the task has words with tags and no texts.
        """
        from headscope.corpora import read
        from headscope.learn.task import TEST
        from headscope.learn.tasks import TASKS, read_task

        if not (isinstance(self.corpus, str) and self.corpus in TASKS):
            return read(self.corpus, format=self.format, **self.selection)
        examples = read_task(self.corpus, self.data).splits[TEST]
        documents = [each.to_document() for each in examples if each.texts and all(map(str.split, each.texts))]
        if not documents:
            raise CorpusError(
                f"the task {self.corpus} has words with tags and no texts; give its corpus and not its name."
            )
        return replace(read(documents, **self.selection), name=self.corpus)


class LabellingOptions(Options):
    """The options for the maps that are labelled by eye."""

    maps: int = option(
        LABELLING, "Maps to label, such as 288; as many of each head.", default=144, at_least=1, recorded=False
    )
    second: int = option(
        LABELLING,
        "Number of labelled maps to label a second time, such as 100, without seeing the first label.",
        default=0,
        at_least=0,
        recorded=False,
    )


class Patterns(
    TextOptions, ShortTexts, PairLength, ModelOptions, Drawing, Resumable, Request[HeadTable], function="patterns"
):
    """Classify the attention maps of each head: vertical, diagonal, both, blocks or none of these.

    The folder holds patterns.csv, with the share of each pattern in the maps of each head; and patterns.nc, a head
    table; of runs also runs.nc and runs.csv, and of labels classifier.safetensors and validation.csv. Of a
    decoder the table also says how much of its maps sparse shapes keep.

    Returns:
        The head table that is in ``patterns.nc``, with ``pattern_share`` over layer, head and pattern.
    """

    contents = Contents("the patterns", "patterns.json", (TABLE, RUNS), ("patterns.csv",))
    usage = (
        "headscope patterns minilm grammar:300 -o patterns",
        "headscope patterns minilm mrpc --data corpora --annotate my-maps",
        "headscope patterns minilm mrpc --data corpora --labels my-maps -o patterns",
    )
    example = (
        'table = headscope.patterns("minilm", "grammar:40", sample=20)',
        'table["pattern_share"].sel(layer=3, head=1)',
    )
    out: str | Path | None = output_folder("patterns", "headscope-patterns", default=None, kw_only=False)
    runs: "str | Path | Runs | None" = option(
        MODEL,
        "Folder of runs that were tuned from `model`, such as headscope-runs: their maps are classified too.",
        default=None,
        metavar="FOLDER",
        typed=Path,
    )
    labels: Sequence[str | Path] = option(
        MEASURED,
        "Folder of maps that you labelled, such as my-maps: the classifier is trained on generated maps and on them; "
        "may be repeated.",
        default=(),
        unset="the classifier that comes with headscope",
        metavar="FOLDER",
        typed=Path,
        several=True,
        python="`headscope.label_maps` makes one.",
        basic=True,
    )
    classifier: str | Path | None = option(
        MEASURED,
        "File that an earlier call with `labels` wrote, such as classifier.safetensors.",
        default=None,
        metavar="FILE",
    )

    @cached_property
    def tuned(self) -> "Runs | None":
        """The runs whose maps are classified too; None if no folder of runs is named.

        Raises:
            HeadscopeError: The folder holds no runs.
        """
        from headscope.runs import read

        return None if self.runs is None else read(self.runs)

    def check(self, progress: Progress) -> None:
        """Raise an error for labels, a classifier, a model, runs, a folder or a corpus that cannot be used."""
        self.check_classifier()
        self.check_model()
        _ = self.tuned
        check_folder(self)
        progress("reading the corpus", 0, 0)
        _ = self.documents

    def check_classifier(self) -> None:
        """Raise an error for a folder of labels without maps, a missing classifier, or both options at once.

        Raises:
            HeadscopeError: One of these is the case.
        """
        if self.labels and self.classifier is not None:
            raise HeadscopeError("`labels` train a classifier, and `classifier` is another; leave out one of the two.")
        for folder in self.labels:
            if not (Path(folder).expanduser() / MAPS).is_file():
                raise HeadscopeError(
                    f"{folder} is no folder of labelled maps; make one with `headscope patterns --annotate FOLDER`."
                )
        if self.classifier is not None and not Path(self.classifier).expanduser().is_file():
            raise HeadscopeError(
                f"there is no file {self.classifier}; give the classifier.safetensors that `labels` made."
            )


class LabelMaps(LabellingOptions, TextOptions, LoadOptions, Request[str], function="label_maps", module="labelling"):
    """Label attention maps on a local page, and say how many are labelled; each key is saved at once.

    Maps are chosen at random, as many of each head, and no two of one text. The page does not say of which head a map
    is. A folder that has maps already is gone on with, and the model is not loaded.
    """

    example = ('headscope.label_maps("minilm", "grammar:40", "my-maps", maps=36)',)

    folder: str | Path = option(
        OUTPUT,
        "Folder for the maps (maps.npz, maps.csv) and labels.csv, such as my-maps.",
        kw_only=False,
        recorded=False,
    )
    ready: Callable[[str], None] = option(
        OUTPUT,
        "Function that is called with the address of the page.",
        default=print,
        unset="print",
        typed=str,
        recorded=False,
    )

    @cached_property
    def place(self) -> Path:
        """The folder of maps, with ``~`` replaced by the user's home folder."""
        return Path(self.folder).expanduser()

    @property
    def is_prepared(self) -> bool:
        """Whether the folder already has maps to label."""
        return (self.place / MAPS).exists()

    def check(self, progress: Progress) -> None:
        """Raise an error for a path without a model or, if there are no maps yet, a corpus that cannot be read."""
        self.check_model()
        if not self.is_prepared:
            progress("reading the corpus", 0, 0)
            _ = self.documents


class TypedPatterns(Patterns, LabellingOptions, Listing, command="patterns", printer="show"):
    """With `annotate`, a local page is opened instead, on which maps are labelled by eye."""

    annotate: Path | None = option(
        LABELLING,
        "Folder of maps to label, such as my-maps: a local page shows one map after the other, and each key is saved "
        "at once; call again to go on. Nothing else is done.",
        default=None,
        metavar="FOLDER",
        recorded=False,
        basic=True,
    )

    @cached_property
    def labelling(self) -> LabelMaps | None:
        """The request to label maps; None without `annotate`."""
        if self.annotate is None:
            return None
        shared = (LabelMaps.options.keys() & self.options.keys()) - {"folder"}
        return LabelMaps(folder=self.annotate, **{name: getattr(self, name) for name in shared})

    def check(self, progress: Progress) -> None:
        """Raise an error for inputs with which maps cannot be classified or, with `annotate`, labelled."""
        if self.labelling is None:
            Patterns.check(self, progress)
        else:
            self.check_classifier()
            self.labelling.check(progress)


label_maps = make_function(LabelMaps)
patterns = make_function(Patterns)
