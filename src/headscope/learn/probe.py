r"""Probes that predict links between words from the attention of all heads together (Clark et al. 2019, section 5).

ProbeData --by seed--> train, held out, test --fit--> probes --decode--> sums by relation, fold and length
                                         \--online code, control task, structural probe--> more sums

The sums of each seed are kept separately, so that a killed run continues at the probe where it stopped.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.learn.control_edges import ControlTask
from headscope.learn.decode import decode
from headscope.learn.probe_data import LONGEST, PARTS, Block, ProbeData
from headscope.learn.probe_models import AttentionProbe, WordAttentionProbe, WordDistanceProbe, choose_next_word
from headscope.learn.probe_training import Reader, fit_optimum, fit_single_pass, fit_until_worse, measure_scale
from headscope.learn.structural_probe import measure_uuas
from headscope.reducers.support.folds import FOLDS

RIGHT_BRANCHING = "right-branching"
NO_ATTENTION = "no-attention"
DISTANCES = "words-and-distances"
UNTRAINED = "untrained-attention-and-words"
SINGLE_PASS = "attention-single-pass"
ATTENTION = "attention"
WORDS = "attention-and-words"

PROBES: Mapping[str, str] = {
    RIGHT_BRANCHING: "the next word, without training",
    NO_ATTENTION: "words, with the same attention to every word",
    DISTANCES: "words and their distance, one hidden layer",
    UNTRAINED: "as attention-and-words, of the untrained model with trained embeddings",
    SINGLE_PASS: "as attention, trained in the single pass of the paper",
    ATTENTION: "a weight for each head and direction, trained to the optimum",
    WORDS: "a weight for each head and direction that depends on both words",
}
"""The probes and their descriptions, the baselines first."""

CONTROLLED = (DISTANCES, ATTENTION, WORDS)
"""The probes that are also trained on the control task, and whose code length is measured."""

PORTIONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)
"""The shares of the training texts after which a probe is trained anew, to measure its code length.

Voita and Titov 2020 use the same kind of portions.
"""

Sums = dict[str, np.ndarray]
Step = Callable[[dict[str, nn.Module]], Sums]


@dataclass(frozen=True, eq=False)
class Split:
    """The batches of one seed: for training, for early stopping, and for the test."""

    train: Sequence[Block]
    held_out: Sequence[Block]
    test: Sequence[Block]


def split_parts(seed: int, *, own_test: bool) -> tuple[list[int], list[int], list[int]]:
    """Return the parts of a corpus for training, for early stopping, and for the test.

    With `own_test`, the test has texts of its own, and no part is for the test. Otherwise each seed tests on another
    fifth of the texts, so that five seeds test on all texts. About a tenth of the texts decides when training stops.
    """
    parts = [(seed % 5 * 4 + part) % PARTS for part in range(PARTS)]
    test, rest = ([], parts) if own_test else (parts[:4], parts[4:])
    start = 2 * (seed // 5) % (len(rest) - 1)
    held_out = rest[start : start + 2]
    return [part for part in rest if part not in held_out], held_out, test


def split(data: ProbeData, seed: int, test: ProbeData | None = None) -> Split:
    """Return the batches of a seed for training, early stopping and the test; `test`, if given, has the test texts."""
    train, held_out, tested = (data.blocks(part) for part in split_parts(seed, own_test=test is not None))
    return Split(train, held_out, tested if test is None else test.blocks(range(PARTS)))


@dataclass(frozen=True, eq=False)
class Fitting:
    """The data and settings with which the probes of a seed are trained.

    Attributes:
        split: The batches.
        untrained: The same batches with the attention of the untrained model; None without that model.
        vectors: The vectors of word types, by the number of the type.
        labels: The number of labels of choices.
        seed: The seed of the order of training and of random weights.
        way: The way to decode choices, ``word`` or ``tree``.
    """

    split: Split
    untrained: Split | None
    vectors: Float[Tensor, "type feature"]
    labels: int
    seed: int
    way: str

    def read(self, name: str, blocks: Sequence[Block]) -> Reader:
        """Return batches with the inputs of the probe `name`: attention of the model, or equal weights."""
        return Reader(blocks, self.vectors, "uniform" if name in (NO_ATTENTION, DISTANCES) else "model")

    def choose_split(self, name: str) -> Split:
        """Return the batches on which the probe `name` is trained and tested."""
        if name != UNTRAINED:
            return self.split
        if self.untrained is None:
            raise ValueError("there are no batches of an untrained model")
        return self.untrained

    def fit(self, name: str, train: Reader, held_out: Reader, start: AttentionProbe | None = None) -> nn.Module:
        """Train the probe `name`, and return it.

        Args:
            name: The name of the probe.
            train: The training batches.
            held_out: The batches that decide when training stops.
            start: The trained probe without words for the same batches; if it is None, it is trained first where it is
                needed.
        """
        width = self.vectors.shape[1]
        if name == DISTANCES:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                alone = WordDistanceProbe(width)
            fit_until_worse(alone, train, held_out, alone.learning_rate, seed=self.seed)
            return alone
        probe = AttentionProbe(measure_scale(train)) if start is None else copy.deepcopy(start)
        if name == SINGLE_PASS:
            fit_single_pass(probe, train, seed=self.seed)
            return probe
        if start is None:
            fit_optimum(probe, train, held_out)
        if name == ATTENTION:
            return probe
        with_words = WordAttentionProbe(probe, width)
        fit_until_worse(with_words, train, held_out, with_words.learning_rate, seed=self.seed)
        return with_words

    def steps(self, *, control: bool, code_length: bool, rank: int | None, layers: int) -> dict[str, Step]:
        """Return the steps of a seed by name; each step is a function that trains a probe and returns its sums.

        A step takes the probes that were trained so far, and adds its own.
        """
        names = [name for name in PROBES if name != UNTRAINED or self.untrained is not None]
        steps: dict[str, Step] = {name: partial(self.measure, name) for name in names}
        steps |= {f"{name} control": partial(self.measure_control, name) for name in CONTROLLED if control}
        steps |= {f"{name} code": partial(self.measure_code, name) for name in CONTROLLED if code_length}
        return steps | ({} if rank is None else {"structural": partial(self.measure_hidden, rank, layers)})

    def measure(self, name: str, fitted: dict[str, nn.Module]) -> Sums:
        """Train a probe, and return its sums on the test texts; for a probe without words, also its weights."""
        blocks = self.choose_split(name)
        train, held_out, test = (self.read(name, part) for part in (blocks.train, blocks.held_out, blocks.test))
        if name == RIGHT_BRANCHING:
            return self.score(test, None)
        optimum = fitted.get(ATTENTION)
        start = optimum if name == WORDS and isinstance(optimum, AttentionProbe) else None
        probe = fitted[name] = self.fit(name, train, held_out, start)
        sums = self.score(test, probe)
        if isinstance(probe, AttentionProbe):
            weights = torch.cat([probe.weight, probe.root], 1) / probe.scale[:, None]
            sums |= {"weight": weights.detach().double().numpy(), "scale": probe.scale.double().numpy()}
        return sums

    @torch.no_grad()
    def score(self, test: Reader, probe: nn.Module | None) -> Sums:
        """Count the right choices and all choices on test texts, by label and fold and by length, and sum the loss.

        Without a probe, the right-branching baseline is scored, and its loss is NaN.
        """
        right = np.zeros((2, self.labels, FOLDS), dtype=np.int64)
        by_length = np.zeros((2, 2 * LONGEST + 1), dtype=np.int64)
        loss = 0.0
        for batch in test:
            questions = batch[0]
            chosen_for = questions.chosen_for
            if probe is None:
                choices = choose_next_word(questions)
            else:
                choices = decode(probe(*batch), questions, self.way)
                loss += float(test.sum_losses(probe, batch)[0])
            is_right = questions.right.gather(2, choices[..., None])[..., 0][chosen_for].numpy()
            row, fold, length = (
                values[chosen_for].numpy() for values in (questions.row, questions.fold, questions.length)
            )
            has_length = length >= 0
            for place, weight in enumerate((is_right, np.ones_like(is_right))):
                np.add.at(right[place], (row, fold), weight)
                np.add.at(by_length[place], length[has_length], weight[has_length])
        return {"right": right, "by_length": by_length, "loss": np.array(math.nan if probe is None else loss)}

    def measure_control(self, name: str, fitted: dict[str, nn.Module]) -> Sums:
        """Train a probe on the control task, and count its right choices and all choices on test texts, by fold."""
        control = ControlTask.sample(len(self.vectors), self.split.train, seed=self.seed)
        parts = (self.split.train, self.split.held_out, self.split.test)
        train, held_out, test = (replace(self.read(name, part), change=control) for part in parts)
        sums = self.score(test, self.fit(name, train, held_out))
        return {"control": sums["right"].sum(1)}

    def measure_hidden(self, rank: int, layers: int, fitted: dict[str, nn.Module]) -> Sums:
        """Count the links that the structural probe of each layer finds in the test texts, and all links, by fold."""
        blocks = self.split
        return measure_uuas(blocks.train, blocks.held_out, blocks.test, layers, rank=rank, seed=self.seed)

    def measure_code(self, name: str, fitted: dict[str, nn.Module]) -> Sums:
        """Measure the code length of the training texts, with a probe that is trained anew after each portion.

        Returns:
            In ``code``: the number of bits, the number of bits if all candidates are equally probable, and the number
            of choices.
        """
        order = torch.randperm(len(self.split.train), generator=torch.Generator().manual_seed(self.seed)).tolist()
        blocks = [self.split.train[place] for place in order]
        ends = sorted({max(1, round(share * len(blocks))) for share in PORTIONS})
        held_out = self.read(name, self.split.held_out)
        bits = count_uniform_bits(blocks[: ends[0]])
        for known, end in pairwise(ends):
            probe = self.fit(name, self.read(name, blocks[:known]), held_out)
            portion = self.read(name, blocks[known:end])
            with torch.no_grad():
                bits += sum(float(portion.sum_losses(probe, batch)[0]) for batch in portion) / math.log(2)
        count = sum(block.questions.count for block in blocks)
        return {"code": np.array([bits, count_uniform_bits(blocks), count])}


def count_uniform_bits(blocks: Sequence[Block]) -> float:
    """Return the number of bits that code the choices of batches if all candidates are equally probable."""
    every = (block.questions for block in blocks)
    return sum(float(each.candidates.sum(-1)[each.chosen_for].double().log2().sum()) for each in every)


def run_steps(steps: Mapping[str, Step], done: Mapping[str, Sums]) -> Iterator[tuple[str, Sums]]:
    """Run each step that is not in `done`; yield its name and its sums."""
    fitted: dict[str, nn.Module] = {}
    for name, step in steps.items():
        if name not in done:
            yield name, step(fitted)
