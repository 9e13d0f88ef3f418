"""What the tests of readers share: a file of one name, written anew, and real corpora, read once."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from headscope.corpora import FORMATS, Document, Skipped

FILES_CHECKED, PARTS_CHECKED = 7, 29

READ = """
import pickle, sys
from pathlib import Path
from headscope.corpora import FORMATS
paths = [Path(path) for path in sys.argv[2:]]
parts = {path: list(FORMATS[sys.argv[1]].read(path)) for path in paths}
sys.stdout.buffer.write(pickle.dumps(parts))
"""
GENERATE = """
import pickle, sys
from headscope.corpora import read
patterns = sys.argv[2] if len(sys.argv) > 2 else None
sys.stdout.buffer.write(pickle.dumps(list(read(sys.argv[1], patterns=patterns))))
"""


def unchecked(code: str, *arguments: str) -> Any:
    """The result of a process of its own, where annotations are not checked at every call: many times as fast."""
    command = [sys.executable, "-c", code, *arguments]
    return pickle.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes the file that the module calls `FILE`."""
    path = tmp_path / request.module.FILE

    def write(content: str | bytes) -> Path:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="session")
def read_real() -> Callable[..., dict[Path, list[Document | Skipped]]]:
    """Reads real files of a format, each set of them once, and some of what is in them again, checked."""

    @cache
    def parts(format: str, *paths: Path) -> dict[Path, list[Document | Skipped]]:
        parts = unchecked(READ, format, *map(str, paths))
        for path in paths[:FILES_CHECKED]:
            checked = list(islice(FORMATS[format].read(path), PARTS_CHECKED))
            assert checked == parts[path][:PARTS_CHECKED]
        return parts

    return parts


@pytest.fixture(scope="session")
def generate() -> Callable[..., list[Document]]:
    """Generates sentences of the grammar, perhaps with the links of a file of patterns."""

    @cache
    def documents(corpus: str, *patterns: Path) -> list[Document]:
        return unchecked(GENERATE, corpus, *map(str, patterns))

    return documents


@pytest.fixture(scope="session")
def generated(generate) -> list[Document]:
    """The first 5,000 sentences of the grammar."""
    return generate("grammar:5000")
