"""The training of the classifier of attention maps, on generated maps and on maps that were labelled by eye.

The network learns the patterns from generated maps first, then from real maps. Its score comes from maps that it was
not trained on: the maps are divided into ten parts, and each part is classified by a network that was trained on the
other nine (Kovaleva et al. 2019, section 4.1).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from safetensors.torch import save
from sklearn.metrics import confusion_matrix, f1_score
from sklearn.model_selection import GroupKFold, KFold
from torch import Tensor, nn

from headscope.errors import CorpusError
from headscope.files import atomic_write
from headscope.learn.generated_maps import SINGLE, generate_images
from headscope.learn.map_sample import HeadMap
from headscope.reducers.support.pattern_network import BLOCK, PATTERNS, VERSION, MapNetwork, make_images

FOLDS = 10
"""The number of parts of the cross-validation, the same as in the paper."""

GENERATED = 400
"""The number of generated maps of each pattern in the first training."""

REMINDERS = 60
"""The number of generated maps of each pattern that are added to the labelled maps."""

RESAMPLES = 1000
"""The number of bootstrap samples of the maps for the interval of the F1."""

BATCH = 32


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images of attention maps, with the pattern of each map.

    Attributes:
        images: The images from `make_images`.
        labels: The numbers of patterns, in the order of `PATTERNS`.
        heads: The name of the head of each map, such as ``3-1``.
    """

    images: Float[Tensor, "map 2 side side"]
    labels: Int64[Tensor, " map"]
    heads: tuple[str, ...]

    @classmethod
    def from_maps(cls, maps: Sequence[HeadMap], labels: Sequence[str]) -> "LabelledImages":
        """Make images of attention maps; `labels` are the names of their patterns."""
        images = [make_images(torch.from_numpy(each.weights)[None], each.separators) for each in maps]
        numbers = {name: number for number, name in enumerate(PATTERNS)}
        heads = tuple(f"{each.name.layer}-{each.name.head}" for each in maps)
        return cls(torch.cat(images), torch.tensor([numbers[label] for label in labels]), heads)

    def select(self, chosen: Sequence[int]) -> "LabelledImages":
        """Return the images with the given indices."""
        rows = list(chosen)
        return LabelledImages(self.images[rows], self.labels[rows], tuple(self.heads[row] for row in rows))


@dataclass(frozen=True, eq=False)
class Validation:
    """The predictions of a classifier for maps on which it was not trained.

    Attributes:
        labels: The number of the labelled pattern of each map.
        predicted: The number of the predicted pattern of each map.
    """

    labels: Int64[np.ndarray, " map"]
    predicted: Int64[np.ndarray, " map"]

    @property
    def f1(self) -> float:
        """The mean of the F1 of the patterns that occur; each pattern has the same weight."""
        return float(self._f1(self.labels, self.predicted))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `f1`, by a bootstrap over maps."""
        generator = np.random.default_rng(0)
        samples = (generator.integers(len(self.labels), size=len(self.labels)) for _ in range(RESAMPLES))
        low, high = np.quantile([self._f1(self.labels[each], self.predicted[each]) for each in samples], [0.025, 0.975])
        return float(low), float(high)

    @property
    def confusion(self) -> Int64[np.ndarray, "label predicted"]:
        """The number of maps for each pair of labelled pattern and predicted pattern."""
        return np.asarray(confusion_matrix(self.labels, self.predicted, labels=range(len(PATTERNS))))

    @staticmethod
    def _f1(labels: np.ndarray, predicted: np.ndarray) -> float:
        return float(f1_score(labels, predicted, labels=np.unique(labels), average="macro", zero_division=0))


def pretrain(seed: int = 0) -> MapNetwork:
    """Train a new network on generated maps only."""
    images, labels = generate_images(GENERATED, seed)
    return _train(None, images, labels, epochs=6, rate=2e-3, seed=seed)


def finetune(network: MapNetwork, labelled: LabelledImages, seed: int = 0) -> MapNetwork:
    """Train a new network on labelled maps, starting from the weights of the given network.

    The training includes generated maps, which differ from those of `pretrain`, so that clear patterns are not
    forgotten.
    """
    generated, patterns = generate_images(REMINDERS, seed + 1)
    images, labels = torch.cat([labelled.images, generated]), torch.cat([labelled.labels, patterns])
    return _train(network, images, labels, epochs=32, rate=1e-3, seed=seed, vary=True)


def refuse_few(labelled: LabelledImages, *, by_head: bool = False) -> None:
    """Raise an error if there are too few labelled maps for a cross-validation.

    Args:
        labelled: The labelled maps.
        by_head: Count heads and not maps.

    Raises:
        CorpusError: There are fewer maps (or heads) than `FOLDS`.
    """
    available, what = (len(set(labelled.heads)), "heads") if by_head else (len(labelled.labels), "labelled maps")
    if available < FOLDS:
        raise CorpusError(
            f"a cross-validation in {FOLDS} parts needs {FOLDS} {what} at least, and there are {available}; label more."
        )


def cross_validate(
    network: MapNetwork,
    labelled: LabelledImages,
    *,
    by_head: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Validation:
    """Predict the pattern of each map by a network that was trained on the other parts of the maps.

    Args:
        network: The network with the initial weights; it was trained on none of the maps.
        labelled: The maps.
        by_head: Keep all maps of a head in one part, so that each is classified by a network that knows no other map of
            its head.
        seed: The seed of the division into parts.
        progress: A function that is called with the number of finished parts and the number of all parts.

    Raises:
        CorpusError: There are fewer maps, or heads, than parts.
    """
    refuse_few(labelled, by_head=by_head)
    labels = labelled.labels.numpy()
    predicted = np.zeros_like(labels)
    parts = GroupKFold(FOLDS) if by_head else KFold(FOLDS, shuffle=True, random_state=seed)
    for done, (rest, held_out) in enumerate(parts.split(labels, groups=labelled.heads if by_head else None)):
        progress(done, FOLDS)
        tuned = finetune(network, labelled.select(rest.tolist()), seed)
        with torch.no_grad():
            predicted[held_out] = tuned(labelled.images[torch.from_numpy(held_out)]).argmax(-1).numpy()
    progress(FOLDS, FOLDS)
    return Validation(labels, predicted)


def write_classifier(network: MapNetwork, path: Path) -> None:
    """Write the weights of a network to a safetensors file, as 16-bit numbers."""
    tensors = {
        name: values.half() if values.is_floating_point() else values for name, values in network.state_dict().items()
    }
    with atomic_write(path) as fresh:
        fresh.write_bytes(save(tensors | {"version": torch.tensor(VERSION)}))


def _train(
    start: MapNetwork | None,
    images: Float[Tensor, "map 2 side side"],
    labels: Int64[Tensor, " map"],
    *,
    epochs: int,
    rate: float,
    seed: int,
    vary: bool = False,
) -> MapNetwork:
    """Train a new network, from the weights of `start` or, if `start` is None, from random weights.

    The same seed gives the same weights. With `vary`, each image is changed a little each time it is used.
    """
    generator = torch.Generator().manual_seed(seed)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    # Weights and dropout use torch's global generator, which belongs to the user.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MapNetwork()
        if start is not None:
            network.load_state_dict(start.state_dict())
        optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-2)
        steps = epochs * -(-len(images) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
        network.train()
        for rows in _batches(len(images), epochs, generator):
            batch = _vary(images[rows], labels[rows], generator) if vary else images[rows]
            optimizer.zero_grad()
            loss(network(batch), labels[rows]).backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def _batches(count: int, epochs: int, generator: torch.Generator) -> Iterator[Int64[Tensor, " map"]]:
    """Yield the indices of the images in each batch; the order is new in each epoch."""
    for _ in range(epochs):
        order: Tensor = torch.randperm(count, generator=generator)
        yield from (order[start : start + BATCH] for start in range(0, count, BATCH))


def _vary(
    images: Float[Tensor, "map 2 side side"], labels: Int64[Tensor, " map"], generator: torch.Generator
) -> Float[Tensor, "map 2 side side"]:
    """Return the images with random contrast and noise; some are rotated by half a turn, some show one sentence."""
    shares, same = images[:, :1], images[:, 1:]
    contrast = torch.empty(len(images), 1, 1, 1).uniform_(0.8, 1.25, generator=generator)
    noise = 0.02 * torch.randn(shares.shape, generator=generator)
    single = torch.rand(len(images), generator=generator) < SINGLE
    single &= labels != list(PATTERNS).index(BLOCK)
    same = torch.where(single[:, None, None, None], 1.0, same)
    varied = torch.cat([(shares**contrast + noise).clamp(0, 1), same], dim=1)
    turned = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.25
    return torch.where(turned, varied.flip(2, 3), varied)
