"""The requests of `headscope measure`: for a whole corpus, for a shard, and for both on the terminal."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headscope.capture.model.model_names import TaskHead
from headscope.capture.passes.views import ViewName
from headscope.commands.function import make_function
from headscope.commands.measure.engine import Engine, check_engine
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import CORPUS, MEASURED, MODEL, OUTPUT, SPEED, option, output_file, reducer_option
from headscope.commands.option_groups import PERMUTATIONS, CorpusOptions, Replicable, RunsOptions
from headscope.commands.output import Listing, Resumable, check_file
from headscope.commands.progress import Progress, ignore_progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.corpora import Shard
    from headscope.reducers.reducer import Reducer
    from headscope.runner import ShardSums

    Measured: TypeAlias = xr.Dataset | ShardSums
else:
    ShardSums, Measured = "ShardSums", "xr.Dataset | ShardSums"


class Measuring(CorpusOptions, ModelOptions, Resumable):
    """Options for measuring a model on a corpus, or on a shard of the corpus."""

    reducers: "str | Reducer | Sequence[str | Reducer]" = reducer_option(
        "What to measure, such as relations (`headscope list reducers`), with settings after a colon, such as "
        "'surface:offsets=-2|3'; may be repeated. Required.",
        kw_only=False,
        python="A name (`headscope.reducers.REDUCERS`), a name with settings, a reducer as an object, or several of "
        "these.",
    )
    seed: int = option(CORPUS, "Random seed of `sample` and `sample_queries`, such as 7.", default=0)
    permutations: int | None = option(
        MEASURED,
        PERMUTATIONS,
        default=None,
        unset="what the number of rows needs, 999 at least, and 0 with `runs` and `placebos`",
        at_least=0,
        python="A reducer that is given as an object keeps its own number. On `replicate` there are none, since "
        "nothing is chosen there.",
        basic=True,
    )
    view: ViewName | None = option(
        MEASURED,
        "What to measure in place of the weights, such as norm (the share of what flows from each token); also "
        "gradient, gradient-x-attention, rollout, rollout-without-sink and value-zeroing.",
        default=None,
        unset="the weights",
        metavar="NAME",
        python="`headscope.capture.passes.views.VIEWS` says what they are.",
    )
    sample_queries: int | None = option(
        MEASURED,
        "Estimate the statistics of long texts from about N of their tokens as queries, at random, such as 256: nearly "
        "at the cost of the model alone, and with an interval for each value.",
        default=None,
        unset="all tokens",
        at_least=32,
        why="which does not show how far off the estimate is",
        python="The ends of the intervals are the variables ``*_lower`` and ``*_upper`` "
        "(`headscope.runner.row_sample`).",
    )
    task: TaskHead | None = option(
        MODEL,
        "Task head of whose loss the gradients are (the reducer and the views), such as causal-lm; also masked-lm, "
        "classification, tagging, and own for the head that the weights have.",
        default=None,
        unset="own, where something needs a head",
        metavar="TASK",
    )

    def check_measuring(self) -> None:
        """Raise an error for unknown reducers, a path without a model, or a form of texts that cannot be used.

        Raises:
            HeadscopeError: One of these inputs cannot be used.
        """
        from headscope.reducers.reducer_names import check_names

        check_names(self.reducers)
        self.check_model()
        self.check_form(self.model)


class WholeCorpus(Replicable, RunsOptions):
    """Options for measuring a whole corpus and not a shard: runs, placebos and engine."""

    placebos: int | None = option(
        MODEL,
        "Measure N random adapters, such as 19, in place of the trained one in `model`; each changes as much. "
        "`headscope compare --placebo` holds the adapter against them.",
        default=None,
        at_least=1,
        python="The table has the dimension ``run``; `headscope.placebo_adapter` says how they are made.",
    )
    engine: Engine = option(
        SPEED,
        "Who measures: local, or ray for the workers of a Ray cluster (extra `ray`), the one that RAY_ADDRESS names or "
        "one that is started on this machine.",
        default="local",
        metavar="NAME",
        recorded=False,
    )
    workers: int | None = option(
        SPEED,
        "Number of workers on Ray, such as 4; each loads the model.",
        default=None,
        unset="one for each GPU if the model runs on GPUs, else one for each core",
        at_least=1,
        recorded=False,
    )


class Measure(Measuring, WholeCorpus, Request[HeadTable], function="measure"):
    """Measure every head of a model with one or more reducers.

    Returns:
        The head table, with intervals, reported heads and p-values.
    """

    example = (
        'table = headscope.measure("minilm", "grammar:211", ["surface", "relations"])',
        'table["entropy"].sel(layer=3, head=1)',
    )

    out: str | Path | None = output_file("before.nc", default=None)

    def check(self, progress: Progress) -> None:
        """Raise an error for options that exclude each other, or for inputs or a file that cannot be used."""
        if self.out is None and self.resume:
            raise HeadscopeError("`resume` continues a file, and none is named; name it as `out`.")
        others = {"runs": self.runs, "replicate": self.replicate}
        if given := next((name for name, value in others.items() if value is not None and self.placebos), None):
            raise HeadscopeError(f"placebos are of one adapter, on one corpus; leave out `{given}` or `placebos`.")
        if self.runs is not None and self.replicate is not None:
            raise HeadscopeError(
                "the heads of runs are not replicated, only those of one model; measure the runs on each corpus, and "
                "leave out `replicate`."
            )
        if self.tuned is not None and self.task is not None:
            raise HeadscopeError("runs have the head of the task that they were tuned on; leave out `task`.")
        self.check_measuring()
        check_engine(
            self.engine, self.workers, self.model, self.device, runs=self.runs, replicate=self.replicate is not None,
            placebos=self.placebos,
        )  # fmt: skip
        self.check_placebos()
        if self.out is not None:
            check_file(Path(self.out))
        self.check_corpora(self.corpus, self.replicate)

    def check_placebos(self) -> None:
        """Raise an error if placebos are requested for a model without a LoRA adapter.

        Raises:
            HeadscopeError: An edit is active on the model.
            ModelError: The model has no adapter, or an adapter of which no placebo can be made.
        """
        if self.placebos is None:
            return
        if isinstance(self.model, str | Path):
            from headscope.capture.model.model_names import check_lora

            check_lora(str(self.model))
        else:  # a loaded model means that torch is loaded already
            from headscope.capture.open.loading import load
            from headscope.capture.open.placebo import find_factors

            find_factors(load(self.model), self.model)


class MeasureShard(Measuring, Request[ShardSums], function="measure_shard", module="shard"):
    """Measure a shard of a corpus: its sums, in a file that `headscope.merge` joins with those of the other shards.

    Each shard is measured by a process of its own, on any machine that has the model and the whole corpus, which is
    read to see what it holds. The arguments are the same for all shards, but for the number of the `device`, such as
    ``cuda:1``.

    Returns:
        What was written.
    """

    example = (
        'first = headscope.measure_shard("minilm", "grammar:60", "surface", "1/2", out="first.npz")',
        'second = headscope.measure_shard("minilm", "grammar:60", "surface", "2/2", out="second.npz")',
        'table = headscope.merge(["first.npz", "second.npz"])',
    )

    shard: "str | Shard" = option(
        CORPUS,
        "Which shard of how many, such as 2/8 for the second of eight.",
        kw_only=False,
        metavar="K/N",
        typed=str,
        python="Or a `headscope.corpora.Shard`.",
    )
    out: str | Path = output_file("heads.2-of-8.npz")

    @cached_property
    def part(self) -> "Shard":
        """The shard.

        Raises:
            HeadscopeError: The text is not of the form ``2/8``, or there is no such shard.
        """
        from headscope.corpora import Shard

        return Shard.parse(self.shard) if isinstance(self.shard, str) else self.shard

    def check(self, progress: Progress) -> None:
        """Raise an error for a shard, reducers, a model, a file or a corpus that cannot be used."""
        _ = self.part
        self.check_measuring()
        check_file(Path(self.out))
        self.check_corpora(self.corpus)


class TypedMeasure(Measuring, WholeCorpus, Listing, Request[Measured], command="measure"):
    """Measure every head of a model with one or more reducers, into one file.

    The file is a head table in netCDF (heads.nc), which `headscope compare` and `headscope.read_table` read. With
    `shard` it holds the sums over a part of the corpus, which `headscope merge` reads.
    """

    usage = (
        "headscope measure minilm grammar:300 -r scope -o before.nc",
        "headscope measure minilm grammar:300 -r relations --replicate grammar:300:7 -o heads.nc",
        "headscope measure minilm grammar:300 -r scope --runs negation -o after.nc",
        "headscope measure minilm grammar:300 -r scope --runs negation/control -o control.nc",
        "headscope measure my-lora grammar:300 -r relations --placebos 19 -o placebo.nc",
        "headscope measure minilm grammar:300 -r surface --shard 1/2 -o first.npz",
        "headscope measure minilm grammar:300 -r surface --shard 2/2 -o second.npz",
    )
    shard: str | None = option(
        CORPUS,
        "Measure one shard of the corpus, such as 2/8 for the second of eight; `headscope merge` joins the files of "
        "all shards.",
        default=None,
        unset="the whole corpus",
        metavar="K/N",
    )
    out: str | Path | None = output_file("before.nc", default=None, unset="heads.nc, or heads.2-of-8.npz for a shard")
    explain: bool = option(
        OUTPUT, "Print for each layer how its attention was computed, and why.", default=False, unset="no"
    )

    @cached_property
    def part(self) -> "Shard | None":
        """The shard; None for the whole corpus.

        Raises:
            HeadscopeError: The text is not of the form ``2/8``, or there is no such shard.
        """
        from headscope.corpora import Shard

        return None if self.shard is None else Shard.parse(self.shard)

    @cached_property
    def file(self) -> Path:
        """The file to write; by default, a name that depends on the shard."""
        if self.out is not None:
            return Path(self.out)
        return Path("heads.nc" if self.part is None else f"heads.{self.part.number}-of-{self.part.count}.npz")

    def check(self, progress: Progress) -> None:
        """Raise an error for options that cannot be used with a shard or with the engine."""
        whole = {
            "runs": self.runs, "replicate": self.replicate, "placebos": self.placebos, "explain": self.explain,
        }  # fmt: skip
        if self.part is not None and (given := next((name for name, value in whole.items() if value), None)):
            raise HeadscopeError(
                f"`{given}` needs the whole corpus, and a shard is a part of it; leave out `{given}` or `shard`."
            )
        check_engine(self.engine, self.workers, self.model, self.device, shard=self.shard, **whole)

    def run(self, progress: Progress = ignore_progress) -> Measured:
        """Measure the corpus, or the shard if one is named.

        Raises:
            HeadscopeError: The request cannot be run; the message says why in one sentence.
        """
        self.check(progress)
        record = Measure if self.part is None else MeasureShard
        request = record(**{name: getattr(self, name) for name in record.options} | {"out": self.file})
        return request.run(progress)


measure = make_function(Measure)
measure_shard = make_function(MeasureShard)
