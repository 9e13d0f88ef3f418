"""Fitting weights: tasks, their controls, and fine-tuning on them with several seeds."""

import lazy_loader

# Each name is loaded when it is first used, since most of this loads torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
