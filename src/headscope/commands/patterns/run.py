"""The command `patterns`: classify the attention maps of a model, and write the results to a folder.

model, texts --classify--> head table --view--> files

With labels of the user, the classifier is trained on them first, and validated on maps that it was not trained on.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.analyse import assess
from headscope.commands.inputs import make_plan
from headscope.commands.output import open_folder
from headscope.commands.patterns.labelling import prepare_maps
from headscope.commands.patterns.request import RUNS, TABLE, Patterns, TypedPatterns
from headscope.commands.progress import Progress
from headscope.corpora import summarize
from headscope.corpora.corpus import name_documents
from headscope.errors import CorpusError
from headscope.learn.map_classifier import (
    FOLDS,
    LabelledImages,
    Validation,
    cross_validate,
    finetune,
    pretrain,
    refuse_few,
    write_classifier,
)
from headscope.learn.map_labels import read_maps_to_label
from headscope.reducers.map_patterns import list_map_reducers
from headscope.reducers.support.pattern_network import LEAST_TOKENS, PATTERNS, MapClassifier
from headscope.view.figures.draw_patterns import draw_heads, draw_layers, draw_shares
from headscope.view.headings import name_model
from headscope.view.patterns_report import list_patterns, list_validation

CLASSIFIER = "classifier.safetensors"
"""The file with the weights of a classifier that was trained on the user's labels."""

VALIDATION = "validation.csv"
"""The file with the confusion matrix of this classifier, on maps that it was not trained on."""


def run(request: Patterns, progress: Progress) -> xr.Dataset | None:
    """Classify the maps of the model, and of runs if some are named, and write the results to the folder.

    With `annotate`, this only writes the maps to label and returns None; the page for labelling opens afterwards.

    Raises:
        CorpusError: All maps are too short.
    """
    if isinstance(request, TypedPatterns) and request.labelling is not None:
        prepare_maps(request.labelling, progress)
        return None
    documents, runs = request.documents, request.tuned
    with open_folder(request, progress) as folder:
        summary = summarize(documents)
        trained, validations = _train(request.labels, request.classifier, request.seed, progress)
        progress("loading the model", 0, 0)
        model = request.load()
        reducers = list_map_reducers(trained, summary, causal="decoder" in model.layers)
        plan = make_plan(request)
        measure = partial(folder.measure, plan=plan, summary=summary, trust_remote_code=request.trust_remote_code)
        step = f"classifying the maps of {name_model(model.name)}"
        tables = {TABLE: assess(measure(TABLE, model, documents, reducers, label=step))}
        if runs is not None:
            step = f"classifying the maps of {len(runs.runs)} runs of {runs.task}"
            tables[RUNS] = assess(measure(RUNS, model, documents, reducers[:1], label=step, runs=runs))
        if not tables[TABLE]["pattern_count"].any():
            raise CorpusError(
                f"no text of {name_documents(documents)} has {LEAST_TOKENS} tokens, and shorter maps show no pattern; "
                "give longer texts."
            )
        names = {"model": model.name, "corpus": name_documents(documents)} | ({"runs": runs.task} if runs else {})
        tables = {name: table.assign_attrs(_describe(validations)) for name, table in tables.items()}
        files = _list_files(tables, trained if request.labels else None, validations)
        return folder.finish(request, names, tables, files, partial(_draw, tables))


def _train(
    labels: Sequence[str | Path], classifier: str | Path | None, seed: int, progress: Progress
) -> tuple[MapClassifier, dict[str, Validation]]:
    """Return the classifier: the given or the built-in one, or one that is trained on labels.

    Returns:
        The classifier, and its predictions for maps outside its training set, by the division of the maps (empty
        without labels).
    """
    if not labels:
        return MapClassifier.read(classifier), {}
    labelled = _read_labels(labels)
    refuse_few(labelled)
    progress("training on generated maps", 0, 0)
    start = pretrain(seed)
    validations = {}
    for parts, by_head in {"maps": False, "heads": True}.items():
        if len(set(labelled.heads)) >= FOLDS or not by_head:
            step = f"validating in {FOLDS} parts of the {parts}"
            validations[parts] = cross_validate(
                start, labelled, by_head=by_head, seed=seed, progress=partial(progress, step)
            )
    progress("training on all labelled maps", 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CLASSIFIER
        write_classifier(finetune(start, labelled, seed), path)
        return MapClassifier.read(path), validations


def _read_labels(folders: Sequence[str | Path]) -> LabelledImages:
    """Read the labelled maps of all folders as images.

    Raises:
        CorpusError: No map is labelled.
    """
    maps, labels = [], []
    for folder in folders:
        labelled = read_maps_to_label(Path(folder).expanduser())
        for number, label in sorted(labelled.labels.items()):
            maps.append(labelled.maps[number - 1])
            labels.append(label)
    if not labels:
        raise CorpusError(
            f"no map in {', '.join(map(str, folders))} is labelled; label some with `headscope patterns --annotate "
            "FOLDER`."
        )
    return LabelledImages.from_maps(maps, labels)


def _describe(validations: Mapping[str, Validation]) -> dict[str, Any]:
    """Return the scores of the classifier on the user's labels, as attributes of a table; empty without labels."""
    return {
        f"classifier_{name}": value
        for parts, validation in validations.items()
        for name, value in {
            f"f1_by_{parts}": validation.f1,
            f"f1_by_{parts}_interval": list(validation.interval),
        }.items()
    }


def _list_files(
    tables: Mapping[str, xr.Dataset], trained: MapClassifier | None, validations: Mapping[str, Validation]
) -> dict[str, Any]:
    """Return the contents of the files of the folder by name, without the tables."""
    files: dict[str, Any] = {f"{name}.csv": list_patterns(table) for name, table in tables.items()}
    if trained is not None:
        confusions = {name: _label(each.confusion) for name, each in validations.items()}
        files |= {CLASSIFIER: partial(write_classifier, trained.network), VALIDATION: list_validation(confusions)}
    return files


def _draw(tables: Mapping[str, xr.Dataset]) -> dict[str, Figure]:
    """Draw the figures, and return them by name."""
    table = tables[TABLE]
    bars = {name_model(table.attrs["model"]): table}
    if RUNS in tables:
        bars[f"tuned on {tables[RUNS].attrs['task']}"] = tables[RUNS]
    return {"shares": draw_shares(bars), "layers": draw_layers(table), "heads": draw_heads(table)}


def _label(confusion: np.ndarray) -> xr.DataArray:
    """Return a confusion matrix as an array with the names of the patterns."""
    names = list(PATTERNS)
    return xr.DataArray(confusion, {"label": names, "predicted": names}, ("label", "predicted"))
