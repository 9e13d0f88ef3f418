"""The type of functions that show the progress of a command."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""A function that is called with the name of a step, the amount done and the total amount (0 if unknown)."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """Show no progress."""
