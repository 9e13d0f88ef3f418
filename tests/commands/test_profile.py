"""`headscope profile` of a planted decoder, of models that know nothing, and of a real one; and roles in an atlas."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from transformers import PreTrainedModel

import headed
import headscope
import planted_decoder
import tiny
from headscope import cli
from headscope.analyse.head_roles import NONE, ROLE, name_main_roles, read_left_out
from headscope.commands.folder import OutputFolder
from headscope.commands.model_options import RunOptions
from headscope.errors import ModelError
from headscope.reducers import REDUCERS
from headscope.view.roles_report import RESTING, describe_roles, list_roles
from view.parsed import Page

SIZE = 149
LITTLE = ("--permutations", 0, "--map-documents", 0, "--examples", 0)


def previous(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the token before."""
    for position in range(1, SIZE):
        query[position - 1, position] = key[position, position] = 1
    key[0, 0] = 1


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a decoder whose head 1-2 looks at the token before and whose head 2-3 rests on the first one."""
    folder = tmp_path_factory.mktemp("planted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planted_decoder, "SIZE", SIZE)
        for part in planted_decoder.plant({(1, 2): previous, (2, 3): planted_decoder.place(0)}):
            part.save_pretrained(folder)
    return folder


def test_planted_heads_are_named_and_all_is_written(run, model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cli.console, "_width", 80)
    out = tmp_path / "out"
    code, printed, complaint = run("profile", model, "-o", out, "--repeats", 60, "--needles", 3)
    assert code == 0, complaint
    lines = printed.splitlines()
    assert max(map(len, lines[:-2])) <= 80
    said = " ".join(printed.split())
    assert "Of 6 heads 2 have a role, by their main one: 1 previous token and 1 sink." in said
    assert "1 head rests on these texts" in said
    assert "Too few texts to decide who has the role retrieval." in said
    assert f"Does the model need them? headscope disable {model} repeats:40 --heads 1-2 -o effects" in said
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("1-2", "2-3"))}
    assert rows["1-2"][:3] == ["previous", "token", "1.00"]
    assert rows["2-3"][:2] == ["sink", "1.00"]
    assert {*json.loads((out / "profile.json").read_text())["sha256"]} == {"profile.nc", "profile.csv"}
    frame = pd.read_csv(out / "profile.csv", keep_default_na=False)
    assert len(frame) == 6
    assert frame.loc[frame["role"] != NONE, ["layer", "head", "role", "units"]].values.tolist() == [
        [1, 2, "previous token", "share of attention"], [2, 3, "sink", "share of texts"],
    ]  # fmt: skip
    table = headscope.read_table(out / "profile.nc")
    assert {*np.unique(name_main_roles(table))} == {NONE, "previous token", "sink"}
    assert table.attrs["corpus"] == "repeats:60:0 and needles:3:0 in short texts"


@pytest.mark.parametrize(
    "family",
    ["gpt2", *(pytest.param(name, marks=pytest.mark.full) for name in ("llama", "mistral", "qwen3", "gemma2"))],
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full), pytest.param(2, marks=pytest.mark.full)])
def test_a_model_that_was_never_trained_has_no_roles(family: str, seed: int) -> None:
    """The weights of tiny models are wide, so that their attention is far from even."""
    table = headscope.profile(tiny.make(family, seed), repeats=60, needles=3, progress=False)
    assert int((name_main_roles(table) != NONE).sum()) == 0
    assert describe_roles(table)[0].endswith("heads 0 have a role.")


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_other_models_than_decoders_are_refused(family: str) -> None:
    module, tokenizer = tiny.make(family)
    with pytest.raises(ModelError) as refused:
        headscope.profile((module, tokenizer), progress=False)
    assert str(refused.value).endswith(
        " is no decoder alone, and roles such as induction are those of heads whose tokens see what comes before "
        "them; give a causal language model, or measure `headscope atlas`."
    )


def test_without_its_head_a_model_has_all_roles_but_the_one_that_logits_tell() -> None:
    module, tokenizer = tiny.make("gpt2")
    table = headscope.profile((module.base_model, tokenizer), repeats=30, needles=3, progress=False)
    copying = next(role for role in REDUCERS["copying"].scores[0].roles.values())
    assert "has none; load one with its head" in read_left_out(table)[copying]
    assert {"induction", "sink"} <= {*table["role"].values}


def test_a_killed_run_goes_on_where_a_reducer_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Of a bare GPT-2 whose outputs no norm reads, what logits tell is refused, once the model was measured."""
    model, settings = tiny.save(tmp_path / "model", "gpt2"), {"repeats": 7, "needles": 3, "progress": False}
    expected = headscope.profile(model, tmp_path / "whole", **settings)
    with monkeypatch.context() as patch:
        true_measure = OutputFolder.measure

        def fail_untrained(self, table: str, *arguments, **options):
            if table.startswith("untrained"):
                raise KeyboardInterrupt
            return true_measure(self, table, *arguments, **options)

        patch.setattr(OutputFolder, "measure", fail_untrained)
        with pytest.raises(KeyboardInterrupt):
            headscope.profile(model, tmp_path / "out", **settings)
    assert (tmp_path / "out" / ".repeats.partial.npz").is_file()
    xr.testing.assert_equal(headscope.profile(model, tmp_path / "out", resume=True, **settings), expected)
    assert not [*(tmp_path / "out").glob(".*.npz")]


@pytest.mark.full
def test_an_atlas_of_a_decoder_has_roles_and_its_page_too(run, model: Path, tmp_path: Path) -> None:
    code, printed, complaint = run("atlas", model, "grammar:31", *LITTLE, "-o", tmp_path / "atlas")
    assert code == 0, complaint
    assert "Of 6 heads 2 have a role" in printed
    table = headscope.read_table(tmp_path / "atlas" / "heads.nc")
    assert table.attrs["corpus"] == "grammar:31"
    assert name_main_roles(table).sel(layer=1, head=2) == "previous token"
    data = Page((tmp_path / "atlas" / "atlas.html").read_text()).data()
    row = next(row for row in data["scores"] if row["label"] == "role: previous token")
    assert row["values"][0][0][0][1] == pytest.approx(1, abs=1e-3)
    assert "lower" in row
    main = next(each for each in data["statistics"] if each["label"] == "main role")
    assert main["names"][1 + table["role"].values.tolist().index("sink")] == "sink"
    assert "its role is previous token" in data["about"][0][0][1]
    assert "it rests there, and may not in other texts" in data["about"][0][1][2]
    assert (tmp_path / "atlas" / "tables" / "head-role-heads.csv").is_file()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The classes of the models whose weights were read."""
    classes: list[str] = []
    read = PreTrainedModel.from_pretrained.__func__

    def read_weights(cls: type, *arguments: object, **settings: object) -> object:
        classes.append(cls.__name__)
        return read(cls, *arguments, **settings)

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", classmethod(read_weights))
    return classes


def test_the_weights_of_a_decoder_are_read_once_and_give_what_they_give_without_a_head(
    loaded: list[str], tmp_path: Path
) -> None:
    for part in headed.make("gpt2", "causal-lm"):
        part.save_pretrained(tmp_path / "model")
    result = headscope.atlas(
        tmp_path / "model", "grammar:53", permutations=0, map_documents=0, examples=0, progress=False
    )
    assert loaded == ["GPT2LMHeadModel"]
    assert ROLE in result.table
    assert not [why for why in read_left_out(result.table).values() if "load one with its head" in why]
    model = headscope.load(tmp_path / "model")
    for name, subject in (("table", model), ("untrained.nc", headscope.untrained_model(model))):
        table = result.table if name == "table" else result.tables[name]
        measured = headscope.measure(subject, "grammar:53", ["relations"], permutations=0, progress=False)
        accuracies = [each["relation_accuracy"].reset_coords(drop=True) for each in (table, measured)]
        xr.testing.assert_allclose(*accuracies, atol=1e-6)
    assert result.table.attrs["weights_sha256"] == model.weights_sha256


def test_a_model_without_a_head_is_loaded_without_one_and_what_fails_is_tried_once(
    loaded: list[str], tmp_path: Path
) -> None:
    folder = tiny.save(tmp_path / "model")
    assert type(RunOptions().load_with_head(str(folder)).module).__name__ == "BertModel"
    assert loaded == ["BertModel"]
    (folder / "model.safetensors").write_bytes(b"damaged")
    config = headed.make("bert", "masked-lm")[0].config
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(folder)
    loaded.clear()
    with pytest.raises(ModelError, match="no model could be loaded from"):
        RunOptions().load_with_head(str(folder))
    assert loaded == ["BertForMaskedLM"]


@pytest.mark.full
@pytest.mark.parametrize(("family", "options"), [("bert", ()), ("gpt2", ("--no-roles",))])
def test_an_atlas_without_roles(run, tmp_path: Path, family: str, options: tuple[str, ...]) -> None:
    model = tiny.save(tmp_path / "model", family)
    code, _, complaint = run("atlas", model, "grammar:31", *LITTLE, *options, "-o", tmp_path / "atlas")
    assert code == 0, complaint
    assert ROLE not in headscope.read_table(tmp_path / "atlas" / "heads.nc")


def test_the_role_that_rests_is_that_of_sinks() -> None:
    assert REDUCERS["sinks"].scores[0].roles == {"first token": RESTING}


# ------------------------------------------------------------------------------------------------ real weights

NAMED = {
    "19-7": "induction", "18-4": "induction", "18-5": "induction", "15-4": "duplicate", "17-1": "previous token",
    "12-2": "previous token", "24-8": "copying", "24-2": "copying",
}  # fmt: skip
"""Main roles of heads of SmolLM2, by what docs/howto/decoders.md has of each statistic alone."""


@pytest.fixture(scope="module")
def smollm2_profile(smollm2: str) -> xr.Dataset:
    return headscope.profile(smollm2, repeats=40, progress=False)


@pytest.mark.full
@pytest.mark.demo
def test_the_heads_of_smollm2_have_the_roles_that_they_are_known_for(smollm2_profile: xr.Dataset) -> None:
    frame = list_roles(smollm2_profile).astype({"layer": str, "head": str})
    main = dict(zip(frame["layer"] + "-" + frame["head"], frame["role"], strict=True))
    assert {head: main[head] for head in NAMED} == NAMED
    assert len(frame) == 270
    assert frame.set_index(frame["layer"] + "-" + frame["head"])["also"]["24-8"] == "induction, sink, retrieval"


@pytest.mark.full
@pytest.mark.demo
def test_smollm2_untrained_has_no_roles(smollm2: str) -> None:
    untrained = headscope.untrained_model(headscope.load(smollm2, task="causal-lm"), seed=5)
    table = headscope.profile(untrained, repeats=20, needles=20, progress=False)
    assert int((name_main_roles(table) != NONE).sum()) == 0
