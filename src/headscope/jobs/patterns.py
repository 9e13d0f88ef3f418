"""The patterns of the attention maps of a model, written to a folder.

model, texts --classify--> head table --view--> files

With labels of the user, the classifier is trained on them first, and validated on maps that it was not trained on.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyse import assess
from headscope.capture.loading import Loadable, load
from headscope.corpora import Corpus, read, summarize
from headscope.corpora.corpus import name_documents
from headscope.errors import CorpusError
from headscope.heads import write_table
from headscope.jobs.arguments import check_model, open_runs
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.inputs import make_plan
from headscope.jobs.map_arguments import check_patterns
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.learn.map_labels import read_maps_to_label
from headscope.learn.patterns import (
    FOLDS,
    LabelledImages,
    Validation,
    cross_validate,
    finetune,
    pretrain,
    refuse_few,
    write_classifier,
)
from headscope.learn.task import TEST
from headscope.learn.tasks import TASKS, read_task
from headscope.reducers.map_patterns import list_map_reducers
from headscope.reducers.support.map_patterns import PATTERNS, MapClassifier
from headscope.runs import Runs
from headscope.view.figures import save
from headscope.view.figures.patterns import draw_heads, draw_layers, draw_shares
from headscope.view.headings import name_model
from headscope.view.patterns import list_patterns, list_validation

MANIFEST = "patterns.json"
"""The manifest of the folder."""

TABLE, RUNS = "patterns", "runs"
"""The names of the head tables in it: of the model, and of the runs that were tuned from it."""

CLASSIFIER = "classifier.safetensors"
"""The weights of a classifier that was trained on labels of the user."""

VALIDATION = "validation.csv"
"""The confusion matrix of that classifier on maps that it was not trained on."""


@shows_progress
def patterns(
    model: Loadable,
    corpus: str | Path | Iterable[Any],
    out: str | Path = "headscope-patterns",
    *,
    data: str | Path = ".",
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = 1000,
    seed: int = 0,
    runs: str | Path | Runs | None = None,
    labels: Sequence[str | Path] = (),
    classifier: str | Path | None = None,
    max_tokens: int | None = None,
    pair_tokens: int | None = None,
    batch_tokens: int | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Classify the attention maps of each head: vertical, diagonal, both, blocks or none of these.

    Of a decoder also how much of its maps sparse shapes keep (`headscope.reducers.SparseShapes`), without labels.

    Args:
        model: a hub id, a folder, a ``.gguf`` file, ``minilm`` or ``smollm2`` (`headscope.load`), or a loaded model of
            transformers, alone or as ``(model, tokenizer)``.
        corpus: a task such as ``mrpc`` (`headscope list tasks`), of which the test texts are read; a file or folder,
            ``grammar``, or texts in memory (`headscope.read`).
        out: the folder for ``patterns.nc``, ``patterns.csv``, ``figures/`` and ``patterns.json``, which lists them; of
            runs also ``runs.nc`` and ``runs.csv``, of labels ``classifier.safetensors`` and ``validation.csv``.
        data: the file or folder of the task's corpus. Default: the working directory.
        format: format of the corpus. Detected automatically if omitted.
        limit: take the first so many documents. Default: all.
        sample: take so many documents at random, in their order; all of a corpus that has no more.
        seed: random seed of the sample, and of training on labels.
        runs: a folder of runs that were tuned from the model, whose maps are classified too. Default: none.
        labels: folders of maps that you labelled (`headscope.label_maps`); the classifier is trained on generated maps
            and on these. Default: the classifier that comes with headscope.
        classifier: a file ``classifier.safetensors`` of an earlier call with labels. Default: none.
        max_tokens: leave out longer texts. Default: 512.
        pair_tokens: cut pairs of texts to this many tokens. Default: 128.
        batch_tokens: tokens in a batch, padding included.
        device: where to run the model; maps are classified on the processor.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Returns:
        The head table that is in ``patterns.nc``, with ``pattern_share`` over layer, head and pattern.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus, the labels or the folder.
    """
    progress = progress if callable(progress) else ignore_progress
    check_patterns(labels, classifier)
    check_model(model)
    runs = open_runs(runs, None)
    with OutputFolder("the patterns", Path(out), MANIFEST, (TABLE, RUNS), resume=resume, progress=progress) as folder:
        progress("reading the corpus", 0, 0)
        documents = read_texts(corpus, data=data, format=format, limit=limit, sample=sample, seed=seed)
        summary = summarize(documents)
        trained, validations = _train(labels, classifier, seed, progress)
        progress("loading the model", 0, 0)
        model = load(model, device=device, trust_remote_code=trust_remote_code)
        reducers = list_map_reducers(trained, summary, causal="decoder" in model.layers)
        plan = make_plan(max_tokens, None, pair_tokens, batch_tokens)
        label = f"classifying the maps of {name_model(model.name)}"
        table = assess(folder.measure(TABLE, model, documents, reducers, label=label, plan=plan, summary=summary))
        tables = {TABLE: table.assign_attrs(_describe(validations))}
        if runs is not None:
            label = f"classifying the maps of {len(runs.runs)} runs of {runs.task}"
            of_runs = folder.measure(
                RUNS, model, documents, reducers[:1], label=label, plan=plan, summary=summary, runs=runs,
                trust_remote_code=trust_remote_code,
            )  # fmt: skip
            tables[RUNS] = assess(of_runs).assign_attrs(_describe(validations))
        folder.write(
            lambda fresh: _fill(fresh, tables, trained if labels else None, validations),
            {"model": model.name, "corpus": name_documents(documents)},
        )
    return tables[TABLE]


def read_texts(
    corpus: str | Path | Iterable[Any],
    *,
    data: str | Path,
    format: str | None,
    limit: int | None,
    sample: int | None,
    seed: int,
) -> Corpus:
    """The documents of a corpus, or the test texts of a task.

    Raises:
        HeadscopeError: the corpus or the task cannot be read.
    """
    if not (isinstance(corpus, str) and corpus in TASKS):
        return read(corpus, format=format, limit=limit, sample=sample, seed=seed)
    examples = read_task(corpus, data).splits[TEST]
    documents = [example.to_document() for example in examples if example.texts and all(map(str.split, example.texts))]
    if not documents:
        raise CorpusError(f"the task {corpus} has words with tags and no texts; give its corpus and not its name.")
    return replace(read(documents, limit=limit, sample=sample, seed=seed), name=corpus)


def _train(
    labels: Sequence[str | Path], classifier: str | Path | None, seed: int, progress: Progress
) -> tuple[MapClassifier, dict[str, Validation]]:
    """The classifier to use; if it is trained on labels, also what it says of maps that it was not trained on."""
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
    """The labelled maps of all folders.

    Raises:
        CorpusError: no map is labelled.
    """
    maps, labels = [], []
    for folder in folders:
        labelled = read_maps_to_label(Path(folder).expanduser())
        for number, label in sorted(labelled.labels.items()):
            maps.append(labelled.maps[number - 1])
            labels.append(label)
    if not labels:
        raise CorpusError(f"no map in {', '.join(map(str, folders))} is labelled; label some with --annotate FOLDER.")
    return LabelledImages.from_maps(maps, labels)


def _describe(validations: Mapping[str, Validation]) -> dict[str, Any]:
    """The attributes that say how good the classifier is on the labels of the user; none without labels."""
    return {
        f"classifier_{name}": value
        for parts, validation in validations.items()
        for name, value in {
            f"f1_by_{parts}": validation.f1,
            f"f1_by_{parts}_interval": list(validation.interval),
        }.items()
    }


def _fill(
    fresh: Path,
    tables: Mapping[str, xr.Dataset],
    trained: MapClassifier | None,
    validations: Mapping[str, Validation],
) -> None:
    """Write all files of the folder."""
    for name, table in tables.items():
        write_table(table, fresh / f"{name}.nc")
        write_csv(list_patterns(table), fresh / f"{name}.csv")
    if trained is not None:
        write_classifier(trained.network, fresh / CLASSIFIER)
        write_csv(
            list_validation({name: _label(each.confusion) for name, each in validations.items()}), fresh / VALIDATION
        )
    bars = {name_model(tables[TABLE].attrs["model"]): tables[TABLE]}
    if RUNS in tables:
        bars[f"tuned on {tables[RUNS].attrs['task']}"] = tables[RUNS]
    table = tables[TABLE]
    figures = {"shares": draw_shares(bars), "layers": draw_layers(table), "heads": draw_heads(table)}
    for name, figure in figures.items():
        save(figure, fresh / "figures", name, pdf=False)


def _label(confusion: np.ndarray) -> xr.DataArray:
    """A confusion matrix with the names of the patterns."""
    names = list(PATTERNS)
    return xr.DataArray(confusion, {"label": names, "predicted": names}, ("label", "predicted"))
