"""A folder of maps to label: what is written is read, labels are never lost, what is wrong is said with its line."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from headscope.errors import CorpusError
from headscope.learn.map_labels import measure_agreement, read_maps_to_label, write_labels, write_maps
from headscope.learn.map_sample import HeadMap, MapName

ABOUT = {"model": "tiny", "corpus": "texts", "seed": 3}
LENGTHS = (5, 7, 11)
LABELS = ["block", "vertical", "block"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(2)
    maps = [
        HeadMap(MapName(f"text, {number}", number, 2 * number), generator.random((length, length)), (2, length - 1))
        for number, length in enumerate(LENGTHS, 1)
    ]
    write_maps(tmp_path / "maps", maps, ABOUT)
    return tmp_path / "maps"


def label(folder: Path) -> None:
    labelled = read_maps_to_label(folder)
    for number, name in enumerate(LABELS, 1):
        labelled = labelled.give(number, name)
        write_labels(folder, labelled)


def replace(folder: Path, old: str, new: str) -> None:
    path = folder / "labels.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_is_written_is_read(folder: Path) -> None:
    maps = read_maps_to_label(folder)
    assert [len(each.weights) for each in maps.maps] == list(LENGTHS)
    assert [each.name for each in maps.maps] == [MapName(f"text, {n}", n, 2 * n) for n in (1, 2, 3)]
    assert [each.separators for each in maps.maps] == [(2, length - 1) for length in LENGTHS]
    generator = np.random.default_rng(2)
    for each, length in zip(maps.maps, LENGTHS, strict=True):
        np.testing.assert_allclose(each.weights, generator.random((length, length)), atol=1e-3)
    assert (maps.labels, maps.second, maps.about) == ({}, {}, ABOUT)


def test_labels_are_kept_and_taken_away(folder: Path) -> None:
    label(folder)
    maps = read_maps_to_label(folder)
    assert maps.labels == {1: "block", 2: "vertical", 3: "block"}
    write_labels(folder, maps.give(2, "").give(3, "diagonal", second=True))
    again = read_maps_to_label(folder)
    assert again.labels == {1: "block", 3: "block"}
    assert again.second == {3: "diagonal"}
    rows = list(csv.reader((folder / "labels.csv").read_text().splitlines()))
    assert rows[1:] == [["1", "text, 1", "1", "2", "block", ""], ["3", "text, 3", "3", "6", "block", "diagonal"]]


def test_agreement_is_that_of_scikit_learn(folder: Path) -> None:
    label(folder)
    maps = read_maps_to_label(folder)
    assert measure_agreement(maps)[0] == 0
    second = ["block", "diagonal", "block"]
    for number, name in enumerate(second, 1):
        maps = maps.give(number, name, second=True)
    count, share, kappa = measure_agreement(maps)
    assert (count, share) == (3, pytest.approx(2 / 3))
    assert kappa == pytest.approx(cohen_kappa_score(LABELS, second))


def test_a_folder_with_maps_is_not_written_again(folder: Path) -> None:
    label(folder)
    before = (folder / "labels.csv").read_bytes()
    with pytest.raises(CorpusError, match="has maps already; name another folder, or go on labelling these"):
        write_maps(folder, read_maps_to_label(folder).maps[:2], ABOUT)
    assert (folder / "labels.csv").read_bytes() == before
    assert len(read_maps_to_label(folder).maps) == 3


WRONG = {
    "unknown": (
        "block", "stripes",
        "labels.csv:2: there is no pattern 'stripes'; the patterns are vertical, diagonal, vertical+diagonal, block, "
        "heterogeneous.",
    ),
    "another map": (
        '2,"text, 2",2,4', '2,"text, 2",2,5',
        "labels.csv:3: map 2 of head 2-5 on 'text, 2' is none of the maps in maps.csv; these labels are of other maps.",
    ),
    "no such map": (
        '3,"text, 3"', '5,"text, 3"',
        "labels.csv:4: map 5 of head 3-6 on 'text, 3' is none of the maps in maps.csv; these labels are of other maps.",
    ),
    "twice": (
        '2,"text, 2",2,4', '1,"text, 1",1,2', "labels.csv:3: map 1 has a row already, in line 2; keep one."
    ),
    "number": ("2,4,vertical", "2,four,vertical", "labels.csv:3: head is 'four'; it must be a whole number."),
    "column": (
        "label,second", "class,second",
        "labels.csv:1: there is no column 'label'; the columns are map, document, layer, head, label, second.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_labels_are_refused_and_stay(folder: Path, fault: str) -> None:
    label(folder)
    old, new, sentence = WRONG[fault]
    replace(folder, old, new)
    before = (folder / "labels.csv").read_bytes()
    with pytest.raises(CorpusError) as refused:
        read_maps_to_label(folder)
    assert str(refused.value) == f"{folder}/{sentence}"
    assert (folder / "labels.csv").read_bytes() == before


def test_damaged_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere is no folder of maps to label; make one with --annotate FOLDER\."):
        read_maps_to_label(tmp_path / "nowhere")
    other = shutil.copytree(folder, tmp_path / "other")
    text = (other / "maps.csv").read_text()
    (other / "maps.csv").write_text(text.replace(",7,", ",8,"))
    with pytest.raises(CorpusError, match=r"maps\.csv:3: map 2 is not the one in maps\.npz; the folder is damaged"):
        read_maps_to_label(other)
    (folder / "maps.npz").write_bytes(b"PK")
    with pytest.raises(CorpusError, match=r"maps\.npz cannot be read"):
        read_maps_to_label(folder)
    (other / "labels.csv").write_bytes("map,document\n1,\xff".encode("latin-1"))
    (other / "maps.csv").write_text(text)
    with pytest.raises(CorpusError, match=r"labels\.csv is not UTF-8; save it as UTF-8\."):
        read_maps_to_label(other)


def test_labels_that_a_spreadsheet_wrote_are_read(folder: Path) -> None:
    label(folder)
    path = folder / "labels.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_maps_to_label(folder).labels == {1: "block", 2: "vertical", 3: "block"}
