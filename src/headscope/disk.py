"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import HeadscopeError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well.

    Whatever goes wrong, `path` is what it was before, and the temporary file is gone.

    Raises:
        HeadscopeError: the disk refuses the file.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=f".{path.stem}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        # A temporary file is made for its owner alone; a result is as open as the user's other files.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise HeadscopeError(
            f"{path} could not be written ({error.strerror or error}); free some space or choose another place."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
