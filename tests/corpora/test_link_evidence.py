"""Word alignments in another form than they are read in: seen by their links, and by nothing else."""

import random
from pathlib import Path

import pytest

import planted_translator
import tiny_pairs
from headscope.corpora import Document, read, summarize
from headscope.corpora.alignments import FORMS, Form
from headscope.view.headings import describe_corpus
from view.tables import head_table

PAIRS = 97

FROM_1 = "The links look counted from 1: none of {} pairs has the place 0."
SWAPPED = "The sides of the links look swapped: "


def write(path: Path, form: Form, *, last: bool = True, pairs: int = PAIRS, turned: bool = True) -> Path:
    """Pairs of eleven words, each with one translation, which come in the same order but for the first, which is last.

    Without the `last` places none is as high as a side is long; pairs that are not `turned` have the same order.
    """
    sampler = random.Random("pairs")
    lines = []
    for _ in range(pairs):
        numbers = [sampler.randrange(29) for _ in range(sampler.choice((5, 7, 11)))]
        order = [*range(1, len(numbers)), 0] if turned else [*range(len(numbers))]
        links = [(source + form.first, target + form.first) for target, source in enumerate(order)]
        links = [link for link in links if last or max(link) < len(numbers)]
        shown = " ".join("{}-{}".format(*(link[::-1] if form.swapped else link)) for link in links)
        words, translation = " ".join(f"w{n}" for n in numbers), " ".join(f"t{numbers[source]}" for source in order)
        lines.append(f"{words} ||| {translation} ||| {shown}\n")
    path.write_text("".join(lines))
    return path


def doubts(path: Path, format: str = "alignments") -> str:
    return summarize(read(path, format=format)).notes


@pytest.mark.parametrize("name", FORMS)
def test_links_in_the_form_of_their_file_raise_no_doubt(tmp_path: Path, name: str) -> None:
    for pairs in (1, 3, 7, PAIRS):
        assert doubts(write(tmp_path / "a.txt", FORMS[name], pairs=pairs), name) == ""


@pytest.mark.parametrize(
    ("written", "read_as", "from_1", "swapped"),
    [
        ("alignments-from-1", "alignments", True, False),
        ("alignments-from-1", "alignments-swapped", True, True),
        ("alignments-from-1", "alignments-from-1-swapped", False, True),
        ("alignments-swapped", "alignments", False, True),
        ("alignments", "alignments-swapped", False, True),
        ("alignments-from-1-swapped", "alignments", True, True),
        ("alignments-from-1-swapped", "alignments-swapped", True, False),
        ("alignments-from-1-swapped", "alignments-from-1", False, True),
    ],
)
def test_links_in_another_form_look_so(tmp_path: Path, written: str, read_as: str, from_1: bool, swapped: bool) -> None:
    sentences = doubts(write(tmp_path / "a.txt", FORMS[written], last=not from_1), read_as)
    assert (FROM_1.format(PAIRS) in sentences, SWAPPED in sentences) == (from_1, swapped)
    assert sentences.endswith(f"Name the format {written} to read them so.")


def test_few_pairs_are_no_evidence(tmp_path: Path) -> None:
    from_1, swapped = FORMS["alignments-from-1"], FORMS["alignments-swapped"]
    assert not doubts(write(tmp_path / "a.txt", from_1, last=False, pairs=4))
    assert doubts(write(tmp_path / "a.txt", from_1, last=False, pairs=5))
    assert not doubts(write(tmp_path / "a.txt", swapped, pairs=3))


def test_links_that_are_the_same_both_ways_say_nothing_of_the_sides(tmp_path: Path) -> None:
    assert doubts(write(tmp_path / "a.txt", FORMS["alignments-swapped"], turned=False)) == ""


@pytest.mark.parametrize(
    "documents",
    [
        planted_translator.pairs(),
        planted_translator.permute_links(planted_translator.pairs()),
        tiny_pairs.pairs(97),
    ],
    ids=["planted", "permuted", "random"],
)
def test_links_that_are_right_or_random_raise_no_doubt(tmp_path: Path, documents: list[Document]) -> None:
    path = tmp_path / "a.txt"
    path.write_text(planted_translator.write(documents))
    assert doubts(path) == ""
    assert summarize(documents).notes == ""


def test_the_table_says_what_is_doubtful(tmp_path: Path) -> None:
    summary = summarize(read(write(tmp_path / "a.txt", FORMS["alignments-swapped"])))
    assert summary.attributes == {"corpus_notes": summary.notes}
    assert describe_corpus(head_table().assign_attrs(summary.attributes)) == summary.notes
