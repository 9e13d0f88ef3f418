"""The predictions of a model on one text while heads are disabled, compared with the whole model and with placebos.

text --align--> tokens --model--> predictions --disabled, placebos--> the same without the heads
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.forward.head_edit import Edit
from headscope.capture.forward.interface import Capture
from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.passes.blocks import Layer, has_blocks, record_pass
from headscope.capture.passes.projection import Projection, find_projections
from headscope.capture.tokens.align import Aligned, Alignment, explain_cut, explain_unread, spell_token
from headscope.capture.tokens.batch import collate
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.intervene.ablation import HEAD, Ablation, Unit
from headscope.intervene.edit import capture_model, collate_sample
from headscope.intervene.placebo import DisabledUnit
from headscope.intervene.prediction import SentenceReader, find_scored, make_rows, score_rows
from headscope.intervene.replacement import Replacement, uniform, zero
from headscope.intervene.selected_heads import select_heads
from headscope.text_forms import SPACED, WRITTEN
from headscope.view.headings import describe_start

WAYS: dict[str, Replacement] = {"uniform": uniform, "zero": zero}
"""The replacements of a head's output that need no other text, by name."""

PLACEBOS = 5
LIKELY = 5
"""The maximum number of likely outcomes that are listed."""

LOSS = "loss, nats per token"
SIMILARITY = "similarity of the last hidden states, mean cosine over tokens"

MOST_MASKED = 64
"""The maximum number of tokens of a text for a masked model, which needs a row of a batch for each token."""


@dataclass(frozen=True)
class WhatIf:
    """The predictions on a text by the whole model and by the model with heads disabled.

    Attributes:
        measure: A description of the values, with their unit.
        note: Sentences about a cut of the text, and about the token from which the first token is predicted; empty
            without either.
        whole: The value of the whole model; None if the text has nothing to predict.
        without: The value with the heads disabled.
        placebos: The values with random changes of the same size in the same layers.
        outcome: The kind of the likely outcomes; empty if the model predicts none.
        likely: Outcomes that are likely with or without the heads: the name, and the probabilities with and without.
    """

    measure: str
    note: str
    whole: float | None
    without: float | None
    placebos: tuple[float, ...]
    outcome: str
    likely: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, eq=False)
class Question:
    """A question about a text, for the whole model and for the model with heads disabled.

    Attributes:
        measure: A description of the value of an answer, with its unit.
        outcome: The kind of outcome that has probabilities; empty if there are none.
        inputs: The inputs of each pass of the model.
        read: A function from the outputs of the model in these passes to the value, if any, and the probabilities of
            all outcomes, if any.
        name: A function from the number of an outcome to its name.
        note: A sentence about the token from which the first token is predicted; else empty.
    """

    measure: str
    outcome: str
    inputs: Sequence[Mapping[str, Any]]
    read: Callable[[Sequence[Any]], "tuple[float | None, Tensor | None]"]
    name: Callable[[int], str]
    note: str = ""


@dataclass(frozen=True, eq=False)
class TextModel:
    """A model that answers questions about texts.

    Attributes:
        model: The model, with its task head, if it has one.
        max_tokens: The number of tokens to which longer texts are cut.
        start: The token from which a causal model predicts the first token.
        text: `WRITTEN` or `SPACED`, the form in which the model reads texts
            (`headscope.intervene.prediction.SentenceReader`).
    """

    model: Model
    max_tokens: int | None = None
    start: str | None = None
    text: str = WRITTEN

    @cached_property
    def capture(self) -> Capture:
        """The capture of the model's heads."""
        return capture_model(self.model)

    @cached_property
    def _reader(self) -> SentenceReader:
        return SentenceReader(self.model, self.text, self.start)

    @cached_property
    def projections(self) -> Mapping[Layer, Projection]:
        """The output projections of the layers; empty if they are unknown."""
        try:
            return find_projections(self.capture, collate_sample(self.model))
        except ModelError:
            return {}

    def ask(self, document: Document, heads: Sequence[str], how: str = "zero", *, seed: int = 0) -> WhatIf:
        """Compare the predictions on a text by the whole model, without the heads, and with placebos of the heads.

        A language model predicts how likely the text is (the loss, in nats per token). A causal model also predicts
        what comes next, and a masked model what the first mask in the text hides. A classifier predicts how likely its
        labels are; the value is the probability of the label that it chooses. For other models, the value is the
        similarity of their last hidden states to the states of the whole model: the mean cosine over the tokens. The
        seed sets the directions of the placebos.

        Raises:
            HeadscopeError: The head or the way is unknown, or the text has no tokens.
            ModelError: The heads of the model cannot be edited.
        """
        if how not in WAYS:
            raise HeadscopeError(f"heads cannot be disabled by {how!r} here; name one of {', '.join(WAYS)}.")
        unit = Unit("+".join(heads), HEAD, select_heads(self.model, heads))
        aligned, cut = self._read(document)
        question = self._make_question(aligned)
        whole, likely = self._answer(question, None)
        streams = self._read_streams(question, unit)
        (without, changed), *placebos = [
            self._answer(
                question, DisabledUnit(Ablation(unit, how, placebo), WAYS[how], self.projections, streams, seed)
            )
            for placebo in range(PLACEBOS + 1)
        ]
        return WhatIf(
            question.measure, " ".join(filter(None, (cut, question.note))), whole, without,
            tuple(value for value, _ in placebos if value is not None), question.outcome,
            list_likely(likely, changed, question.name),
        )  # fmt: skip

    def _read_streams(self, question: Question, unit: Unit) -> Mapping[Layer, Tensor]:
        """Return the residual stream to which each layer of a unit adds its output.

        Empty if the question needs several passes of the model, or if the model has no blocks.
        """
        if len(question.inputs) != 1 or not has_blocks(self.capture):
            return {}
        return record_pass(self.capture, question.inputs[0]).find_streams(unit.selection, self.projections)

    @torch.inference_mode()
    def _answer(self, question: Question, edit: Edit | None) -> "tuple[float | None, Tensor | None]":
        """Answer a question with the whole model or with an edit; return the value and the probabilities of outcomes.

        Either is None if the question has none.
        """
        with nullcontext() if edit is None else self.capture.editing(edit):
            return question.read([run_model(self.model, inputs) for inputs in question.inputs])

    def _read(self, document: Document) -> tuple[Aligned, str]:
        """Return the tokens of a text, and a sentence about its cut; the sentence is empty if nothing was cut."""
        alignment = Alignment.for_model(self.model, max_tokens=self._longest, cut=True, text=self.text)
        aligned, skipped = alignment.align([document])
        if not aligned:
            raise HeadscopeError(explain_unread(self.model.name, skipped))
        return aligned[0], explain_cut(skipped)

    @cached_property
    def _longest(self) -> int | None:
        """The maximum number of tokens of a text; small for a masked model, which reads the text for each token."""
        reserved = self.start is not None or self.text == SPACED
        limits = [limit - reserved for limit in (self.max_tokens, self.model.max_tokens) if limit is not None]
        with suppress(ModelError):
            masked = self._reader.mask is not None
            limits += [MOST_MASKED + self.model.tokenizer.num_special_tokens_to_add()] * masked
        return min(limits, default=None)

    def _make_question(self, text: Aligned) -> Question:
        """Make the question that the model can answer about a text."""
        config = self.model.module.config
        if type(self.model.module).__name__.endswith("ForSequenceClassification") and not config.is_encoder_decoder:
            return ask_label(self.model, text)
        try:
            mask = self._reader.mask
        except ModelError:
            return ask_states(self.model, text)
        text = self._reader.begin(text)
        if mask is None:
            return replace(ask_next(self.model, text), note=describe_start(self._reader.describe([text])))
        return ask_masked(self.model, text, mask)


def ask_label(model: Model, text: Aligned) -> Question:
    """Make the question which label a classifier gives to a text, or which value a regression predicts."""
    config, inputs = model.module.config, collate(model, [text]).inputs

    def name(number: int) -> str:
        return str(config.id2label[number])

    def read_logits(outputs: Sequence[Any]) -> Tensor:
        logits: Tensor = outputs[0].logits[0]
        return logits.float()

    if config.num_labels == 1 or config.problem_type == "regression":
        measure = "predicted value" if config.num_labels == 1 else f"predicted value of {name(0)}"
        return Question(measure, "", [inputs], lambda outputs: (float(read_logits(outputs)[0]), None), name)
    # If several labels may be true at once, each has its own probability.
    share = torch.sigmoid if config.problem_type == "multi_label_classification" else partial(torch.softmax, dim=-1)
    with torch.inference_mode():
        given = int(read_logits([run_model(model, inputs)]).argmax())

    def read(outputs: Sequence[Any]) -> tuple[float, Tensor]:
        shares = share(read_logits(outputs))
        return float(shares[given]), shares

    return Question(f"probability of {name(given)}", "label", [inputs], read, name)


def ask_next(model: Model, text: Aligned) -> Question:
    """Make the question how large the loss of a causal model on a text is, and which token comes next."""
    rows = list(make_rows(text, None)) if find_scored(text, causal=True) else []
    last = len(text.ids) - 1

    def read(outputs: Sequence[Any]) -> tuple[float | None, Tensor]:
        logits = outputs[0].logits
        loss = -float(score_rows(logits, rows)) / len(rows[0].places) if rows else None
        return loss, logits[0, last].float().softmax(-1)

    return Question(LOSS, "next token", [collate(model, [text]).inputs], read, partial(name_token, model))


def ask_masked(model: Model, text: Aligned, mask: int) -> Question:
    """Make the question how large the loss of a masked model on a text is, and which token the first mask hides.

    For the loss, each token is masked in turn. A text without masks has no second part.
    """
    masks = [place for place, number in enumerate(text.ids) if number == mask]
    rows = [row for row in make_rows(text, mask) if row.targets != [mask]]
    inputs = [collate(model, [row.text for row in rows]).inputs] if rows else []
    shown = [collate(model, [text]).inputs] if masks else []

    def read(outputs: Sequence[Any]) -> "tuple[float | None, Tensor | None]":
        loss = -float(score_rows(outputs[0].logits, rows).sum()) / len(rows) if rows else None
        hidden = outputs[-1].logits[0, masks[0]].float().softmax(-1) if masks else None
        return loss, hidden

    return Question(LOSS, "masked token" if masks else "", inputs + shown, read, partial(name_token, model))


def ask_states(model: Model, text: Aligned) -> Question:
    """Make the question how similar the last hidden states of a text are to the states of the whole model."""
    inputs = {**collate(model, [text]).inputs, "output_hidden_states": True}
    try:
        with torch.inference_mode():
            whole = read_last_states(run_model(model, inputs))
    except Exception as error:  # the errors for unsuitable input depend on the model
        raise ModelError(
            f"{model.title} cannot be asked about one text "
            f"({type(error).__name__}: {first_line(error)}); load the model without its head."
        ) from error

    def read(outputs: Sequence[Any]) -> tuple[float, None]:
        return float(torch.cosine_similarity(read_last_states(outputs[0]), whole, dim=-1).mean()), None

    return Question(SIMILARITY, "", [inputs], read, str)


def read_last_states(output: Any) -> Float[Tensor, "token width"]:
    """Return the last hidden states of a text from a model's output; in an encoder-decoder, those of the decoder."""
    layers = output.get("decoder_hidden_states") or output.get("hidden_states")
    states: Tensor = layers[-1] if layers else output.last_hidden_state
    return states[0].double()


def name_token(model: Model, number: int) -> str:
    """Return a token as readable text, without the spaces around it."""
    return spell_token(model.tokenizer, number).strip()


def list_likely(
    whole: "Tensor | None", without: "Tensor | None", name: Callable[[int], str]
) -> tuple[tuple[str, float, float], ...]:
    """List the outcomes that are most likely with or without the heads: name, probability with, probability without.

    The list is empty if the answers have no probabilities.
    """
    if whole is None or without is None:
        return ()
    most = torch.maximum(whole, without).topk(min(LIKELY, len(whole))).indices.tolist()
    return tuple((name(number), float(whole[number]), float(without[number])) for number in most)
