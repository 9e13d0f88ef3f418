"""One call of attention in a forward pass, run with its matrix or without it.

With the matrix, the model's own function is called on blocks of query rows. The softmax is taken row by row, so the
result is the model's own, with all terms that the family adds (softcap, sinks, position biases, windows). Memory grows
with the block, not with the square of the length. Without the matrix, a fused kernel computes the output, and a few
rows are compared with the model's own function. On a GPU, this is the model's own fused kernel. Its output is used
unchanged, and a second pass computes the other statistics.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.forward.call import Call, Pass
from headscope.capture.forward.head_edit import Edit, EditedLayer, Visible, apply_edits
from headscope.capture.forward.own_kernel import attend_by_own_kernel
from headscope.capture.forward.path import describe_large_scores, list_terms, may_be_large, may_leave_out
from headscope.capture.forward.verify import verify_average
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import count_rows
from headscope.capture.rows.dense import DenseRows
from headscope.capture.rows.fused import FusedRows
from headscope.capture.rows.norms import make_shares

MOST_HIDDEN = 1.2
"""The most weights that are computed for each weight that is needed, if small blocks are computed together.

Weights that are not needed belong to keys that some of the blocks do not see.
"""

CHECKED_ROWS = 3
"""The number of rows of a layer that one check compares with the model's own function."""


def attend_with_all_rows(run: Pass, call: Call) -> tuple[Tensor, str]:
    """Compute a layer's output, and show all rows of its attention.

    Returns:
        The output, and the measuring path of the layer in words.
    """
    attention, output = _explain_matrix(run, call) or _prefer_matrix(run, call) or _fuse(run, call), None
    if isinstance(attention, FusedRows):
        output, because = _attend_without_matrix(run, call, attention)
    else:
        because = attention
    if output is None:
        output = _attend_with_matrix(run, call)
    if because or not isinstance(attention, FusedRows):
        return output, f"with the matrix: {because}"
    return output, f"{attention.way}: {call.reach}"


def _explain_matrix(run: Pass, call: Call) -> str:
    """Return the reason why the layer needs its matrix; empty if it does not."""
    return run.matrix_because or run.with_matrix.get((call.attention_type, call.layer), "")


def _prefer_matrix(run: Pass, call: Call) -> str:
    """Return the reason why a layer is measured faster with its matrix; empty if it is not."""
    query, keys = call.given[0], call.keys
    if not run.fused_from or run.kernels.find(query) is not None:
        return ""
    if keys < run.fused_from:
        return f"fewer than {run.fused_from:,} keys, for which it is faster"
    weights = query.shape[0] * query.shape[1] * keys**2
    # A processor is as fast without the matrix, and its blocks are too small for the matrix of a long text.
    fits = BlockSizes.weights < weights <= run.find_batch(call).blocks.weights
    return "it fits into memory, and there is no kernel without it" if fits else ""


def _fuse(run: Pass, call: Call) -> FusedRows | str:
    """Return the attention of a call without its matrix, or the reason why that is impossible.

    It is possible for plain ``softmax(scale * q . k)`` under a mask whose reach is known.
    """
    query, key, value = (side.detach() for side in call.given)
    if query.dtype == torch.float64:
        return "scores in float64"
    if value.shape != key.shape:
        return "values are not as wide as keys"
    if terms := list_terms(call.terms):
        return f"the model adds to the scores ({', '.join(terms)})"
    if call.reach is None:
        return "the mask is of a kind that is not known"
    rows = FusedRows(
        call.layer, call.attention_type, slice(0, query.shape[2]), run.find_batch(call), query, key, call.scale,
        call.reach, value=value, kernels=run.kernels,
    )  # fmt: skip
    return rows if rows.kernel is None else replace(rows, attended=attend_by_own_kernel(run, call))


def _attend_without_matrix(run: Pass, call: Call, attention: FusedRows) -> tuple[Tensor | None, str]:
    """Compute a layer's output by a fused kernel and show its attention; or return the reason why that is impossible.

    A few rows are compared with the model's own function. If the model's own kernel computes the output and there is no
    norm view, they are compared only if `Pass.is_checked`.

    Returns:
        The output and an empty string, or None and the reason.
    """
    norms = run.measure_norms(call)
    if norms is not None and not bool(norms.all()):
        return None, "nothing flows from some of its tokens"
    output, log_sum = attention.attended or (None, None)
    compared_at_end = log_sum if norms is None else None
    if output is None and (run.gradients or norms is not None):
        # The pass for the reducers has no gradient, and does not average the values by a view.
        output, log_sum = replace(attention, query=call.query, key=call.key).attend(call.value)
    if compared_at_end is None and (attention.attended or may_be_large(attention.bound_scores(), call.keys)):
        log_sum = attention.log_sum if log_sum is None else log_sum.detach()
        if because := describe_large_scores(float(log_sum.abs().amax(1)[attention.queries.real].max())):
            return None, because
    rows = _choose_rows(call.layer, call.queries)
    # The observer comes first: the pass for its reducers also finds the output, and the entropies for the check.
    shown = replace(attention if norms is None else attention.with_norms(norms), raised_tokens=run.find_raised(call))
    run.show(shown)
    output = (shown.output() if output is None else output).transpose(1, 2).contiguous()
    if compared_at_end is not None:
        if run.observe is not None:  # otherwise nobody needs headscope's own sums, which take a pass
            run.comparisons.note_sums(shown, compared_at_end)
        if not run.is_checked():
            return output, ""
    with torch.no_grad():
        expected, weights = call.attend_exactly(run, rows)
        weights = weights if norms is None else make_shares(weights, norms)
        run.comparisons.note_outputs(shown, rows, output[:, rows], expected)
        run.comparisons.note_entropies(shown, rows, weights)
    return output, ""


def _attend_with_matrix(run: Pass, call: Call) -> Tensor:
    """Compute a layer's output by the model's own function, block by block, and show its attention."""
    outputs, held = [], []
    for output, attention in _make_rows(run, call, ([rows] for rows in run.blocks(call))):
        outputs.append(output)
        if run.whole:
            held.append(attention)
        else:
            run.show(attention)
    if run.whole:
        run.show(_gather(held))
    return _join_rows(outputs)


def attend_with_chosen_rows(run: Pass, call: Call, chosen: Sequence[slice]) -> tuple[Tensor, str]:
    """Compute a layer's output, and show the blocks `chosen` of its rows.

    A fused kernel computes the output if it can. A few rows of its output are compared with the model's own function,
    for the model's own kernel only if `Pass.is_checked`.

    Returns:
        The output, and the measuring path of the layer in words.
    """
    fused, way = _explain_matrix(run, call) or _fuse(run, call), "some rows; the output "
    if isinstance(fused, FusedRows):
        attended = fused.attended or replace(fused, query=call.query, key=call.key).attend(call.value)
        output = attended[0].transpose(1, 2).contiguous()
        if fused.attended is None or run.is_checked():
            rows = _choose_rows(call.layer, call.queries)
            with torch.no_grad():
                expected, _ = call.attend_exactly(run, rows)
                run.comparisons.note_outputs(fused, rows, output[:, rows], expected)
        way += f"{fused.way}: {call.reach}"
    else:
        way += f"with the matrix: {fused}"
        parts = (call.attend_in_blocks(run, [rows], _find_columns(run, call, [rows])) for rows in run.blocks(call))
        output = _join_rows([output for ((output, _, _),) in parts])
    for _, attention in _make_rows(run, call, _group_blocks(run, call, chosen)):
        run.show(attention)
    return output, way


def _make_rows(run: Pass, call: Call, groups: Iterable[Sequence[slice]]) -> Iterator[tuple[Tensor, DenseRows]]:
    """Yield the output and the attention of each block of rows, by the model's own function.

    Each of `groups` has blocks that are computed together.
    """
    norms, raised, value = run.measure_norms(call), run.find_raised(call), _let_go(run, call.value)
    for blocks in groups:
        columns = _find_columns(run, call, blocks)
        for rows, (output, weights, allowed) in zip(blocks, call.attend_in_blocks(run, blocks, columns), strict=True):
            attention = DenseRows(
                call.layer,
                call.attention_type,
                rows,
                run.find_batch(call),
                _let_go(run, weights),
                columns,
                allowed,
                raised,
                value,
                _let_go(run, output).transpose(1, 2),
            )
            if run.verify:
                verify_average(run.model, attention, call.value[:, :, columns], output)
            yield output, attention if norms is None else attention.with_norms(norms)


def _let_go(run: Pass, part: Tensor) -> Tensor:
    """Return a tensor, detached from the graph of gradients if gradients are computed."""
    return part.detach() if run.gradients else part


def _group_blocks(run: Pass, call: Call, blocks: Iterable[slice]) -> Iterator[list[slice]]:
    """Yield groups of blocks to compute together: with few weights, and with few keys that a block does not see."""
    (batch, heads, _, _), most_held = call.query.shape, run.find_batch(call).blocks.held
    group: list[slice] = []
    rows = weights = 0
    for block in blocks:
        together, own = _find_columns(run, call, [*group, block]), _find_columns(run, call, [block])
        size = count_rows(block)
        seen, most = weights + size * (own.stop - own.start), (rows + size) * (together.stop - together.start)
        if group and (batch * heads * most > most_held or most > MOST_HIDDEN * seen):
            yield group
            group, rows, seen = [], 0, size * (own.stop - own.start)
        group.append(block)
        rows, weights = rows + size, seen
    yield group


def _find_columns(run: Pass, call: Call, blocks: Sequence[slice]) -> slice:
    """Return the range of keys that blocks of rows need: the keys that their rows may see, or all keys if in doubt."""
    keys = call.key.shape[2]
    if call.reach is None or run.whole or not may_leave_out(call.terms):
        return slice(0, keys)
    seen = [call.reach.keys(rows, keys) for rows in blocks]
    return slice(min(columns.start for columns in seen), max(columns.stop for columns in seen))


def _join_rows(outputs: Sequence[Tensor]) -> Tensor:
    return outputs[0] if len(outputs) == 1 else torch.cat(list(outputs), dim=1)


def pass_on(run: Pass, call: Call, output: Float[Tensor, "batch query head width"], edits: Sequence[Edit]) -> Tensor:
    """Return a layer's output after edits; if gradients are computed, also store it in the pass."""
    if not edits and not run.gradients:
        return output
    visible = _find_visible(run, call)
    if edits or run.gradients:
        output = output.to(call.query.dtype)
    if edits:
        queries, keys = (torch.arange(side.shape[2], device=side.device) for side in (call.query, call.key))
        without = partial(call.attend_without, run)
        layer = EditedLayer(
            call.attention_type, call.layer, call.query.shape[1], call.query, call.key, call.scale, call.value,
            queries, keys, visible, without,
        )  # fmt: skip
        output = apply_edits(edits, output.transpose(1, 2), layer).transpose(1, 2).contiguous()
    if run.gradients:
        if not output.requires_grad:  # no weight before this layer is trained
            output.requires_grad_()
        run.outputs[call.attention_type, call.layer] = output, call.value.detach(), visible
    return output


def _find_visible(run: Pass, call: Call) -> Visible:
    """Return a function that returns which keys each query of a block may see; it keeps no graph of gradients."""
    masks, mask, query, keys = run.masks, call.attention_mask, call.given[0].detach(), call.keys
    real = run.find_batch(call).keys(call.attention_type).real[:, None]
    # A causal mask need not hide padding, which comes after all tokens of the text.
    return lambda rows: masks.visible(mask, rows, query, keys) & real


def _choose_rows(layer: int, queries: int) -> slice:
    """Choose `CHECKED_ROWS` consecutive rows to compare, different rows in different layers."""
    start = layer * 7919 % max(1, queries - CHECKED_ROWS + 1)
    return slice(start, min(start + CHECKED_ROWS, queries))


def _gather(blocks: list[DenseRows]) -> DenseRows:
    first, *others = blocks
    if not others:
        return first
    rows = slice(first.rows.start, blocks[-1].rows.stop)
    matrix, allowed = (
        torch.cat([block.matrix for block in blocks], 2),
        torch.cat([block.allowed for block in blocks], 1),
    )
    averaged = None if first.averaged is None else torch.cat([block.output() for block in blocks], dim=2)
    return replace(first, rows=rows, matrix=matrix, allowed=allowed, averaged=averaged)
