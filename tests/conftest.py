"""What holds for every test: no network, no display, one thread, and where the real corpora are."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported, which reads it once
os.environ["MPLBACKEND"] = "Agg"

from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)  # for tiny models a second thread costs more than it saves


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder that holds the real corpora."""
    folder = os.environ.get("HEADSCOPE_DATA")
    if folder:
        return Path(folder)
    if os.environ.get("CI") == "true":
        pytest.fail("CI is true and HEADSCOPE_DATA is not set: set it to the folder that holds the real corpora.")
    pytest.skip("HEADSCOPE_DATA is not set: set it to the folder that holds the real corpora.")


@pytest.fixture(autouse=True)
def _data_where_marked(request: pytest.FixtureRequest) -> None:
    """A test marked ``data`` needs the folder, whether or not it names the fixture."""
    if request.node.get_closest_marker("data"):
        request.getfixturevalue("data")
