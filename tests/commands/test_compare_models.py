"""`headscope compare` of a single model after: each head is judged on the same texts, as by `headscope.difference`.

Axes: 3 layers, 5 heads, 2 directions, 7 relations, 23 texts. After, head 2-4 finds every object and subject.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
from analyse.tables import RELATIONS, Text, head_table, texts
from headscope.heads import write_table


def plant(made: list[Text]) -> list[Text]:
    """Return texts in which head 2-4 finds all objects and subjects, in both directions."""
    changed = []
    for text in made:
        links = dict(text.links)
        for name in ("obj", "nsubj"):
            hits = links[name].hits.copy()
            hits[:, 1, 3] = True
            links[name] = replace(links[name], hits=hits)
        changed.append(replace(text, links=links))
    return changed


def make_pair() -> tuple[xr.Dataset, xr.Dataset]:
    """Return the table before, and that after."""
    made = texts(np.random.default_rng(3))
    before, after = head_table(made, RELATIONS), head_table(plant(made), RELATIONS)
    return before, after.assign_attrs(weights_sha256="ef" * 32)


def test_the_heads_that_surely_differ_are_those_of_difference(tmp_path: Path) -> None:
    before, after = make_pair()
    result = headscope.compare(before, after, out=tmp_path / "out")
    frame = headscope.difference(before, after, "relation_accuracy")
    assert result.differences is not None
    pd.testing.assert_frame_equal(result.differences, frame)
    kept = pd.read_csv(tmp_path / "out" / "differences.csv", keep_default_na=False)
    assert kept["verdict"].tolist() == frame["verdict"].tolist()
    sure = frame[frame["verdict"].isin(["higher", "lower"])]
    assert {(row.layer, row.head) for row in sure.itertuples()} == {(2, 4)}
    section = (tmp_path / "out" / "comparison.md").read_text().split("## Heads that surely differ")[1].split("##")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| relation")]
    assert [row[2].strip() for row in rows] == ["2-4"] * len(sure)
    largest = sure.loc[sure["difference"].abs().idxmax()]
    assert float(rows[0][3]) == pytest.approx(100 * largest["a"], abs=0.05)
    assert float(rows[0][5].split()[0]) == pytest.approx(100 * largest["difference"], abs=0.05)


def test_the_terminal_says_how_many_differ(run, tmp_path: Path) -> None:
    paths = [write_table(table, tmp_path / f"{side}.nc") for side, table in zip("ab", make_pair(), strict=True)]
    code, printed, _ = run("compare", *paths, "-o", tmp_path / "out")
    count = len(pd.read_csv(tmp_path / "out" / "differences.csv").query("verdict != 'cannot decide'"))
    sure = len(pd.read_csv(tmp_path / "out" / "differences.csv").query("verdict in ['higher', 'lower']"))
    assert code == 0
    assert f"On these texts {sure} of {count} scores of heads surely differ; most, relation accuracy, " in " ".join(
        printed.split()
    )
    assert run("compare", paths[0], paths[0], "-o", tmp_path / "same")[0] == 2


def test_models_that_differ_nowhere_are_said_to(tmp_path: Path) -> None:
    before, _ = make_pair()
    headscope.compare(before, before.assign_attrs(weights_sha256="ef" * 32), out=tmp_path / "out")
    page = (tmp_path / "out" / "comparison.md").read_text()
    assert "scores of heads surely differs." in page
    assert "On these texts none of" in page


def test_a_table_of_one_run_is_judged_and_one_of_several_is_not() -> None:
    before, after = make_pair()
    described = {"group": "task", "task": "negation"}
    results = []
    for seeds in ([2], [2, 3]):
        runs = [described | {"seed": seed, "weights_sha256": f"e{seed}"} for seed in seeds]
        table = after.expand_dims(run=[f"seed-{seed}" for seed in seeds]).assign_coords(seed=("run", seeds))
        table = table.assign_attrs(before.attrs | {"runs": json.dumps(runs)})
        results.append(headscope.compare(before, table).differences)
    one, several = results
    assert several is None
    assert one is not None
    assert set(one.query("verdict == 'higher'")["head"]) == {4}


def test_texts_with_other_items_are_compared_and_not_judged() -> None:
    before, _ = make_pair()
    other = head_table(texts(np.random.default_rng(5)), RELATIONS).assign_attrs(weights_sha256="ef" * 32)
    result = headscope.compare(before, other)
    assert result.differences is None
    assert any(sentence.startswith("no head was judged text by text: ") for sentence in result.left_out)
