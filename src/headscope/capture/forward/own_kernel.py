"""The model's own fused kernel, which torch's ``scaled_dot_product_attention`` chooses, and its log-sum-exp.

transformers' own function calls the kernel with the mask that the model would have passed. So the output is the same as
the output of the untouched model, bit by bit. The kernel also computes the log-sum-exp of each row, which is read from
torch's operator.
"""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from headscope.capture.forward.call import Call, Pass
from headscope.capture.rows.kernel import Attended

_ATEN = torch.ops.aten

ASKED_FOR_SUMS = {
    _ATEN._scaled_dot_product_flash_attention.default: None,
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default: None,
    _ATEN._scaled_dot_product_cudnn_attention.default: 4,
    _ATEN._scaled_dot_product_efficient_attention.default: 4,
}
"""The kernels that return the log-sum-exp, with the index of the argument that asks for it; None if they always do."""

NOTHING = 1e30
"""The log-sum-exp that rows of padding get: it is above any score, so that the weights of these rows are 0."""


def attend_by_own_kernel(run: Pass, call: Call) -> Attended | None:
    """Run the model's own fused kernel; return output and log-sum-exp, or None if torch has no kernel for the call."""
    mask, kernel = run.masks.own(call.attention_mask, call.device), _Kernel()
    try:
        with _Choice(), kernel:
            output, _ = sdpa_attention_forward(call.module, *call.given, mask, **call.terms)
    except _NoKernelError:
        return None
    if kernel.log_sum is None:
        return None
    # The efficient kernel pads the last block of rows; cuDNN's kernel adds an axis of size 1.
    rows = kernel.log_sum.detach().flatten(2)[..., : kernel.queries].reshape(call.given[0].shape[:3])
    # Padding may see no key; then its log-sum-exp may be any number.
    queries = run.find_batch(call).queries(call.attention_type)
    log_sum = rows.float().masked_fill(queries.padding, NOTHING) if queries.is_padded else rows.float()
    return output.transpose(1, 2), log_sum


class _NoKernelError(Exception):
    """Raised if torch would compute the matrix in place of running a fused kernel."""


class _Choice(TorchFunctionMode):
    """A torch mode that raises an error if torch would compute the matrix."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        attends = function is torch.nn.functional.scaled_dot_product_attention
        if attends and not torch._fused_sdp_choice(*arguments, **named or {}):
            raise _NoKernelError
        return function(*arguments, **named or {})


class _Kernel(TorchDispatchMode):
    """A torch mode that keeps the log-sum-exp of the kernel that runs, and the number of queries of that kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.log_sum: Tensor | None = None
        self.queries = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = named or {}
        if function is _ATEN.scaled_dot_product_attention.default:
            # Without gradients, torch decomposes this operator only later.
            with self:
                return function.decompose(*arguments, **named)
        if function not in ASKED_FOR_SUMS:
            return function(*arguments, **named)
        if (place := ASKED_FOR_SUMS[function]) is not None:
            arguments = (*arguments[:place], True, *arguments[place + 1 :])
        results = function(*arguments, **named)
        self.log_sum, self.queries = results[1], arguments[0].shape[2]
        return results
