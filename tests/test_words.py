"""One concept, one word: what `docs/glossary.md` has a word for is called nothing else, in code, tables, help and docs.

Left alone are the changelog, which tells of the words that were, and the tests.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".js", ".css", ".html", ".md", ".ipynb"}
FILES = sorted(
    path
    for root in (ROOT / "src", ROOT / "docs", ROOT / "tools", ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    for path in (root.rglob("*") if root.is_dir() else [root])
    if path.suffix in SUFFIXES and not path.is_relative_to(ROOT / "docs" / "reference")
)

# Wherever they stand: in a sentence, or as a part of a name.
EVERYWHERE = {
    "twins?": "untrained",
    "deals?|dealt|dealing": "fold assignment",
    "surveys?|surveyed": "corpus summary",
    "stacks?": "attention type",
    "proves?|proven|proofs?|proved": "verify, verified, check",
    "wins": "selection frequency",
    "richer": "change against the baseline",
    "glances?": "read_identity",
    "soundness": "validation",
    "readings": "extractors",
    "limit_examples": "max_examples",
    "families of runs": "tables of runs",
    "gold stands elsewhere": "permuted",
    "what is told of": "what is described",
}
# As a name or a part of one: a figure is drawn, a training set is shuffled and a file is moved all the same.
AS_NAMES = {
    "draws|drawn": "permutations, permuted",
    "shuffled": "permuted",
    "moved": "permuted",
}
# As functions: these are words of sentences too.
AS_FUNCTIONS = {
    "fits": "supports",
    "over": "for_corpus",
    "replacing": "atomic_write",
    "below": "find_by_suffix",
}
# As whole names: these are parts of other names.
AS_WHOLE_NAMES = {
    "Places": "Bins",
    "Counts": "Ratio",
    "Deal": "FoldAssignment",
    "Survey": "CorpusSummary",
    "Scope": "NegationScope",
    "Classes": "TokenClasses",
}
EXCEPTIONS = [
    # Arrays and tables are stacked by the libraries, and tensors of a stack of layers are no attention type.
    r"\b(?:torch|np|numpy|pd|xr)\.[a-z]*stack\b|\.(?:un)?stack(?=\()",
    # The paper's name for it.
    r"[Rr]ich get richer",
]


def names(path: Path, text: str) -> Iterator[str]:
    """The names that a file gives or uses: in Python, of code, of variables of a table and of options."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            word = token.string.strip("\"'")
            if token.type == tokenize.NAME or (token.type == tokenize.STRING and re.fullmatch(r"[-\w]+", word)):
                yield word
    elif path.suffix == ".md":
        for code in re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL):
            yield from re.findall(r"[-\w]*[_-]+\w[-\w]*", code)
    elif path.suffix == ".html":
        yield from re.findall(r"[-\w]+", " ".join(re.findall(r"<[^>]*>", text)))
    else:
        yield from re.findall(r"[-\w]+", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL))


def wrong_words(path: Path, text: str) -> set[str]:
    for exception in EXCEPTIONS:
        text = re.sub(exception, "", text)
    everywhere = rf"(?<![a-z])(?:{'|'.join(EVERYWHERE)})(?![a-z])"
    in_names = rf"(?:^|[-_])(?:{'|'.join(AS_NAMES)})(?:[-_]|$)"
    words = {match[0].lower() for match in re.finditer(everywhere, text, re.IGNORECASE)}
    if path.suffix == ".py":
        words.update(re.findall(rf"(?<![\w`])({'|'.join(AS_FUNCTIONS)})\(", text))
    return words | {name for name in names(path, text) if re.search(in_names, name) or name in AS_WHOLE_NAMES}


def test_there_are_words_to_look_at() -> None:
    assert {path.suffix for path in FILES} >= {".py", ".js", ".css", ".html", ".md"}


def test_one_concept_has_one_word() -> None:
    wrong = {path.relative_to(ROOT).as_posix(): wrong_words(path, path.read_text(encoding="utf-8")) for path in FILES}
    assert not {path: words for path, words in wrong.items() if words}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.py", 'scope_moved = table["scope_drawn"]  # the Twin of it', {"scope_moved", "scope_drawn", "twin"}),
        ("a.py", "a = np.stack(b) + c.stack(d=1)  # a file is moved, a figure drawn", set()),
        ("a.py", "reducer.fits(corpus), Counts.of(table)", {"fits", "Counts"}),
        ("a.md", "Take `--draws 9`; what is drawn with `stack`: all is over.", {"--draws", "stack"}),
        ("a.js", "row.drawn = 1; // as it is drawn", {"drawn"}),
    ],
)
def test_a_wrong_word_would_be_noticed(name: str, text: str, words: set[str]) -> None:
    assert wrong_words(Path(name), text) == words
