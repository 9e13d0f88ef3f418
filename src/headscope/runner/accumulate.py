"""The sums over a stream of batches.

Portion --capture--> Attention --reducers--> sums --+--> sums so far

If a reducer compares two models, the model before reads the same batches, and its layers are held while the other model
runs.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.capture.forward.comparisons import Reasons, run_again_with_matrix
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.loss import make_loss
from headscope.capture.forward.outputs import Outputs
from headscope.capture.forward.verify import are_finite
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.dense import DenseRows
from headscope.capture.tokens.batch import Batch
from headscope.errors import HeadscopeError
from headscope.reducers.reducer import Reducer, Sums
from headscope.runner.checkpoint import ADVICE, ALL_LAYERS, COUNTED, Key, RunSums, add_sums, bring_home, describe_key
from headscope.runner.completed_table import NOT_FINITE
from headscope.runner.overlap import run_portions
from headscope.runner.own_sums import call_count, call_observe, check_growth
from headscope.runner.resolve import needs_head
from headscope.runner.row_sample import RowSample, add_no_deviations, find_other_kind


def accumulate(
    stream: Stream, reducers: Sequence[Reducer], *, done: RunSums | None = None
) -> Iterator[Mapping[Key, Tensor]]:
    """Yield the sums so far after each portion of a stream; the last sums are complete.

    `done` has the sums of an interrupted run over the same documents in the same order. Its portions are not measured
    again.

    Raises:
        HeadscopeError: A sum in `done` has another shape or type than the values that are added to it.
    """
    done = done or RunSums({})
    sums = {key: torch.as_tensor(value) for key, value in done.values.items()}
    by_name = {reducer.name: reducer for reducer in reducers}
    portions = islice(stream, done.select_run("seen").get("portions", 0), None)
    observe = partial(_observe_portion, reducers=reducers, plan=stream.plan)
    for parts in run_portions(stream.models[0], portions, observe, stream.plan.batch_tokens):
        observed: dict[Key, Tensor] = {("seen", "portions"): torch.tensor(1)}
        for part in parts:
            check_growth(by_name, observed, part)
            add_sums(observed, part)
        if key := find_other_kind({key: sums[key] for key in done.values}, observed):
            raise HeadscopeError(
                f"the sums of an interrupted run do not hold numbers of the kind that {describe_key(key)} adds up; "
                f"{ADVICE}."
            )
        check_growth(by_name, sums, observed)
        add_sums(sums, observed)
        yield sums


def count_portion(portion: Portion) -> dict[Key, Tensor]:
    """Return the counts of documents, words and tokens that a portion read, and of documents that it skipped."""
    sums: dict[Key, Tensor] = {("skipped", reason): torch.tensor(count) for reason, count in portion.skipped.items()}
    if portion.batches:
        batch, unknown = portion.batches[0], portion.captures[0].model.tokenizer.unk_token_id
        is_unknown = (batch.encoder.ids == (-1 if unknown is None else unknown)) & (batch.encoder.word >= 0)
        sums |= {
            ("seen", "documents"): torch.tensor(len(batch.documents)),
            ("seen", "repeated"): torch.tensor(sum(document.repeats is not None for document in batch.documents)),
            ("seen", "given"): torch.tensor(sum(document.has_given_tokens for document in batch.documents)),
            ("seen", "without_text"): torch.tensor(sum(document.original.lacks_text for document in batch.documents)),
            ("seen", "words"): torch.tensor(sum(len(document.original.words) for document in batch.documents)),
            ("seen", "units"): torch.tensor(sum(len(document.words) for document in batch.documents)),
            ("seen", "tokens"): batch.encoder.real.sum(),
            ("seen", "unknown"): is_unknown.sum(),
        }
    return sums


def _observe_portion(portion: Portion, reducers: Sequence[Reducer], plan: Plan) -> dict[Key, Tensor]:
    """Return the counts of a portion and the sums over it, without documents whose outputs are not finite."""
    observed: Mapping[Key, Tensor] = {}
    while portion.batches:
        observed, finite = run_again_with_matrix(partial(_observe_batch, portion, reducers, plan))
        if bool(finite.all()):
            break
        portion, observed = portion.leave_out(~finite, NOT_FINITE), {}
    return bring_home({**count_portion(portion), **observed})


def _observe_batch(
    portion: Portion, reducers: Sequence[Reducer], plan: Plan, with_matrix: Reasons
) -> tuple[dict[Key, Tensor], Bool[Tensor, " document"]]:
    """Return the sums over a batch, and for each document whether the outputs of the models are finite.

    The sums are usable only if all outputs are finite.
    """
    (capture, *captures_beside), (batch, *batches_beside) = portion.captures, portion.batches
    by_gradient = [reducer for reducer in reducers if reducer.scope == "gradient"]
    posed, loss = make_loss(capture.model, batch) if needs_head(reducers, plan.view) else (batch, None)
    sums: dict[Key, Tensor] = {}
    facts: dict[tuple[str, str, torch.device], Any] = {}

    def add(reducer: Reducer, attention_type: str, layer: str, values: Sums) -> None:
        added = {(reducer.name, attention_type, layer, name): value for name, value in values.items()}
        check_growth({reducer.name: reducer}, sums, added)
        add_sums(sums, added)

    def prepare(reducer: Reducer, attention_type: str, device: torch.device) -> Any:
        """Return the facts of a reducer on the batch, on the device of the layers that it observes."""
        place = (reducer.name, attention_type, device)
        if place not in facts:
            read = posed if reducer.scope == "gradient" or plan.view is not None else batch
            with torch.inference_mode(False):  # a layer may call this in the middle of a pass
                facts[place] = reducer.prepare(read.on(device), attention_type)
        return facts[place]

    def observe(reducer: Reducer, attention_type: str, device: torch.device, *attentions: Any) -> Sums:
        facts, shape = prepare(reducer, attention_type, device), capture.model.shape
        layers, heads = len(shape.attention_layers[attention_type]), shape.heads[attention_type]
        return call_observe(reducer, facts, *attentions, layers=layers, heads=heads)

    for reducer in reducers:
        for attention_type in capture.model.layers:
            add(reducer, attention_type, COUNTED, call_count(reducer, prepare(reducer, attention_type, batch.device)))
    held, outputs_beside = [], []
    for capture_beside, batch_beside in zip(captures_beside, batches_beside, strict=True):
        layers_beside, outputs = _hold_layers(capture_beside, batch_beside, plan)
        held.append(layers_beside)
        outputs_beside.append(outputs)
    samples = _draw_rows(capture, batch, plan)
    by_place: defaultdict[tuple[str, str, str], list[tuple[slice, Sums]]] = defaultdict(list)
    passes: defaultdict[str, list[tuple[Attention, ...]]] = defaultdict(list)
    by_pass = [reducer for reducer in reducers if reducer.scope == "pass"]
    by_layer = [reducer for reducer in reducers if reducer.scope in ("rows", "layer")]

    def see(attention: Attention) -> None:
        attention_type, layer, device = attention.attention_type, attention.layer, attention.batch.device
        # Each held layer is released after it has been compared.
        attentions = (attention, *(_bring(layers.pop((attention_type, layer)), device) for layers in held))
        for reducer in by_layer:
            values = observe(reducer, attention_type, device, *attentions[: reducer.models])
            if attention_type in samples:
                by_place[reducer.name, attention_type, str(layer)].append((attention.rows, values))
            else:
                exact = values if plan.sample_queries is None else add_no_deviations(values)
                add(reducer, attention_type, str(layer), exact)
        if by_pass:
            # All layers are compared on one device.
            passes[attention_type].append(tuple(_bring(each, batch.device) for each in attentions))

    whole = any(reducer.scope in ("layer", "pass") or reducer.models > 1 for reducer in reducers)
    # If words are masked for the loss, other reducers read the unmasked text in a separate pass; a view of the loss
    # reads the masked text, on which the loss depends.
    together = posed is batch or plan.view is not None or len(by_gradient) == len(reducers)
    seen = capture.run(
        posed if together else batch, see, gradients=bool(by_gradient) and together, loss=loss, rows=plan.rows,
        whole=whole, fused=plan.fused, chosen_rows={name: [*sample.blocks] for name, sample in samples.items()},
        with_matrix=with_matrix,
    )  # fmt: skip
    for place, observed in by_place.items():
        _, attention_type, _ = place
        estimates = samples[attention_type].estimate(observed)
        add_sums(sums, {(*place, name): value for name, value in estimates.items()})
    differentiated = seen
    if not together:
        differentiated = capture.run(posed, gradients=True, loss=loss, rows=plan.rows, fused=plan.fused)
    for (attention_type, layer), gradient in differentiated.gradients.items():
        for reducer in by_gradient:
            values = observe(reducer, attention_type, gradient.g.device, gradient)
            add(reducer, attention_type, str(layer), values)
    for reducer in by_pass:
        for attention_type, layers in passes.items():
            # All layers of the model, followed by all layers of the model before.
            attentions = chain.from_iterable(list(zip(*layers, strict=True))[: reducer.models])
            values = observe(reducer, attention_type, batch.device, *attentions)
            add(reducer, attention_type, ALL_LAYERS, values)
    for (attention_type, layer, way), texts in seen.paths.items():
        sums["path", f"{attention_type} {layer} {way}"] = torch.tensor(texts)
    passes_run = [seen, *outputs_beside] if together else [seen, differentiated, *outputs_beside]
    finite = [are_finite(batch, outputs.verified) for outputs in passes_run]
    return sums, torch.stack(finite).all(0)


def _draw_rows(capture: Capture, batch: Batch, plan: Plan) -> dict[str, RowSample]:
    """Draw the query rows that are measured, by attention type; leave out a type if all of its rows are measured."""
    # A model that returns its attention has computed all rows before any can be chosen.
    if plan.sample_queries is None or capture.route == "outputs":
        return {}
    samples = {name: RowSample.draw(batch, name, plan.sample_queries, plan.seed) for name in capture.model.layers}
    return {name: sample for name, sample in samples.items() if sample is not None}


def _bring(attention: Attention, device: torch.device) -> Attention:
    """Return the attention of a layer with its matrix on another device; unchanged if it holds no matrix."""
    return attention.on(device) if isinstance(attention, DenseRows) else attention


def _hold_layers(capture: Capture, batch: Batch, plan: Plan) -> tuple[dict[tuple[str, int], Attention], Outputs]:
    """Return the attention of all layers of a batch, by attention type and layer, and the outputs of the model."""
    held: dict[tuple[str, int], Attention] = {}

    def hold(attention: Attention) -> None:
        held[attention.attention_type, attention.layer] = attention

    outputs = capture.run(batch, hold, rows=plan.rows, whole=True)
    return held, outputs
