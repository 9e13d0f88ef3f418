"""Head tables from recorded scores of heads: an ``.npz`` file for each model, in the layout of a `Recording`.

Arrays in another layout raise an error that names the file and the array. Nothing is ever unpickled.
"""

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.lib.format import MAGIC_PREFIX

from headscope import heads
from headscope.errors import CorpusError, first_line
from headscope.files import reading, sha256
from headscope.guards.archives import load_arrays
from headscope.guards.formats import RECORDING
from headscope.studies.study import RECORDED, Recording, Study

NO_SCORES = "recorded scores are those of heads; the scores of the models on the task are not among them"


def find_paper_model(study: Study, stem: str) -> str:
    """Return the paper's name of the model after which a file is named, such as ``bert-base``; empty if unknown."""
    wanted = stem.casefold()
    for name, ids in study.models.items():
        if wanted in {name.casefold(), *(model_id.rpartition("/")[2].casefold() for model_id in ids)}:
            return name
    return ""


def read_recording(
    study: Study, recording: Recording, path: Path
) -> tuple[dict[str, xr.Dataset], dict[str, str], tuple[str, ...]]:
    """Return recorded scores as head tables, the reasons for missing tables, and the names of unknown arrays.

    Raises:
        CorpusError: the file is not an archive of plain arrays or is too large, a required array is missing,
            or an array has a wrong shape, number of heads or values.
    """
    arrays = _load_arrays(path)
    known = {name: array for name, array in recording.arrays.items() if array in arrays}
    missing = [recording.arrays[name] for name in recording.needed if name not in known]
    if missing:
        raise CorpusError(
            f"{path} has no array {' and no '.join(missing)}; it has {', '.join(arrays) or 'none'}. Give the scores "
            f"of the heads before fine-tuning and after it as {', '.join(recording.arrays.values())}."
        )
    scores = {name: _check_scores(path, array, arrays[array], name, recording) for name, array in known.items()}
    _check_alike(path, known, scores)
    paper_model = find_paper_model(study, path.stem)
    digest = sha256(path)
    model = study.models[paper_model][0] if paper_model else path.stem
    tables = {name: _make_table(values, name, path, model, digest, recording) for name, values in scores.items()}
    absent = {name: f"{path.name} has no {array}" for name, array in recording.arrays.items() if name not in known}
    absent |= dict.fromkeys(("tuned_task", "tuned_control"), NO_SCORES)
    return tables, absent, tuple(name for name in arrays if name not in recording.arrays.values())


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of a file by their names; nothing is unpickled."""
    advice = "save the scores with numpy.savez"
    with reading(path) as file:
        if file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX:
            raise CorpusError(f"{path} holds a single array without a name; {advice}.")
    try:
        return load_arrays(path, RECORDING)
    except ValueError as error:
        raise CorpusError(f"{path} is no archive of plain arrays ({first_line(error)}); {advice}.") from error


def _check_scores(path: Path, name: str, array: np.ndarray, table: str, recording: Recording) -> np.ndarray:
    """Return the scores of an array as floats, after checking its axes and that its values are shares."""
    axes = (*(("run",) if _is_tuned(table) else ()), "layer", "head", "score")
    scores = len(recording.variables)
    if array.ndim != len(axes) or array.shape[-1] != scores or 0 in array.shape:
        raise CorpusError(
            f"{name} in {path} has the shape {array.shape}; its axes must be {', '.join(axes)}, none of them empty, "
            f"and the last {scores} long: {', '.join(variable.rpartition('_')[2] for variable in recording.variables)}."
        )
    if array.dtype.kind not in "fiu":
        raise CorpusError(f"{name} in {path} holds values of the type {array.dtype}; give scores as numbers.")
    values = array.astype(float)
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise CorpusError(
            f"{name} in {path} holds {values[place]:g} at {list(place)}, and {int(wrong.sum()) - 1:,} more that are no "
            "scores; give shares from 0 to 1."
        )
    return values


def _check_alike(path: Path, arrays: Mapping[str, str], scores: Mapping[str, np.ndarray]) -> None:
    """Raise an error if two arrays differ in their numbers of heads, or two corpora in their numbers of runs."""
    first = next(iter(scores))
    layers, heads_per_layer = scores[first].shape[-3:-1]
    for name in scores:
        if scores[name].shape[-3:-1] != (layers, heads_per_layer):
            raise CorpusError(
                f"{arrays[name]} in {path} has the shape {scores[name].shape}, and {arrays[first]} is of {layers} "
                f"layers of {heads_per_layer} heads; give the scores of one model."
            )
    for name, other in combinations(filter(_is_tuned, scores), 2):
        runs, other_runs = len(scores[name]), len(scores[other])
        if name.partition("_")[2] == other.partition("_")[2] and runs != other_runs:
            raise CorpusError(
                f"{arrays[other]} in {path} is of {other_runs} runs, and {arrays[name]} of {runs}; give the "
                "scores of the same runs on both corpora."
            )


def _is_tuned(table: str) -> bool:
    return "_" in table


def _make_table(values: np.ndarray, name: str, path: Path, model: str, sha256: str, recording: Recording) -> xr.Dataset:
    corpus, _, group = name.partition("_")
    dims = ("run", "layer", "head") if group else ("layer", "head")
    about = {"units": recording.units, "source": recording.source}
    variables = {
        variable: heads.variable(values[..., place], dims, name=variable.replace("_", " "), **about)
        for place, variable in enumerate(recording.variables)
    }
    coords = {dim: np.arange(1, size + 1) for dim, size in zip(dims, values.shape, strict=False)}
    attrs = {
        "model": model, "weights_sha256": f"not known, scores {sha256}",
        "corpus": f"{corpus} (recorded)", "corpus_sha256": f"not known, {corpus} of {sha256}",
        "tokens": 0, "documents": 0, "skipped": "{}",
        "call": f"recorded in {path.name}, {recording.arrays[name]}", RECORDED: path.name,
    }  # fmt: skip
    if group:
        runs = [f"run-{number}" for number in coords["run"]]
        coords["run"] = np.array(runs)
        attrs |= {"task": recording.task, "control": int(group == "control")}
        attrs["runs"] = json.dumps([{"name": run} for run in runs])
    return heads.check(xr.Dataset(variables, coords=coords, attrs=attrs))
