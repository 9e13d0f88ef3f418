"""Phrases that a reader would have to translate do not come again: in code, messages, help, documentation and page.

`docs/contributing/style.md` says what is written instead. Left alone are the changelog and the tests.
"""

import re

import pytest

from test_words import FILES, ROOT

RULES = ROOT / "docs" / "contributing" / "style.md"

PHRASES = {
    "so many": "a number, such as `limit`",
    "that there (?:is|are) not": "unknown, missing",
    "none is none": "None is ignored",
    "what is told": "what is described",
    "one's own": "your",
    "stands? for": "is, means",
}

MEANT = r"noun that it stands for|stand for each other"
"""In the sense of linguistics: a pronoun and its noun, a word and its translation."""


def find_phrases(text: str) -> set[str]:
    """Return the phrases in a text that are not to be written."""
    words = re.sub(MEANT, "", re.sub(r"\s+(?:# |// |\* )?", " ", text))
    return {phrase for phrase in PHRASES if re.search(rf"\b{phrase}(?!\w)", words, re.IGNORECASE)}


def test_no_phrase_has_to_be_translated() -> None:
    files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in FILES if path != RULES}
    assert not {path: phrases for path, text in files.items() if (phrases := find_phrases(text))}


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("Refuse a name that there is not.", {"that there (?:is|are) not"}),
        ("Take so\n        many of them.", {"so many"}),
        ("# for one's\n    # own model", {"one's own"}),
        ("A star stands for it; words stand for each other; the noun that it stands for.", {"stands? for"}),
        ("There is not enough memory, and there are many.", set()),
    ],
)
def test_a_phrase_would_be_noticed(text: str, phrases: set[str]) -> None:
    assert find_phrases(text) == phrases
