"""The two forms in which a model is given a text; a module without imports, so that options can name them."""

WRITTEN, SPACED = "written", "spaced"
"""As its author wrote it; or as its words with a space before each, as in many papers."""
