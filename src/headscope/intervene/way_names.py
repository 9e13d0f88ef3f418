"""What can take the place of a head's output, by name."""

WAYS = ("uniform", "zero", "mean", "resample")
"""The ways in which an evaluation disables heads, as in `headscope.intervene.edit`."""
