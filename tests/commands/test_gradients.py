"""Gradients by command and function: the task head of the weights or another, runs, resuming, own reducers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

import headed
import headscope
import tiny
import tuned
from headscope import heads, runner
from headscope.capture.forward.head_edit import HeadGradient
from headscope.capture.tokens.batch import Batch
from headscope.corpora import summarize
from headscope.errors import HeadscopeError
from headscope.reducers import Reducer, Sums
from headscope.runner import resolve_reducers
from view.parsed import Page

CORPUS = "grammar:11"


@pytest.fixture
def masked(tmp_path) -> Path:
    """The folder of a masked language model."""
    for part in headed.make("bert", "masked-lm"):
        part.save_pretrained(tmp_path / "masked")
    return tmp_path / "masked"


@pytest.mark.full
def test_the_head_is_that_of_the_weights_and_the_command_does_the_same(run, masked, tmp_path) -> None:
    table = headscope.measure(str(masked), CORPUS, "gradients")
    assert table.attrs["loss"] == "masked-lm"
    loaded = headscope.measure(headed.make("bert", "masked-lm"), CORPUS, "gradients", task="own")
    for asked in ((), ("--task", "masked-lm")):
        code, shown, _ = run("measure", masked, CORPUS, "-r", "gradients", *asked, "-o", tmp_path / "heads.nc")
        assert code == 0
        assert "Importance of heads to the loss: the heads with the highest values" in shown
        read = headscope.read_table(tmp_path / "heads.nc")
        for name, values in table.data_vars.items():
            np.testing.assert_array_equal(read[name], values, err_msg=str(name))
            np.testing.assert_allclose(loaded[name], values, rtol=1e-4, err_msg=str(name))


def test_another_head_is_named(tmp_path) -> None:
    for part in headed.make("gpt2", "classification"):
        part.save_pretrained(tmp_path)
    losses = [headscope.measure(str(tmp_path), CORPUS, "gradients", task=task) for task in (None, "causal-lm")]
    assert [table.attrs["loss"] for table in losses] == ["classification", "causal-lm"]
    assert not np.allclose(losses[0]["gradient_all"], losses[1]["gradient_all"])


@pytest.mark.full
def test_an_atlas_with_gradients_has_their_figure(masked, tmp_path, draw_only) -> None:
    draw_only("special-tokens-gradient", "relation-all")
    atlas = headscope.atlas(
        str(masked), CORPUS, tmp_path / "atlas", reducers="gradients", permutations=0, map_documents=0, examples=0,
        figures=True,
    )  # fmt: skip
    assert {"figures/special-tokens-gradient.png", "figures/relation-all.png"} <= set(atlas.files)
    page = (tmp_path / "atlas" / "atlas.html").read_text()
    assert "size of the gradient of the loss" in f"{page} {Page(page).data()}".lower()
    assert atlas.table["gradient_sep"].notnull().all()


REFUSED = {
    "no head": (
        ("{bare}",),
        "gradients are of a loss, and '{bare}' (BertModel) has no task head to give one; give weights with a head, or "
        "name its task (--task, or task= of headscope.load) if they have one.",
    ),
    "no task": (
        ("{bare}", "--task", "translation"),
        "--task is 'translation'; give masked-lm, causal-lm, classification, tagging or own.",
    ),
    "weights of another": (
        ("{bare}", "--task", "tagging"),
        "'{bare}' lacks 2 of the weights that the task tagging calls for, such as classifier.bias; they would be "
        "random. Give a checkpoint that was trained for this task, or load the model without a task.",
    ),
    "runs": (
        ("{bare}", "--task", "tagging", "--runs", "{runs}"),
        "runs have the head of the task that they were tuned on; leave out --task.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_loss_is_refused(run, case: str, tmp_path) -> None:
    typed, sentence = REFUSED[case]
    places = {"bare": tiny.save(tmp_path / "bare"), "runs": tuned.make_runs(tmp_path, seeds=(3,)).folder}
    asked = [part.format(**places) for part in typed]
    code, _, complained = run("measure", asked[0], CORPUS, "-r", "gradients", *asked[1:], "-o", tmp_path / "heads.nc")
    assert (code, complained.splitlines()[-1]) == (2, f"headscope: {sentence.format(**places)}")


def test_a_model_that_was_loaded_without_its_head_is_refused(masked) -> None:
    with pytest.raises(HeadscopeError, match=r"^gradients are of a loss, and '.*' \(BertModel\) has no task head"):
        headscope.measure(headscope.load(str(masked)), CORPUS, "gradients")


def test_runs_have_the_head_that_they_were_tuned_with(tmp_path) -> None:
    runs = tuned.make_runs(tmp_path, seeds=(3, 7), task="classification")
    table = headscope.measure(runs.model, CORPUS, ["surface", "gradients"], runs=runs.folder)
    assert dict(table["head_gate"].sizes) == {"run": 2, "layer": 2, "head": 5}
    assert table.attrs["loss"] == "classification"
    alone = headscope.measure(str(runs.path(runs.runs[1])), CORPUS, "gradients")
    np.testing.assert_array_equal(table["gradient_sep"].isel(run=1), alone["gradient_sep"])


def test_a_run_goes_on_with_the_same_loss_alone(tmp_path) -> None:
    for part in headed.make("gpt2", "classification"):
        part.save_pretrained(tmp_path)
    models = [headscope.load(str(tmp_path), task=task) for task in ("classification", "causal-lm")]
    asked = {"reducers": "gradients", "checkpoint": tmp_path / "sums.npz"}
    documents = tiny.documents(5)
    table = runner.measure(models[0], documents, **asked)
    again = runner.measure(models[0], documents, **asked, resume=True)
    xr.testing.assert_identical(again.drop_attrs(), table.drop_attrs())
    with pytest.raises(HeadscopeError, match=r"\(its loss differ from what is asked for now\)"):
        runner.measure(models[1], documents, **asked, resume=True)


@dataclass(frozen=True)
class Norms(Reducer):
    """The norm of the gradient by each head's output, the mean over texts: somebody's own."""

    models: Literal[1, 2] = 1
    name = "norms"
    scope = "gradient"

    def prepare(self, batch: Batch, attention_type: str) -> Tensor:
        return batch.queries(attention_type).real

    def count(self, real: Tensor) -> Sums:
        return {"documents": torch.tensor(len(real))}

    def observe(self, real: Tensor, gradient: HeadGradient) -> Sums:
        return {"norm": gradient.g.double().where(real[:, None, :, None], 0).flatten(2).norm(dim=-1).sum(0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        norm = heads.variable(
            sums["norm"] / counts["documents"], ("layer", "head"), name="norm", units="nats", source="own"
        )
        return xr.Dataset({"gradient_norm": norm})


def test_a_reducer_of_ones_own_is_given_gradients(masked) -> None:
    one, several = (
        headscope.measure(str(masked), CORPUS, reducers) for reducers in (Norms(), [Norms(), "gradients", "surface"])
    )
    assert float(one["gradient_norm"].min()) > 0
    np.testing.assert_array_equal(one["gradient_norm"], several["gradient_norm"])


def test_gradients_of_two_models_are_refused() -> None:
    with pytest.raises(HeadscopeError) as refused:
        resolve_reducers([replace(Norms(), models=2)], summarize(tiny.documents(2)))
    assert str(refused.value) == (
        "the reducer `norms` compares two models by gradients, which are found of one model; declare models = 1."
    )
