"""A tiny model, and what tuning makes of it; both are made once."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """A tiny BERT on disk."""
    import tiny  # not above: what is imported before the tests begin has its shapes unchecked

    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def tuned(model, tmp_path_factory):
    """Two runs on a task and two on its control."""
    import toys
    from headscope.learn.tune import tune

    task = toys.tagging()
    out = tmp_path_factory.mktemp("tuned") / "new" / "folder"
    return tune(task, model, out, toys.FAST, seeds=[1, 2], control=toys.control(task))
