"""`headscope align` of a planted translator and of tiny models, from a file of pairs to a folder of files."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import transformers as hf

import headed
import headscope
import planted_translator
import tiny
import tiny_pairs
from headscope.commands.align.request import Align
from headscope.errors import HeadscopeError, ModelError
from headscope.headlists.list_formats import read_heads
from headscope.reducers import alignment
from headscope.runner import local

FILES = {"heads.nc", "untrained.nc", "alignment.csv", "generation_config.json"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a planted translator: 1-2 is the alignment where words are predicted, 2-3 where they are read."""
    folder = tmp_path_factory.mktemp("planted")
    for part in planted_translator.plant():
        part.save_pretrained(folder)
    settings = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**settings, "num_beams": 7}))
    return folder


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.txt"
    path.write_text(planted_translator.write(planted_translator.pairs()))
    return path


@pytest.mark.full
def test_the_folder_has_a_table_rows_and_the_settings_of_the_model(
    run, model: Path, pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, printed, complaint = run("align", model, pairs, "-o", out, "--permutations", 99)
    assert code == 0, complaint
    assert "align: predicting: 1 of 10 heads stand out beyond every rival, on texts on which none was chosen" in printed
    found = [line.split()[:5] for line in printed.splitlines() if line.startswith(("1-2", "2-3"))]
    assert found == [["1-2", "1.000", "0.987", "to", "1.000"], ["2-3", "1.000", "0.987", "to", "1.000"]]
    listed = json.loads((out / "alignment.json").read_text())
    assert {*listed["sha256"]} == FILES
    settings = json.loads((out / "generation_config.json").read_text())
    assert settings["alignment_heads"] == [[0, 1]]
    before = json.loads((model / "generation_config.json").read_text())
    # Marked as made up, the settings would be read without the heads.
    assert before.pop("_from_model_config") is True
    assert {name: value for name, value in settings.items() if name != "alignment_heads"} == before
    assert hf.GenerationConfig.from_pretrained(out).alignment_heads == [[0, 1]]
    assert [(entry.layer, entry.head) for entry in read_heads(out / "generation_config.json").entries] == [(1, 2)]
    frame = pd.read_csv(out / "alignment.csv", keep_default_na=False)
    assert len(frame) == 2 * 10
    assert {*frame["attention_type"]} == {"cross"}
    chosen = frame[frame["verdict"] == "stands out"]
    assert chosen[["layer", "head", "decoder_step"]].values.tolist() == [[1, 2, "predicting"], [2, 3, "reading"]]
    assert frame["decoder_step"].tolist() == ["predicting"] * 10 + ["reading"] * 10
    table = headscope.read_table(out / "heads.nc")
    assert "step='predicting'" in table.attrs["call"]
    assert table.attrs["corpus"] == str(pairs)
    assert {"alignment_untrained_accuracy", "alignment_shortlist_q"} <= {*table.data_vars}


@pytest.mark.full
def test_the_step_says_whose_heads_are_handed_on(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    documents = planted_translator.pairs()
    table = headscope.align(model, documents, out, step="reading", permutations=19, progress=False)
    stands_out = table["alignment_shortlist_stands_out"].sel(attention_type="cross", layer=2, head=3)
    # With 19 permutations no p-value is below .05.
    assert stands_out.values.tolist() == [0, 0]
    assert not (out / "generation_config.json").exists()
    headscope.align(model, documents, out, step="reading", top=1, permutations=0, progress=False)
    assert json.loads((out / "generation_config.json").read_text())["alignment_heads"] == [[1, 2]]


def test_pairs_in_another_form_have_the_figures_of_the_same_pairs(run, model: Path, pairs: Path, tmp_path) -> None:
    out, other = tmp_path / "out", tmp_path / "other" / pairs.name  # folds go by the name
    other.parent.mkdir()
    links = [
        re.sub(r"([0-9]+)-([0-9]+)", lambda m: f"{int(m[2]) + 1}-{int(m[1]) + 1}", line.rpartition("|")[2])
        for line in pairs.read_text().splitlines()
    ]
    sides = [line.rpartition("|")[0] for line in pairs.read_text().splitlines()]
    other.write_text("".join(f"{side}|{link}\n" for side, link in zip(sides, links, strict=True)))
    more = ("-o", out, "--permutations", 0, "--limit", 60)
    assert run("align", model, pairs, *more)[0] == 0
    expected = (out / "alignment.csv").read_text()
    assert run("align", model, other, *more, "--format", "alignments-from-1-swapped")[0] == 0
    assert (out / "alignment.csv").read_text() == expected
    assert "all links are in another form, name the format" in run("align", model, other, *more)[2]


@pytest.mark.full
def test_where_nothing_stands_out_no_settings_are_written_and_older_ones_go(
    run, model: Path, pairs: Path, tmp_path
) -> None:
    out, settings = tmp_path / "out", tmp_path / "out" / "generation_config.json"
    assert run("align", model, pairs, "-o", out, "--permutations", 0)[0] == 0
    assert settings.is_file()
    pairs.write_text(planted_translator.write(planted_translator.permute_links(planted_translator.pairs())))
    code, printed, complaint = run("align", model, pairs, "-o", out, "--permutations", 0)
    assert code == 0, complaint
    assert "No head stands out at the step predicting, so generation_config.json is not written." in printed
    assert not settings.exists()
    assert {*json.loads((out / "alignment.json").read_text())["sha256"]} == FILES - {"generation_config.json"}


def test_of_few_pairs_it_says_that_nothing_can_be_decided(run, model: Path, pairs: Path, tmp_path: Path) -> None:
    code, printed, complaint = run("align", model, pairs, "-o", tmp_path / "out", "--limit", 7)
    assert code == 0, complaint
    assert "align: reading: too few words of translations or texts to decide which heads stand out" in printed


@pytest.mark.full
def test_a_loaded_model_with_its_head_and_one_without_settings(tmp_path: Path) -> None:
    documents = planted_translator.pairs(300)
    module, words = planted_translator.plant()
    headscope.align((module, words), documents, tmp_path / "a", permutations=0, progress=False)
    settings = json.loads((tmp_path / "a" / "generation_config.json").read_text())
    assert settings["alignment_heads"] == [[0, 1]]
    assert settings["forced_eos_token_id"] == 1
    (module.model.save_pretrained(tmp_path / "bare"), words.save_pretrained(tmp_path / "bare"))
    headscope.align(tmp_path / "bare", documents, tmp_path / "b", permutations=0, progress=False)
    assert json.loads((tmp_path / "b" / "generation_config.json").read_text()) == {"alignment_heads": [[0, 1]]}


def test_a_t5_with_its_head_is_measured(tmp_path: Path) -> None:
    model = headed.make("t5", "causal-lm")
    table = headscope.align(model, tiny_pairs.pairs(41), tmp_path, permutations=9, progress=False)
    assert not (table["alignment_shortlist_stands_out"] == 1).any()


class KilledError(Exception):
    """What ends a run in the middle."""


@pytest.mark.full
def test_a_killed_run_goes_on_and_gives_the_same(model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    settings = {"permutations": 19, "batch_tokens": 500}
    documents = planted_translator.pairs(100)
    whole = headscope.align(model, documents, tmp_path / "whole", **settings, progress=False)
    steps = []

    def kill(step: str, done: int, total: int) -> None:
        steps.append((step, done))
        if step == "measuring the untrained model" and done > 300:
            raise KilledError

    with pytest.raises(KilledError):
        headscope.align(model, documents, tmp_path / "out", **settings, progress=kill)
    with pytest.raises(HeadscopeError, match=r"was left by another run \(its reducers differ"):
        headscope.align(
            model, documents, tmp_path / "out", permutations=9, batch_tokens=500, resume=True, progress=False
        )
    before, steps = [step for step in steps if step[0].startswith("measuring")], []
    resumed = headscope.align(
        model, documents, tmp_path / "out", **settings, resume=True,
        progress=lambda step, done, total: steps.append((step, done)),
    )  # fmt: skip
    after = [step for step in steps if step[0].startswith("measuring")]
    assert 0 < len(after) < len(before)
    for name in whole.data_vars:
        np.testing.assert_array_equal(resumed[name], whole[name], err_msg=str(name))
    assert not [*(tmp_path / "out").glob(".heads*"), *(tmp_path / "out").glob(".untrained*")]


def test_the_steps_are_those_of_the_reducer() -> None:
    assert Align.options["step"].choices == alignment.STEPS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--step", "writing"],
            "--step is 'writing'; give predicting or reading.",
        ),
        (["--top", "0"], "--top is 0; give 1 or more."),
        (["--source", "deu_Latn"], "is of one language alone, so it has no source language 'deu_Latn'; leave it out."),
        (["--limit", "0"], "--limit is 0; give 1 or more."),
    ],
)
def test_what_is_wrong_is_one_sentence(run, model: Path, pairs: Path, tmp_path: Path, arguments, sentence) -> None:
    code, _, complaint = run("align", model, pairs, "-o", tmp_path / "out", *arguments)
    assert (code, complaint.count("headscope: ")) == (2, 1)
    assert sentence in complaint
    assert not [*tmp_path.glob("out/*")]


def test_pairs_that_do_not_do_are_refused_before_a_model_is_loaded(
    run, pairs: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(Align, "load", None)
    pairs.write_text("a b ||| c d ||| 0-0\na ||| b ||| 0-1\n")
    code, _, complaint = run("align", "minilm", pairs, "-o", tmp_path / "out")
    assert (code, complaint) == (
        2,
        f"headscope: {pairs}:2 has the link '0-1', and its target side has 1 word, counted from 0; correct the link "
        "or, if all links are in another form, name the format: alignments-from-1, alignments-swapped, "
        "alignments-from-1-swapped.\n",
    )
    pairs.write_text("a b ||| c d ||| 0p0\n")
    code, _, complaint = run("align", "minilm", pairs, "-o", tmp_path / "out")
    assert (code, complaint) == (
        2,
        f"headscope: {pairs} has no sure link between a word and one of its translation, so there is nothing to score "
        "heads on; write links such as 0-0 after each pair.\n",
    )
    code, _, complaint = run("align", "minilm", tmp_path / "none.txt", "-o", tmp_path / "out")
    assert (code, "does not exist" in complaint) == (2, True)


def test_a_model_without_cross_attention_is_refused(run, pairs: Path, tmp_path: Path) -> None:
    tiny.save(tmp_path / "encoder")
    code, _, complaint = run("align", tmp_path / "encoder", pairs, "-o", tmp_path / "out")
    assert code == 2
    assert complaint.splitlines()[-1] == (
        f"headscope: '{tmp_path / 'encoder'}' (BertModel) has no cross-attention, so no head of it aligns a "
        "translation with its source; give an encoder-decoder."
    )
    with pytest.raises(ModelError, match="has no cross-attention"):
        headscope.align(headed.make("gpt2", "causal-lm"), pairs, tmp_path / "out", progress=False)


def test_the_settings_of_a_model_are_not_overwritten(run, model: Path, pairs: Path) -> None:
    before = (model / "generation_config.json").read_bytes()
    code, _, complaint = run("align", model, pairs, "-o", model)
    assert (code, complaint) == (
        2,
        f"headscope: {model / 'generation_config.json'} is there already, is not known to be written by "
        "headscope, and would be overwritten; move it, or choose another folder.\n",
    )
    assert (model / "generation_config.json").read_bytes() == before


def test_settings_that_are_no_json_are_refused(model: Path, pairs: Path, tmp_path: Path) -> None:
    for part in planted_translator.plant():
        part.save_pretrained(tmp_path / "damaged")
    for content, sentence in (("{", "is not JSON"), ("[]", "does not hold an object of settings")):
        (tmp_path / "damaged" / "generation_config.json").write_text(content)
        with pytest.raises(HeadscopeError, match=sentence):
            headscope.align(tmp_path / "damaged", pairs, tmp_path / "out", progress=False)
