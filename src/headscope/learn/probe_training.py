"""Training of probes: to the optimum, until held-out texts are predicted worse, or in one pass as in the paper.

The loss is the mean over choices of -ln p(right candidate), in nats; if several candidates are right, the nearest is
trained on.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from torch import Tensor, nn

from headscope.learn.probe_data import ALL, Block, Documents, Questions
from headscope.learn.probe_models import AttentionProbe

RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""The penalties on half the squared weights, the strongest first.

They are tried in this order until held-out texts are predicted worse.
"""

PATIENCE, HALVINGS, MAX_EPOCHS = 3, 3, 100
"""The number of epochs without improvement before the learning rate is halved, of halvings, and of all epochs at most.

Improvement is measured on held-out texts. These are few, so a single worse epoch may be chance; stopping there would
stop a probe of words that still learns.
"""

STEP_WORDS, FEWEST_STEPS = 512, 20
"""The maximum number of words in a training step, including padding, and the minimum number of steps in an epoch.

A step has fewer words if an epoch would have too few steps.
"""

TOGETHER = 8
"""The number of batches whose documents are mixed in the training steps.

A single batch has few texts, all of about one length.
"""

PAPER_LEARNING_RATE = 0.002
"""The learning rate of the single pass, from the released code of Clark et al. 2019."""


@runtime_checkable
class Examples(Protocol):
    """The batches on which a probe is trained or tested."""

    @property
    def blocks(self) -> Sequence[Block]:
        """The batches."""

    def load(self, place: int, documents: Documents = ALL) -> Any:
        """Return the data of some documents of the batch with the index `place`."""

    def join(self, batches: Sequence[Any]) -> Any:
        """Join loaded batches whose texts have the same number of words."""

    def sum_losses(self, probe: nn.Module, batch: Any) -> tuple[Tensor, int]:
        """Return the sum of the losses of a loaded batch, and the number of losses in the sum."""


@dataclass(frozen=True, eq=False)
class Reader:
    """The batches, with the inputs of a probe that chooses words.

    Attributes:
        blocks: The batches.
        vectors: The vectors of word types, by their numbers.
        attention: The kind of attention: ``model``, or ``uniform`` for one head with equal weights.
        change: A function that replaces the questions of a batch, such as a control task.
    """

    blocks: Sequence[Block]
    vectors: Float[Tensor, "type feature"]
    attention: str = "model"
    change: Callable[[Questions], Questions] = lambda questions: questions

    def __iter__(self) -> Iterator[tuple[Questions, Tensor, Tensor]]:
        return (self.load(place) for place in range(len(self.blocks)))

    def load(self, place: int, documents: Documents = ALL) -> tuple[Questions, Tensor, Tensor]:
        """Load questions, attention and word vectors of some documents of the batch with the index `place`."""
        block = self.blocks[place]
        questions = self.change(block.questions[documents])
        maps = block.load_maps(documents) if self.attention == "model" else spread_evenly(questions)
        return questions, maps, self.vectors[questions.words]

    def join(self, batches: Sequence[tuple[Questions, Tensor, Tensor]]) -> tuple[Questions, Tensor, Tensor]:
        """Join loaded batches whose texts have the same number of words."""
        questions, maps, vectors = zip(*batches, strict=True)
        return Questions.join(questions), torch.cat(maps), torch.cat(vectors)

    def sum_losses(self, probe: nn.Module, batch: tuple[Questions, Tensor, Tensor]) -> tuple[Tensor, int]:
        """Return the sum of -ln p(right candidate) over the questions of a loaded batch, and their number."""
        questions = batch[0]
        chosen_for = questions.chosen_for
        # Sums of many losses in 32 bits would be too imprecise to find the optimum.
        scores = probe(*batch)[chosen_for].double()
        return nn.functional.cross_entropy(scores, questions.target[chosen_for], reduction="sum"), questions.count

    @property
    def count(self) -> int:
        """The number of questions."""
        return sum(self.change(block.questions).count for block in self.blocks)


def spread_evenly(questions: Questions) -> Float[Tensor, "document word key head"]:
    """Return attention of a single head that is equal for all words of a text, and 0 for special tokens."""
    share = 1 / questions.real.sum(1).clamp_min(1)
    even = questions.real[:, None, :] * share[:, None, None]
    words = questions.words.shape[1]
    maps = torch.cat([even, torch.zeros(len(share), 1, 2)], -1)
    return maps.expand(-1, words, -1)[..., None]


def measure_scale(reader: Reader) -> Float[Tensor, " head"]:
    """Return the root mean square of the attention of each head between two words, but at least 0.001."""
    squares, pairs = torch.zeros((), dtype=torch.float64), 0
    for questions, maps, _ in reader:
        words = questions.words.shape[1]
        squares = squares + (maps[:, :, :words] ** 2).sum((0, 1, 2)).double()
        pairs += int((questions.real.sum(1) ** 2).sum())
    # Without a minimum, a head that attends only to special tokens would be divided by nearly 0.
    return (squares / max(pairs, 1)).sqrt().clamp_min(1e-3).float()


@torch.no_grad()
def measure_loss(probe: nn.Module, examples: Examples) -> float:
    """Return the mean loss of a probe over all examples."""
    sums = [examples.sum_losses(probe, examples.load(place)) for place in range(len(examples.blocks))]
    return sum(float(total) for total, _ in sums) / max(sum(count for _, count in sums), 1)


def fit_optimum(probe: AttentionProbe, train: Reader, held_out: Reader) -> float:
    """Fit a convex probe to its optimum with L-BFGS for each ridge, and keep the best fit on held-out texts.

    Returns:
        The ridge of the best probe.
    """
    best, best_loss, chosen = copy.deepcopy(probe.state_dict()), math.inf, RIDGES[0]
    for ridge in RIDGES:
        minimize_loss(probe, train, ridge)
        loss = measure_loss(probe, held_out)
        if loss >= best_loss:
            break
        best, best_loss, chosen = copy.deepcopy(probe.state_dict()), loss, ridge
    probe.load_state_dict(best)
    return chosen


def minimize_loss(probe: AttentionProbe, train: Reader, ridge: float) -> None:
    """Minimise the mean loss of a probe plus ``ridge / 2`` times the squared weights; the bias has no penalty.

    L-BFGS moves in coordinates in which the curvature at the start is the same in all directions. Otherwise it would
    need hundreds of steps, since the attention of different heads is similar.
    """
    count = max(train.count, 1)
    parameters = dict(probe.named_parameters())
    ridges = [torch.full((values.numel(),), 0.0 if name == "bias" else ridge) for name, values in parameters.items()]
    penalty = torch.cat(ridges).double().numpy()
    curvature = measure_curvature(probe, train) / count + np.diag(penalty)
    factor = np.linalg.cholesky(curvature + 1e-9 * np.trace(curvature) / len(curvature) * np.eye(len(curvature)))

    def compute(coordinates: Float[np.ndarray, " _"]) -> tuple[float, Float[np.ndarray, " _"]]:
        weights = solve_triangular(factor.T, coordinates)
        _set_parameters(probe, weights)
        total, slope = 0.0, np.zeros_like(weights)
        for batch in train:
            loss, _ = train.sum_losses(probe, batch)
            slopes = torch.autograd.grad(loss, [*parameters.values()])
            total += float(loss.detach())
            slope += torch.cat([each.flatten() for each in slopes]).double().numpy()
        value = total / count + float(penalty @ weights**2) / 2
        return value, solve_triangular(factor, slope / count + penalty * weights, lower=True)

    start = torch.cat([values.detach().double().flatten() for values in parameters.values()]).numpy()
    options = {"maxiter": 200, "maxcor": 30, "gtol": 1e-5, "ftol": 1e-9}
    solution = minimize(compute, factor.T @ start, jac=True, method="L-BFGS-B", options=options)
    _set_parameters(probe, solve_triangular(factor.T, solution.x))


@torch.no_grad()
def measure_curvature(probe: AttentionProbe, train: Reader) -> Float[np.ndarray, "weight weight"]:
    """Return the matrix of second derivatives of the summed loss with respect to all parameters."""
    size = sum(parameter.numel() for parameter in probe.parameters())
    total = torch.zeros(size, size, dtype=torch.float64)
    for questions, maps, vectors in train:
        features = probe.describe_candidates(questions, maps)
        shares = probe(questions, maps, vectors)[questions.chosen_for].softmax(-1)
        means = torch.einsum("cip,ci->cp", features, shares)
        weighted = (features * shares.sqrt()[..., None]).flatten(0, 1)
        total += (weighted.T @ weighted - means.T @ means).double()
    return total.numpy()


def fit_until_worse(probe: nn.Module, train: Examples, held_out: Examples, learning_rate: float, *, seed: int) -> int:
    """Fit a probe with Adam, and keep the weights that predict held-out texts best.

    The documents come in random order in each epoch.

    Returns:
        The epoch that was kept, counted from 1; 0 if no epoch was better than the initial weights.
    """
    random = torch.Generator().manual_seed(seed)
    step_words = min(STEP_WORDS, sum(block.questions.words.numel() for block in train.blocks) // FEWEST_STEPS)
    halvings, best_epoch, waited = 0, 0, 0
    best, best_loss = copy.deepcopy(probe.state_dict()), measure_loss(probe, held_out)
    optimizer = torch.optim.Adam(probe.parameters(), learning_rate)
    for epoch in range(1, MAX_EPOCHS + 1):
        for documents in _shuffle(train, step_words, random):
            _step(probe, optimizer, train, documents)
        loss = measure_loss(probe, held_out)
        if loss < best_loss:
            best, best_loss, best_epoch, waited = copy.deepcopy(probe.state_dict()), loss, epoch, 0
            continue
        waited += 1
        if waited < PATIENCE:
            continue
        halvings, waited = halvings + 1, 0
        if halvings > HALVINGS:
            break
        probe.load_state_dict(best)
        optimizer = torch.optim.Adam(probe.parameters(), learning_rate / 2**halvings)
    probe.load_state_dict(best)
    return best_epoch


def fit_single_pass(probe: nn.Module, train: Examples, *, seed: int) -> None:
    """Fit a probe in one pass of Adam over the texts, with one text in each step, as in the paper."""
    optimizer = torch.optim.Adam(probe.parameters(), PAPER_LEARNING_RATE)
    for documents in _shuffle(train, 1, torch.Generator().manual_seed(seed)):
        _step(probe, optimizer, train, documents)


def _shuffle(train: Examples, words: int, random: torch.Generator) -> Iterator[Mapping[int, Sequence[int]]]:
    """Yield the documents of each training step, by the index of their batch, in random order.

    The documents of a step come from at most `TOGETHER` batches. A step has at most `words` words, including padding,
    or a single longer document.
    """
    places = torch.randperm(len(train.blocks), generator=random).tolist()
    for start in range(0, len(places), TOGETHER):
        sizes = {place: train.blocks[place].questions.words.shape for place in places[start : start + TOGETHER]}
        documents = [(place, document) for place, (count, _) in sizes.items() for document in range(count)]
        step, width = defaultdict[int, list[int]](list), 0
        for number in torch.randperm(len(documents), generator=random).tolist():
            place, document = documents[number]
            if width + sizes[place][1] > words and step:
                yield step
                step, width = defaultdict(list), 0
            step[place].append(document)
            width += sizes[place][1]
        yield step


def _step(
    probe: nn.Module, optimizer: torch.optim.Optimizer, examples: Examples, documents: Mapping[int, Sequence[int]]
) -> None:
    by_width = defaultdict[int, list[Any]](list)
    for place, some in documents.items():
        by_width[examples.blocks[place].questions.words.shape[1]].append(examples.load(place, some))
    sums = [examples.sum_losses(probe, examples.join(batches)) for batches in by_width.values()]
    count = sum(count for _, count in sums)
    if not count:
        return
    optimizer.zero_grad()
    torch.autograd.backward(torch.stack([loss for loss, _ in sums]).sum() / count)
    optimizer.step()


def _set_parameters(probe: nn.Module, flat: Float[np.ndarray, " _"]) -> None:
    place = 0
    with torch.no_grad():
        for parameter in probe.parameters():
            values = torch.from_numpy(flat[place : place + parameter.numel()])
            parameter.copy_(values.view(parameter.shape))
            place += parameter.numel()
