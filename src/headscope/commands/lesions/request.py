"""The request of `headscope lesions`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.commands.function import make_function
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import CORPUS, MEASURED, argument, option, output_folder
from headscope.commands.option_groups import EvaluationOptions
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import HeadscopeError
from headscope.intervene.way_names import Way

if TYPE_CHECKING:
    from headscope.commands.evaluations import EvaluationSource


class Lesions(ModelOptions, EvaluationOptions, Drawing, Listing, Resumable, Request[HeadTable], command="lesions"):
    """Evaluate a model with the heads of each relation disabled together: which grammar suffers?

    The folder holds lesions.csv, with a row for each relation, phenomenon and metric; and lesions.nc, a head
    table. A change is shown with those without random heads, as many in each layer.

    Returns:
        The head table that is in ``lesions.nc``; `headscope.analyse.find_dissociations` lists its double dissociations.
    """

    contents = Contents("the lesions", "lesions.json", ("lesions",), ("lesions.csv",))
    usage = (
        "headscope lesions smollm2 blimp --atlas smollm2-atlas --data corpora --limit 20 -o lesions",
        "headscope lesions smollm2 wiki.txt --atlas heads.nc --row obj --row nsubj --size 10 -o lesions",
    )
    example = (
        'texts = ["The dog sees the old house.", "An old cat sees the dog."]',
        'table = headscope.lesions("my-decoder", texts, {"mine": ["2-1", "1-3"]})',
    )
    task: Any = argument(
        "TASK",
        "Minimal pairs, as blimp or their file; or another task of `headscope disable`, such as wiki.txt.",
        kw_only=False,
        typed=str,
    )
    sets: "str | Path | HeadTable | Mapping[str, Iterable[str]]" = option(
        MEASURED,
        "Folder of an atlas of `model`, or its head table, such as heads.nc: the heads that lead each of its rows are "
        "disabled together.",
        "--atlas",
        kw_only=False,
        metavar="ATLAS",
        typed=Path,
        python="Or the heads of each set by its name.",
    )
    out: str | Path | None = output_folder("lesions", "headscope-lesions", default=None, kw_only=False)
    rows: Sequence[str] = option(
        MEASURED,
        "Row of the table, such as obj; may be repeated.",
        "--row",
        default=(),
        unset="the eight most frequent that have a reported head",
        metavar="NAME",
    )
    size: int = option(MEASURED, "Heads of each set, those with the highest score, such as 10.", default=5, at_least=1)
    random: int = option(
        MEASURED,
        "Random sets that are run for each set at least, such as 20. While few of them are as bad, more follow: at "
        "most 20 for each set of the request.",
        default=10,
        at_least=4,
        why="which does not show how much random sets differ",
    )
    match: Literal["layer", "size"] = option(
        MEASURED,
        "What random sets have in common with the set, such as size: the number of heads in each layer, or in the "
        "whole model (size).",
        default="layer",
        metavar="WHAT",
    )
    how: Way = option(
        MEASURED,
        "What takes the place of the heads' output, such as zero: uniform (equal weights), zero, mean (over the texts "
        "of the task) or resample (of one of 16 other texts, the same for both sentences of a pair).",
        default="uniform",
        metavar="WAY",
    )
    seed: int = option(
        CORPUS, "Random seed of the random sets, of the sample and of texts for resample, such as 7.", default=0
    )

    @cached_property
    def heads(self) -> dict[str, list[str]]:
        """The names of the heads of each set, by the name of the set.

        Raises:
            HeadscopeError: The table is missing, its rows have no heads, a set is empty, or a name is not the name of a
                head.
        """
        from xarray import Dataset

        from headscope.analyse.lesions import choose_sets
        from headscope.commands.tables import open_table
        from headscope.intervene.head_names import list_names

        if isinstance(self.sets, str | Path | Dataset):
            return choose_sets(open_table(self.sets), self.size, rows=self.rows)
        if not isinstance(self.sets, Mapping):
            raise HeadscopeError(
                f"`sets` is of type {type(self.sets).__name__}; give an atlas, a head table, or heads by the name of "
                "their set, such as {'mine': ['3-1', '4-2']}."
            )
        names = {str(name): list_names(heads) for name, heads in self.sets.items()}
        if not names or not all(names.values()):
            raise HeadscopeError("no set of heads is named, or one has no heads; give heads such as 3-1 for each set.")
        return names

    @cached_property
    def source(self) -> "EvaluationSource":
        """The examples on which the model is evaluated."""
        return self.find_examples(self.task, seed=self.seed)

    def check(self, progress: Progress) -> None:
        """Raise an error for a model, sets, a folder or a task with which nothing can be measured."""
        self.check_model()
        check_folder(self)
        _ = self.heads
        progress("reading the task", 0, 0)
        _ = self.source


lesions = make_function(Lesions)
