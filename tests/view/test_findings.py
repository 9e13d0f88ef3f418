"""What the terminal says first: a verdict on all rows, the clearest yes and no, in the table's own numbers."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from headscope.view.findings import list_findings
from headscope.view.lines import make_grid, print_findings, print_grid
from headscope.view.reports import read_reports
from view.tables import head_table, with_verdicts

ROWS = ("nsubj", "obj", "obl", "case")


def decided(verdicts: list[str], **values: list[object]) -> xr.Dataset:
    """A table whose rows have these verdicts, and these values in place of random ones."""
    table = with_verdicts(head_table(relations=ROWS[: len(verdicts)], rare=()), *verdicts)
    return table.assign({name: ("relation", np.array(each), table[name].attrs) for name, each in values.items()})


def find(table: xr.Dataset) -> list[str]:
    return [finding for finding in list_findings(table, read_reports(table)) if finding]


def one_row(verdict: str, score: float, rule: float) -> xr.Dataset:
    return decided(
        [verdict], heldout_accuracy=[score], heldout_count=[184], reported_layer=[3], reported_head=[1],
        reported_direction=["dependent_to_head"], lift_rival=["upos"], heldout_upos_accuracy=[rule],
        heldout_upos_side=["left"], heldout_upos_word_class=["VERB"],
    )  # fmt: skip


RULE = "the rule 'the nearest verb before the word'"
UNTRAINED = "the same model with random weights"


@pytest.mark.parametrize(
    ("verdict", "score", "finding"),
    [
        ("does not stand out", 0.69, f"No. T{RULE[1:]} finds 94 %; head 3-1 finds the verb for 69 % of 184 subjects."),
        ("stands out", 0.99, f"Yes. Head 3-1 finds the verb for 99 % of 184 subjects; {RULE} 94 %, {UNTRAINED} 22 %."),
        (
            "cannot decide",
            0.69,
            f"Cannot say. Head 3-1 finds the verb for 69 % of 184 subjects, {RULE} 94 %: too few texts to tell.",
        ),
    ],
)
def test_of_a_single_row_the_answer_comes_first(verdict: str, score: float, finding: str) -> None:
    assert find(one_row(verdict, score, 0.94)) == [finding]


def test_of_several_rows_the_clearest_yes_and_no_follow_the_verdict() -> None:
    verdicts = ["stands out", "does not stand out", "stands out", "does not stand out"]
    table = decided(
        verdicts, lift=[0.1, -0.1, 0.2, -0.3], heldout_accuracy=[0.5, 0.4, 0.6, 0.3], heldout_count=[7, 11, 13, 17],
        reported_layer=[1, 2, 3, 4], reported_head=[5, 6, 7, 1], lift_rival=["untrained"] * 4,
        untrained_accuracy=[0.2, 0.5, 0.25, 0.75],
    )  # fmt: skip
    first, *others = find(table)
    assert first == "2 of 4 relations have a head that beats all its rivals and chance."
    obl = "60 % of 13 place or time phrases from the verb"  # this head leads back, to what depends
    assert others[0] == f"obl: yes. Head 3-7 finds {obl}; {UNTRAINED} 25 %."
    assert others[1].startswith("case: no")
    assert "head 4-1 finds 30 % of 17 prepositions from the noun" in others[1].lower()


def test_without_scores_it_is_what_heads_look_at_most() -> None:
    table = head_table()
    names = ["mass_previous", "mass_sep"]
    surface = table[names].assign_attrs({**table.attrs, "scores": "[]"})
    best = {name: float(surface[name].max()) for name in names}
    name = max(best, key=best.__getitem__)
    layer, head = (int(place) + 1 for place in np.unravel_index(int(surface[name].values.argmax()), (5, 7)))
    target = surface[name].attrs["target"]
    findings = find(surface)
    assert len(findings) == 2
    assert findings[0] == f"Head {layer}-{head} looks most at {target}: {100 * best[name]:.0f} % of attention."


def test_no_more_than_five_sentences_are_printed_and_each_is_whole() -> None:
    text = io.StringIO()
    findings = ["One. Two.", "", "Three of .5 words.", "Four. Five. Six.", "Last?", "Too many."]
    print_findings(findings, Console(file=text, width=80))
    assert text.getvalue().split("\n") == ["", "One. Two.", "Three of .5 words.", "Last?", "Too many.", ""]


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_a_table_fits_any_width_and_breaks_no_word(width: int) -> None:
    generator = np.random.default_rng(7)
    columns = ("a row", "number", "another number", "a phrase of words")
    rows = [
        [
            " ".join("x" * int(size) for size in generator.integers(1, 9, 3)), f"{generator.random():.3f}",
            f"{generator.random():.9f}", " ".join("y" * int(size) for size in generator.integers(1, 9, 7)),
        ]
        for _ in range(11)
    ]  # fmt: skip
    grid = make_grid(*columns, wraps=("a row", "a phrase of words"))
    for row in rows:
        grid.add_row(*row)
    text = io.StringIO()
    print_grid(grid, Console(file=text, width=width))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    note = " ".join(text.getvalue().split()).partition("no room for: ")[2]
    kept = [place for place, column in enumerate(columns) if column not in note]
    assert kept == [*range(len(kept))]
    assert (width < 60) == (len(kept) < len(columns))
    printed = [word for line in lines for word in line.split()]
    for place in kept:
        for row in rows:
            assert all(word in printed for word in row[place].split())
