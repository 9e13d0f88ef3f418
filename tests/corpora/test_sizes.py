"""Files of any size are corpora, read text after text; a text that no memory holds is refused at its line.

So is a file that is one line, since it ends its lines in another way.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from headscope.corpora import jsontext, text
from headscope.corpora.formats import FORMATS
from refusals import refusal

SENTENCE = "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LARGEST_TEXT", 1009)


def write(tmp_path: Path, name: str, content: str) -> Path:
    (tmp_path / name).write_text(content)
    return tmp_path / name


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"framenet"}))  # NLTK reads its files
def test_a_line_that_is_longer_than_a_text(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, "a.txt", "w" * 1010)
    assert refusal(FORMATS[format].read, path) == (
        f"{path}:1 has a line of more than 1,009 bytes; give each text a line of its own, or name the format that the "
        "file is in."
    )


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "w " * 504 + "\n" + "b " * 504)
    first, second = text.read_lines(path)
    assert (len(first[1]), second[1]) == (1008, "b " * 504)


@pytest.mark.parametrize(("format", "line"), [("text-wrapped", "of a book\n"), ("conllu", SENTENCE)])
def test_lines_without_an_empty_one_among_them(tmp_path: Path, format: str, line: str) -> None:
    path = write(tmp_path, "a.txt", "\n" + line * 100)
    lines = 10 if format == "text-wrapped" else 9
    assert refusal(FORMATS[format].read, path) == (
        f"{path}:2 begins {lines} lines without an empty one, too many for a text; put an empty line after each text, "
        "or name the format of the file."
    )
    with_empty_lines = write(tmp_path, "b.txt", (line + "\n") * 100)
    assert len([*text.read_blocks(with_empty_lines)]) == 100


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"framenet"}))
def test_lines_that_end_by_carriage_returns_alone(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, "a.txt", "A dog ran .\r\rA cat sat .\r")
    assert refusal(FORMATS[format].read, path) == (
        f"{path} ends its lines by carriage returns alone, as files of old computers do; convert it, for instance with "
        r"`tr '\r' '\n'`."
    )
    path.write_text("A dog\rran .\n")
    assert [*text.read_lines(path)] == [(1, "A dog\rran .")]


def test_a_value_of_json_is_held_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsontext, "LARGEST", 101)
    path = write(tmp_path, "a.json", "[" + "\n" * 101)
    assert refusal(FORMATS["frames"].read, path) == (
        f"{path} has 102 bytes, and a file of JSON has 101 at most; split it in two."
    )


MEASURE = """
import resource, sys
from pathlib import Path
from headscope.corpora import read, summarize
from headscope.errors import HeadscopeError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(len([*read(Path(sys.argv[1]), format=sys.argv[2], limit=3)]))
except HeadscopeError as error:
    print(str(error).partition(":")[2].split(";")[0])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""


@pytest.mark.full
@pytest.mark.parametrize(("format", "sentence"), [("conllu", f"{SENTENCE}\n"), ("conllu", ""), ("text-lines", "")])
def test_three_gigabytes_take_little_memory(tmp_path: Path, format: str, sentence: str) -> None:
    """A sparse file, which takes no place on the disk."""
    path = write(tmp_path, "large.txt", sentence * 5 + "\n")
    with path.open("r+b") as file:
        file.truncate(3 * 10**9)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), format], capture_output=True, text=True, check=True, timeout=200
    )
    result, more = done.stdout.splitlines()
    assert result == ("3" if sentence else "2 has a line of more than 16,000,000 bytes")
    assert int(more) < 100
