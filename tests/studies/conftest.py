"""A tiny model on disk and small corpora, of which the tests of a module make studies."""

from pathlib import Path

import pytest

import study_corpora
import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model on disk."""
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpora of all studies, small, in the place of `data`, which has the real ones."""
    return study_corpora.write(tmp_path_factory.mktemp("data"))
