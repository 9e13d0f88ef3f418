"""The request of `headscope check`."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.option import CORPUS, MEASURED, MODEL, OUTPUT, argument, option, output_folder, reducer_option
from headscope.commands.option_groups import OWN_REDUCERS, BatchOptions, RunOptions
from headscope.commands.output import Contents, Listing, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import Request
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.capture.open.loading import Loadable
    from headscope.commands.check.recorded_call import RecordedCall
    from headscope.commands.check.run import CheckResult
    from headscope.corpora import Corpus
    from headscope.reducers.reducer import Reducer
else:
    CheckResult = "CheckResult"


class Check(RunOptions, BatchOptions, Request[CheckResult], function="check"):
    """Check whether the reported heads of an atlas still do what they did in another model, such as a quantised one.

    Each head is kept, lost, or not decided, by the interval of its change on the texts on which it was not chosen. The
    folder holds check.json and check.csv.

    Returns:
        The heads that were checked, with their verdicts.
    """

    contents = Contents("the check", "check.json")
    usage = (
        "headscope check minilm --against atlas",
        "headscope check my-quantised-model --against atlas --tolerance 0.02 --strict -o checked",
    )
    new: "Loadable | xr.Dataset" = argument(
        "NEW",
        "The new model: hub id, folder, .gguf file, minilm or smollm2; or what was measured of it on the same corpus: "
        "the folder of an atlas, or a head table (.nc).",
        kw_only=False,
        typed=str,
        python="Or a loaded model of transformers, or a head table in memory.",
    )
    against: "str | Path | xr.Dataset" = option(
        MODEL,
        "What was measured of the old model: the folder of an atlas, such as atlas, or a head table, such as heads.nc.",
        kw_only=False,
        metavar="ATLAS",
        typed=Path,
        python="Or a head table in memory.",
    )
    out: str | Path | None = output_folder(
        "checked", default=None, kw_only=True, holds="check.json and check.csv", unset="none is written"
    )
    tolerance: float = option(
        MEASURED,
        "Loss of a score that still counts as none, such as 0.02.",
        default=0.05,
        metavar="SHARE",
        basic=True,
    )
    every: bool = option(
        MEASURED, "Check all reported heads.", "--all", default=False, unset="those that stand out", basic=True
    )
    corpus: str | Path | Iterable[Any] | None = option(
        CORPUS,
        "Where the corpus is now, such as data/en_ewt-ud-dev.conllu.",
        default=None,
        unset="where it was when `against` was measured",
        metavar="CORPUS",
        typed=str,
        python="Or its documents, if they were in memory.",
        basic=True,
    )
    format: str | None = option(
        CORPUS,
        "Format of the corpus, such as conllu (`headscope list corpora`).",
        default=None,
        unset="as it was; where `against` does not say, detected",
        metavar="NAME",
    )
    patterns: str | Path | None = option(
        CORPUS,
        "File of the spaCy patterns that were added to the corpus, such as own.json (extra `spacy`).",
        default=None,
        unset="where it was",
        metavar="FILE",
    )
    reducers: "str | Reducer | Sequence[str | Reducer]" = reducer_option(
        f"{OWN_REDUCERS} Code that a table names is never run by itself.",
        default=(),
        unset="built-in ones alone",
        basic=False,
    )

    @cached_property
    def old(self) -> "xr.Dataset":
        """The table whose reported heads are checked."""
        from headscope.commands.check.check_inputs import open_against

        return open_against(self.against, every=self.every)

    @cached_property
    def measured(self) -> "xr.Dataset | None":
        """The head table that is checked; None for a model, which is measured first."""
        from headscope.commands.check.check_inputs import open_new

        return open_new(self.new)

    @cached_property
    def corpus_and_call(self) -> "tuple[Corpus, RecordedCall]":
        """The corpus, read as the old table was measured, and how that was."""
        from headscope.commands.check.check_inputs import open_corpus

        return open_corpus(self.old, self.corpus, self.format, self.patterns)

    def check(self, progress: Progress) -> None:
        """Raise an error for a tolerance that is no loss, a folder, tables, a model or a corpus that cannot be used."""
        if not 0 <= self.tolerance < 1:
            raise HeadscopeError(
                f"`tolerance` is {self.tolerance:g}; give the loss of a score that counts as none, from 0 to below 1, "
                "such as 0.05."
            )
        check_folder(self)
        _ = self.old
        if self.measured is None:
            progress("reading the corpus", 0, 0)
            _ = self.corpus_and_call


class TypedCheck(Check, Listing, command="check"):
    """Exit with 0 if no head is lost, 3 if one is, 4 with `strict` if one cannot be decided, and 2 for an error."""

    strict: bool = option(
        OUTPUT,
        "Exit with code 4 if no head is lost and some cannot be decided.",
        default=False,
        unset="a warning, and code 0",
        recorded=False,
        basic=True,
    )


check = make_function(Check)
