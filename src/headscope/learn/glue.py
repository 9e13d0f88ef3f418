"""The tasks of six GLUE data sets (Wang et al. 2019), read from their TSV files.

The test files of GLUE have no labels. So here the *test* split is GLUE's development set, and validation is held out of
the training set. Published figures that were chosen on the development set are not held out.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from headscope.errors import CorpusError
from headscope.files import find_by_suffix, sha256
from headscope.learn.splits import check_splits, complete_splits
from headscope.learn.table_rows import split_rows
from headscope.learn.table_task import LABEL, SCORE, Columns, read_labelled
from headscope.learn.task import TEST, TRAIN, Task

_PAIR = ("sentence1", "sentence2")


@dataclass(frozen=True)
class GlueSet:
    """A data set of GLUE.

    Attributes:
        folder: The name of its folder in the GLUE data.
        about: A description of the label.
        columns: The columns of the training and development files.
        metric: The metric that GLUE uses.
        labels: The labels in GLUE's order; empty if the label is a number.
        positive: The positive label of F1; empty without one.
    """

    folder: str
    about: str
    columns: Columns
    metric: str
    labels: tuple[str, ...] = ("0", "1")
    positive: str = ""


GLUE = {
    "cola": GlueSet(
        "CoLA", "whether a sentence is acceptable", metric="matthews", positive="1",
        columns=Columns(("sentence",), LABEL, names=("source", "label", "mark", "sentence")),
    ),
    "mrpc": GlueSet(
        "MRPC", "whether two sentences say the same", metric="f1", positive="1",
        columns=Columns(("#1 String", "#2 String"), "Quality"),
    ),
    "rte": GlueSet(
        "RTE", "whether a text entails a sentence", metric="accuracy", labels=("entailment", "not_entailment"),
        columns=Columns(_PAIR, LABEL),
    ),
    "sst2": GlueSet(
        "SST-2", "whether a phrase of a review is positive", metric="accuracy", columns=Columns(("sentence",), LABEL)
    ),
    "stsb": GlueSet(
        "STS-B", "how alike two sentences are, from 0 to 5", metric="pearson", labels=(), columns=Columns(_PAIR, SCORE)
    ),
    "wnli": GlueSet(
        "WNLI", "whether a sentence with its pronoun replaced follows", metric="accuracy", columns=Columns(_PAIR, LABEL)
    ),
}  # fmt: skip
"""The data sets of GLUE, by their usual names."""


def read_glue(data: str | Path, name: str) -> Task:
    """Read a data set of GLUE as a task.

    Pairs that share their first text are never divided between training and validation, since RTE and WNLI ask several
    questions about one text. In SST-2 the training examples are phrases of sentences, so a phrase that is held out may
    be part of a training example: its validation is easier than its test. GLUE's own development sets share first texts
    with training too: 20 of 277 pairs in RTE, and 53 of 71 in WNLI, which have other labels on purpose.

    The folder `data` holds ``glue/CoLA`` (or the name of another set), or the files themselves.

    Raises:
        CorpusError: The files are missing, or a row is not in GLUE's format.
    """
    glue_set = GLUE[name]
    folder = Path(data).expanduser()
    folder = find_by_suffix(folder, f"glue/{glue_set.folder}") or folder
    files = {TRAIN: folder / "train.tsv", TEST: folder / "dev.tsv"}
    missing = [path.name for path in files.values() if not path.is_file()]
    if missing:
        raise CorpusError(
            f"the task {name} needs the files train.tsv and dev.tsv of GLUE's {glue_set.folder}, and {folder} holds no "
            f"{' and no '.join(missing)}; name a folder that holds glue/{glue_set.folder}, {glue_set.folder} or the "
            "files."
        )
    rows = {
        split: read_labelled(path, split_rows(path), glue_set.columns, glue_set.labels) for split, path in files.items()
    }
    grouped = {
        split: [replace(example, group=example.texts[0]) for example in examples] for split, examples in rows.items()
    }
    splits, notes = complete_splits(grouped)
    return check_splits(
        Task(
            name, kind="classification" if glue_set.labels else "regression", labels=glue_set.labels,
            splits=splits, metric=glue_set.metric, positive=glue_set.positive,
            source={f"glue/{glue_set.folder}/{path.name}": sha256(path) for path in files.values()},
            notes=(f"test is GLUE's development set ({len(splits[TEST]):,} examples): its test has no labels", *notes),
        )
    )  # fmt: skip
