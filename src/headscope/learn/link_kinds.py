"""The kinds of links of which a probe can be trained. Nothing is imported for it."""

DEPENDENCY, COREFERENCE, SCOPE = "dependency", "coreference", "scope"

KINDS = (DEPENDENCY, "role", COREFERENCE, SCOPE, "pattern")
"""All kinds; the first of them that a corpus has is the default."""
