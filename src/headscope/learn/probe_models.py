"""The models of the probes, which score each word of a text as the answer to a question (Clark et al. 2019, section 5).

Each probe reads the choices of a batch, the attention between its words and the vectors of its words, and returns
scores. The softmax of the scores over the candidates gives their probabilities. Attention weights are divided by their
root mean square over the training texts, separately for each head, so that the coefficients have the same scale.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headscope.learn.probe_data import SIDES, Questions

DIRECTIONS = 2
"""The number of directions of attention: from the word with a question to the candidate, and back."""

HIDDEN = 256
"""The number of units in the hidden layer of `WordDistanceProbe`."""

DISTANCES = 8
"""The number of features of the distance between two words."""

Maps = Float[Tensor, "document word key head"]
Vectors = Float[Tensor, "document word feature"]
Scores = Float[Tensor, "document word candidate"]


class AttentionProbe(nn.Module):
    """A probe with a weight for each head and direction: p(i|j) ~ exp(sum_k w_k a_ij^k + u_k a_ji^k).

    The candidate "no syntactic head" is scored by the attention to special tokens, plus a constant. The paper has no
    constant, but a model without special tokens needs one.
    """

    scale: Tensor

    def __init__(self, scale: Float[Tensor, " head"]) -> None:
        super().__init__()
        self.register_buffer("scale", scale)
        self.weight = nn.Parameter(torch.zeros(len(scale), DIRECTIONS))
        self.root = nn.Parameter(torch.zeros(len(scale), len(SIDES)))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, questions: Questions, maps: Maps, vectors: Vectors) -> Scores:
        """Return the score of each candidate for each word; it is minus infinity if the word may not choose it."""
        words = maps.shape[1]
        # Compute all products at once, although some are not needed: reading the attention takes most of the time.
        products = maps @ (torch.cat([self.weight, self.root], 1) / self.scale[:, None])
        # In the second direction a candidate attends, so the candidate is the query.
        scores = products[:, :, :words, 0] + products[:, :, :words, 1].mT
        root = products[:, :, words, 2] + products[:, :, words + 1, 3] + self.bias
        return mask_scores(torch.cat([scores, root[..., None]], -1), questions)

    def describe_candidates(self, questions: Questions, maps: Maps) -> Float[Tensor, "choice candidate weight"]:
        """Return the features of each candidate of the words with a question.

        The score of a candidate is the sum of its features times the parameters (weight, root, bias).
        """
        words = maps.shape[1]
        maps = maps / self.scale
        between, special = maps[:, :, :words], maps[:, :, words:]
        both = torch.stack([between, between.transpose(1, 2)], -1).flatten(3)
        no_head = torch.cat([special.transpose(2, 3).flatten(2), torch.ones_like(special[:, :, :1, 0])], -1)
        features = both.new_zeros(*both.shape[:2], words + 1, both.shape[-1] + no_head.shape[-1])
        features[:, :, :words, : both.shape[-1]] = both
        features[:, :, words, both.shape[-1] :] = no_head
        return features[questions.chosen_for]


class WordAttentionProbe(nn.Module):
    """A probe whose weights depend on the words: p(i|j) ~ exp(sum_k W_k (v_i, v_j) a_ij^k + ...).

    A constant 1 is appended to the vectors, so that `AttentionProbe` is a special case. Training starts from the
    optimum of an `AttentionProbe`.
    """

    scale: Tensor
    learning_rate = 2e-4
    """A small learning rate, since only early stopping keeps the many weights small."""

    def __init__(self, start: AttentionProbe, features: int) -> None:
        super().__init__()
        heads = len(start.scale)
        self.register_buffer("scale", start.scale)
        self.of_query = nn.Parameter(torch.zeros(features + 1, DIRECTIONS, heads))
        self.of_key = nn.Parameter(torch.zeros(features + 1, DIRECTIONS, heads))
        self.root = nn.Parameter(torch.zeros(features + 1, len(SIDES), heads))
        self.bias = nn.Parameter(torch.zeros(features + 1))
        with torch.no_grad():
            self.of_query[-1], self.root[-1], self.bias[-1] = start.weight.T, start.root.T, start.bias

    def forward(self, questions: Questions, maps: Maps, vectors: Vectors) -> Scores:
        """Return the score of each candidate for each word; minus infinity if the word may not choose it."""
        words = maps.shape[1]
        vectors = torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1)
        maps = maps / self.scale
        between = maps[:, :, :words]
        by_query, by_key = (torch.einsum("swd,dmk->swmk", vectors, weight) for weight in (self.of_query, self.of_key))
        by_word = torch.einsum("sqrk,sqmk->sqrm", between, by_query) + torch.einsum("sqrk,srmk->sqrm", between, by_key)
        scores = by_word[..., 0] + by_word[..., 1].mT
        by_side = torch.einsum("swd,dtk->swtk", vectors, self.root)
        root = (maps[:, :, words:] * by_side).sum((2, 3)) + vectors @ self.bias
        return mask_scores(torch.cat([scores, root[..., None]], -1), questions)


class WordDistanceProbe(nn.Module):
    """A probe without attention: a hidden layer of tanh units on the vectors of two words and on their distance.

    The features of the distance, separate for both sides of the word, are indicators of the distances 1 and 2, the
    distance and its logarithm. The paper says that its probe has both kinds of features and separates the sides.
    """

    learning_rate = 2e-3

    def __init__(self, features: int) -> None:
        super().__init__()
        self.of_word = nn.Linear(features, HIDDEN)
        self.of_candidate = nn.Linear(features, HIDDEN, bias=False)
        self.of_distance = nn.Linear(DISTANCES, HIDDEN, bias=False)
        self.of_root = nn.Parameter(torch.randn(HIDDEN) / math.sqrt(HIDDEN))
        self.output = nn.Linear(HIDDEN, 1, bias=False)

    def forward(self, questions: Questions, maps: Maps | None, vectors: Vectors) -> Scores:
        """Return the score of each candidate for each word; minus infinity if the word may not choose it."""
        words = vectors.shape[1]
        word, candidate = self.of_word(vectors), self.of_candidate(vectors)
        distance = self.of_distance(describe_distances(words))
        # Only compute words with a choice: the hidden layer takes nearly all the time.
        document, place = questions.chosen_for.nonzero().unbind(1)
        hidden = torch.tanh(word[document, place][:, None] + candidate[document] + distance[place])
        root = torch.tanh(word[document, place] + self.of_root)
        scores = vectors.new_zeros(*questions.candidates.shape)
        scores[document, place] = torch.cat([self.output(hidden)[..., 0], self.output(root)], -1)
        return mask_scores(scores, questions)


def mask_scores(scores: Scores, questions: Questions) -> Scores:
    """Return the scores, with minus infinity for candidates that a word may not choose."""
    return scores.masked_fill(~questions.candidates, -math.inf)


def describe_distances(words: int) -> Float[Tensor, "word candidate feature"]:
    """Return the features of the distance from each word to each candidate, in a text of `words` words."""
    place = torch.arange(words)
    distance = place - place[:, None]
    sides = []
    for side in (distance, -distance):
        far = side.clamp_min(0).float()
        sides += [(side == 1).float(), (side == 2).float(), far / 10, far.log1p()]
    return torch.stack(sides, -1)


def choose_next_word(questions: Questions) -> Int[Tensor, "document word"]:
    """Choose the next word for each word; the last word of a text gets "no syntactic head" (right-branching)."""
    words = questions.words.shape[1]
    choice = torch.arange(1, words + 1).expand(len(questions.words), words)
    last = questions.real.sum(1, keepdim=True) - 1
    return choice.where(choice <= last, words)
