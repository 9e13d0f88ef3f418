"""Names of the replacements of a head's output."""

WAYS = ("uniform", "zero", "mean", "resample")
"""The ways in which an evaluation disables heads, as in `headscope.intervene.edit`."""
