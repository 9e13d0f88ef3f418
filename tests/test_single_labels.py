"""Runs that name one label for all texts: said wherever their heads are shown, in one sentence."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import headscope
import tiny
from headscope import runs
from headscope.analyse.need import add_need
from headscope.errors import HeadscopeError
from headscope.predictions import SingleLabel, count_predictions, find_single_labels, list_single_labels
from headscope.view.wording import describe_single_labels
from planted_task import make_task, plant_task
from task_runs import plant_runs

APART = "tells no labels apart, and what disabling a head changes cannot be seen in it."
DOGS, MIXED = count_predictions(61, {"dog": 61}), count_predictions(61, {"cat": 30, "dog": 31})


def plant_single(folder: Path) -> Path:
    """A classifier that calls every text a dog, on disk."""
    planted = plant_task([(2, 3)])
    with torch.no_grad():
        planted.module.classifier.bias[1] = 1000
    for part in (planted.module, planted.tokenizer):
        part.save_pretrained(folder)
    return folder


def join(printed: str) -> str:
    """What was printed, without the ends of its lines."""
    return " ".join(printed.split())


SENTENCES = {
    "a model": ({"": DOGS}, [f"The model names one label ('dog') for all 61 texts: it {APART}"]),
    "a run": (
        {"seed-1": MIXED, "seed-3": DOGS},
        [f"The run seed-3 names one label ('dog') for all 61 texts: it {APART}"],
    ),
    "runs": (
        {"seed-1": DOGS, "seed-3": DOGS, "seed-3 of the control": DOGS},
        [
            "The runs seed-1, seed-3 and seed-3 of the control name one label ('dog') for all 61 texts: they tell no "
            "labels apart, and what disabling a head changes cannot be seen in them.",
        ],
    ),
    "two labels": (
        {"seed-1": DOGS, "seed-2": count_predictions(61, {"cat": 61, "dog": 0})},
        [f"The run {run} names one label ({label!r}) for all 61 texts: it {APART}" for run, label in (
            ("seed-1", "dog"), ("seed-2", "cat"))],
    ),
    "words": (
        {"seed-1": count_predictions(1234, {"O": 56789})},
        [f"The run seed-1 names one label ('O') for all words of 1,234 texts: it {APART}"],
    ),
    "both labels": ({"": MIXED}, []),
    "nothing is known": ({"seed-1": {}}, []),
}  # fmt: skip


@pytest.mark.parametrize("what", SENTENCES)
def test_the_sentence(what: str) -> None:
    predicted, sentences = SENTENCES[what]
    assert describe_single_labels(list_single_labels(predicted)) == sentences


def test_a_table_names_its_runs_and_those_of_the_control() -> None:
    entries = [{"name": "seed-1", "predicted": DOGS}, {"name": "seed-2"}]
    entries += [{"name": "seed-1", "predicted": DOGS, "group": "control"}]
    about = {"runs": json.dumps(entries), "predicted": json.dumps(MIXED)}
    assert find_single_labels(about) == [SingleLabel("dog", 61, False, ("seed-1", "seed-1 of the control"))]
    assert find_single_labels({"predicted": json.dumps(DOGS)}) == [SingleLabel("dog", 61, False)]
    assert find_single_labels({}) == []


def test_a_list_of_runs_of_an_older_version_has_no_predictions(tmp_path: Path) -> None:
    plant_runs(tmp_path, [[(2, 3)]])
    path = tmp_path / "runs" / "runs.json"
    stored = json.loads(path.read_text())
    del stored["runs"][0]["predicted"]
    path.write_text(json.dumps(stored))
    assert runs.read(path.parent).runs[0].predicted == {}
    for damaged in ({"test": 3}, {"test": {"texts": 3}}, {"test": {"texts": 3, "labels": ["dog"]}}, 3):
        stored["runs"][0]["predicted"] = damaged
        path.write_text(json.dumps(stored))
        with pytest.raises(HeadscopeError, match=r"runs\.json is damaged"):
            runs.read(path.parent)


def test_a_model_that_names_one_label_shows_no_effect_without_the_sentence(run, tmp_path: Path) -> None:
    plant_single(tmp_path / "model")
    task = make_task()
    lines = [f"{each.texts[0]}\t{each.label}\n" for each in task.splits["test"]]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + "".join(lines))
    code, printed, _ = run(
        "disable", tmp_path / "model", tmp_path, "--heads", "2-3,1-1", "--placebos", 2, "-o", tmp_path / "out"
    )
    assert (code, "no effect seen" in printed) == (0, True)
    sentence = f"The model names one label ('dog') for all 61 texts: it {APART}"
    assert printed.split("\n\n")[1].replace("\n", " ").startswith(sentence)
    table = headscope.lesions(tmp_path / "model", task, {"nouns": ["2-3"]}, tmp_path / "lesions", progress=False)
    assert describe_single_labels(find_single_labels(table.attrs)) == [sentence]


def test_a_model_that_tells_labels_apart_is_not_named(tmp_path: Path) -> None:
    table = headscope.measure_effects(
        plant_task([(2, 3)]), make_task(), tmp_path, heads="2-3", placebos=2, progress=False
    )  # fmt: skip
    labels = Counter(str(example.label) for example in make_task().splits["test"])  # it is always right
    assert json.loads(table.attrs["predicted"]) == {"texts": 61, "labels": dict(labels)}
    assert find_single_labels(table.attrs) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, of which the second names one label; the list says so of its test split."""
    folder = tmp_path_factory.mktemp("runs")
    finished = plant_runs(folder, [[(2, 3)]] * 3)
    plant_single(folder / "runs" / "seed-2")
    digest = headscope.load(folder / "runs" / "seed-2").weights_sha256
    changed = [
        replace(each, weights_sha256=digest if each.seed == 2 else each.weights_sha256,
                predicted={"test": DOGS if each.seed == 2 else MIXED})
        for each in finished.runs
    ]  # fmt: skip
    runs.write(replace(finished, runs=tuple(changed)))
    return folder


SECOND = f"The run seed-2 names one label ('dog') for all 61 texts: it {APART}"


def test_effects_of_runs_name_the_run(folder: Path, tmp_path: Path) -> None:
    table = headscope.measure_effects(
        str(folder / "model"), make_task(), tmp_path, runs=folder / "runs", heads="2-3,1-1", placebos=2, progress=False
    )
    for each in (table, headscope.analyse.summarize_effects(table), headscope.read_table(tmp_path / "effects.nc")):
        assert describe_single_labels(find_single_labels(each.attrs)) == [SECOND]
    # Of the examples that were evaluated, and not of those of the list.
    few = headscope.measure_effects(
        str(folder / "model"), make_task(), tmp_path / "few", runs=folder / "runs", heads="2-3", placebos=0, limit=20,
        progress=False,
    )  # fmt: skip
    assert find_single_labels(few.attrs) == [SingleLabel("dog", 20, False, ("seed-2",))]
    for run, sentences in (("seed-1", []), ("seed-2", [SECOND.replace("The run seed-2", "The model")])):
        own = table.sel(run=run)
        assert _describe_need(own) == sentences


def _describe_need(effects: Any) -> list[str]:
    measured = add_need(headscope.measure(plant_task([(2, 3)]), "grammar:7", ["surface"], progress=False), effects)
    about: Mapping[str, str] = measured.attrs
    return describe_single_labels(list_single_labels({"": json.loads(about["effects_predicted"])}))


@pytest.fixture(scope="module")
def tables(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The head tables before, after, and of a control whose first run names one label."""
    out, model = tmp_path_factory.mktemp("tables"), str(folder / "model")
    finished = plant_runs(out, [[(3, 1)]] * 2, control=True)
    changed = [replace(each, predicted={"test": DOGS}) if each.seed == 1 else each for each in finished.runs]
    runs.write(replace(finished, runs=tuple(changed)))
    settings = {"reducers": ["relations"], "permutations": 0, "progress": False}
    return {
        "before": headscope.measure(model, "grammar:60", **settings),
        "after": headscope.measure(model, "grammar:60", runs=folder / "runs", **settings),
        "control": headscope.measure(model, "grammar:60", runs=out / "runs", **settings),
    }


@pytest.mark.full
def test_a_comparison_names_the_runs_on_the_terminal_and_on_its_pages(run, tables, tmp_path: Path) -> None:
    for name, table in tables.items():
        headscope.write_table(table, tmp_path / f"{name}.nc")
    paths = [tmp_path / "before.nc", tmp_path / "after.nc", "--control", tmp_path / "control.nc"]
    code, printed, _ = run("compare", *paths, "-o", tmp_path / "changes")
    sentence = (
        "The runs seed-2 and seed-1 of the control name one label ('dog') for all 61 texts: they tell no labels apart, "
        "and what disabling a head changes cannot be seen in them."
    )
    assert (code, join(printed).count(sentence)) == (0, 1)
    assert (tmp_path / "changes" / "comparison.md").read_text().count(f"**{sentence}**") == 1
    page = (tmp_path / "changes" / "comparison.html").read_text().replace("&#x27;", "'")
    assert page.count(sentence) == 1


def test_tune_says_so_of_the_weights_that_it_keeps(run, tmp_path: Path) -> None:
    """All texts are alike, so that no model tells them apart; transformers says what it names."""
    base = tiny.save(tmp_path / "base")
    for split, size in (("train", 60), ("dev", 20), ("test", 30)):
        lines = [f"the old dog\t{'common' if n % 5 else 'rare'}\n" for n in range(size)]
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + "".join(lines))
    options = ("--seed", 7, "--epochs", 1, "--learning-rate", "1e-3")
    code, printed, _ = run("tune", tmp_path, base, "-o", tmp_path / "runs", *options)
    assert code == 0
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "runs" / "seed-7").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "runs" / "seed-7")
    with torch.no_grad():
        label = model.config.id2label[int(model(**tokenizer("the old dog", return_tensors="pt")).logits.argmax())]
    (finished,) = runs.read(tmp_path / "runs").runs
    assert finished.predicted["test"] == {"texts": 30, "labels": {label: 30}}
    assert join(printed).count(f"The run seed-7 names one label ({label!r}) for all 30 texts: it {APART}") == 1
