"""`headscope ledger` of planted and of tiny models, from a file of prompts to a folder of files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headed
import headscope
import planted_decoder
import tiny
import witnesses
from headscope.capture.tokens import generation
from headscope.commands.ledger import run as ledger_job
from headscope.errors import CorpusError, HeadscopeError, ModelError

READER, FIRST, EVEN = {"layer": 1, "head": 2}, {"layer": 2, "head": 1}, {"layer": 2, "head": 3}


def write(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a planted decoder: 1-2 reads the document with the answer, 2-1 the first slot, the others all."""
    folder = tmp_path_factory.mktemp("planted")
    for part in planted_decoder.plant():
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def ledger(model: Path, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    out = tmp_path_factory.mktemp("ledger")
    return headscope.ledger(model, planted_decoder.prompts(), out, tokens=5, progress=False)


@pytest.mark.full
def test_what_a_document_says_is_told_from_where_it_stands(ledger: xr.Dataset) -> None:
    content, q = ledger["ledger_content"], ledger["ledger_content_q"]
    assert float(content.sel(READER)) == pytest.approx(1, abs=1e-6)
    assert float(q.sel(READER)) < 1e-6
    np.testing.assert_allclose(ledger["ledger_by_slot"].sel(READER), 1 / 3, atol=1e-6)
    assert float(content.sel(FIRST)) == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(ledger["ledger_mass"].sel({**FIRST, "part": "document 1"}), 1, atol=1e-6)
    np.testing.assert_allclose(ledger["ledger_by_slot"].sel(FIRST), [1, 0, 0], atol=1e-6)
    others = q.stack(place=("layer", "head")).drop_sel(place=(1, 2))
    assert float(others.min()) > 0.05


def test_uniform_heads_give_each_part_its_share_of_tokens(ledger: xr.Dataset) -> None:
    expected = []
    for record in planted_decoder.prompts():
        counts = [1, *(len(document.split()) for document in record["documents"]), 2, 10]
        rows = [np.array([*counts, token]) / (sum(counts) + token) for token in range(5)]
        expected.append(np.mean(rows, axis=0))
    np.testing.assert_allclose(ledger["ledger_mass"].sel(EVEN), np.mean(expected, axis=0), atol=1e-6)
    np.testing.assert_allclose(ledger["ledger_mass_uniform"], np.mean(expected, axis=0), atol=1e-9)
    assert float(ledger["ledger_content"].sel(EVEN)) == pytest.approx(
        float(ledger["ledger_content_length"].sel(EVEN)), abs=1e-6
    )


@pytest.mark.full
def test_where_the_answer_always_stands_in_a_longer_document_uniform_heads_are_not_selected(
    model: Path, tmp_path: Path
) -> None:
    prompts = planted_decoder.prompts(longer=7)
    table = headscope.ledger(model, prompts, tmp_path, tokens=3, progress=False)
    assert float(table["ledger_content_lower"].sel(EVEN)) > 0.05
    assert float(table["ledger_content_p"].sel(EVEN)) > 0.5
    assert float(table["ledger_content_q"].sel(READER)) < 1e-6


@pytest.mark.full
def test_the_shares_of_a_model_are_those_that_it_returns_while_it_generates(tmp_path: Path) -> None:
    module, words = headed.make("llama", "causal-lm")
    record = {"system": "the dog", "documents": ["a cat sees", "by the old house", "walking"], "question": "was red"}
    records = [{**record, "gold": 2}, {**record, "documents": ["readers", "the red dog", "in a"], "gold": 1}]
    table = headscope.ledger((module, words), records, tmp_path, tokens=5, progress=False)
    names, masses, effects = [str(part) for part in table["part"].values], [], []
    for each in records:
        orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
        marked = [witnesses.mark_prompt(words, each, order) for order in orders]
        own = [step.token for step in witnesses.generate_steps(module, marked[0][0], 5)]
        assert words.eos_token_id not in own
        means = [
            witnesses.ledger(witnesses.force_steps(module, ids, own), parts, names).mean(0) for ids, parts in marked
        ]
        masses.append(means[0])
        effects.append(witnesses.content_effect([mean[..., 1:4] for mean in means], each["gold"]))
    np.testing.assert_allclose(table["ledger_mass"], np.mean(masses, axis=0), atol=2e-5)
    np.testing.assert_allclose(table["ledger_content"], np.mean(effects, axis=0), atol=2e-5)


@pytest.mark.full
def test_the_content_effect_is_the_same_whichever_document_comes_first_in_the_file(tmp_path: Path) -> None:
    model = headed.make("llama", "causal-lm")
    documents = ["a cat sees", "by the old house", "walking dogs", "the", "red readers quickly"]
    record = {"question": "was it old", "answer": "the old house"}
    records = [{**record, "documents": documents[place:] + documents[:place]} for place in (0, 3)]
    tables = []
    for shift in (0, 2):
        turned = [
            {**each, "documents": each["documents"][shift:] + each["documents"][:shift], "gold": 1 + (3 - shift) % 5}
            for each in records
        ]
        tables.append(headscope.ledger(model, turned, tmp_path / str(shift), progress=False))
    for name in ("ledger_content", "ledger_content_p", "ledger_by_slot", "ledger_gold"):
        np.testing.assert_allclose(tables[0][name], tables[1][name], atol=1e-5, err_msg=name)
    assert float(abs(tables[0]["ledger_mass"] - tables[1]["ledger_mass"]).max()) > 0.01


@pytest.mark.full
def test_the_folder_has_a_table_rows_and_figures(run, model: Path, ledger: xr.Dataset, tmp_path: Path) -> None:
    prompts = write(tmp_path / "prompts.jsonl", planted_decoder.prompts())
    code, printed, complaint = run("ledger", model, prompts, "--tokens", 5, "--figures", "-o", tmp_path / "out")
    assert code == 0, complaint
    assert "13 prompts, 65 tokens of the model's own text" in printed
    assert "1 of 6 heads read the document with the answer more than the others in the same slots" in " ".join(
        printed.split()
    )
    assert "Head 1-2 reads most of it: 100 % of its attention, and 0 % of the others." in printed
    (line,) = (line.split() for line in printed.splitlines() if line.startswith("1-2"))
    assert line == ["1-2", "1.000", "0.000", "+1.000", "+1.000", "to", "+1.000", *line[7:8], "<.001"]
    table = headscope.read_table(tmp_path / "out" / "ledger.nc")
    for name in ledger.data_vars:
        np.testing.assert_array_equal(table[name], ledger[name], err_msg=str(name))
    assert "tokens=5" in table.attrs["call"]
    assert table.attrs["documents"] == 13
    assert table.attrs["own_tokens"] == 65
    parts = pd.read_csv(tmp_path / "out" / "ledger.csv")
    assert len(parts) == 2 * 3 * 7
    row = parts[(parts["layer"] == 2) & (parts["head"] == 3) & (parts["part"] == "question")].iloc[0]
    assert row["mass"] == pytest.approx(row["uniform"], abs=1e-5)
    assert row["lower"] < row["mass"] < row["upper"]
    content = pd.read_csv(tmp_path / "out" / "content.csv", keep_default_na=False)
    assert content["verdict"].tolist() == ["selected", *[""] * 5]
    assert content.iloc[0][["layer", "head"]].tolist() == [1, 2]
    tokens = pd.read_csv(tmp_path / "out" / "tokens.csv")
    assert len(tokens) == 13 * 5 * (1 + 6)
    assert {*tokens["token"]} == {"Answer:"}
    read = tokens[tokens["head"] == "1-2"]
    for number, record in enumerate(planted_decoder.prompts(), start=1):
        assert (read.loc[read["prompt"] == number, f"document {record['gold']}"] == 1).all()
    listed = json.loads((tmp_path / "out" / "ledger.json").read_text())["sha256"]
    figures = {f"figures/{name}.{end}" for name in ("ledger-heads", "ledger-tokens") for end in ("png", "svg")}
    assert {"ledger.nc", "ledger.csv", "content.csv", "tokens.csv"} | figures == {*listed}


@pytest.mark.full
def test_without_gold_the_readers_of_documents_are_shown(run, model: Path, tmp_path: Path) -> None:
    records = [{**record, "gold": None} for record in planted_decoder.prompts(3)]
    code, printed, complaint = run("ledger", model, write(tmp_path / "p.jsonl", records), "-o", tmp_path / "out")
    assert code == 0, complaint
    assert 'No content effect: fewer than two prompts have "gold".' in printed
    assert [line.split() for line in printed.splitlines() if line.startswith("2-1")] == [
        ["2-1", "1.000", "0.000", "0.000"]
    ]
    assert not (tmp_path / "out" / "content.csv").exists()


@pytest.mark.full
def test_a_killed_run_goes_on_and_gives_the_same(model: Path, ledger: xr.Dataset, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(ledger_job, "SAVE_EVERY", 0.0)
    observe, calls = ledger_job.observe_ledger, []

    def fail_at_the_eighth(*arguments, **named):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return observe(*arguments, **named)

    monkeypatch.setattr(ledger_job, "observe_ledger", fail_at_the_eighth)
    settings = {"tokens": 5, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        headscope.ledger(model, planted_decoder.prompts(), tmp_path / "out", **settings)
    assert (tmp_path / "out" / ".ledger.partial.npz").is_file()
    with pytest.raises(HeadscopeError, match=r"was left by another run \(its generated_tokens differ"):
        headscope.ledger(model, planted_decoder.prompts(), tmp_path / "out", tokens=7, progress=False, resume=True)
    steps = []
    resumed = headscope.ledger(
        model, planted_decoder.prompts(), tmp_path / "out", tokens=5, resume=True,
        progress=lambda step, done, total: steps.append((done, total)) if step.startswith("reading") else None,
    )  # fmt: skip
    assert steps == [(count, 13) for count in range(8, 14)]
    assert len(calls) == 8 + 6
    for name in ledger.data_vars:
        np.testing.assert_array_equal(resumed[name], ledger[name], err_msg=str(name))
    assert not [*(tmp_path / "out").glob(".ledger*")]


def test_prompts_that_are_too_long_are_left_out_and_counted(run, model: Path, tmp_path: Path, monkeypatch) -> None:
    short = planted_decoder.prompts(3)
    long = [{**record, "question": "which one " * 20} for record in planted_decoder.prompts(2, seed=7)]
    prompts = write(tmp_path / "p.jsonl", [short[0], *long, *short[1:]])
    code, printed, complaint = run("ledger", model, prompts, "--tokens", 7, "-o", tmp_path / "out")
    assert code == 0, complaint
    assert "left out: 2 prompts longer than 61 tokens, with the text after them" in printed
    table = headscope.read_table(tmp_path / "out" / "ledger.nc")
    assert json.loads(table.attrs["skipped"]) == {"prompts longer than 61 tokens, with the text after them": 2}
    assert table.attrs["documents"] == 3
    monkeypatch.setattr(generation, "_generate", None)  # refused before anything is generated
    code, _, complaint = run("ledger", model, write(tmp_path / "l.jsonl", long), "-o", tmp_path / "long")
    assert code == 2
    assert "l.jsonl has no prompt that" in complaint
    assert "can read: they have up to" in complaint
    with pytest.raises(CorpusError, match="and it reads 61; give shorter documents"):
        headscope.ledger(model, short, tmp_path / "tokens", tokens=61, progress=False)


def test_prompts_behind_which_nothing_is_written_are_counted(tmp_path: Path) -> None:
    module, words = planted_decoder.plant()
    module.generation_config.eos_token_id = planted_decoder.WORDS.index("Answer:")
    records = planted_decoder.prompts(3)
    with pytest.raises(CorpusError, match=r"^'GPT2LMHeadModel' writes nothing after any prompt; give the texts"):
        headscope.ledger((module, words), records, tmp_path / "none", progress=False)
    records[1:] = [{**record, "answer": "river door"} for record in records[1:]]
    table = headscope.ledger((module, words), records, tmp_path / "some", progress=False)
    assert json.loads(table.attrs["skipped"]) == {"prompts after which the model writes nothing": 1}
    assert (table.attrs["documents"], table.attrs["own_tokens"]) == (2, 4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tokens", "0"], "--tokens is 0; give 1 or more."),
        (["--chat"], "has no chat template; leave out --chat."),
        (["--start", "<bos>"], "has no token '<bos>'; name as --start a token of its vocabulary, or leave it out."),
    ],
)
def test_what_is_wrong_is_one_sentence(run, model: Path, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    prompts = write(tmp_path / "p.jsonl", planted_decoder.prompts(2))
    code, _, complaint = run("ledger", model, prompts, "-o", tmp_path / "out", *arguments)
    assert code == 2
    assert sentence in complaint.replace("\n", " ")
    assert not [*tmp_path.glob("out/*")]


def test_a_file_and_a_model_that_do_not_do_are_one_sentence(run, model: Path, tmp_path: Path) -> None:
    prompts = write(tmp_path / "p.jsonl", planted_decoder.prompts(2))
    code, _, complaint = run("ledger", model, tmp_path / "none.jsonl", "-o", tmp_path / "out")
    assert (code, "give prompts as JSON Lines" in complaint) == (2, True)
    code, _, complaint = run("ledger", "./nowhere", prompts, "-o", tmp_path / "out")
    assert (code, "there is no folder './nowhere'" in complaint) == (2, True)
    tiny.save(tmp_path / "encoder")
    code, _, complaint = run("ledger", tmp_path / "encoder", prompts, "-o", tmp_path / "out")
    assert (code, complaint.count("headscope: ")) == (2, 1)
    with pytest.raises(ModelError, match="is no decoder-only language model, so it generates no text"):
        headscope.ledger(headed.make("t5", "causal-lm"), prompts, tmp_path / "out", progress=False)
