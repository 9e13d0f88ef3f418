"""Patterns of attention maps: images equal naive loops, plain maps of each pattern are classified as such."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.reducers import MapPatterns
from headscope.reducers.support.pattern_network import (
    LEAST_TOKENS,
    NEAR,
    PATTERNS,
    SIDE,
    MapClassifier,
    MapNetwork,
    make_images,
)
from headscope.runner import Plan, measure
from headscope.score import read_scores
from witnesses.map_patterns import draw_image

NAMES = list(PATTERNS)


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def plain_map(pattern: str, length: int, boundary: int) -> np.ndarray:
    """A map that nobody would call anything else."""
    scores = np.zeros((length, length))
    place = np.arange(length)
    if "vertical" in pattern:
        scores[:, 0] += 4
    if "diagonal" in pattern:
        scores += 5 * (place == place[:, None])
    if pattern == "block":
        second = place >= boundary
        scores += 2.5 * (second == second[:, None])
    if pattern == "heterogeneous":
        scores += np.random.default_rng(length).normal(0, 0.7, (length, length))
    return softmax(scores)


@pytest.mark.parametrize(
    ("length", "separators"), [(7, ()), (13, (4, 12)), (48, (47,)), (53, (17, 52)), (97, (60, 96))]
)
def test_an_image_equals_naive_loops(length: int, separators: tuple[int, ...]) -> None:
    weights = softmax(np.random.default_rng(length).normal(size=(length, length)))
    image = make_images(torch.from_numpy(weights)[None], separators)[0]
    np.testing.assert_allclose(image, draw_image(weights, separators), atol=1e-6)


@pytest.mark.parametrize("length", [17, 31, 61, 113])
@pytest.mark.parametrize("pattern", NAMES)
def test_a_plain_map_is_what_it_is(pattern: str, length: int) -> None:
    boundary = length // 2
    weights = torch.from_numpy(plain_map(pattern, length, boundary))[None]
    predicted = MapClassifier.read().classify(make_images(weights, (boundary - 1, length - 1)))
    assert NAMES[int(predicted)] == pattern


@pytest.mark.parametrize("length", [17, 31, 61, 113])
@pytest.mark.parametrize("pattern", [name for name in NAMES if name != "block"])
def test_a_plain_map_of_a_single_sentence_is_what_it_is(pattern: str, length: int) -> None:
    weights = torch.from_numpy(plain_map(pattern, length, length // 2))[None]
    for separators in ((), (length - 1,)):
        assert NAMES[int(MapClassifier.read().classify(make_images(weights, separators)))] == pattern


def test_a_single_sentence_has_no_block() -> None:
    weights = torch.from_numpy(plain_map("block", 41, 23))[None]
    assert NAMES[int(MapClassifier.read().classify(make_images(weights, (22, 40))))] == "block"
    assert NAMES[int(MapClassifier.read().classify(make_images(weights, (40,))))] != "block"


@pytest.mark.parametrize("length", [17, 61])
def test_uniform_attention_follows_no_pattern(length: int) -> None:
    seen_by_all = torch.full((1, length, length), 1 / length)
    causal = torch.tril(torch.ones(length, length))
    for weights in (seen_by_all, (causal / causal.sum(1, keepdim=True))[None]):
        predicted = MapClassifier.read().classify(make_images(weights, (length // 2, length - 1)))
        assert NAMES[int(predicted)] == "heterogeneous"


def test_each_diagonal_is_either_near_the_main_one_or_far_from_it() -> None:
    network = MapNetwork().eval()
    network.convolutions, network.classifier = torch.nn.AvgPool2d(2), torch.nn.Identity()
    offsets = np.arange(1 - SIDE // 3, SIDE // 3)
    images = np.stack([np.kron(np.eye(SIDE // 2, k=offset), np.ones((2, 2))) for offset in offsets])
    averages = network(torch.from_numpy(np.stack([images, images], 1)).float())
    # Two channels each: the columns three times, then the near diagonals, the main one, and the far ones.
    near, main, far = averages[:, [6, 8, 10]].T
    np.testing.assert_allclose(near, np.abs(offsets) <= NEAR, rtol=1e-5)
    np.testing.assert_allclose(main, offsets == 0, rtol=1e-5)
    np.testing.assert_allclose(far, np.abs(offsets) > NEAR, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2", "mistral", "bart"])
def test_shares_are_those_of_maps_that_are_classified_one_by_one(family: str) -> None:
    module, tokenizer = tiny.make(family)
    documents = tiny.documents(7)
    table = measure(Model.from_module(module, tokenizer), documents, [MapPatterns()], plan=Plan(batch_tokens=53))
    classifier, attention_types = MapClassifier.read(), {}
    for document in documents:
        for attention_type, seen in witnesses.see(module, tokenizer, document).items():
            attention_types.setdefault(attention_type, []).append(seen)
    for attention_type, texts in attention_types.items():
        expected = witnesses.map_patterns(
            texts, lambda image: int(classifier.classify(torch.tensor(image[None]).float())), len(PATTERNS)
        )
        shares = table["pattern_share"].transpose(..., "layer", "head", "pattern")
        shares = shares.sel(attention_type=attention_type) if "attention_type" in shares.dims else shares
        layers, heads, _ = expected.shape
        np.testing.assert_allclose(shares.values[:layers, :heads], expected)
    short = sum(len(text.keys) < LEAST_TOKENS for text in next(iter(attention_types.values())))
    assert 0 < short < len(documents)
    assert int(table["pattern_count"]) == len(documents) - short
    assert int(table["pattern_left_out"]) == short
    assert [score.variable for score in read_scores(table)] == ["pattern_share"]


def test_a_file_that_is_no_classifier_is_refused(tmp_path: Path) -> None:
    missing, text, other, old = (tmp_path / f"{name}.safetensors" for name in ("missing", "text", "other", "old"))
    text.write_text("weights")
    save_file({"weight": torch.zeros(3)}, other)
    save_file(MapNetwork().state_dict(), old)
    says = "holds no weights of a map classifier; give a file that `headscope patterns --labels` wrote, such as "
    for path, sentence in (
        (missing, f"the map classifier {missing} cannot be read: No such file or directory."),
        (text, f"{text} {says}classifier.safetensors."),
        (other, f"{other} {says}classifier.safetensors."),
        (
            old,
            f"{old} holds weights of version 1 of the map classifier, and this headscope reads version 2; train it "
            "again with `headscope patterns --labels`.",
        ),
    ):
        with pytest.raises(HeadscopeError) as refused:
            MapClassifier.read(path)
        assert str(refused.value) == sentence
