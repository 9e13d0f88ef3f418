"""Placebos of an adapter, measured side by side as each is alone, and held against the adapter by the commands."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import peft
import pytest
import torch
import transformers as hf
import xarray as xr

import headscope
import tiny
from headscope.capture.open.loading import load
from headscope.errors import HeadscopeError, ModelError
from headscope.runner import measure_placebos

# PEFT asks transformers for what that has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

DOCUMENTS = tiny.documents(23)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("base"), "bert")


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapter")
    config = peft.LoraConfig(r=3, target_modules=["query"], init_lora_weights=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        peft.get_peft_model(hf.AutoModel.from_pretrained(base), config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def placebos(adapter: Path) -> xr.Dataset:
    return headscope.measure(adapter, DOCUMENTS, ["relations", "similarity"], placebos=3)


def test_each_placebo_is_measured_as_it_is_alone(adapter: Path, placebos: xr.Dataset) -> None:
    assert placebos.run.values.tolist() == ["placebo-0", "placebo-1", "placebo-2"]
    assert placebos.seed.values.tolist() == [0, 1, 2]
    for seed, run in enumerate(json.loads(placebos.attrs["runs"])):
        model = headscope.placebo_adapter(adapter, seed=seed)
        alone = headscope.measure(model, DOCUMENTS, ["relations", "similarity"], permutations=0)
        for name in ("relation_accuracy", "similarity"):
            np.testing.assert_array_equal(placebos[name].isel(run=seed), alone[name])
        assert run["weights_sha256"] == alone.attrs["weights_sha256"] == model.weights_sha256
    assert placebos.attrs["placebo_of"] == placebos.attrs["weights_sha256"] == load(adapter).weights_sha256
    assert placebos.attrs["model"] == str(adapter)


def test_placebos_that_were_interrupted_go_on(adapter: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > total / 3:  # within the second placebo
            raise KeyboardInterrupt

    file = tmp_path / "sums.npz"
    with pytest.raises(KeyboardInterrupt):
        measure_placebos(adapter, 3, DOCUMENTS, "relations", checkpoint=file, progress=stop)
    assert (tmp_path / "sums.placebo-0.npz").exists()
    table = measure_placebos(adapter, 3, DOCUMENTS, "relations", checkpoint=file, resume=True)
    expected = measure_placebos(adapter, 3, DOCUMENTS, "relations")
    xr.testing.assert_identical(table.drop_attrs(), expected.drop_attrs())


def test_the_commands_hold_an_adapter_against_its_placebos(run, base: Path, adapter: Path, tmp_path: Path) -> None:
    tables = {name: tmp_path / f"{name}.nc" for name in ("before", "after", "placebo")}
    measured = ("grammar:23", "-r", "relations", "--permutations", "0", "-o")
    for name, model, more in (("before", base, ()), ("after", adapter, ()), ("placebo", adapter, ("--placebos", "2"))):
        code, printed, _ = run("measure", model, *measured, tables[name], *more)
        assert code == 0
        assert ("2 placebos of its adapter: random ones that change as much" in printed) == (name == "placebo")
    out = tmp_path / "changes"
    code, printed, _ = run("compare", tables["before"], tables["after"], "--placebo", tables["placebo"], "-o", out)
    assert code == 0
    sentence = (
        "Cannot decide whether this adapter changes any head more than placebos do: 2 placebo adapters can give no "
        "p-value below 0.3333; measure 19 or more."
    )
    assert sentence in " ".join(printed.split())
    assert f"## Against placebo adapters\n\n**{sentence}**\n" in (out / "comparison.md").read_text()
    rows = pd.read_csv(out / "tables" / "placebo.csv")
    assert rows["size"].is_monotonic_decreasing
    read = {name: headscope.read_table(path) for name, path in tables.items()}
    result = headscope.compare(read["before"], read["after"], placebo=read["placebo"])
    np.testing.assert_allclose(rows["size"], result.placebo["size"], rtol=1e-4)
    np.testing.assert_allclose(rows["p"], result.placebo["p"], rtol=1e-4)
    assert result.placebo.attrs["verdict"] == sentence
    assert len(result.placebo.attrs["largest"]) == 2
    code, _, complaint = run("compare", tables["before"], tables["placebo"], "--placebo", tables["placebo"], "-o", out)
    assert (code, "placebos are of one adapter" in " ".join(complaint.split())) == (2, True)


def refuse(model, **settings) -> str:
    with pytest.raises(HeadscopeError) as refused:
        headscope.measure(model, DOCUMENTS, "relations", placebos=19, **settings)
    return str(refused.value)


def test_what_has_no_adapter_by_lora_is_refused_first(base: Path, adapter: Path, tmp_path: Path) -> None:
    wanted = "give the folder of an adapter by LoRA"
    corpus = tmp_path / "none.conllu"
    assert refuse(str(base)) == (
        f"{str(base)!r} is no folder of an adapter, and a placebo is a random one in its place; {wanted}."
    )
    assert refuse(tiny.make("bert")) == (
        f"'BertModel' has no adapter, and a placebo is a random one in its place; {wanted}, or a PeftModel with one."
    )
    config = peft.IA3Config(target_modules=["key"], feedforward_modules=[])
    peft.get_peft_model(hf.AutoModel.from_pretrained(base), config).save_pretrained(tmp_path / "ia3")
    for model, said in ((tmp_path / "ia3", "'IA3'"), (adapter, "does not exist")):
        with pytest.raises(HeadscopeError) as refused:
            headscope.measure(str(model), str(corpus), "relations", placebos=19)
        assert said in str(refused.value)
    with pytest.raises(ModelError) as refused:
        headscope.measure(str(tmp_path / "ia3"), DOCUMENTS, "relations", placebos=19)
    assert str(refused.value) == (
        f"no placebo can be made of {str(tmp_path / 'ia3')!r}, whose adapter is of the kind 'IA3'; {wanted}."
    )


def test_placebos_are_of_one_adapter_on_one_corpus(adapter: Path, tmp_path: Path) -> None:
    for name, value in (("replicate", "grammar:23:7"), ("runs", tmp_path)):
        said = f"placebos are of one adapter, on one corpus; leave out `{name}` or `placebos`."
        assert refuse(adapter, **{name: value}) == said


@pytest.mark.parametrize("seed", [1.5, "1", True, None])
def test_a_seed_is_a_whole_number(adapter: Path, seed: object) -> None:
    with pytest.raises(HeadscopeError) as refused:
        headscope.placebo_adapter(adapter, seed=seed)
    assert str(refused.value) == f"`seed` is {seed!r}; give a whole number."
