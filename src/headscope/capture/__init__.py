"""Documents and a model -> `Attention`, while the forward pass runs.

=================  =====================================================================================
`load`             hub id, folder or GGUF file -> `Model`, identified by the hash of its weights
`untrained_model`  the same shape with untrained weights, as a control
`Stream`           documents -> verified batches of tokens that know their words
`Capture`          the verified way to a model's attention: observes, edits and differentiates its heads
`Attention`        what a reducer may ask: averages, entropies, single weights
=================  =====================================================================================
"""

import lazy_loader

# Each name is loaded when it is first used: whether a model can be there (`model.model_names`) is said without torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
