"""A reducer of one's own with rivals of its own: compared, judged and shown, and no other file knows of them."""

import io
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from rich.console import Console

import headscope
import tiny
from headscope import heads
from headscope.capture.model.model import Model
from headscope.corpora import Document
from headscope.reducers import FoldAssignment, Reducer, Score, score_table
from headscope.reducers.support.folds import FOLDS
from headscope.runner import measure
from headscope.score import Rival, offset_rival, read_scores
from headscope.view.glosses import gloss_rule
from headscope.view.page import render_page
from headscope.view.reports import read_reports
from headscope.view.table_report import print_table
from view.parsed import Page, rows_of_reported

LETTERS = tuple(f"{number} letters" for number in range(1, 12))
STEPS, OFFSETS = tuple(range(1, 14)), (-3, -2, -1)
DOCUMENTS = tiny.documents(193)


def answers(words: tuple[str, ...], word: int) -> dict[str, list[bool]]:
    """Whether each option of each rival takes, for a word, the last earlier one with the same first letter."""
    gold = last(words, word)
    nearest = [max((w for w in range(word) if len(words[w]) == n + 1), default=-1) for n in range(len(LETTERS))]
    return {
        "fold_initial_length": [found == gold for found in nearest],
        "fold_initial_steps": [word - step == gold for step in STEPS],
        "fold_initial_offset": [word + offset == gold for offset in OFFSETS],
        "fold_initial_first": [gold == 0],
    }


def last(words: tuple[str, ...], word: int) -> int:
    return max((w for w in range(word) if words[w][0] == words[word][0]), default=-1)


def items(document: Document) -> list[int]:
    return [word for word in range(len(document.words)) if last(document.words, word) >= 0]


@dataclass(frozen=True)
class Initials(Reducer):
    """Does a word attend to the last earlier one with the same first letter?"""

    folds: FoldAssignment = field(default_factory=FoldAssignment)
    name = "initials"
    scope = "layer"
    max_tokens = 4096
    scores = (
        Score(
            "initial_accuracy", "Same initials", "the share of words that attend most to the last with their initial",
            numerator=("fold_initial_hits",), denominator=("fold_initial",), attends="word",
            rivals=(
                Rival("length", "nearest word of a length", ("fold_initial_length",), ("fold_initial",), ("letters",),
                      "nearest of {letters}"),
                Rival("steps", "word so many steps back", ("fold_initial_steps",), ("fold_initial",), ("steps",),
                      "{steps} back"),
                offset_rival("fold_initial_offset", "fold_initial"),
                Rival("first", "first word", ("fold_initial_first",), ("fold_initial",)),
                Rival("meaning", "nearest synonym", ("fold_initial_synonym",), ("fold_initial",), needs="synonyms"),
            ),
        ),
    )  # fmt: skip

    def prepare(self, batch, attention_type):
        return [(t, w, self.folds.fold(d)) for t, d in enumerate(batch.documents) for w in items(d)], batch.documents

    def count(self, facts):
        rows, documents = facts
        sums = {"fold_initial": torch.zeros(FOLDS, dtype=torch.long)}
        for name, size in (("length", 11), ("steps", 13), ("offset", 3), ("first", 1)):
            sums[f"fold_initial_{name}"] = torch.zeros(FOLDS, size, dtype=torch.long)
        for text, word, fold in rows:
            sums["fold_initial"][fold] += 1
            for name, found in answers(documents[text].words, word).items():
                sums[name][fold] += torch.tensor(found).long()
        return sums

    def observe(self, facts, attention):
        pointing = attention.words().attends
        hits = torch.zeros(attention.heads, FOLDS, dtype=torch.long)
        for text, word, fold in facts[0]:
            found = pointing.word[text, :, word] == last(facts[1][text].words, word)
            hits[:, fold] += (found & (pointing.weight[text, :, word] > 0)).long()
        return {"fold_initial_hits": hits}

    def result(self, sums, counts):
        counts = {**counts, "fold_initial_first": counts["fold_initial_first"][:, 0]}
        table = score_table(self.scores[0], {**sums, **counts})
        letters = ("letters", list(LETTERS), {"long_name": "letters of a word"})
        steps = ("steps", list(STEPS), {"long_name": "steps back"})
        return table.assign_coords(letters=letters, steps=steps, offset=list(OFFSETS))


@pytest.fixture(scope="module")
def measured() -> tuple[xr.Dataset, xr.Dataset]:
    """As a tiny model gives it, and as if its head 2-4 were always right."""
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), DOCUMENTS, [Initials()])
    planted = table.copy(deep=True)
    planted["fold_initial_hits"].loc[{"layer": 2, "head": 4}] = planted["fold_initial"]
    planted["initial_accuracy"].loc[{"layer": 2, "head": 4}] = 1.0
    return table, planted


@pytest.fixture(scope="module")
def reported(measured) -> xr.Dataset:
    return headscope.analyse.assess(measured[1], measured[0])


def test_its_rivals_are_compared_as_loops_compare_them(measured, reported) -> None:
    halves: tuple[dict, dict] = ({}, {})
    for document in DOCUMENTS:
        fold = FoldAssignment().fold(document)
        for word in items(document):
            for name, found in answers(document.words, word).items():
                halves[fold % 2].setdefault(name, []).append(found)
    best = {}
    for name, options in (("length", LETTERS), ("steps", STEPS), ("offset", OFFSETS), ("first", ("",))):
        even, odd = (np.mean(half[f"fold_initial_{name}"], axis=0) for half in halves)
        place = int(np.argmax(even))
        best[name] = even[place]
        assert reported[f"initial_heldout_{name}_accuracy"].item() == pytest.approx(odd[place])
        assert reported[f"initial_lift_over_{name}"].item() == pytest.approx(1 - odd[place])
        if name != "first":
            option = f"initial_heldout_{name}" + ("_letters" if name == "length" else "")
            assert reported[option].item() == options[place]
    ratio = measured[0]["fold_initial_hits"][..., ::2].sum("fold") / measured[0]["fold_initial"][::2].sum()
    best["untrained"] = ratio.max().item()
    assert reported["initial_lift_rival"].item() == max(best, key=lambda name: best[name])
    assert reported["initial_heldout_count"].item() == len(halves[1]["fold_initial_first"])


def test_it_is_judged(measured, reported) -> None:
    assert reported["initial_heldout_clusters"].item() >= 20
    assert (reported["initial_reported_layer"].item(), reported["initial_reported_head"].item()) == (2, 4)
    assert reported["initial_reported_verdict"].item() == "stands out"
    assert headscope.analyse.assess(*measured)["initial_reported_verdict"].item() == "does not stand out"
    # A rival that is always right prevents it.
    perfect = measured[1].copy(deep=True)
    perfect["fold_initial_first"] = perfect["fold_initial"].copy()
    assert headscope.analyse.assess(perfect)["initial_reported_verdict"].item() == "does not stand out"
    assert headscope.analyse.assess(perfect)["initial_lift_rival"].item() == "first"


def test_it_survives_the_disk(reported, tmp_path: Path) -> None:
    again = heads.read_table(heads.write_table(reported, tmp_path / "heads.nc"))
    xr.testing.assert_identical(again, reported)
    assert read_scores(again) == list(Initials.scores)
    assert read_reports(again) == read_reports(reported)


def test_its_rivals_are_on_the_page_and_on_the_terminal(reported) -> None:
    labels = {
        "length": f"nearest of {reported['initial_heldout_length_letters'].item()}",
        "steps": f"{reported['initial_heldout_steps'].item():.0f} back",
        "offset": f"offset {reported['initial_heldout_offset'].item():+.0f}".replace("-", "−"),
        "first": "first word",
        "untrained": "untrained model",
    }
    plain = labels | {
        "length": f"the {labels['length']}",
        "offset": gloss_rule("offset", "", {"offset": reported["initial_heldout_offset"].item()}),
        "untrained": "the same model with random weights",
    }
    score = {name: reported[f"initial_heldout_{name}_accuracy"].item() for name in list(labels)[:4]}
    score["untrained"] = reported["initial_untrained_accuracy"].item()
    page = Page(render_page(reported, figures={}))
    columns = [text for _, text in page.find("dt")]
    (row,) = rows_of_reported(page)
    rivals = row[columns.index("rivals, held out")]
    assert rivals.split("\n") == [f"{score[name]:.2f} {label}" for name, label in plain.items()]
    assert page.find("tr", **{"class": "stands-out"})
    text = io.StringIO()
    print_table(reported, Console(file=text, width=160), whole=True)
    strongest = reported["initial_lift_rival"].item()
    lift = f"{reported['initial_lift'].item():+.3f}".replace("0.", ".", 1)
    said = f"{score[strongest]:.3f}".removeprefix("0")
    assert re.search(
        rf"Same initials +2-4\* +word +1\.000 .*{re.escape(lift)} .* {re.escape(f'{said} {labels[strongest]}')}",
        text.getvalue(),
    )
    printed = " ".join(text.getvalue().split())
    assert f"Yes. Head 2-4 is right for 100 % of {reported['initial_heldout_count'].item():.0f} " in printed
    assert (
        "and so were its rivals: nearest word of a length, word so many steps back, best fixed offset, first word and "
        "best head of the untrained model."
    ) in printed
    assert "Same initials. Not compared with the nearest synonym: the corpus has no synonyms." in printed
