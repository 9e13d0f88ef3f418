"""A message of a conversation with a language model."""

from dataclasses import dataclass
from typing import Any

ROLE = "role"
"""The kind of the span of a message; its label is the role."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is said in one turn of a conversation, and by whom.

    Attributes:
        role: ``system``, ``user``, ``assistant``, or another role that the chat template knows.
        content: a text; or several, of a content that is a list of parts, which a chat template joins in its own way.
    """

    role: str
    content: str | tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the text, or all texts, of the content."""
        return (self.content,) if isinstance(self.content, str) else self.content

    @property
    def record(self) -> dict[str, Any]:
        """Return the object that chat templates take, and JSON has."""
        if isinstance(self.content, str):
            return {"role": self.role, "content": self.content}
        return {"role": self.role, "content": [{"type": "text", "text": text} for text in self.content]}
