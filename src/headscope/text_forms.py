"""The forms in which a model is given a text; a module without imports, so that options can name them."""

from collections.abc import Mapping
from typing import Any

WRITTEN, SPACED = "written", "spaced"
"""As its author wrote it; or as its words with a space before each, as in many papers."""

GIVEN = "given"
"""As tokens that are what they are: another engine saved them, or they are random, or of a chat template."""


def find_form(attrs: Mapping[Any, Any]) -> str:
    """Return the form in which the texts of a table were read; a table without the attribute counts as `SPACED`."""
    return str(attrs.get("text", SPACED))
