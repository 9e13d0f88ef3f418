"""Statistics of heads: one file a statistic; what several of them share is in `support`.

`REDUCERS` lists those that headscope brings, by the name that the command line has for them. `Reducer` is what a new
one has to provide; `headscope.measure` takes it as an object.
"""

import lazy_loader

# Each name is loaded when it is first used: which reducers there are (`reducer_names`) is said without torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
