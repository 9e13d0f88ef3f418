"""Names of the replacements of a head's output."""

from typing import Literal, TypeAlias, get_args

Way: TypeAlias = Literal["uniform", "zero", "mean", "resample"]
"""A way in which an evaluation disables heads, as in `headscope.intervene.edit`."""

WAYS = get_args(Way)

BlockWay: TypeAlias = Literal[Way, "shuffle"]
"""A way in which a ``with`` block disables heads. Only a block can shuffle the examples of a batch."""
