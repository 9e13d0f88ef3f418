"""A paper as data: its measurements and its claims, which `headscope.studies.findings` judges."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.errors import HeadscopeError
from headscope.text_forms import SPACED

SIGNIFICANT = 0.05
"""A p-value below this is significant; any other decides nothing, neither an effect nor that there is none."""

RECORDED = "recorded"
"""The attribute of tables made from recorded scores that names their file."""


class NotMeasuredError(HeadscopeError):
    """A head table lacks what a claim needs; the message completes "not measured: ..."."""


@dataclass(frozen=True)
class Value:
    """A value, as a paper prints it or as a head table gives it.

    Attributes:
        number: NaN where a paper gives a direction and no number.
        detail: its head, offset, layers or runs, such as ``8-11``.
        lower, upper: the 95 % interval; NaN where there is none.
        p: the p-value of the number being 0; NaN where this is not tested.
        held_out: the value of the head (or offset) that was chosen on one half of the texts, scored on the other.
    """

    number: float
    detail: str = ""
    lower: float = math.nan
    upper: float = math.nan
    p: float = math.nan
    held_out: "Value | None" = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the number itself where there is none."""
        return (self.number, self.number) if math.isnan(self.lower) else (self.lower, self.upper)

    @property
    def best_known(self) -> "Value":
        """The held-out value where there is one: the head was not chosen on what it is scored on."""
        return self.held_out or self


Extractor = Callable[..., Value]
"""Takes the tables that a claim is about, in their order, and returns a value; raises `NotMeasuredError`."""


@dataclass(frozen=True)
class Pattern:
    """A relation that a claim states for any model: an effect, with its sign, is above one bound and below another.

    Attributes:
        says: the relation in words.
        above, below: bounds, or extractors that read them from the tables of the claim.
        effect: reads the effect if the claim's value is its p-value. Default: the claim's value is the effect.
    """

    says: str
    above: Extractor | float = -math.inf
    below: Extractor | float = math.inf
    effect: Extractor | None = None


@dataclass(frozen=True)
class Claim:
    """A value that a paper prints.

    Attributes:
        where: its place in the paper: ``table 1, det``.
        what: its description.
        on: the measurements of the study that it is read from.
        paper: the paper's value.
        read: reads the same value from head tables.
        unit: of both.
        digits: decimals that the paper prints.
        pattern: the relation that the claim states for any model, if any.
        model: the paper's model of this value, one of `Study.models`; empty where it follows from the corpus alone.
        note: what a reader must know to compare the two.
        significant: digits that the paper prints of a p-value, instead of decimals.
    """

    where: str
    what: str
    on: tuple[str, ...]
    paper: Value
    read: Extractor
    unit: str = "%"
    digits: int = 1
    pattern: Pattern | None = None
    model: str = ""
    note: str = ""
    significant: int = 0

    @property
    def tolerance(self) -> float:
        """Half a unit of the last digit that the paper prints."""
        if self.significant:
            return 0.5 * 10.0 ** (math.floor(math.log10(abs(self.paper.number))) - self.significant + 1)
        return 0.5 * 10.0**-self.digits


@dataclass(frozen=True)
class Measurement:
    """A head table that a study needs.

    Attributes:
        corpus: the path of the corpus in a folder of corpora, or its end.
        source: the name and origin of the corpus.
        reducers: the names of the reducers that are run on it.
        paper: the paper's own corpus.
        published: SHA-256 of the files that the paper measured, where they are public.
        having: take only documents with a span of this kind; the others add nothing to the scores.
        sample: the size of a random sample of documents; default: all.
        max_tokens: documents are cut to this length.
        of_task: in place of a corpus, take the texts of the test split of the tuning task.
        tuned: further reducers for the runs: those that also need the model before tuning.
        hops: of a treebank, dependencies of the longest paths that are links too.
        loss: a task head, and reducers of its loss, for weights that have it: table ``NAME_gradients``.
        disabled_by: in place of reducers, disable the heads of the runs so, on their task: table ``NAME_task`` alone.
    """

    corpus: str
    source: str
    reducers: tuple[str, ...]
    paper: str
    published: tuple[str, ...] = ()
    having: str = ""
    sample: int | None = None
    max_tokens: int | None = None
    of_task: bool = False
    tuned: tuple[str, ...] = ()
    hops: int = 1
    loss: tuple[str, ...] = ()
    disabled_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lesions:
    """Sets of heads that are disabled together while a language model is evaluated, as `headscope lesions` does.

    There is a table for each way in which random sets match: ``story_layer`` and ``story_size`` of lesions ``story``.

    Attributes:
        corpus: the path of the examples in a folder of corpora, or its end.
        source: the name and origin of the corpus.
        paper: the paper's own examples.
        on: the measurement from whose table the sets are chosen.
        choose: the heads of each set by its name, from that table.
        task: stands before the path of the corpus in the name of the task: ``last-word:``, or nothing.
        random: random sets of each set at least.
    """

    corpus: str
    source: str
    paper: str
    on: str
    choose: Callable[[xr.Dataset], Mapping[str, Sequence[str]]]
    task: str = ""
    random: int = 10


@dataclass(frozen=True)
class Tuning:
    """The fine-tuning of a study. The control is the same task with arbitrary labels.

    The runs become the tables ``tuned_task`` and ``tuned_control``, with their scores on the task. A measurement
    ``story`` of the runs becomes the tables ``story_task`` and ``story_control``.

    Attributes:
        tasks: names of tasks (`headscope.learn.tasks`); the first is the default.
        corpora: the path of each task's corpus in a folder of corpora.
        measured: the measurements that are repeated for each run, or that need both models (`similarity`).
        epochs: of the paper.
        learning_rate: of the paper.
        paper: a description of the paper's own fine-tuning.
    """

    tasks: tuple[str, ...]
    corpora: Mapping[str, str]
    measured: tuple[str, ...]
    epochs: int
    learning_rate: float
    paper: str


@dataclass(frozen=True)
class Derived:
    """A table that is computed from other tables: `make` takes those that are named in `on`, in this order."""

    on: tuple[str, ...]
    make: Callable[..., xr.Dataset]


@dataclass(frozen=True)
class Recording:
    """The layout of head scores that were recorded elsewhere: an ``.npz`` for each model.

    Attributes:
        arrays: for each table, the name of its array: (if fine-tuned, run,) layer, head, score.
        needed: the tables that a comparison needs.
        variables: the names of the scores along the last axis.
        units, source: of the scores.
        task: the task that the runs were fine-tuned on.
        notes: what a reader of these scores must know.
    """

    arrays: Mapping[str, str]
    needed: tuple[str, ...]
    variables: tuple[str, ...]
    units: str
    source: str
    task: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Printed:
    """A table in the layout of the paper.

    Attributes:
        title: its title.
        make: takes all tables by name, and returns a row for each setting. A column ``X sd`` is the standard
            deviation of column ``X``; ``X sig`` is the number of significant runs among those in the column ``runs``,
            ``X pos`` and ``X neg`` are the positive and the negative ones among them.
        digits: decimals.
        significant: digits of p-values, instead of decimals.
    """

    title: str
    make: Callable[[Mapping[str, xr.Dataset]], pd.DataFrame]
    digits: int = 1
    significant: int = 0


@dataclass(frozen=True)
class Study:
    """One paper.

    Attributes:
        title: authors, year and title.
        models: hub ids of the models it has values for, by the paper's names; others are compared with the first.
        measurements: the head tables, by name.
        claims: the values that the paper prints.
        figures: the paper's figures: name -> tables, and the function that plots them.
        notes: what was mapped, corrected or left out.
        tuning: the fine-tuning, if there is any.
        derived: tables that are computed from measured tables, by name.
        printed: the paper's tables of the effects of fine-tuning, by name.
        lesions: sets of heads that are disabled together, by name.
        misprints: of the paper, stated wherever its values are shown.
        text: the form in which the paper's models read texts.
        recording: the layout of recorded scores, if the paper's are public.
    """

    title: str
    models: Mapping[str, tuple[str, ...]]
    measurements: Mapping[str, Measurement]
    claims: Sequence[Claim]
    figures: Mapping[str, tuple[tuple[str, ...], Callable[..., Figure]]]
    notes: Sequence[str] = ()
    tuning: Tuning | None = None
    derived: Mapping[str, Derived] = field(default_factory=dict)
    printed: Mapping[str, Printed] = field(default_factory=dict)
    lesions: Mapping[str, Lesions] = field(default_factory=dict)
    misprints: Sequence[str] = ()
    text: str = SPACED
    recording: Recording | None = None

    def paper_model(self, tables: Mapping[str, xr.Dataset]) -> str:
        """The paper's name of the model that some tables are compared with."""
        ours = {str(table.attrs["model"]) for table in tables.values()}
        same = [name for name, ids in self.models.items() if ours & set(ids)]
        return same[0] if same else next(iter(self.models))
