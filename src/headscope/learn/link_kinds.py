"""The kinds of links on which a probe can be trained. This module imports nothing else of headscope."""

from typing import Literal, TypeAlias, get_args

LinkKind: TypeAlias = Literal["dependency", "role", "coreference", "scope", "pattern"]
DEPENDENCY: LinkKind = "dependency"
COREFERENCE: LinkKind = "coreference"
SCOPE: LinkKind = "scope"

KINDS = get_args(LinkKind)
"""All kinds of links; by default, a probe is trained on the first kind that a corpus has."""
