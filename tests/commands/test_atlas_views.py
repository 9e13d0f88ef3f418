"""`headscope atlas --view`: the same statistics through views, each in a table of its own, and a switch on the page."""

import json
import re
from pathlib import Path

import pytest
import xarray as xr

import headed
import headscope
import tiny
from headscope import heads
from headscope.errors import HeadscopeError
from view.parsed import Page

pytestmark = pytest.mark.full

CORPUS = "grammar:31"
LITTLE = ("--map-documents", 0, "--examples", 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    for part in headed.make("bert", "masked-lm"):
        part.save_pretrained(folder)
    return folder


def test_each_view_is_what_measure_gives(run, model, tmp_path) -> None:
    views = ("norm", "gradient", "rollout")
    typed = [part for view in views for part in ("--view", view)]
    out = tmp_path / "atlas"
    code, _, _ = run("atlas", model, CORPUS, "--permutations", 7, *LITTLE, *typed, "-o", out)
    assert code == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert {f"heads-{view}.nc" for view in views} <= set(manifest["sha256"])
    assert f"views={[*views]}" in manifest["about"]["call"]
    for view in views:
        table = heads.read_table(out / f"heads-{view}.nc")
        named = re.findall(r"'(\w+)'", table.attrs["call"].partition("reducers=")[2].partition("]")[0])
        task = "own" if view == "gradient" else None
        expected = headscope.measure(str(model), CORPUS, named, view=view, permutations=7, task=task, progress=False)
        xr.testing.assert_allclose(table, expected, atol=1e-5)
        assert table.attrs["view"] == view
    data = Page((out / "atlas.html").read_text()).data()
    assert [view["name"] for view in data["views"]] == [*views]
    # A second atlas without views removes their tables.
    headscope.atlas(str(model), CORPUS, out, permutations=0, map_documents=0, examples=0, progress=False)
    assert not list(out.glob("heads-*.nc"))
    assert not list(out.glob(".*.npz"))


REFUSED = {
    "none such": (
        "bert", ("norms",),
        "`views` is 'norms' (did you mean norm?); give norm, gradient, gradient-x-attention, rollout, "
        "rollout-without-sink or value-zeroing.",
    ),
    "twice": (
        "bert", ("norm", "rollout", "norm"), "`views` names a view twice: norm, rollout, norm; name each once.",
    ),
    "no head": (
        "bert", ("norm", "gradient"),
        "gradients are of a loss, and '{model}' (BertModel) has no task head to give one; give weights with a head, or "
        "name its task (`task`, or task= of headscope.load) if they have one.",
    ),
    "no interface": (
        "mpnet", ("rollout", "norm"),
        "what the heads of '{model}' (MPNetModel) add cannot be seen, since it does not use transformers' attention "
        "interface; leave out `views` to measure its weights.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_seen_is_refused_before_anything_is_measured(case: str, tmp_path) -> None:
    family, views, sentence = REFUSED[case]
    folder, steps = tiny.save(tmp_path / "model", family), []
    with pytest.raises(HeadscopeError) as refused:
        headscope.atlas(
            str(folder), CORPUS, tmp_path / "atlas", views=views, progress=lambda step, *_: steps.append(step)
        )
    assert str(refused.value) == sentence.format(model=folder)
    assert not any("measuring" in step for step in steps)
