"""Tasks, their controls, fine-tuning with several seeds, probes, and the classifier of attention maps."""

import lazy_loader

# Each name is loaded when it is first used, since most of this loads torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
