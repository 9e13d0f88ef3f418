"""The kinds of links that a probe can be trained on. This module imports nothing."""

DEPENDENCY, COREFERENCE, SCOPE = "dependency", "coreference", "scope"

KINDS = (DEPENDENCY, "role", COREFERENCE, SCOPE, "pattern")
"""All kinds; the default is the first kind that a corpus has."""
