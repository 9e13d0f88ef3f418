"""Probes: their scores beside naive loops, their optimum beside another solver's, and the weights that were planted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.discrete.conditional_models import ConditionalLogit

from headscope.learn.probe_data import ALL, Block, Documents
from headscope.learn.probe_models import (
    AttentionProbe,
    WordAttentionProbe,
    WordDistanceProbe,
    choose_next_word,
    describe_distances,
)
from headscope.learn.probe_training import (
    Reader,
    fit_optimum,
    fit_single_pass,
    fit_until_worse,
    measure_curvature,
    measure_loss,
    measure_scale,
    minimize_loss,
    spread_evenly,
)
from probe_worlds import FEATURES, HEADS, TEXTS, WORDS, at_random, by_weights, make_data, make_vectors

WEIGHTS = np.array([[6.0, 0.0], [0.0, 4.0], [0.0, 0.0], [-3.0, 0.0], [0.0, 0.0]])
"""The planted weights: of five heads, two speak for a candidate, one against it, and two say nothing."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    data = make_data(tmp_path_factory.mktemp("maps"), by_weights(WEIGHTS), blocks=3)
    return Reader(data.blocks(range(20)), make_vectors())


def fill(probe: torch.nn.Module, seed: int = 0) -> None:
    with torch.no_grad():
        for parameter in probe.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))


def test_attention_is_scored_as_in_the_paper(reader: Reader) -> None:
    scale = measure_scale(reader)
    probe = AttentionProbe(scale)
    fill(probe)
    questions, maps, vectors = reader.load(0)
    scores = probe(questions, maps, vectors).detach().numpy()
    weight, root, size = (values.detach().double().numpy() for values in (probe.weight, probe.root, scale))
    attention = maps.double().numpy()
    for text, word, candidate in np.ndindex(3, WORDS, WORDS):
        expected = sum(
            weight[k, 0] / size[k] * attention[text, word, candidate, k]
            + weight[k, 1] / size[k] * attention[text, candidate, word, k]
            for k in range(HEADS)
        )
        found = scores[text, word, candidate]
        assert np.isneginf(found) if word == candidate else found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert np.isneginf(scores[..., -1]).all()  # there is no root here
    questions = questions.answer(questions.target, torch.ones_like(questions.candidates))
    to_special = (attention[:, :, WORDS:] * (root / size[:, None]).T).sum((2, 3)) + probe.bias.item()
    np.testing.assert_allclose(probe(questions, maps, vectors)[..., -1].detach(), to_special, rtol=1e-4, atol=1e-4)


def test_words_set_the_weights_of_heads_as_in_the_paper(reader: Reader) -> None:
    scale = measure_scale(reader)
    probe = WordAttentionProbe(AttentionProbe(scale), FEATURES)
    fill(probe)
    questions, maps, vectors = reader.load(1)
    scores = probe(questions, maps, vectors).detach().numpy()
    attention = (maps / scale).double().numpy()
    words = np.concatenate([vectors.double().numpy(), np.ones((*vectors.shape[:2], 1))], -1)
    of_query, of_key = (values.detach().double().numpy() for values in (probe.of_query, probe.of_key))
    for text, word, candidate in np.ndindex(2, WORDS, WORDS):
        if word == candidate:
            continue
        v, c = words[text, word], words[text, candidate]
        expected = sum(
            (v @ of_query[:, 0, k] + c @ of_key[:, 0, k]) * attention[text, word, candidate, k]
            + (c @ of_query[:, 1, k] + v @ of_key[:, 1, k]) * attention[text, candidate, word, k]
            for k in range(HEADS)
        )
        assert scores[text, word, candidate] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_the_probe_with_words_begins_as_the_one_without(reader: Reader) -> None:
    probe = AttentionProbe(measure_scale(reader))
    fill(probe)
    batch = reader.load(0)
    torch.testing.assert_close(WordAttentionProbe(probe, FEATURES)(*batch), probe(*batch))


def test_the_curvature_is_the_second_derivative(reader: Reader) -> None:
    few = Reader(reader.blocks[:2], reader.vectors)
    probe = AttentionProbe(measure_scale(few)).double()
    fill(probe)
    names = [name for name, _ in probe.named_parameters()]

    def loss(*values: torch.Tensor) -> torch.Tensor:
        parameters = dict(zip(names, values, strict=True))
        total = torch.zeros((), dtype=torch.float64)
        for questions, maps, vectors in few:
            scores = torch.func.functional_call(probe, parameters, (questions, maps.double(), vectors.double()))
            total = total + torch.nn.functional.cross_entropy(
                scores[questions.chosen_for], questions.target[questions.chosen_for], reduction="sum"
            )
        return total

    values = tuple(parameter.detach() for parameter in probe.parameters())
    blocks = torch.autograd.functional.hessian(loss, values)
    rows = [torch.cat([b.reshape(v.numel(), w.numel()) for b, w in zip(row, values, strict=True)], 1)
            for row, v in zip(blocks, values, strict=True)]  # fmt: skip
    np.testing.assert_allclose(measure_curvature(probe.float(), few), torch.cat(rows).numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.full
def test_the_optimum_is_that_of_another_solver(reader: Reader) -> None:
    probe = AttentionProbe(measure_scale(reader))
    minimize_loss(probe, reader, 0.0)
    rows, groups, right = [], [], []
    for questions, maps, _ in reader:
        attention = maps.double().numpy()
        for text, word in np.ndindex(len(maps), WORDS):
            for candidate in range(WORDS):
                if candidate != word:
                    rows.append([*attention[text, word, candidate], *attention[text, candidate, word]])
                    right.append(int(questions.target[text, word]) == candidate)
                    groups.append(len(groups) // (WORDS - 1))
    solution = ConditionalLogit(np.array(right, int), pd.DataFrame(rows), groups=np.array(groups)).fit(
        disp=0, method="newton"
    )
    ours = (probe.weight / probe.scale[:, None]).detach().numpy().T.ravel()
    np.testing.assert_allclose(ours, solution.params.to_numpy(), rtol=2e-3, atol=2e-3)
    # And these are the planted ones, as far as chance allows.
    planted, error = WEIGHTS.T.ravel(), solution.bse.to_numpy()
    assert (np.abs(ours - planted) < 4 * error).all()
    assert (np.abs(planted[planted != 0]) > 8 * error[planted != 0]).all()


def test_a_ridge_is_chosen_on_held_out_texts(tmp_path) -> None:
    planted, nothing = (
        make_data(tmp_path / str(n), answer) for n, answer in enumerate((by_weights(WEIGHTS), at_random))
    )
    chosen = []
    for data in (planted, nothing):
        train, held_out = (Reader(data.blocks(parts), make_vectors()) for parts in ([0, 1, 2], [3, 4]))
        probe = AttentionProbe(measure_scale(train))
        chosen.append(fit_optimum(probe, train, held_out))
        assert measure_loss(probe, held_out) < np.log(WORDS - 1) + 0.02  # never far worse than chance
    assert chosen[0] < chosen[1]


def test_all_ways_of_training_find_what_there_is(reader: Reader) -> None:
    train, held_out = (Reader(reader.blocks[part], reader.vectors) for part in (slice(0, 50), slice(50, 60)))
    scale = measure_scale(train)
    best, single = AttentionProbe(scale), AttentionProbe(scale)
    fit_optimum(best, train, held_out)
    fit_single_pass(single, train, seed=0)
    with_words = WordAttentionProbe(best, FEATURES)
    fit_until_worse(with_words, train, held_out, with_words.learning_rate, seed=0)
    losses = {
        name: measure_loss(probe, held_out)
        for name, probe in (("best", best), ("single", single), ("words", with_words))
    }
    chance = np.log(WORDS - 1)
    assert losses["best"] < losses["single"] < chance - 0.05
    assert losses["words"] <= losses["best"]  # since it stops there at the latest


def test_training_is_the_same_again(reader: Reader) -> None:
    train, held_out = (Reader(reader.blocks[part], reader.vectors) for part in (slice(0, 5), slice(5, 7)))
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        probe = WordDistanceProbe(FEATURES)
        fit_until_worse(probe, train, held_out, 2e-3, seed=1)
        weights.append(torch.cat([parameter.flatten() for parameter in probe.parameters()]))
    assert torch.equal(*weights)


@dataclass
class Recorder:
    """The batches of a reader, with the documents that were loaded and, if they are given, losses in its place."""

    reader: Reader
    losses: list[float] = field(default_factory=list)
    loaded: list[tuple[int, int]] = field(default_factory=list)

    @property
    def blocks(self) -> Sequence[Block]:
        return self.reader.blocks

    def load(self, place: int, documents: Documents = ALL) -> Any:
        self.loaded += [(place, document) for document in ([] if isinstance(documents, slice) else documents)]
        return self.reader.load(place, documents)

    def join(self, batches: Sequence[Any]) -> Any:
        return self.reader.join(batches)

    def sum_losses(self, probe: torch.nn.Module, batch: Any) -> tuple[torch.Tensor, int]:
        loss, count = self.reader.sum_losses(probe, batch)
        return (torch.tensor(self.losses.pop(0) * count), count) if self.losses else (loss, count)


def test_batches_that_are_joined_have_the_losses_that_they_have_apart(reader: Reader) -> None:
    batches = [reader.load(0), reader.load(2, [3, 1]), reader.load(1, [0])]
    probe = AttentionProbe(measure_scale(reader))
    losses, counts = zip(*(reader.sum_losses(probe, batch) for batch in batches), strict=True)
    loss, count = reader.sum_losses(probe, reader.join(batches))
    assert count == sum(counts)
    torch.testing.assert_close(loss, sum(losses))


def test_documents_come_in_random_order_across_batches_and_each_once(reader: Reader) -> None:
    recorder = Recorder(Reader(reader.blocks[:23], reader.vectors))
    fit_single_pass(AttentionProbe(measure_scale(recorder.reader)), recorder, seed=3)
    assert sorted(recorder.loaded) == [(place, document) for place in range(23) for document in range(TEXTS)]
    batches = np.array(recorder.loaded)[:, 0]
    assert (batches[1:] == batches[:-1]).mean() < 0.3  # one in eight by chance, all but one in 13 if batch by batch


def test_the_rate_is_halved_after_three_epochs_without_gain_and_three_times(reader: Reader) -> None:
    train, one = (Reader(reader.blocks[:count], reader.vectors) for count in (2, 1))
    losses = [2.0, 1.9, 1.95, 1.95, 1.8, *[1.85] * 20]
    held_out = Recorder(one, [*losses])
    assert fit_until_worse(AttentionProbe(measure_scale(train)), train, held_out, 1e-3, seed=0) == 4
    epochs = len(losses) - len(held_out.losses) - 1
    assert epochs == 4 + (1 + 3) * 3


def test_without_attention_maps_say_nothing(reader: Reader) -> None:
    batch = reader.load(0)
    torch.manual_seed(0)
    probe = WordDistanceProbe(FEATURES)
    scores = probe(*batch)
    again = probe(batch[0], spread_evenly(batch[0]), batch[2])
    assert torch.equal(scores, again)
    even = spread_evenly(batch[0])
    assert even.shape == (*batch[1].shape[:3], 1)
    assert torch.allclose(even.sum(2), torch.ones(()))


def test_distances_tell_the_sides_apart() -> None:
    features = describe_distances(5)
    assert features.shape == (5, 5, 8)
    ahead, behind = features[2, 3], features[3, 2]
    assert torch.equal(ahead.roll(4), behind)
    assert ahead[:2].tolist() == [1, 0]
    assert features[0, 2, :2].tolist() == [0, 1]
    assert not features[2, 2].any()


def test_the_next_word_is_the_baseline(reader: Reader) -> None:
    choices = choose_next_word(reader.blocks[0].questions)
    assert choices[0].tolist() == [1, 2, 3, 4, 5, 6, WORDS]  # behind the last word, no head
