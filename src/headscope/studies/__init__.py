"""Papers, and the verdicts on their claims for your model.

================  ======================================================================
`STUDIES`         all studies by name; ``headscope.study`` runs one
`Study`           one paper: its corpora, what is measured on them, and its `Claim` list
`judge`           head tables -> a `Finding` for each claim; needs no weights
`sheet`           findings as text and as a data frame
================  ======================================================================
"""

import lazy_loader

# Each name is loaded when it is first used, so studies can be listed (`study_names`) without loading their figures.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
del lazy_loader
