"""The lesion map of a model: what each set of heads harms when it is disabled, beyond random sets.

atlas --choose_sets--> sets --draw_random_sets--> units --evaluate_ablations--> outcomes --tabulate_lesions--> files
"""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.analyse.lesions import MATCH, MeasuredSets, tabulate_lesions
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.capture.stream import BATCH_TOKENS
from headscope.heads import write_table
from headscope.intervene.ablation import Unit, list_ablations
from headscope.intervene.edit import capture_model
from headscope.intervene.head_sets import draw_random_sets, unite_heads
from headscope.intervene.ways import prepare_ways
from headscope.jobs.arguments import check_model
from headscope.jobs.effects import count_units, evaluate_ablations, find_known_projections, identify_evaluation
from headscope.jobs.evaluations import EvaluationSource, find_evaluation
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.lesion_arguments import HeadSets, check_lesions, name_heads
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.view.figures import save
from headscope.view.figures.lesions import draw_lesions
from headscope.view.lesions import list_lesions

MANIFEST, TABLE = "lesions.json", "lesions"
"""The manifest of the folder, and the name of its table."""


@shows_progress
def measure_lesions(
    model: Loadable,
    task: Any,
    sets: HeadSets,
    out: str | Path = "headscope-lesions",
    *,
    data: str | Path = ".",
    paradigms: Sequence[str] = (),
    limit: int | None = None,
    rows: Sequence[str] = (),
    size: int = 5,
    random: int = 10,
    match: str = "layer",
    how: str = "uniform",
    seed: int = 0,
    start: str | None = None,
    batch_tokens: int | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Evaluate a model with the heads of each relation disabled together, beside random heads of the same layers.

    Args:
        model: as of `headscope.measure_effects`.
        task: minimal pairs, as ``blimp`` or their file or folder; or whatever else `headscope.measure_effects` takes.
        sets: the folder of an atlas or a head table, whose heads are taken; or the heads of each set, by its name.
        out: the folder for ``lesions.nc``, ``lesions.csv``, ``figures/`` and ``lesions.json``, which lists them.
        data: the file or folder that holds the corpus of a named task, or the folder ``blimp``.
        paradigms: of minimal pairs. Default: all.
        limit: take so many examples at random, the first so many texts, or the first so many pairs of each paradigm.
            Default: all.
        rows: rows of the table whose heads are taken, such as ``obj``. Default: the eight most frequent with a reported
            head.
        size: heads of each set: those with the highest score in the row.
        random: random sets that each set is compared with. Each takes as long as the set itself.
        match: what the random sets have in common with the set: the number of heads in each ``layer``, or the ``size``
            alone, heads in the whole model.
        how: what takes the place of the heads' output: ``uniform``, ``zero``, ``mean`` or ``resample``.
        seed: random seed of the random sets, of the sample and of texts for ``resample``.
        start: the token from which a causal model predicts the first one of a text, such as ``<|endoftext|>``.
            Default: what the tokenizer puts there.
        batch_tokens: tokens in a batch, padding included. Default: 2048.
        device: where to run the model; a loaded model stays where it is.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Returns:
        The head table that is in ``lesions.nc``; `headscope.find_dissociations` lists its double dissociations.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the task, the sets, an argument or the folder.
    """
    check_lesions(how, size, random, match)
    check_model(model)
    named = name_heads(sets, size, rows)
    progress = progress if callable(progress) else ignore_progress
    with OutputFolder("the lesions", Path(out), MANIFEST, (TABLE,), resume=resume, progress=progress) as folder:
        source = task if isinstance(task, EvaluationSource) else None
        if source is None:
            progress("reading the task", 0, 0)
            source = find_evaluation(task, data, paradigms=paradigms, limit=limit, seed=seed)
        progress("loading the model", 0, 0)
        model = load(model, device=device, trust_remote_code=trust_remote_code, task=source.head)
        table = disable_sets(
            folder, TABLE, model, source, named, random=random, match=match, how=how, seed=seed, start=start,
            batch_tokens=batch_tokens,
        )  # fmt: skip
        arguments = {
            "model": model.name, "task": source.name, "sets": named, "paradigms": [*paradigms], "limit": limit,
            "random": random, "match": match, "how": how, "seed": seed, "start": start,
        }  # fmt: skip
        call = f"measure_lesions({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        table = table.assign_attrs(call=call)
        folder.write(lambda fresh: _fill(fresh, table), {"task": source.name, "model": model.name, "how": how})
    return table


def disable_sets(
    folder: OutputFolder, name: str, model: Model, source: EvaluationSource, sets: Mapping[str, Sequence[str]],
    *, random: int, match: str, how: str, seed: int, start: str | None, batch_tokens: int | None,
) -> xr.Dataset:  # fmt: skip
    """The table of lesions of a loaded model; what is measured stays in the folder, from which a killed run goes on.

    Args:
        folder: of the job that writes the table.
        name: of the table there.
        model: with the head that the examples need.
        source: the examples.
        sets: the heads of each set, by its name.
        random: random sets of each set.
        match: what they have in common with it.
        how: what takes the place of the heads' output.
        seed: of the random sets, and of texts for ``resample``.
        start: the token from which a causal model predicts the first one of a text.
        batch_tokens: tokens in a batch.

    Raises:
        HeadscopeError: the examples cannot be scored with this model, a set leaves too few heads for random ones, or
            the model has no such head.
    """
    units = [unite_heads(model, label, heads) for label, heads in sets.items()]
    compared = [[unit, *draw_random_sets(model, unit, random, seed, match)] for unit in units]
    evaluation = source.prepare(model, start=start, batch_tokens=batch_tokens or BATCH_TOKENS)
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
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    about = {"content": evaluation.content, "how": how, MATCH: match, "created": created}
    return tabulate_lesions(measured).assign_attrs(identify_evaluation(model, evaluation) | about)


def _list_heads(unit: Unit) -> list[tuple[str, int, int]]:
    return [(kind, layer, head + 1) for (kind, layer), heads in unit.selection.items() for head in heads]


def _fill(fresh: Path, table: xr.Dataset) -> None:
    """Write all files of the folder."""
    write_table(table, fresh / f"{TABLE}.nc")
    write_csv(list_lesions(table), fresh / f"{TABLE}.csv")
    for name, figure in draw_lesions(table).items():
        save(figure, fresh / "figures", name, pdf=False)
