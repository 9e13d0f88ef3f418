"""Tasks by name."""

import pytest

from headscope.errors import HeadscopeError
from headscope.learn.tasks import TASKS, read_task

ROWS = "text\tlabel\na\tgood\nb\tbad\n"


def test_each_name_says_what_is_learned(run):
    assert list(TASKS) == ["negation", "aspects", "cola", "mrpc", "rte", "sst2", "stsb", "wnli", "table"]
    code, output, _ = run("list", "tasks")
    assert code == 0
    for name, task in TASKS.items():
        assert f"{name} " in output
        assert task.description[:40] in output


def test_a_task_is_read_by_its_name(tmp_path, monkeypatch):
    task = read_task("negation", "grammar:101")
    assert (task.name, task.kind) == ("negation", "tagging")
    for file in ("train", "dev", "test"):
        (tmp_path / f"{file}.tsv").write_text(ROWS)
    own, same = read_task("table", tmp_path), read_task(str(tmp_path))
    assert (own.name, same.name) == ("table", tmp_path.name)
    assert own.splits == same.splits
    monkeypatch.chdir(tmp_path)
    assert read_task(".").name == tmp_path.name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "negatoin",
            "there is no task 'negatoin' (did you mean negation?); there are negation, aspects, cola, mrpc, rte, "
            "sst2, stsb, wnli, table, datasets:NAME for a set that the library `datasets` loads, and any folder "
            "with a train.tsv and a test.tsv.",
        ),
        ("cola", "the task cola needs its corpus; name the file or folder that holds it."),
        ("datasets:", "datasets: names no set; write datasets:NAME, datasets:NAME/CONFIG or datasets:FOLDER."),
    ],
)
def test_what_is_no_task_is_refused(name, sentence):
    with pytest.raises(HeadscopeError) as caught:
        read_task(name)
    assert str(caught.value) == sentence
