"""Files that are damaged or crafted, seeded, for the fuzzers of `test_fuzz.py` and of `benchmarks/fuzz.py`.

An attempt makes such a file from a chance, gives it to its reader, and returns ``read`` or ``refused``.
"""

import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import HeadscopeError

SECONDS = 10
"""What takes longer hangs: each file is of some thousand bytes."""

_NUMBERS = ("0", "-1", "00", "9" * 9, "9" * 5000, "1e9", "٣", "²", "0x1", "")
_TEXTS = (
    "", "\x00", "\x1b[31m", "\x9b", "\\ud83d", "&#xD83D;", "\ufeff", "\u2028", "\r", "\t", " ", "_", "-", "=",
    "a" * 300, "é" * 150, "(12)" * 30 + "x", "[" * 5000, '{"a":' * 2000, "<C>" * 500, "<xcope>" * 300,
    "]]>", "<!DOCTYPE a>", "null", "NaN", '"', "{}", "../..",
)  # fmt: skip


@contextmanager
def within(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes more than {seconds} s")

    before, start = signal.signal(signal.SIGALRM, stop), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # What is written in C is interrupted only when it has ended.
    if time.monotonic() - start > seconds:
        raise TimeoutError(f"it took {time.monotonic() - start:.0f} s")


@contextmanager
def ending(pipe: Path, seconds: float = 5) -> Iterator[None]:
    """End a pipe for whoever reads it after some seconds, from another process; fail if that was needed."""
    start = time.monotonic()
    process = subprocess.Popen(["sh", "-c", f'sleep {seconds}; while [ -p "$0" ]; do : > "$0"; done', pipe])
    try:
        yield
    finally:
        process.kill()
        process.wait()
    assert time.monotonic() - start < seconds


def count(attempt: Callable[[random.Random], str], times: int, seed: int = 0) -> Counter[str]:
    """How many of so many attempts were read and how many refused, each with a chance of its own.

    Raises:
        AssertionError: an attempt did neither; it is named with its seed.
    """
    results: Counter[str] = Counter()
    for number in range(times):
        try:
            results[attempt(random.Random(f"{seed} {number}"))] += 1
        except Exception as error:
            raise AssertionError(
                f"attempt {number} of seed {seed}: {type(error).__name__}: {str(error)[:300]}"
            ) from error
    return results


def check_sentence(error: HeadscopeError) -> None:
    """A message is a sentence on one line."""
    message = str(error)
    assert "\n" not in message, message
    assert message.endswith("."), message


def damage(content: str, chance: random.Random) -> bytes:
    """A content after one to three mutations, of bytes, lines, cells, numbers or words."""
    for _ in range(chance.randint(1, 3)):
        content = chance.choice(_DAMAGES)(content, chance)
    data = content.encode("utf-8", errors="surrogatepass")
    if chance.random() < 0.2:
        place = chance.randrange(len(data) + 1)
        data = data[:place] + chance.randbytes(chance.randint(1, 3)) + data[place + 1 :]
    return data


def _cut(content: str, chance: random.Random) -> str:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return chance.choice((content[:start], content[end:], content[:start] + content[end:]))


def _repeat(content: str, chance: random.Random) -> str:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[start:end] * chance.choice((2, 3, 30)) + content[end:]


def _insert(content: str, chance: random.Random) -> str:
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.choice(_TEXTS) + content[place:]


def _swap_lines(content: str, chance: random.Random) -> str:
    lines = content.split("\n")
    chance.shuffle(lines)
    return "\n".join(lines)


def _replace(pattern: str, options: tuple[str, ...]) -> Callable[[str, random.Random], str]:
    def replace(content: str, chance: random.Random) -> str:
        matches = list(re.finditer(pattern, content))
        if not matches:
            return content
        match = chance.choice(matches)
        return content[: match.start()] + chance.choice(options) + content[match.end() :]

    return replace


_DAMAGES = (
    _cut, _repeat, _insert, _swap_lines, _replace("[0-9]+", _NUMBERS), _replace(r"[^\s\"<>{}]+", _TEXTS),
    _replace(r"\w+", _TEXTS), _replace(r"[\t\n ,:]", ("", "  ", "\t\t", "\n\n", "\r\n")),
)  # fmt: skip
