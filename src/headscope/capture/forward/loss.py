"""The loss of a model with a task head, of which gradients are taken.

The loss of a batch is the sum over its texts. The loss of a text is the sum over its predictions, in nats. So no text
changes the gradients of another, and the gradients do not depend on how texts are batched. These are the predictions:

==================  ===================================================================================================
``causal-lm``       each token of a word from the tokens before it; an encoder-decoder reads the text and predicts it
``masked-lm``       15 % of the tokens of words, each replaced by a mask
``classification``  the label of the document, or the model's own prediction if the model does not know that label
``tagging``         the model's own prediction for each token of a word
==================  ===================================================================================================
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from headscope.capture.forward.outputs import Loss
from headscope.capture.model.dtypes import widen
from headscope.capture.model.model import Model
from headscope.capture.tokens.assign import SPECIAL
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError

MASKED = 0.15
"""The share of the word tokens of a text that are masked, at least one token (Devlin et al. 2019, section 3.1).

Each of these tokens becomes the mask token. When BERT was trained, some became another token or stayed as they were.
"""

_ENDINGS = {
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "tagging",
    "ForMaskedLM": "masked-lm",
    "ForPreTraining": "masked-lm",
    "ForCausalLM": "causal-lm",
    "LMHeadModel": "causal-lm",
    "ForConditionalGeneration": "causal-lm",
}
"""The task of a transformers class with a task head, by the ending of its name."""


def find_task(kind: str) -> str | None:
    """Find the task of a transformers class by its name; None if it has no known task head."""
    return next((task for ending, task in _ENDINGS.items() if kind.endswith(ending)), None)


def refuse_headless(name: str, kind: str) -> ModelError:
    """Make the error for a model without a task head."""
    return ModelError(
        f"gradients are of a loss, and {name!r} ({kind}) has no task head to give one; give weights with a head, or "
        "name its task (--task, or task= of headscope.load) if they have one.",
        lacks_head=True,
    )


def check_loss(model: Model) -> str:
    """Return the task of a model's head, or raise an error if `make_loss` has no loss for it.

    Raises:
        ModelError: The model has no task head, or a head without a loss, or a causal head on tokens that see later
            ones. Or the tokenizer of a masked language model has no mask.
    """
    kind = type(model.module).__name__
    task = find_task(kind)
    if task is None:
        raise refuse_headless(model.name, kind)
    if task == "causal-lm" and "decoder" not in model.layers:
        raise ModelError(
            f"{model.name!r} ({kind}) sees each token that it is to predict; load it with the task masked-lm."
        )
    if task == "masked-lm" and model.tokenizer.mask_token_id is None:
        raise ModelError(f"the tokenizer of {model.name!r} has no mask; give the one that the model was trained with.")
    labels = int(model.module.config.num_labels)
    several = getattr(model.module.config, "problem_type", None) == "multi_label_classification"
    if task == "classification" and (labels < 2 or several):
        predicted = "a number" if labels < 2 else "several labels of a text"
        raise ModelError(
            f"{model.name!r} predicts {predicted}, of which there is no loss here; give a model that chooses one label."
        )
    return task


def make_loss(model: Model, batch: Batch) -> tuple[Batch, Loss]:
    """Return the batch that a model reads for its loss, and the function that computes the loss of its output.

    The batch is `batch` itself, unless words are masked. The loss is the sum over its texts; a text without anything to
    predict adds 0.

    Raises:
        ModelError: As in `check_loss`.
    """
    task, tokens = check_loss(model), batch.encoder
    if task == "masked-lm":
        masked = _mask_words(batch)
        ids = tokens.ids.masked_fill(masked, model.tokenizer.mask_token_id)
        # To the model, a masked full stop is not a full stop.
        read = replace(tokens, ids=ids, punctuation=tokens.punctuation & ~masked)
        posed = replace(batch, encoder=read, inputs=batch.inputs | {"input_ids": ids})
        return posed, partial(_sum_losses, predicted=masked, targets=tokens.ids)
    if task == "causal-lm":
        read = batch.decoder or tokens
        predicted, targets = read.word.roll(-1, 1) != SPECIAL, read.ids.roll(-1, 1)
        predicted[:, -1] = False
        return batch, partial(_sum_losses, predicted=predicted, targets=targets)
    if task == "tagging":
        return batch, partial(_sum_losses, predicted=tokens.word >= 0, targets=None)
    known: dict[str, int] = model.module.config.label2id
    gold = [known.get(document.label or "", -1) for document in batch.documents]
    return batch, partial(_sum_label_losses, gold=torch.tensor(gold, device=tokens.ids.device))


def choose_masked(ids: Sequence[int], words: Sequence[int]) -> list[int]:
    """Choose at random which word tokens of a text to mask; the same token ids give the same choice.

    Args:
        ids: The ids of all tokens of the text.
        words: The positions of the tokens that belong to words.

    Returns:
        The positions of the tokens to mask, sorted.
    """
    count = min(len(words), max(1, round(MASKED * len(words))))
    return sorted(random.Random(" ".join(map(str, ids))).sample(words, count))


def _mask_words(batch: Batch) -> Bool[Tensor, "batch token"]:
    """Choose the tokens of a batch to mask, and return True for each of them."""
    tokens = batch.encoder
    masked = torch.zeros_like(tokens.real)
    for row, (ids, real, word) in enumerate(zip(tokens.ids, tokens.real, tokens.word, strict=True)):
        masked[row, choose_masked(ids[real].tolist(), (word != SPECIAL).nonzero()[:, 0].tolist())] = True
    return masked


def _sum_losses(
    output: Any, *, predicted: Bool[Tensor, "batch token"], targets: Int[Tensor, "batch token"] | None
) -> Float[Tensor, ""]:
    """Sum the losses of the tokens to predict; without targets, the target is the model's most probable class."""
    logits = widen(output.logits[predicted])
    return cross_entropy(logits, logits.argmax(-1) if targets is None else targets[predicted], reduction="sum")


def _sum_label_losses(output: Any, *, gold: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Sum the losses for the gold labels of all texts; for a text without one (-1), the most probable label counts."""
    logits = widen(output.logits)
    return cross_entropy(logits, gold.where(gold >= 0, logits.argmax(-1)), reduction="sum")
