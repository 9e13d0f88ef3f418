"""The forms in which a model gets a text. This module imports no other module of headscope."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Form: TypeAlias = Literal["written", "spaced"]
WRITTEN: Form = "written"
SPACED: Form = "spaced"
"""The two forms: the text as its author wrote it, or its words with a space before each, as in many papers."""

GIVEN = "given"
"""The form of texts that are given as tokens: saved by another engine, random, or from a chat template."""


def find_form(attrs: Mapping[Any, Any]) -> str:
    """Return the form in which the texts of a table were read; a table without the attribute counts as `SPACED`."""
    return str(attrs.get("text", SPACED))
