"""Documents and a model -> `Attention`, while the forward pass runs.

=================  =====================================================================================
`load`             hub id, folder or ``minilm`` -> `Model`, identified by the hash of its weights
`untrained_model`  the same shape with untrained weights, as a control
`Stream`           documents -> verified batches of tokens that know their words
`Capture`          the verified way to a model's attention: observes, edits and differentiates its heads
`Attention`        what a reducer may ask: averages, entropies, single weights
=================  =====================================================================================
"""

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch, Tokens
from headscope.capture.edit import Edit, EditedLayer, HeadGradient
from headscope.capture.interface import Capture, Outputs
from headscope.capture.loading import load
from headscope.capture.model import Model, untrained_model
from headscope.capture.stream import Plan, Portion, Stream

__all__ = [
    "Attention", "Batch", "Capture", "Edit", "EditedLayer", "HeadGradient", "Model", "Outputs", "Plan", "Portion",
    "Stream", "Tokens", "load", "untrained_model",
]  # fmt: skip
