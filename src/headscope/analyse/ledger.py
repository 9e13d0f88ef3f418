"""The context ledger: how much heads read from each part of a prompt, separately for content and position.

Each prompt is read in as many orders as it has documents, so that each document is once in each slot. Averaged over
these orders, all documents have had the same positions. The remaining differences come from their content, or from
their different lengths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from headscope.analyse.ends import INTERVAL, describe_ends, make_ends
from headscope.analyse.significance import BENJAMINI, false_discoveries
from headscope.analyse.student import sf, standard_error, t_interval
from headscope.analyse.uncertainty import ALPHA
from headscope.corpora.prompts import name_parts
from headscope.heads import SHARE, Described, describe, head_name, variable

SOURCE = "headscope"

FIRST_SLOT = 1
"""The index of the first document among the parts."""

ROUNDING = 1e-6
"""Smaller differences of shares come from rounding in single precision."""

SELECTED = "selected"
"""The verdict on a head that reads the document with the answer more than its position and length explain."""

BY_PROMPT = f"{INTERVAL}, clustered by prompt"

CONTENT: Mapping[str, str] = {
    **describe_ends(
        "content effect: attention to the document with the answer less that to the others, each in the mean over all "
        "slots", BY_PROMPT, "ledger_content",
    ),
    "ledger_content_length": "content effect of what the head gives all documents if it were shared by their lengths",
    "ledger_content_p": "p-value of a content effect of 0 or less, or no larger than by lengths; the larger of the two "
    "(one-sided)",
    "ledger_content_q": "false discovery rate at this p-value, over all heads",
}  # fmt: skip
"""The variables of the content effect, and their descriptions."""


@dataclass(frozen=True, eq=False)
class MeasuredPrompts:
    """The shares of attention to the parts of prompts that have the same number of documents.

    Each share is a mean over the tokens of the text that the model wrote.

    Attributes:
        shares: The shares of attention, in each order of the documents: in order r, slot s (from 0) holds the document
            (s + r) mod the number of documents.
        uniform: The shares of uniform attention, with the documents in the order of the prompt.
        lengths: The number of tokens of each document.
        gold: The document with the answer, counted from 1; 0 if it is unknown.
    """

    shares: Float[np.ndarray, "prompt order layer head part"]
    uniform: Float[np.ndarray, "prompt part"]
    lengths: Float[np.ndarray, "prompt document"]
    gold: Int[np.ndarray, " prompt"]

    @property
    def slots(self) -> int:
        """The number of documents of a prompt."""
        return int(self.lengths.shape[1])

    @property
    def by_slot(self) -> Float[np.ndarray, "prompt order layer head slot"]:
        """The shares of attention to the documents, by the slots of the documents."""
        return self.shares[..., FIRST_SLOT : FIRST_SLOT + self.slots]

    @property
    def by_document(self) -> Float[np.ndarray, "prompt document layer head"]:
        """The shares of attention to each document, averaged over all slots."""
        slots = range(self.slots)
        return np.stack(
            [
                np.mean([self.by_slot[:, order, ..., (document - order) % self.slots] for order in slots], axis=0)
                for document in slots
            ],
            axis=1,
        )


def tabulate_ledger(measured: MeasuredPrompts) -> xr.Dataset:
    """Tabulate the ledger as a head table, without attributes about its origin.

    Intervals and p-values are by Student's t over prompts, and each prompt counts once. If the document with the answer
    is known for fewer than two prompts, there is no content effect.
    """
    layers, heads = measured.shares.shape[2:4]
    given = measured.shares[:, 0]
    lower, upper = _find_interval(given)
    head, mass = ["layer", "head"], "mean share of attention, over the tokens of the model's own text and over prompts"
    described: dict[str, Described] = {
        "ledger_mass_uniform": (measured.uniform.mean(0), ["part"], "the same of uniform attention", SHARE),
        "ledger_by_slot": (
            measured.by_slot.mean((0, 1)), [*head, "slot"],
            "mean share of attention to the documents in a slot, all in turn", SHARE,
        ),
    }  # fmt: skip
    ends = given.mean(0), lower.clip(0), upper.clip(None, 1)
    new = make_ends("ledger_mass", ends, [*head, "part"], what=mass, units=SHARE, source=SOURCE, interval=BY_PROMPT)
    new |= describe(described, SOURCE)
    new |= _tabulate_content(measured)
    coords = {
        "layer": np.arange(1, layers + 1), "head": np.arange(1, heads + 1), "part": name_parts(measured.slots),
        "slot": np.arange(1, measured.slots + 1),
    }  # fmt: skip
    return xr.Dataset(new, coords=coords)


def _tabulate_content(measured: MeasuredPrompts) -> dict[str, xr.Variable]:
    """Compare the attention to the document with the answer and to the other documents, in the same slots.

    The result is empty if the document with the answer is known for fewer than two prompts.
    """
    known = measured.gold > 0
    if known.sum() < 2:
        return {}
    documents, lengths, gold = measured.by_document[known], measured.lengths[known], measured.gold[known] - 1
    own, others = _part_gold(documents, gold)
    effect = own - others
    length_own, length_others = _part_gold(lengths / lengths.sum(1, keepdims=True), gold)
    expected = documents.sum(1) * (length_own - length_others)[:, None, None]
    lower, upper = _find_interval(effect)
    p = np.maximum(_test_above_zero(effect), _test_above_zero(effect - expected))
    values = [effect.mean(0), lower.clip(-1), upper.clip(None, 1), expected.mean(0), p, false_discoveries(p)]
    described = {
        "ledger_gold": (own.mean(0), "mean share of attention to the document with the answer, over all slots"),
        "ledger_other": (others.mean(0), "the same to the other documents in the same slots"),
        **{name: (each, what) for each, (name, what) in zip(values, CONTENT.items(), strict=True)},
    }
    return {
        name: variable(
            each, ["layer", "head"], name=what, units="probability" if name.endswith(("_p", "_q")) else SHARE,
            source=BENJAMINI if name.endswith("_q") else SOURCE,
        )
        for name, (each, what) in described.items()
    }  # fmt: skip


def _part_gold(
    values: Float[np.ndarray, "prompt document ..."], gold: Int[np.ndarray, " prompt"]
) -> tuple[Float[np.ndarray, "prompt ..."], Float[np.ndarray, "prompt ..."]]:
    """Return the value of the document with the answer, and the mean value of the other documents, for each prompt."""
    own = values[np.arange(len(gold)), gold]
    return own, (values.sum(1) - own) / (values.shape[1] - 1)


def _find_interval(
    values: Float[np.ndarray, "prompt ..."],
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    return t_interval(values.mean(0), standard_error(values), len(values) - 1)


def _test_above_zero(values: Float[np.ndarray, "prompt ..."]) -> Float[np.ndarray, "..."]:
    """Return the one-sided p-value of a mean of 0 or less."""
    exact = np.where(np.abs(values) < ROUNDING, 0.0, values)
    mean, error = exact.mean(0), standard_error(exact)
    # If every prompt has the same value, its sign is certain.
    certain = np.where(mean > 0, np.inf, -np.inf)
    statistic = np.where(error > ROUNDING, mean / np.where(error > ROUNDING, error, 1), certain)
    return np.asarray(sf(statistic, len(values) - 1))


def rank_readers(table: xr.Dataset) -> list[tuple[int, int]]:
    """Rank the heads by their content effect; if the table has none, by their attention to all documents together.

    Returns:
        Layer and head, counted from 1; the head that reads most comes first.
    """
    values = table["ledger_content"] if "ledger_content" in table else table["ledger_by_slot"].sum("slot")
    flat = values.transpose("layer", "head").values
    order = np.argsort(-flat, axis=None, kind="stable")
    return [(int(place) // flat.shape[1] + 1, int(place) % flat.shape[1] + 1) for place in order]


def find_selected(table: xr.Dataset) -> xr.DataArray:
    """Return True for the heads whose content effect is above 0 with a false discovery rate below 0.05."""
    return (table["ledger_content_q"] < ALPHA) & (table["ledger_content"] > 0)


def tabulate_tokens(
    texts: Sequence[tuple[str, Sequence[str], np.ndarray]],
    parts: Sequence[str],
    layers: Sequence[int],
    heads: Sequence[tuple[int, int]],
) -> pd.DataFrame:
    """Tabulate the shares of attention of each generated token: a row for each of `heads`, and one for all heads.

    Args:
        texts: For each prompt its id, its generated tokens, and an array of shares: token, layer, head, part.
        parts: The names of the parts.
        layers: The numbers of the layers in the arrays of shares.
        heads: The layer and number of each head that gets a row for each token.

    Returns:
        The columns ``prompt``, ``number`` (of the token, from 1), ``token``, ``head`` (``all`` for the mean over all
        heads of `layers`) and a column for each part.
    """
    frames = []
    for prompt, tokens, shares in texts:
        chosen = {"all": shares.mean((1, 2))}
        chosen |= {head_name(layer, head): shares[:, layers.index(layer), head - 1] for layer, head in heads}
        for name, values in chosen.items():
            frame = pd.DataFrame(values, columns=[*parts])
            for column, content in (
                ("head", name), ("token", [*tokens]), ("number", range(1, len(tokens) + 1)), ("prompt", prompt),
            ):  # fmt: skip
                frame.insert(0, column, content)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)
