"""`headscope patterns` from a model and texts to a folder of files, with the labels of a user and without."""

from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

import headscope
import tiny
from headscope import heads
from headscope.commands.patterns.labelling import prepare_maps
from headscope.commands.patterns.request import LabelMaps, Patterns
from headscope.commands.progress import ignore_progress
from headscope.commands.recorded_request import restore_request
from headscope.errors import CorpusError, HeadscopeError
from headscope.learn import map_classifier as training
from headscope.learn.generated_maps import generate_images
from headscope.learn.map_classifier import LabelledImages, cross_validate, finetune, pretrain
from headscope.learn.map_labels import read_maps_to_label, write_labels
from headscope.reducers.support.pattern_network import PATTERNS
from headscope.view.patterns_report import print_patterns

NAMES = list(PATTERNS)
TEXTS = [document for document in tiny.documents(29) if len(document.words) > 1]


@pytest.fixture(autouse=True)
def _few_generated(monkeypatch) -> None:
    monkeypatch.setattr(training, "GENERATED", 13)
    monkeypatch.setattr(training, "REMINDERS", 2)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Path:
    """A folder of maps, each with a label."""
    folder = tmp_path_factory.mktemp("labels") / "maps"
    long = [document for document in tiny.documents(43) if len(document.words) > 3]
    prepare_maps(LabelMaps(tiny.make("bert"), long, folder, maps=23), ignore_progress)
    maps = read_maps_to_label(folder)
    for number in range(1, 24):
        maps = maps.give(number, NAMES[number % len(NAMES)])
    write_labels(folder, maps)
    return folder


def test_files_and_shares(tmp_path: Path) -> None:
    table = headscope.patterns(tiny.make("bert"), TEXTS, tmp_path / "out", sample=11, figures=True, progress=False)
    written = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    figures = {f"figures/{name}.{suffix}" for name in ("shares", "layers", "heads") for suffix in ("png", "svg")}
    assert written == {"patterns.nc", "patterns.csv", "patterns.json", *figures}
    assert int(table["pattern_count"] + table["pattern_left_out"]) == 11
    assert int(table["pattern_left_out"]) == 3
    console = Console(file=StringIO(), width=200)
    print_patterns(table, console)
    short = "documents of fewer than 6 tokens, whose maps are not classified: 3"
    assert f"8 maps a head; {short}\n" in console.file.getvalue()
    np.testing.assert_allclose(table["pattern_share"].sum("pattern"), 1)
    assert {"pattern_share_lower", "pattern_share_upper"} <= {*table.data_vars}
    frame = pd.read_csv(tmp_path / "out" / "patterns.csv")
    assert [*frame] == ["layer", "head", "pattern", "share", "maps"]
    row = frame[(frame.layer == 2) & (frame["head"] == 1) & (frame.pattern == "block")]
    assert row["share"].item() == pytest.approx(float(table["pattern_share"].sel(layer=2, head=1, pattern="block")))
    assert heads.read_table(tmp_path / "out" / "patterns.nc").attrs["pattern_classifier"].startswith("headscope, SHA")


def test_a_decoder_has_sparse_shapes_too(tmp_path: Path) -> None:
    table = headscope.patterns(tiny.make("gpt2"), TEXTS[:7], tmp_path / "out", progress=False)
    assert table["sparse_mass"].dims == ("layer", "head", "kept")
    np.testing.assert_allclose(table["sparse_best_share"].sum("shape"), 1)


@pytest.fixture
def few_folds(monkeypatch) -> None:
    monkeypatch.setattr(training, "FOLDS", 3)


@pytest.mark.full
def test_labels_train_a_classifier_that_can_be_used_again(few_folds, labelled: Path, tmp_path: Path) -> None:
    first = headscope.patterns(
        tiny.make("bert"), TEXTS, tmp_path / "first", sample=7, labels=[labelled], progress=False
    )
    assert 0 <= first.attrs["classifier_f1_by_maps"] <= 1
    low, high = first.attrs["classifier_f1_by_maps_interval"]
    assert low <= first.attrs["classifier_f1_by_maps"] <= high
    validation = pd.read_csv(tmp_path / "first" / "validation.csv")
    assert validation.groupby("parts")["maps"].sum().to_dict() == {"heads": 23, "maps": 23}
    again = headscope.patterns(
        tiny.make("bert"), TEXTS, tmp_path / "again", sample=7, progress=False,
        classifier=tmp_path / "first" / "classifier.safetensors",
    )  # fmt: skip
    np.testing.assert_array_equal(first["pattern_share"], again["pattern_share"])


def test_a_killed_run_goes_on_to_the_same_table(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("headscope.runner.local.SAVE_EVERY", 0.0)
    settings = {"batch_tokens": 31, "progress": False}
    whole = headscope.patterns(tiny.make("bert"), TEXTS, tmp_path / "whole", **settings)
    seen: list[int] = []

    def kill(step: str, done: int, total: int) -> None:
        seen.append(done)
        if step.startswith("classifying") and done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        headscope.patterns(tiny.make("bert"), TEXTS, tmp_path / "out", **settings | {"progress": kill})
    assert not (tmp_path / "out" / "patterns.nc").exists()
    table = headscope.patterns(tiny.make("bert"), TEXTS, tmp_path / "out", **settings, resume=True)
    np.testing.assert_array_equal(table["pattern_share"], whole["pattern_share"])


def test_the_request_that_a_table_records_gives_it_again() -> None:
    in_memory = {"model": tiny.make("bert"), "corpus": TEXTS}
    first = headscope.patterns(**in_memory, sample=7, seed=3, max_tokens=31, progress=False)
    again = restore_request(Patterns, first.attrs["request"], **in_memory).run()
    for table in (first, again):
        del table.attrs["created"]
    xr.testing.assert_identical(first, again)


@pytest.mark.full
def test_training_is_the_same_each_time_and_learns(few_folds) -> None:
    images, labels = generate_images(23, seed=3)
    heads_of = tuple(f"{number % 3}-{number % 4}" for number in range(len(labels)))
    labelled = LabelledImages(images, labels, heads_of)
    start = pretrain(1)
    first, again = (finetune(start, labelled, seed=2) for _ in range(2))
    for name, values in first.state_dict().items():
        np.testing.assert_array_equal(values, again.state_dict()[name])
    validation = cross_validate(start, labelled, by_head=True)
    assert validation.f1 > 0.5  # of five patterns, by chance .2
    assert validation.confusion.sum() == len(labels)
    assert validation.confusion.trace() == (validation.labels == validation.predicted).sum()


def test_wrong_arguments_are_refused_before_the_model_is_loaded(labelled: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for settings, sentence in (
        (
            {"labels": [nothing]},
            f"{nothing} is no folder of labelled maps; make one with `headscope patterns --annotate FOLDER`.",
        ),
        (
            {"classifier": nothing},
            f"there is no file {nothing}; give the classifier.safetensors that `labels` made.",
        ),
        (
            {"labels": [labelled], "classifier": nothing},
            "`labels` train a classifier, and `classifier` is another; leave out one of the two.",
        ),
    ):
        with pytest.raises(HeadscopeError) as refused:
            headscope.patterns("no model", TEXTS, tmp_path / "out", progress=False, **settings)
        assert str(refused.value) == sentence


def test_texts_that_are_all_too_short_are_refused(tmp_path: Path) -> None:
    short = [document for document in tiny.documents(29) if len(document.words) == 1]
    with pytest.raises(CorpusError) as refused:
        headscope.patterns(tiny.make("bert"), short, tmp_path / "out", progress=False)
    assert str(refused.value).endswith(" has 6 tokens, and shorter maps show no pattern; give longer texts.")


def test_too_few_labels_are_refused(labelled: Path, tmp_path: Path) -> None:
    for name in ("maps.npz", "maps.csv", "maps.json"):
        (tmp_path / name).write_bytes((labelled / name).read_bytes())
    with pytest.raises(
        CorpusError, match=r"no map in .* is labelled; label some with `headscope patterns --annotate FOLDER`\."
    ):
        headscope.patterns(tiny.make("bert"), TEXTS, tmp_path / "out", labels=[tmp_path], progress=False)
    maps = read_maps_to_label(labelled)
    few = read_maps_to_label(tmp_path)
    for number in range(1, 8):
        few = few.give(number, maps.labels[number])
    write_labels(tmp_path, few)
    with pytest.raises(CorpusError) as refused:
        headscope.patterns(tiny.make("bert"), TEXTS, tmp_path / "out", labels=[tmp_path], progress=False)
    assert str(refused.value) == (
        "a cross-validation in 10 parts needs 10 labelled maps at least, and there are 7; label more."
    )
