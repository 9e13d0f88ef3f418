"""A run of an evaluation that is killed in the middle."""

import pytest

from headscope.intervene import effect


def interrupt(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Kill the run at a step, once."""
    true_step, steps = effect._Passes.run_from_heads, []

    def fail_in_the_middle(*arguments):
        steps.append(1)
        if len(steps) == step:
            raise KeyboardInterrupt
        return true_step(*arguments)

    monkeypatch.setattr(effect._Passes, "run_from_heads", fail_in_the_middle)
