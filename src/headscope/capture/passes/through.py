"""The name of a view -> a capture that shows the view."""

from dataclasses import replace

from headscope.capture.forward.head_edit import refuse_changes
from headscope.capture.forward.interface import Capture
from headscope.capture.passes.gradient_view import view_gradients
from headscope.capture.passes.projection import find_norms
from headscope.capture.passes.rollout import view_rollout
from headscope.capture.passes.value_zeroing import prepare_value_zeroing
from headscope.capture.tokens.batch import Batch


def see_through(view: str | None, capture: Capture, sample: Batch) -> Capture:
    """Return a capture that shows a view of `VIEWS` in place of the weights; for None, the capture unchanged.

    `sample` is the batch on which the view is tried.

    Raises:
        ModelError: The model does not allow this view.
    """
    match view:
        case "norm":
            return replace(capture, norms=find_norms(capture, sample))
        case "gradient" | "gradient-x-attention":
            if capture.route == "outputs":
                raise refuse_changes(capture.model)
            return replace(capture, view=view_gradients(capture, times_attention=view == "gradient-x-attention"))
        case "rollout" | "rollout-without-sink":
            return replace(capture, view=view_rollout(sink=view == "rollout"))
        case "value-zeroing":
            return replace(capture, view=prepare_value_zeroing(capture, sample))
    return capture
