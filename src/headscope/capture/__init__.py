"""Documents and a model -> `Attention`, during the forward pass.

=================  =====================================================================================
`load`             hub id, folder or GGUF file -> `Model`, identified by the hash of its weights
`untrained_model`  a model of the same shape with untrained weights, as a control
`Stream`           documents -> verified batches of tokens, with the word of each token
`Capture`          the verified way to a model's attention: observes, edits and differentiates its heads
`Attention`        the answers for a reducer: averages, entropies, single weights
=================  =====================================================================================
"""

import lazy_loader

# Each name is loaded when it is first used, so that `model.model_names` can check the name of a model without torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
