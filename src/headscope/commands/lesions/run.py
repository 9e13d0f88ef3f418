"""The lesion map of a model: what each set of heads harms when it is disabled, beyond random sets.

atlas --choose_sets--> sets --draw_random_sets--> units --evaluate_ablations--> outcomes --tabulate_lesions--> files
"""

from functools import partial

import xarray as xr
from rich.console import Console

from headscope.analyse.lesions import MATCH, MeasuredSets, tabulate_lesions
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.commands.evaluations import EvaluationSource
from headscope.commands.folder import OutputFolder
from headscope.commands.lesions.request import Lesions
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.commands.unit_effects import count_units, evaluate_ablations, find_known_projections, identify_evaluation
from headscope.intervene.ablation import Unit, list_ablations
from headscope.intervene.edit import capture_model
from headscope.intervene.head_sets import draw_random_sets, unite_heads
from headscope.intervene.ways import prepare_ways
from headscope.view.figures.draw_lesions import draw_lesions
from headscope.view.lesions_report import list_lesions, print_lesions

TABLE = "lesions"
"""The name of the table of the folder."""


def run(request: Lesions, progress: Progress) -> xr.Dataset:
    """Measure what each set of heads harms beyond random sets, and write the folder."""
    source = request.source
    with open_folder(request, progress) as folder:
        model = request.load(progress, task=source.head)
        table = disable_sets(folder, TABLE, model, source, request)
        names = {"model": model.name, "task": source.name}
        rows = {f"{TABLE}.csv": list_lesions(table)}
        return folder.finish(request, names, {TABLE: table}, rows, partial(draw_lesions, table))


def disable_sets(
    folder: OutputFolder, name: str, model: Model, source: EvaluationSource, request: Lesions
) -> xr.Dataset:
    """The table of lesions of a loaded model; what is measured stays in the folder, from which a killed run goes on.

    Args:
        folder: of the job that writes the table.
        name: of the table there.
        model: with the head that the examples need.
        source: the examples.
        request: which heads are disabled, and how.

    Raises:
        HeadscopeError: the examples cannot be scored with this model, a set leaves too few heads for random ones, or
            the model has no such head.
    """
    how, random, match, seed = request.how, request.random, request.match, request.seed
    units = [unite_heads(model, label, heads) for label, heads in request.heads.items()]
    compared = [[unit, *draw_random_sets(model, unit, random, seed, match)] for unit in units]
    evaluation = source.prepare(
        model, start=request.start, text=request.text, batch_tokens=request.batch_tokens or BATCH_TOKENS
    )
    capture = capture_model(model)
    folder.progress("preparing what takes the place of heads", 0, 0)
    ways = prepare_ways(capture, evaluation, [how], seed=seed)
    ablations = list_ablations([unit for each in compared for unit in each], [how], {})
    outcomes = evaluate_ablations(
        folder, capture, evaluation, ablations, ways, find_known_projections(capture, needed=False), name=name,
        noun="sets of heads", seed=seed,
    )  # fmt: skip
    measured = MeasuredSets(
        metrics=evaluation.metrics, whole=evaluation.gather(outcomes.whole),
        disabled=evaluation.gather(outcomes.disabled), sets={unit.name: _list_heads(unit) for unit in units},
        random=random, norms=outcomes.norms.reshape(len(units), -1), clusters=evaluation.clusters,
        subsets=evaluation.subsets, sizes=count_units(model), attention_types=[*model.layers],
    )  # fmt: skip
    about = {"content": evaluation.content, "how": how, MATCH: match}
    return tabulate_lesions(measured).assign_attrs(identify_evaluation(model, evaluation) | about)


def _list_heads(unit: Unit) -> list[tuple[str, int, int]]:
    return [(kind, layer, head + 1) for (kind, layer), heads in unit.selection.items() for head in heads]


def show(request: Lesions, table: xr.Dataset, console: Console) -> None:
    """Print what suffers without the heads of each relation, and where all is written."""
    print_lesions(table, console, whole=request.whole)
    print_place("all lesions", request.out, "lesions.csv", console)
