"""The request of `headscope disable`."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import CORPUS, MEASURED, argument, option, output_folder
from headscope.commands.option_groups import EvaluationOptions, RunsOptions
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import HeadscopeError
from headscope.intervene.way_names import Way

if TYPE_CHECKING:
    from headscope.commands.evaluations import EvaluationSource


class Disable(
    ModelOptions,
    EvaluationOptions,
    RunsOptions,
    Drawing,
    Listing,
    Resumable,
    Request[HeadTable],
    command="disable",
    function="measure_effects",
):
    """Evaluate a model on a task with each head, each layer and each key/value head disabled.

    The folder holds effects.csv, with a row for each of them and each metric; and effects.nc, a head table.
    An effect is shown with its interval, its p-value and placebos: changes of the same size in the same layer. With
    `runs`, heads are disabled in each run, which must be tuned on `task`, and summary.csv has the means over the runs.

    Returns:
        The head table that is in ``effects.nc``. Of one of runs, `headscope.analyse.summarize_effects` gives the means.
    """

    contents = Contents("the effects", "effects.json", ("effects", "pairs"), ("effects.csv",))
    usage = (
        "headscope disable headscope-runs/seed-1 mrpc --data corpora -o effects",
        "headscope disable smollm2 blimp --paradigm causative --limit 100 --start '<|endoftext|>' -o effects",
    )
    example = (
        'texts = ["The dog sees the old house.", "An old cat sees the dog."]',
        'table = headscope.measure_effects("my-decoder", texts, heads=["2-1", "1-3"])',
    )
    task: Any = argument(
        "TASK",
        "Task that the model was tuned on, such as mrpc (`headscope list tasks`) or a folder of TSV files; minimal "
        "pairs, as blimp or their file; last-word:lambada.jsonl, for the last word of each text; or texts, such as "
        "wiki.txt, for the loss of a language model.",
        kw_only=False,
        typed=str,
        python="Or what `headscope.learn.read_task` returned, or texts in memory.",
    )
    out: str | Path | None = output_folder("effects", "headscope-effects", default=None, kw_only=False)
    split: str = option(CORPUS, "Split of the task: train, validation or test.", default="test", metavar="SPLIT")
    seed: int = option(
        CORPUS, "Random seed for the sample, the placebos, and the texts of `how` resample, such as 7.", default=0
    )
    max_tokens: int | None = option(
        CORPUS,
        "Longest text in tokens, such as 128; longer ones are cut.",
        default=None,
        unset="the limit of the model",
        at_least=5,
        why="which leaves no room for an example",
    )
    heads: str | Sequence[str] = option(
        MEASURED,
        "Heads to disable, one by one, such as 8-10,7-11, or key/value heads such as 3-kv1.",
        default=(),
        unset="all, unless `layers` is given",
        metavar="LIST",
        typed=str,
        basic=True,
    )
    layers: str | int | Sequence[str | int] = option(
        MEASURED,
        "Layers to disable, one by one, such as 3,4.",
        default=(),
        unset="all, unless `heads` is given",
        metavar="LIST",
        typed=str,
    )
    how: Way | Sequence[Way] = option(
        MEASURED,
        "What takes the place of a head's output, such as zero: uniform (equal weights), zero, mean (over the texts of "
        "the task) or resample (of one of 16 other texts); may be repeated, to see how alike they rank the heads. "
        "Placebos are those of the first.",
        default=("uniform",),
        unset="uniform",
        metavar="WAY",
    )
    placebos: int = option(
        MEASURED, "Number of placebos for each head, such as 8; each takes as long as the head. 0: none.", default=4
    )
    top: int | None = option(
        MEASURED,
        "Disable only the N heads with the largest first-order estimates, such as 20, and N more at random, on which "
        "the estimates are checked.",
        default=None,
        unset="all heads",
        at_least=2,
        why="on which no estimate can be checked",
    )
    pairs: int = option(
        MEASURED, "Also disable each pair of the N heads with the largest effects, such as 5.", default=0
    )
    direct: bool = option(
        MEASURED,
        "Also measure what reaches the output without the layers above, and how much of it they undo (self-repair); of "
        "models with an additive residual stream, such as smollm2.",
        default=False,
    )

    @cached_property
    def names(self) -> list[str]:
        """The names of the heads, key/value heads and layers to disable; an empty list means all."""
        from headscope.intervene.head_names import list_names

        return [*list_names(self.heads), *list_names(self.layers, of_layers=True)]

    @cached_property
    def source(self) -> "EvaluationSource":
        """The examples on which the model is evaluated."""
        return self.find_examples(self.task, seed=self.seed, split=self.split)

    def check(self, progress: Progress) -> None:
        """Raise an error for options, heads, runs, a folder or a task with which nothing can be measured."""
        if len({*self.how}) < max(1, len(self.how)):
            raise HeadscopeError("`how` names no way to disable heads, or one twice; name each once.")
        if self.placebos < 0 or self.placebos == 1:
            raise HeadscopeError(
                f"`placebos` is {self.placebos}, which shows no difference between placebos; give 2 or more, or 0 for "
                "none."
            )
        if self.pairs < 0 or self.pairs == 1:
            raise HeadscopeError(f"`pairs` is {self.pairs}, which makes no pair; give 2 or more, or 0 for no pairs.")
        if self.tuned is not None and (self.top is not None or self.pairs):
            raise HeadscopeError(
                "the top heads and pairs are chosen by their effects, which differ from run to run; with `runs` name "
                "the heads (`heads`), or disable all."
            )
        self.check_model()
        _ = self.names
        check_folder(self)
        progress("reading the task", 0, 0)
        if self.tuned is not None:
            self.source.check_runs(self.tuned)
        _ = self.source


measure_effects = make_function(Disable)
