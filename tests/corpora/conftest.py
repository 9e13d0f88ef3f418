"""What the tests of readers share: a file of one name, written anew."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes the file that the module calls `FILE`."""
    path = tmp_path / request.module.FILE

    def write(content: str | bytes) -> Path:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
