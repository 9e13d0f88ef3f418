"""What a reader says where it refuses a file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headscope.errors import CorpusError


def refusal(read: Callable[[Path], Iterator], path: Path) -> str:
    """The sentence with which a reader refuses a file; a failure if it takes it."""
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    return str(caught.value)
