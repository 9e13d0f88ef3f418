"""The reducers that any model and any annotated text will do for, whatever task head the model has."""

from headscope.reducers import REDUCERS

OF_TRANSLATIONS = ("alignment",)
"""Those of translations need pairs of sentences and an encoder-decoder; their laws are in `test_alignment`."""

PLAIN = tuple(
    name
    for name, reducer in REDUCERS.items()
    if reducer.scope != "gradient"
    and not reducer.reads_logits
    and not reducer.reads_values
    and name not in OF_TRANSLATIONS
)
"""Those of gradients and of logits need a task head, and those of values a decoder without a view; their laws are in
`test_gradients`, `test_copying` and `test_streaming`."""

OF_ONE_MODEL = tuple(name for name in PLAIN if REDUCERS[name].models == 1)
"""Those of them that compare no two models."""
