"""Six sets of GLUE (Wang et al. 2019) from their TSV files.

The test files of GLUE have no labels. So here the *test* is what GLUE calls its development set, and validation is
held out of the training set: published figures that were chosen on the development set are not held out.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from headscope.errors import CorpusError
from headscope.files import find_by_suffix, sha256
from headscope.learn.splits import checked, completed
from headscope.learn.table import LABEL, SCORE, Columns, labelled
from headscope.learn.task import TEST, TRAIN, Task

_PAIR = ("sentence1", "sentence2")


@dataclass(frozen=True)
class GlueSet:
    """One of the sets.

    Attributes:
        folder: below the folder of GLUE.
        about: what is learned from what.
        columns: of its training and development files.
        metric: GLUE's own.
        labels: in GLUE's order; none where the label is a number.
        positive: the label that F1 is of.
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
"""The sets by the names that GLUE's users call them."""


def read_glue(data: str | Path, name: str) -> Task:
    """One of the sets.

    Pairs that share their first text are never divided between training and validation, since RTE and WNLI ask
    several questions of one text. In SST-2 the training examples are phrases of sentences, so a phrase that is held
    out may lie within one that is trained on: its validation is easier than its test. GLUE's own development sets share
    first texts with training too: of RTE 20 of 277 pairs, of WNLI 53 of 71, on purpose with other labels.

    Args:
        data: the folder that holds ``glue/CoLA``, ``CoLA`` or the files themselves.
        name: one of `GLUE`.

    Raises:
        CorpusError: there are no such files, or a row of them is not as GLUE has it.
    """
    found = GLUE[name]
    folder = Path(data).expanduser()
    folder = find_by_suffix(folder, f"glue/{found.folder}") or folder
    files = {TRAIN: folder / "train.tsv", TEST: folder / "dev.tsv"}
    missing = [path.name for path in files.values() if not path.is_file()]
    if missing:
        raise CorpusError(
            f"the task {name} needs the files train.tsv and dev.tsv of GLUE's {found.folder}, and {folder} holds no "
            f"{' and no '.join(missing)}; name a folder that holds glue/{found.folder}, {found.folder} or the files."
        )
    rows = {split: labelled(path, found.columns, found.labels) for split, path in files.items()}
    grouped = {split: [replace(one, group=one.texts[0]) for one in examples] for split, examples in rows.items()}
    splits, notes = completed(grouped)
    return checked(
        Task(
            name, kind="classification" if found.labels else "regression", labels=found.labels,
            splits=splits, metric=found.metric, positive=found.positive,
            source={f"glue/{found.folder}/{path.name}": sha256(path) for path in files.values()},
            notes=(f"test is GLUE's development set ({len(splits[TEST]):,} examples): its test has no labels", *notes),
        )
    )  # fmt: skip
