"""A message of a conversation with a language model."""

from dataclasses import dataclass
from typing import Any

ROLE = "role"
"""The kind of the span of a message; its label is the role."""


@dataclass(frozen=True, slots=True)
class Message:
    """The text of one turn of a conversation, and the role of its speaker.

    Attributes:
        role: ``system``, ``user``, ``assistant``, or another role that the chat template knows.
        content: a text, or several texts if the content is a list of parts, which each chat template joins in its own
            way.
    """

    role: str
    content: str | tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or all texts, of the content."""
        return (self.content,) if isinstance(self.content, str) else self.content

    @property
    def record(self) -> dict[str, Any]:
        """The message as a dictionary for chat templates and JSON, with ``role`` and ``content``."""
        if isinstance(self.content, str):
            return {"role": self.role, "content": self.content}
        return {"role": self.role, "content": [{"type": "text", "text": text} for text in self.content]}
