"""The lesion map of a model: the phenomena that suffer more without a set of heads than without random sets.

atlas --choose_sets--> sets, random sets --evaluate_ablations, until decided--> outcomes --tabulate_lesions--> files
"""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import chain, islice

import numpy as np
import xarray as xr
from rich.console import Console

from headscope.analyse.effects import Quantities
from headscope.analyse.lesions import MATCH, MeasuredSets, list_parts, measure_harm, tabulate_lesions
from headscope.analyse.rank_test import count_needed_runs, draw_until_decided
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.commands.evaluations import EvaluationSource
from headscope.commands.folder import OutputFolder
from headscope.commands.lesions.request import Lesions
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.commands.unit_effects import (
    count_units,
    describe_predictions,
    evaluate_ablations,
    find_known_projections,
    identify_evaluation,
)
from headscope.intervene.ablation import Unit, list_ablations
from headscope.intervene.edit import capture_model
from headscope.intervene.effect import Outcomes
from headscope.intervene.head_sets import count_random_sets, draw_random_sets, unite_heads
from headscope.intervene.ways import prepare_ways
from headscope.view.figures.draw_lesions import draw_lesions
from headscope.view.lesions_report import list_lesions, print_lesions

TABLE = "lesions"
"""The name of the head table in the folder."""


def run(request: Lesions, progress: Progress) -> xr.Dataset:
    """Measure how much more each set of heads harms the metrics than random sets do; write the results to a folder."""
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
    """Measure the lesions of a loaded model; with `resume`, continue from the sums in the folder.

    Args:
        folder: The folder of the command that writes the table.
        name: The name under which sums are kept in the folder.
        model: The model, with the task head that the examples need.
        source: The examples.
        request: The sets of heads, and how they are disabled.

    Raises:
        HeadscopeError: The examples cannot be scored with this model, or the model lacks a head of a set.
    """
    how, match, seed = request.how, request.match, request.seed
    units = [unite_heads(model, label, heads) for label, heads in request.heads.items()]
    others = [count_random_sets(model, unit, match) for unit in units]
    evaluation = source.prepare(
        model, start=request.start, text=request.text, batch_tokens=request.batch_tokens or BATCH_TOKENS
    )
    capture = capture_model(model)
    folder.progress("preparing what takes the place of heads", 0, 0)
    ways = prepare_ways(capture, evaluation, [how], seed=seed)
    projections = find_known_projections(capture, needed=False)
    most = max(request.random, count_needed_runs(len(units)))
    random_sets = [draw_random_sets(model, unit, seed, match) for unit in units]
    measured: list[Outcomes] = []
    of_set: list[int] = []

    def gather() -> tuple[Quantities, Quantities, Outcomes]:
        outcomes = reduce(Outcomes.join, measured)
        return evaluation.gather(outcomes.whole), evaluation.gather(outcomes.disabled), outcomes

    def draw(going: Sequence[int], done: int, until: int) -> Mapping[int, np.ndarray]:
        runs = [
            (each, unit)
            for each in going
            for unit in chain([] if done else [units[each]], islice(random_sets[each], until - done))
        ]
        ablations = list_ablations([unit for _, unit in runs], [how], {})
        noun = f"sets of heads ({len(going)} left, random sets {done + 1} to {until} of at most {most})"
        measured.append(
            evaluate_ablations(
                folder, capture, evaluation, ablations, ways, projections, name=name, noun=noun, seed=seed,
                run=str(until),
            )
        )  # fmt: skip
        of_set.extend(each for each, _ in runs)
        harm = measure_harm(evaluation.metrics, *gather()[:2], evaluation.subsets)
        return {each: harm[np.array(of_set) == each] for each in going}

    p = draw_until_decided(draw, list_parts(evaluation.metrics, evaluation.subsets), others, request.random)
    whole, disabled, outcomes = gather()
    table = tabulate_lesions(
        MeasuredSets(
            metrics=evaluation.metrics, whole=whole, disabled=disabled, of_set=np.array(of_set),
            sets={unit.name: _list_heads(unit) for unit in units}, others=others, p=p, norms=outcomes.norms,
            clusters=evaluation.clusters, subsets=evaluation.subsets, sizes=count_units(model),
            attention_types=[*model.layers],
        )
    )  # fmt: skip
    about = {"content": evaluation.content, "how": how, MATCH: match, "random_sets": request.random}
    about |= describe_predictions(evaluation, whole)
    return table.assign_attrs(identify_evaluation(model, evaluation) | about)


def _list_heads(unit: Unit) -> list[tuple[str, int, int]]:
    return [(kind, layer, head + 1) for (kind, layer), heads in unit.selection.items() for head in heads]


def show(request: Lesions, table: xr.Dataset, console: Console) -> None:
    """Print the phenomena that suffer without the heads of each relation, and the file with all lesions."""
    print_lesions(table, console, whole=request.whole)
    print_place("all lesions", request.out, "lesions.csv", console)
