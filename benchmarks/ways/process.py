"""A process under watch: it is ended when it takes more time or memory than it may."""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.05
"""Seconds between two looks at a process."""

SETTINGS = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}

NO_MEMORY = ("can't allocate memory", "Unable to allocate", "MemoryError", "std::bad_alloc")
"""The messages of torch, numpy, Python and C++ when a single request was refused; the limit was not reached then."""


@dataclass(frozen=True)
class Limits:
    """The limits of a process, loading included."""

    seconds: float
    mib: float


@dataclass(frozen=True)
class Ended:
    """The end of a process.

    Attributes:
        seconds: from its start to its end.
        output: what it wrote to the standard output.
        failure: which limit it went over; empty if none.
    """

    seconds: float
    output: str
    failure: str


def watch(command: Sequence[str], limits: Limits) -> Ended:
    """Run `command` and wait for its end, or bring it about.

    Raises:
        RuntimeError: it failed, and not for want of memory.
    """
    failure = ""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=os.environ | SETTINGS)
        while process.poll() is None:
            if time.perf_counter() - start > limits.seconds:
                failure = f"over {limits.seconds:,.0f} s"
            elif _mib(process.pid) > limits.mib:
                failure = f"over {limits.mib:,.0f} MiB"
            if failure:
                process.kill()
                process.wait()
            else:
                time.sleep(EVERY)
        seconds = time.perf_counter() - start
        output.seek(0)
        errors.seek(0)
        printed, complaint = output.read(), errors.read()
    if process.returncode and not failure:
        if not any(words in complaint for words in NO_MEMORY):
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{complaint}")
        failure = "out of memory"
    return Ended(seconds, printed, failure)


def _mib(process_id: int) -> float:
    """The memory that a process holds now; 0 where it has just ended."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
