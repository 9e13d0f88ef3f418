"""A paper as data: its measurements and its claims, which `headscope.studies.findings` judges."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.errors import HeadscopeError
from headscope.intervene.way_names import Way
from headscope.text_forms import SPACED, Form

SIGNIFICANT = 0.05
"""A p-value below this is significant. A higher one decides nothing: it shows neither an effect nor its absence."""

RECORDED = "recorded"
"""The attribute of tables of recorded scores with the name of their file."""


class NotMeasuredError(HeadscopeError):
    """An error: a table lacks a value that a claim needs; the message completes "not measured: ..."."""


@dataclass(frozen=True)
class Value:
    """A value that a paper prints, or that is read from a head table.

    Attributes:
        number: the number; NaN if a paper states a direction and no number.
        detail: its head, offset, layers or runs, such as ``8-11``.
        lower, upper: the 95 % interval; NaN if there is none.
        p: the p-value of a test that the number is not 0; NaN without a test.
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
        """The interval; the number itself if there is none."""
        return (self.number, self.number) if math.isnan(self.lower) else (self.lower, self.upper)

    @property
    def best_known(self) -> "Value":
        """The held-out value if there is one, since its head was chosen on other texts; else the value itself."""
        return self.held_out or self


Extractor = Callable[..., Value]
"""A function of a claim's tables, in their order, that returns a value or raises `NotMeasuredError`."""


@dataclass(frozen=True)
class Pattern:
    """A relation that a claim states for any model: an effect, with its sign, is above one bound and below another.

    Attributes:
        says: the relation in words.
        above, below: bounds, or extractors that read them from the tables of the claim.
        effect: an extractor of the effect, if the claim's value is its p-value. Default: the claim's value is the
            effect.
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
        on: the measurements of the study from whose tables the value is read.
        paper: the paper's value.
        read: an extractor of the same value from head tables.
        unit: the unit of both values.
        digits: the number of decimals that the paper prints.
        pattern: the relation that the claim states for any model, if any.
        model: the paper's model of this value, one of `Study.models`; empty if the value depends only on the corpus.
        note: a note for comparing the two values.
        significant: the number of digits that the paper prints of a p-value, instead of decimals.
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
        reducers: the names of the reducers that measure it.
        paper: the paper's own corpus.
        published: the SHA-256 of the files that the paper measured, if they are public.
        having: the kind of span that a document must have; other documents add nothing to the scores.
        sample: the size of a random sample of documents; default: all.
        max_tokens: the length to which documents are cut.
        of_task: true if the texts of the test split of the tuning task replace a corpus.
        tuned: further reducers for the runs: those that also need the model before tuning.
        hops: for a treebank, the number of dependencies in the longest paths that become links.
        loss: the names of a task head and of reducers of its loss, which become the table ``NAME_gradients``; only for
            weights that have the head.
        disabled_by: the ways in which the heads of the runs are disabled on their task, in place of reducers: only
            table ``NAME_task``.
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
    disabled_by: tuple[Way, ...] = ()


@dataclass(frozen=True)
class Lesions:
    """Sets of heads that are disabled together while a language model is evaluated, as `headscope lesions` does.

    There is a table for each way of matching random sets: ``story_layer`` and ``story_size`` for lesions ``story``.

    Attributes:
        corpus: the path of the examples in a folder of corpora, or its end.
        source: the name and origin of the corpus.
        paper: the paper's own examples.
        on: the measurement from whose table the sets are chosen.
        choose: a function that returns the heads of each set by its name, from that table.
        task: the beginning of the name of the task, before the path of the corpus: ``last-word:``, or nothing.
        random: the least number of random sets for each set.
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
        epochs: the number of epochs in the paper.
        learning_rate: the learning rate in the paper.
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
    """A table that is computed from other tables: `make` takes the tables that `on` names, in this order."""

    on: tuple[str, ...]
    make: Callable[..., xr.Dataset]


@dataclass(frozen=True)
class Recording:
    """The layout of head scores that were recorded elsewhere: an ``.npz`` for each model.

    Attributes:
        arrays: for each table, the name of its array, with the axes layer, head and score, after run if fine-tuned.
        needed: the tables that a comparison needs.
        variables: the names of the scores along the last axis.
        units, source: the unit and the source of the scores.
        task: the task on which the runs were fine-tuned.
        notes: notes for readers of these scores.
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
        make: a function that takes all tables by name, and returns a row for each setting. A column ``X sd`` is the
            standard deviation of column ``X``; ``X sig`` is the number of significant runs among those in the column
            ``runs``, ``X pos`` and ``X neg`` are the numbers of positive and negative ones among them.
        digits: the number of decimals.
        significant: the number of digits of p-values, instead of decimals.
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
        models: the hub ids of the paper's models, by the paper's names; other models are compared with the first.
        measurements: the head tables, by name.
        claims: the values that the paper prints.
        figures: the paper's figures: name -> tables, and the function that plots them.
        notes: notes on what was mapped, corrected or left out.
        tuning: the fine-tuning, if there is any.
        derived: tables that are computed from measured tables, by name.
        printed: the paper's tables of the effects of fine-tuning, by name.
        lesions: sets of heads that are disabled together, by name.
        misprints: misprints of the paper, stated wherever its values are shown.
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
    text: Form = SPACED
    recording: Recording | None = None

    def paper_model(self, tables: Mapping[str, xr.Dataset]) -> str:
        """Return the paper's name of the model of the tables; the paper's first model if it has no such model."""
        ours = {str(table.attrs["model"]) for table in tables.values()}
        same = [name for name, ids in self.models.items() if ours & set(ids)]
        return same[0] if same else next(iter(self.models))
