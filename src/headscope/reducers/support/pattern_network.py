"""The five patterns of attention maps, and the network that tells them apart: Kovaleva et al. 2019, section 4.1.

weights --make_images--> images of one shape --MapNetwork--> a logit for each pattern

The paper trains eight convolution layers on 400 maps that were labelled by hand, and publishes neither the layers nor
the maps. Here three layers are trained on generated maps and on maps of MiniLM (`headscope.learn.map_classifier`).
Their weights come with headscope.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import torch
from jaxtyping import Float, Int64
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from headscope.errors import HeadscopeError
from headscope.guards.formats import CLASSIFIER, read_bytes

PATTERNS: Mapping[str, str] = {
    "vertical": "one or a few columns, such as that of [CLS], can be followed from top to bottom",
    "diagonal": "a line or band along the main diagonal, or parallel to it, can be followed from end to end",
    "vertical+diagonal": "both are there at once",
    "block": "the tokens of each sentence of a pair attend to their own sentence",
    "heterogeneous": "none of these: what a token attends to depends on the text",
}
"""The description of each pattern, in the order in which patterns are listed."""

BLOCK = "block"
"""The pattern that only a pair of sentences can show."""

SIDE = 48
"""The number of rows and columns of an image. Each cell shows the largest weight of its part of a longer map."""

CHANNELS = (2, 16, 32, 32)
"""The number of channels of the image and after each convolution."""

NEAR = 2
"""The number of diagonals on each side of the main diagonal that count as near it, in a convolved image."""

LEAST_TOKENS = 6
"""The fewest tokens of a map that is labelled: in a shorter one a column, a band and a spot look alike."""

VERSION = 2
"""The version of what the network computes; version 1 skipped two diagonals and did not know bands far from them."""

SHIPPED = "pattern_network.safetensors"
"""The file with the weights of the network, next to this module."""


def make_images(
    weights: Float[Tensor, "map query key"], separators: Sequence[int] = ()
) -> Float[Tensor, "map 2 side side"]:
    """Return the maps of one text as images of one shape, in two channels.

    The first channel shows the square root of each weight as a share of the largest weight of the map, as a contact
    sheet does. The second shows which tokens are in the same sentence.

    Args:
        weights: The maps of any number of heads on the text.
        separators: The positions of the tokens that end a sentence; without them the text is one sentence.
    """
    length = weights.shape[-1]
    pooled = nn.functional.adaptive_max_pool2d(weights.float(), (SIDE, SIDE))
    shares = (pooled / pooled.amax((-2, -1), keepdim=True).clamp_min(torch.finfo().tiny)).sqrt()
    place = (torch.arange(SIDE, device=weights.device) + 0.5) * (length / SIDE)
    ends = torch.tensor(separators, dtype=place.dtype, device=place.device)
    sentence = (place[:, None] >= ends + 1).sum(1)
    same = (sentence[:, None] == sentence).to(shares.dtype)
    return torch.stack([shares, same.expand_as(shares)], dim=1)


class MapNetwork(nn.Module):
    """A convolutional network that classifies the pattern of an image of an attention map.

    The outputs of the convolutions are averaged along the shapes of patterns: columns, diagonals, and the squares of
    the sentences. So a few hundred maps are enough to train the network.
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise(CHANNELS):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers.insert(3, nn.MaxPool2d(2))
        self.convolutions = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(0.3), nn.Linear(9 * CHANNELS[-1], 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, len(PATTERNS))
        )
        self.register_buffer("diagonals", _average_diagonals(SIDE // 2), persistent=False)

    def forward(self, images: Float[Tensor, "map 2 side side"]) -> Float[Tensor, "map pattern"]:
        """Return a logit for each pattern."""
        seen = self.convolutions(images)
        columns, diagonals = seen.mean(2), seen.flatten(2) @ self.diagonals
        main = diagonals.shape[-1] // 2
        near = diagonals[..., main - NEAR : main + NEAR + 1]
        far = torch.cat([diagonals[..., : main - NEAR], diagonals[..., main + NEAR + 1 :]], dim=-1)
        same = nn.functional.adaptive_max_pool2d(images[:, 1:], SIDE // 2)
        averages = (
            columns.amax(-1), columns[..., 0], columns.mean(-1),
            near.amax(-1), diagonals[..., main], far.amax(-1), far.mean(-1),
            _average(seen, same), _average(seen, 1 - same),
        )  # fmt: skip
        logits: Tensor = self.classifier(torch.cat(averages, dim=1))
        return logits


def _average(seen: Float[Tensor, "map channel side side"], where: Float[Tensor, "map 1 side side"]) -> Tensor:
    """Return the mean of each channel over the cells where `where` is 1; 0 if there are none."""
    return (seen * where).sum((2, 3)) / where.sum((2, 3)).clamp_min(1)


def _average_diagonals(side: int) -> Float[Tensor, "cell diagonal"]:
    """Return a matrix that averages the diagonals of an image that are at least a third of its side long."""
    place = torch.arange(side)
    number = (place - place[:, None] + side - 1).flatten()
    average = torch.zeros(side * side, 2 * side - 1)
    average[torch.arange(side * side), number] = 1
    return (average / average.sum(0))[:, side // 3 : -(side // 3)]


@dataclass(frozen=True, eq=False)
class MapClassifier:
    """A trained network and its origin.

    Attributes:
        source: The origin of its weights: ``headscope``, or the name of a file.
        sha256: The SHA-256 of the file of its weights.
        network: The network, ready to classify.
    """

    source: str
    sha256: str
    network: MapNetwork = field(repr=False)

    @classmethod
    def read(cls, path: str | Path | None = None) -> "MapClassifier":
        """Return the classifier of a file of safetensors, or the one that comes with headscope if `path` is None.

        Raises:
            HeadscopeError: The file is missing, or does not hold weights of such a network and this version.
        """
        path = None if path is None else Path(path).expanduser()
        try:
            if path is not None and not path.exists():
                raise HeadscopeError(f"the map classifier {path} cannot be read: No such file or directory.")
            content = (files(__package__) / SHIPPED).read_bytes() if path is None else read_bytes(path, CLASSIFIER)
            tensors = load_tensors(content)
            version = int(tensors.pop("version", torch.tensor(1)))
            if not all(values.isfinite().all() for values in tensors.values()):
                raise ValueError("weights are not finite")
            network = MapNetwork()
            network.load_state_dict({name: values.float() for name, values in tensors.items()})
        except OSError as error:  # a name that is too long for a file
            raise HeadscopeError(f"the map classifier {path} cannot be read: {error.strerror}.") from error
        # The file may hold a type that torch does not have, a version that is not a number, or tensors of another
        # network.
        except (SafetensorError, RuntimeError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise HeadscopeError(
                f"{path} holds no weights of a map classifier; give a file that `headscope patterns --labels` "
                "wrote, such as classifier.safetensors."
            ) from error
        if version != VERSION:
            raise HeadscopeError(
                f"{path} holds weights of version {version} of the map classifier, and this headscope reads version "
                f"{VERSION}; train it again with `headscope patterns --labels`."
            )
        return cls("headscope" if path is None else path.name, hashlib.sha256(content).hexdigest(), network.eval())

    @torch.no_grad()
    def classify(self, images: Float[Tensor, "map 2 side side"]) -> Int64[Tensor, " map"]:
        """Return the index in `PATTERNS` of the pattern of each image; never a block if the text is one sentence."""
        images = images.cpu()
        logits: Tensor = self.network(images)
        single = (images[:, 1] == 1).all(-1).all(-1)
        logits[single, list(PATTERNS).index(BLOCK)] = -torch.inf
        return logits.argmax(-1)
