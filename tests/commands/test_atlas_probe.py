"""Probes in an atlas: their figures, the sentence on the page, and the weight of each head in the table."""

import re
from pathlib import Path

import numpy as np
import pytest

import headscope
import tiny
from headscope import heads
from headscope.analyse.probes import add_probe_strengths
from headscope.errors import TableError
from headscope.learn import probe_training
from view.parsed import Page

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("atlas")
    model = tiny.save(out / "model")
    parts = ["untrained", "control", "code-length", "structural"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe_training, "MAX_EPOCHS", 3)
        headscope.probe(model, "grammar:67", out / "probe", seeds=1, without=parts, progress=False)
        patch.setattr("headscope.view.figures.draw_atlas.list_score_figures", lambda table, score: {})
        headscope.atlas(
            model, "grammar:31", out / "atlas", probe=out / "probe", permutations=0, map_documents=0, examples=0,
            figures=True, progress=False,
        )  # fmt: skip
    return out


def test_the_page_says_what_attention_adds_and_shows_the_figures(folder: Path) -> None:
    page = (folder / "atlas" / "atlas.html").read_text()
    probes = heads.read_table(folder / "probe" / "probe.nc")
    accuracy = 100 * float(probes["probe_accuracy"].sel(probe="attention-and-words", relation="all"))
    assert re.search(rf"Probes of all heads: Attention .* {accuracy:.1f} with attention", page)
    for name in ("probes", "probes-by-relation", "probes-by-length", "probes-weights"):
        assert (folder / "atlas" / "figures" / f"{name}.svg").is_file()
    assert page.count("<figcaption>Probes of all heads") == 3
    assert (folder / "atlas" / "probe.nc").is_file()


def test_the_table_has_the_strength_of_each_head(folder: Path) -> None:
    table, probes = (heads.read_table(folder / name) for name in ("atlas/heads.nc", "probe/probe.nc"))
    strength = probes["probe_weight"].sel(direction="dependent_to_head") * probes["probe_attention_size"]
    np.testing.assert_allclose(table["probe_strength_to_head"], strength)
    assert table["probe_strength_from_head"].attrs["units"] == "nats"
    header = (folder / "atlas" / "tables" / "heads.csv").read_text().splitlines()[0].split(",")
    assert {"probe_strength_to_head", "probe_strength_from_head"} <= {*header}
    labels = [row["label"] for row in Page((folder / "atlas" / "atlas.html").read_text()).data()["statistics"]]
    assert [label for label in labels if label.startswith("Probe: from a word to its head")]


def test_probes_of_other_heads_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tiny.save(tmp_path / "model", "gpt2")
    with pytest.raises(TableError, match=r"differs from .* in its weights, configuration and tokenizer; train"):
        headscope.atlas(other, "grammar:31", tmp_path / "atlas", probe=folder / "probe", progress=False)
    probes = heads.read_table(folder / "probe" / "probe.nc")
    with pytest.raises(TableError, match="of a model of another shape"):
        add_probe_strengths(heads.read_table(folder / "atlas" / "heads.nc").isel(head=slice(0, 3)), probes)
