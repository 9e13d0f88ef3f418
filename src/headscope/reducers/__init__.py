"""Statistics of heads, one file for each statistic; `support` has the code that several of them share.

`REDUCERS` lists the built-in reducers by their names on the command line. `Reducer` is the interface of a new reducer;
`headscope.measure` takes it as an object.
"""

import lazy_loader

# Each name is loaded when it is first used, so that `reducer_names` can list the reducers without torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
