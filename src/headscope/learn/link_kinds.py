"""The kinds of links that a probe can be trained on. This module imports nothing."""

from typing import Literal, TypeAlias, get_args

LinkKind: TypeAlias = Literal["dependency", "role", "coreference", "scope", "pattern"]
DEPENDENCY: LinkKind = "dependency"
COREFERENCE: LinkKind = "coreference"
SCOPE: LinkKind = "scope"

KINDS = get_args(LinkKind)
"""All kinds; the default is the first kind that a corpus has."""
