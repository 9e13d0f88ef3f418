"""The request of `headscope atlas`."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.capture.passes.views import VIEWS, ViewName
from headscope.commands.atlas.atlas_result import EXAMPLES, PAGE, AtlasResult
from headscope.commands.function import make_function
from headscope.commands.model_options import LOADED_MODEL, MODELS, ModelOptions
from headscope.commands.option import (
    CORPUS,
    MEASURED,
    argument,
    option,
    output_folder,
    reducer_option,
    table_option,
)
from headscope.commands.option_groups import CORPORA, PERMUTATIONS, TEXTS_IN_MEMORY, CorpusOptions, Replicable
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.profile.request import MEASURED_TABLES
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.capture.open.loading import Loadable
    from headscope.reducers.reducer import Reducer


class Atlas(
    CorpusOptions, ModelOptions, Replicable, Drawing, Listing, Resumable, Request[AtlasResult], command="atlas"
):
    """Measure all that the annotation of a corpus allows, with controls, into a folder with a page to open.

    The folder holds atlas.html (open this), heads.nc (the head table), untrained.nc (the same of the untrained model),
    head-distances.nc, examples.nc, tables/ (CSV) and manifest.json; with `replicate` also replication.nc and
    untrained-replication.nc, with norm as one of `views` also heads-norm.nc, with `figures` also figures/, which the
    page shows too. The page can be opened when the model is measured and the untrained model is not, whose say is then
    "not yet" known. An older atlas is replaced once the new one is complete; other files are left alone.

    Without arguments: minilm on 300 generated sentences.

    Returns:
        The table that is in ``heads.nc``, and what else is on the page.
    """

    contents = Contents(
        "the atlas",
        "manifest.json",
        (
            "heads",
            "untrained",
            "replication",
            "untrained-replication",
            "head-distances",
            *(f"heads-{view}" for view in VIEWS),
            *MEASURED_TABLES,
        ),
        (PAGE, EXAMPLES),
    )
    usage = (
        "headscope atlas minilm grammar:300 -o atlas",
        "headscope atlas minilm grammar:300 --replicate grammar:300:7 -o atlas",
    )
    example = (
        'result = headscope.atlas("minilm", "grammar:60", "atlas")',
        'result.table["relation_accuracy"].sel(relation="obj").max()',
    )
    model: "Loadable" = argument("MODEL", MODELS, default="minilm", kw_only=False, typed=str, python=LOADED_MODEL)
    corpus: str | Path | Iterable[Any] = argument(
        "CORPUS", CORPORA, default="grammar:300", kw_only=False, typed=str, python=TEXTS_IN_MEMORY
    )
    out: str | Path | None = output_folder("ewt", "headscope-atlas", default=None, kw_only=False)
    seed: int = option(CORPUS, "Random seed of `sample` and of the untrained model, such as 7.", default=0)
    reducers: "str | Reducer | Sequence[str | Reducer]" = reducer_option(
        "A reducer to measure too, such as map_patterns, or your own, such as repetition:Repetition (module:Reducer); "
        "may be repeated.",
        default=(),
        python="Or a reducer as an object. One of yours with the name of a built-in reducer takes its place.",
    )
    permutations: int | None = option(
        MEASURED,
        PERMUTATIONS,
        default=None,
        unset="what the number of rows needs, 999 at least",
        at_least=0,
        python="On `replicate` there are none, since nothing is chosen there.",
    )
    views: ViewName | Sequence[ViewName] = option(
        MEASURED,
        "What to measure besides the weights, such as norm (`headscope measure --view`), to which the grid of the page "
        "can be switched; may be repeated.",
        "--view",
        default=(),
        metavar="NAME",
    )
    effects: "str | Path | HeadTable | None" = table_option(
        MEASURED,
        "Folder that `headscope disable` wrote of this model, such as effects: the page says which heads are needed.",
        default=None,
        metavar="FOLDER",
        python="Or the table. Of runs, the effects of the run that is `model` are taken.",
    )
    probe: "str | Path | HeadTable | None" = table_option(
        MEASURED,
        "Folder that `headscope probe` wrote of this model, such as headscope-probe: the page shows what all heads "
        "together know.",
        default=None,
        metavar="FOLDER",
    )
    roles: bool = option(
        MEASURED,
        "Also measure the roles of the heads of a decoder-only model, on generated texts (`headscope profile`).",
        "--roles/--no-roles",
        default=True,
    )
    map_documents: int = option(
        MEASURED,
        "Random documents, cut to 128 tokens, on which all heads are compared with one another for the map of heads, "
        "such as 300; 0 for no map.",
        default=100,
        at_least=0,
    )
    examples: int | None = option(
        MEASURED,
        "Texts of the corpus that are on the page with the attention of all heads, such as 20; 0 for none. By default "
        "50, of a model with more than 300 heads 24.",
        default=None,
        at_least=0,
    )

    @cached_property
    def disabled(self) -> "HeadTable | None":
        """The table of effects of disabling heads; None if none is given."""
        if self.effects is None:
            return None
        from headscope.commands.tables import open_effects  # it takes time to import

        return open_effects(self.effects)

    @cached_property
    def probes(self) -> "HeadTable | None":
        """The table of probes; None if none is given."""
        if self.probe is None:
            return None
        from headscope.commands.tables import open_probes  # it takes time to import

        return open_probes(self.probe)

    def check(self, progress: Progress) -> None:
        """Raise an error for views, reducers, a model, a folder, tables or corpora that cannot be used."""
        from headscope.reducers.reducer_names import check_names

        if len({*self.views}) < len(self.views):
            raise HeadscopeError(f"`views` names a view twice: {', '.join(self.views)}; name each once.")
        check_names(self.reducers)
        self.check_model()
        self.check_form(self.model)
        check_folder(self)
        _ = self.disabled, self.probes
        self.check_corpora(self.corpus, self.replicate)


atlas = make_function(Atlas)
