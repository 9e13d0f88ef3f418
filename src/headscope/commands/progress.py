"""The progress of a command."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, how much of it is done and how much there is (0 if not known)."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """Show nothing."""
