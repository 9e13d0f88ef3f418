"""Runs that end in the middle."""

from pathlib import Path

import pytest

import headscope
from headscope.runner import local


def interrupt_measuring(monkeypatch: pytest.MonkeyPatch, model: Path, corpus: str, **settings: object) -> None:
    """Measure `surface` until the first batch is done and its sums are saved."""

    def stop(step: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        headscope.measure(model, corpus, "surface", **settings, progress=stop)
