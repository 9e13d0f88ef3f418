"""Batches for probes in which we chose what attention, words and distances say of the right answers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from headscope.learn.probe_data import PARTS, Block, ProbeData, Questions

WORDS, HEADS, TYPES, FEATURES = 7, 5, 11, 3
TEXTS = 13  # of a batch

Answer = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""From the maps (text, word, key, head) and the types of words, the right candidate of each word."""


def by_weights(weights: np.ndarray) -> Answer:
    """Sampled from p(i|j) ~ exp(sum_k u_k a_ji + w_k a_ij), with these weights (head, direction)."""

    def answer(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
        between = maps[:, :, :WORDS]
        scores = between @ weights[:, 0] + (between @ weights[:, 1]).swapaxes(1, 2)
        scores[:, np.arange(WORDS), np.arange(WORDS)] = -np.inf
        return (scores + random.gumbel(size=scores.shape)).argmax(-1)

    return answer


def by_head(head: int) -> Answer:
    """The other word to which this head attends most."""

    def answer(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
        scores = maps[:, :, :WORDS, head].copy()
        scores[:, np.arange(WORDS), np.arange(WORDS)] = -np.inf
        return scores.argmax(-1)

    return answer


def by_distance(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The next word, and of the last one that before it."""
    return np.broadcast_to(np.append(np.arange(1, WORDS), WORDS - 2), types.shape)


def by_type(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The other word whose type has the largest number, the first of several."""
    numbers = np.broadcast_to(types[:, None, :], (*types.shape, WORDS)).copy()
    numbers[:, np.arange(WORDS), np.arange(WORDS)] = -1
    return numbers.argmax(-1)


def nearest_of_type(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The nearest other word of some types, the first of two; where there is none, the first other word."""
    place = np.arange(WORDS)
    distance = np.abs(place[:, None] - place) + WORDS * (types >= 4)[:, None, :]
    distance[:, place, place] = 2 * WORDS
    return distance.argmin(-1)


def at_random(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Any other word."""
    offsets = random.integers(1, WORDS, types.shape)
    return (np.arange(WORDS) + offsets) % WORDS


STYLES = ("random", "uniform", "nearby", "lexical", "near and lexical", "same word")
"""What the heads of a world attend to: to anything, to all alike, to near words, to some types, to near words of some
types, to the same type."""


def make_maps(random: np.random.Generator, types: np.ndarray, style: str = "random") -> np.ndarray:
    """Attention whose rows sum to 1 over words and the two special tokens."""
    logits = random.normal(scale=1.5, size=(*types.shape, WORDS + 2, HEADS)) * (style == "random")
    place = np.arange(WORDS)
    between = logits[:, :, :WORDS]
    if style in ("nearby", "near and lexical"):
        between -= np.abs(place[:, None] - place)[None, :, :, None]
    if style in ("lexical", "near and lexical"):
        between += 0.5 * types[:, None, :, None]
    if style == "same word":
        between += 3.0 * (types[:, :, None] == types[:, None])[..., None]
    weights = np.exp(logits)
    return weights / weights.sum(2, keepdims=True)


def make_questions(answers: np.ndarray, types: np.ndarray, random: np.random.Generator) -> Questions:
    texts = len(answers)
    target = torch.from_numpy(answers.copy()).long()
    right = torch.zeros(texts, WORDS, WORDS + 1, dtype=torch.bool).scatter_(2, target[..., None], True)
    others = (~torch.eye(WORDS, dtype=torch.bool)).expand(texts, -1, -1)
    candidates = torch.cat([others, torch.zeros(texts, WORDS, 1, dtype=torch.bool)], -1)
    fold = torch.from_numpy(random.integers(0, 64, texts)).long()[:, None].expand(texts, WORDS)
    return Questions(
        torch.from_numpy(types).long(), torch.ones(texts, WORDS, dtype=torch.bool), candidates, right, target,
        torch.zeros_like(target), torch.full_like(target, 3), fold,
    )  # fmt: skip


def make_block(folder: Path, name: str, answer: Answer, random: np.random.Generator, style: str = "random") -> Block:
    folder.mkdir(parents=True, exist_ok=True)
    types = random.integers(0, TYPES, (TEXTS, WORDS))
    maps = make_maps(random, types, style)
    path = folder / f"{name}.npy"
    np.save(path, maps.astype(np.float32))
    return Block(make_questions(answer(maps, types, random), types, random), path)


def make_data(folder: Path, answer: Answer, *, seed: int = 0, blocks: int = 2, style: str = "random") -> ProbeData:
    random = np.random.default_rng(seed)
    parts = tuple(
        tuple(make_block(folder, f"{part}-{number}", answer, random, style) for number in range(blocks))
        for part in range(PARTS)
    )
    heads = tuple(("encoder", 1, head) for head in range(1, HEADS + 1))
    return ProbeData(parts, heads, 0, {}, PARTS * blocks * TEXTS, 0)


def make_vectors(seed: int = 0) -> torch.Tensor:
    return torch.randn(TYPES, FEATURES, generator=torch.Generator().manual_seed(seed))
