"""The data of a page: its rows are numbers of the table, and the grid of the held-out half is a loop over its texts."""

import base64
import gzip
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analyse.tables import RELATIONS, head_table, texts, with_other_hits
from headscope.analyse import add_report
from headscope.examples import Item, Judged, pack
from headscope.view.glosses import TERMS
from headscope.view.page.numbers import PageView, describe_numbers
from headscope.view.page.row_data import VERDICTS, describe_rows
from headscope.view.page.text_data import describe_texts
from headscope.view.reports import read_reports
from view import tables
from view.test_sentences import TEXTS


def test_rows_have_the_numbers_of_the_table() -> None:
    table = tables.with_verdicts(tables.head_table(), "stands out", "cannot decide", "")
    rows = json.loads(json.dumps(list(describe_rows(read_reports(table))), allow_nan=False))
    assert [row["key"] for row in rows] == ["relation:nsubj", "relation:obj"]
    for row in rows:
        place = table.sel(relation=row["name"])
        assert row["head"] == f"{int(place['reported_layer'])}-{int(place['reported_head'])}"
        assert row["score"] == [
            pytest.approx(place[f"heldout_{end}"].item(), rel=1e-5) for end in ("accuracy", "lower", "upper")
        ]
        assert row["lift"] == [pytest.approx(place[f"lift{end}"].item(), rel=1e-5) for end in ("", "_lower", "_upper")]
        assert (row["n"], row["clusters"]) == (place["heldout_count"].item(), place["heldout_clusters"].item())
        assert row["permuted"] == pytest.approx(place["reported_permuted"].item(), rel=1e-5)
        assert row["strongest"] == place["lift_rival"].item()
        names = {"offset": "heldout_offset", "upos": "heldout_upos", "untrained": "untrained"}
        assert [rival["name"] for rival in row["rivals"]] == [*names]
        for rival in row["rivals"]:
            assert rival["score"][0] == pytest.approx(place[f"{names[rival['name']]}_accuracy"].item(), rel=1e-5)
            assert rival["lift"][2] == pytest.approx(place[f"lift_over_{rival['name']}_upper"].item(), rel=1e-5)
        rules = [rival for rival in row["rivals"] if rival["is_rule"]]
        assert [rule["name"] for rule in rules] == ["offset", "upos"]
        assert max(rules, key=lambda rule: rule["score"][0])["is_best"]
        assert sum(rival["is_best"] for rival in row["rivals"]) == 1
    assert [row["verdict"] for row in rows] == ["stands_out", "undecided"]
    assert {*VERDICTS.values()} <= {*TERMS}


def test_the_grid_of_the_held_out_half_is_what_a_loop_over_its_texts_gives() -> None:
    draw = np.random.default_rng(43)
    corpus = texts(draw)
    table = add_report(head_table(corpus, RELATIONS), head_table(with_other_hits(corpus, draw), RELATIONS), minimum=1)
    reports = read_reports(table)
    view = PageView("weights", table.assign_attrs(model="m"), "")
    scores = describe_numbers([view], reports, pd.DataFrame({"need": []}), None)["scores"]
    compared = 0
    for score in scores:
        row = table.sel(relation=score["name"])
        if not row["reported_layer"] > 0:
            assert score["held_out"] is None
            continue
        hits = [hit for text in corpus if text.fold % 2 for hit in text.links[score["name"]].hits]
        naive = np.mean(np.array(hits, dtype=float), axis=0)  # layer, head, direction
        np.testing.assert_allclose(np.array(score["held_out"], dtype=float)[:, 0], np.moveaxis(naive, -1, 0), rtol=1e-5)
        direction = table["direction"].values.tolist().index(row["reported_direction"].item())
        layer, head = int(row["reported_layer"]) - 1, int(row["reported_head"]) - 1
        assert score["held_out"][direction][0][layer][head] == pytest.approx(row["heldout_accuracy"].item(), rel=1e-5)
        compared += 1
    assert compared > 1


def test_items_are_in_the_page_with_what_is_right() -> None:
    draw = np.random.default_rng(7)
    judged = []
    for text in TEXTS:
        items = tuple(Item(a, (b,), ("relation:obj", "relation:all")) for a, b, _ in text.links)
        right = draw.integers(0, 4, (5, 7, len(items))).astype(np.uint8)
        of_text = Judged(draw.integers(0, 4, len(items)).astype(np.uint8), right)
        picks = {"relation:obj": tuple((item.source, -1) for item in items)} if items else {}
        judged.append(replace(text, items=items, judged={"encoder": of_text}, picks=picks))
    data = json.loads(json.dumps(describe_texts(pack(judged, (), {}))))
    assert data["judged"]
    assert data["rows"] == ["relation:all", "relation:obj"]
    for text, page in zip(judged, data["texts"], strict=True):
        assert page["items"] == [[item.source, [*item.targets], [1, 0]] for item in text.items]
        assert page["counts"] == {"encoder": text.judged["encoder"].counts.tolist()}
        right = np.frombuffer(gzip.decompress(base64.b64decode(page["right"]["encoder"])), np.uint8)
        np.testing.assert_array_equal(right.reshape(5, 7, -1), text.judged["encoder"].right)
        assert page["picks"] == ({"1": [[item.source, -1] for item in text.items]} if text.items else {})
    assert not describe_texts(pack(TEXTS, (), {}))["judged"]
