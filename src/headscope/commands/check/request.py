"""The request of `headscope check`."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.model_options import BatchOptions, RunOptions
from headscope.commands.option import CORPUS, MEASURED, MODEL, OUTPUT, argument, option, output_folder, reducer_option
from headscope.commands.option_groups import OWN_REDUCERS
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
    from headscope.headlists import HeadList
    from headscope.reducers.reducer import Reducer
else:
    CheckResult = "CheckResult"


TOLERANCE = 0.05
"""The default tolerance: a smaller loss of a score does not count as a loss."""


class Check(RunOptions, BatchOptions, Request[CheckResult], function="check"):
    """Check whether the reported heads of an atlas still do what they did in another model, such as a quantised one.

    Each head is kept, lost, or not decided, by the interval of its change on the texts on which it was not chosen. In
    place of an atlas, a list of heads can be checked: its heads must be in the model, and each is ranked among all
    heads by the score that the list is about. The folder holds check.json and check.csv.

    Returns:
        The heads that were checked, with their verdicts or ranks.
    """

    contents = Contents("the check", "check.json")
    usage = (
        "headscope check minilm --against atlas",
        "headscope check my-quantised-model --against atlas --tolerance 0.02 --strict -o checked",
        "headscope check my-model --heads full_attention_heads.tsv",
    )
    example = ('result = headscope.check("minilm", "atlas", every=True)', "result.table")
    new: "Loadable | xr.Dataset" = argument(
        "NEW",
        "The new model: hub id, folder, .gguf file, minilm or smollm2; or what was measured of it on the same corpus: "
        "the folder of an atlas, or a head table (.nc).",
        kw_only=False,
        typed=str,
        python="Or a loaded model of transformers, or a head table in memory.",
    )
    against: "str | Path | xr.Dataset | None" = option(
        MODEL,
        "Results of the old model: the folder of an atlas, such as atlas, or a head table, such as heads.nc.",
        kw_only=False,
        default=None,
        unset="none, if a list is given as `heads`",
        metavar="ATLAS",
        typed=Path,
        python="Or a head table in memory.",
        basic=True,
    )
    heads: "str | Path | HeadList | None" = option(
        MODEL,
        "List of heads to rank in the model, in place of `against`, such as heads.json; also a .tsv of DuoAttention, "
        "the JSON of Retrieval_Head, or Whisper's generation_config.json.",
        default=None,
        unset="the heads that `against` reports",
        metavar="LIST",
        typed=Path,
        python="Or a list of heads in memory.",
        basic=True,
    )
    out: str | Path | None = output_folder(
        "checked", default=None, kw_only=True, holds="check.json and check.csv", unset="none is written"
    )
    tolerance: float = option(
        MEASURED,
        "Loss of a score that still counts as none, such as 0.02.",
        default=TOLERANCE,
        metavar="SHARE",
        basic=True,
    )
    every: bool = option(
        MEASURED, "Check all reported heads.", "--all", default=False, unset="those that stand out", basic=True
    )
    top: int | None = option(
        MEASURED,
        "Best heads of a list that are compared with as many of the model, such as 20.",
        default=None,
        unset="all of the list, or half of the number of heads in the model",
        at_least=1,
    )
    corpus: str | Path | Iterable[Any] | None = option(
        CORPUS,
        "The corpus, such as data/en_ewt-ud-dev.conllu, if it has moved; with `heads`, the corpus to rank heads on.",
        default=None,
        unset="its path when `against` was measured; with `heads`, a generated corpus if the score has one",
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
        unset="its path when `against` was measured",
        metavar="FILE",
    )
    reducers: "str | Reducer | Sequence[str | Reducer]" = reducer_option(
        f"{OWN_REDUCERS} headscope never runs code only because a table names it.",
        default=(),
        unset="built-in ones alone",
        basic=False,
    )

    @cached_property
    def old(self) -> "xr.Dataset":
        """The table whose reported heads are checked."""
        from headscope.commands.check.check_inputs import open_against

        assert self.against is not None
        return open_against(self.against, every=self.every)

    @cached_property
    def measured(self) -> "xr.Dataset | None":
        """The head table that was given as `new`; None if `new` is a model, which must still be measured."""
        from headscope.commands.check.check_inputs import open_new

        return open_new(self.new)

    @cached_property
    def corpus_and_call(self) -> "tuple[Corpus, RecordedCall]":
        """The corpus, read as for the old table, and the recorded settings of the old table."""
        from headscope.commands.check.check_inputs import open_corpus

        return open_corpus(self.old, self.corpus, self.format, self.patterns)

    @cached_property
    def head_list(self) -> "HeadList":
        """The list whose heads are ranked."""
        from headscope.commands.check.listed_scores import open_list

        assert self.heads is not None
        return open_list(self.heads)

    @cached_property
    def list_corpus(self) -> "Corpus":
        """The corpus on which the heads of a list are ranked."""
        from headscope.commands.check.listed_scores import name_list, read_corpus

        assert self.heads is not None
        return read_corpus(self.head_list, self.corpus, self.format, self.patterns, name_list(self.heads))

    def check(self, progress: Progress) -> None:
        """Raise an error for a tolerance outside 0 to 1, options that exclude each other, or unusable inputs."""
        if not 0 <= self.tolerance < 1:
            raise HeadscopeError(
                f"`tolerance` is {self.tolerance:g}; give the loss of a score that counts as none, from 0 to below 1, "
                "such as 0.05."
            )
        if (self.against is None) == (self.heads is None):
            raise HeadscopeError("give one of `against`, an atlas, and `heads`, a list of heads.")
        if self.heads is not None and (self.every or self.tolerance != TOLERANCE):
            raise HeadscopeError("`tolerance` and `every` are for the heads of an atlas; leave them out with `heads`.")
        if self.heads is None and self.top is not None:
            raise HeadscopeError("`top` is for a list of heads; leave it out without `heads`.")
        check_folder(self)
        if self.heads is not None:
            _ = self.head_list
            if self.measured is None:
                progress("reading the corpus", 0, 0)
                _ = self.list_corpus
            return
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
    )


check = make_function(Check)
