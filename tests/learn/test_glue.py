"""The sets of GLUE: their published sizes, and their rows as pandas reads them."""

import csv
from collections import Counter

import pandas as pd
import pytest

from headscope.errors import CorpusError
from headscope.learn.glue import GLUE, read_glue
from headscope.learn.task import SPLITS

# The rows of data/glue/README.md, and GLUE's own metrics (Wang et al. 2019, table 1).
PUBLISHED = {
    "cola": (8551, 1043, "matthews"),
    "mrpc": (3668, 408, "f1"),
    "rte": (2490, 277, "accuracy"),
    "sst2": (67349, 872, "accuracy"),
    "stsb": (5749, 1500, "pearson"),
    "wnli": (635, 71, "accuracy"),
}
COLUMNS = {
    "cola": (3, None, 1), "mrpc": (3, 4, 0), "rte": (1, 2, 3), "sst2": (0, None, 1), "stsb": (7, 8, 9),
    "wnli": (1, 2, 3),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_sets_have_their_published_rows(data, name):
    train, dev, metric = PUBLISHED[name]
    task = read_glue(data, name)
    assert (len(task.splits["train"]) + len(task.splits["validation"]), len(task.splits["test"])) == (train, dev)
    assert len(task.splits["validation"]) == pytest.approx(min(0.15 * train, 1000), abs=3)
    assert task.metric == metric
    firsts = {split: {example.texts[0] for example in task.splits[split]} for split in ("train", "validation")}
    assert not firsts["train"] & firsts["validation"]
    first, second, label = COLUMNS[name]
    folder = data / "glue" / GLUE[name].folder
    for file, splits in (("train.tsv", SPLITS[:2]), ("dev.tsv", SPLITS[2:])):
        table = pd.read_csv(
            folder / file, sep="\t", quoting=csv.QUOTE_NONE, header=None, skiprows=int(name != "cola"), dtype=str,
            keep_default_na=False, encoding="utf-8",
        )  # fmt: skip
        texts = [table[column].str.strip() for column in (first, second) if column is not None]
        labels = table[label].astype(float) if name == "stsb" else table[label]
        examples = Counter((example.texts, example.label) for split in splits for example in task.splits[split])
        assert examples == Counter(zip(zip(*texts, strict=True), labels, strict=True))


@pytest.mark.data
def test_labels_in_dev_are_those_of_the_readme(data):
    label_counts = {"cola": {"1": 721, "0": 322}, "mrpc": {"1": 279, "0": 129}, "wnli": {"1": 31, "0": 40}}
    label_counts |= {"rte": {"entailment": 146, "not_entailment": 131}}
    for name, labels in label_counts.items():
        assert Counter(example.label for example in read_glue(data, name).splits["test"]) == labels


@pytest.fixture
def rte(tmp_path):
    def write(folder: str, rows: str) -> None:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for file in ("train.tsv", "dev.tsv"):
            (tmp_path / folder / file).write_text(f"index\tsentence1\tsentence2\tlabel\n{rows}")

    return write


ROWS = "".join(f'{i}\tIt "rains {i % 5}.\tIt is wet.\t{"not_" * (i % 2)}entailment\n' for i in range(31))


@pytest.mark.parametrize("folder", ["glue/RTE", "RTE", "."])
def test_a_set_is_found_below_the_folder(rte, tmp_path, folder):
    rte(folder, ROWS)
    task = read_glue(tmp_path, "rte")
    assert list(task.source) == ["glue/RTE/train.tsv", "glue/RTE/dev.tsv"]
    assert task.splits["test"][0].texts == ('It "rains 0.', "It is wet.")
    assert task.labels == ("entailment", "not_entailment")
    assert task.notes[0] == "test is GLUE's development set (31 examples): its test has no labels"
    assert {len({example.texts[0] for example in task.splits[split]}) for split in SPLITS} == {4, 1, 5}


def test_what_is_no_set_of_glue_is_refused(rte, tmp_path):
    with pytest.raises(CorpusError) as caught:
        read_glue(tmp_path, "rte")
    assert str(caught.value) == (
        f"the task rte needs the files train.tsv and dev.tsv of GLUE's RTE, and {tmp_path} holds no train.tsv and no "
        "dev.tsv; name a folder that holds glue/RTE, RTE or the files."
    )
    rte("RTE", ROWS + "31\tIt rains.\tIt is wet.\tperhaps\n")
    with pytest.raises(CorpusError) as caught:
        read_glue(tmp_path, "rte")
    assert str(caught.value) == (
        f"{tmp_path}/RTE/train.tsv:33 has the label 'perhaps'; correct it to one of entailment, not_entailment."
    )
    rte("WNLI", ROWS.replace("entailment", "1"))
    with pytest.raises(CorpusError, match=r"train.tsv:3 has the label 'not_1'; correct it to one of 0, 1.$"):
        read_glue(tmp_path, "wnli")
