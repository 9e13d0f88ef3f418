"""What probes read: the attention between words beside a naive loop, in any batches; choices; hidden states."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.open.untrained import untrained_model
from headscope.capture.passes.stream import Plan
from headscope.capture.tokens.batch import Batch
from headscope.corpora.document import Document, Link
from headscope.errors import HeadscopeError
from headscope.learn.probe_data import LONGEST, PARTS, ProbeData, Vocabulary, extract, number_part
from headscope.reducers.support.folds import FoldAssignment

ASSIGNMENT = FoldAssignment("document")


def make_model(family: str = "bert") -> Model:
    return Model.from_module(*tiny.make(family))


def make_documents(count: int = 31) -> list[Document]:
    return [document for document in tiny.documents(count) if document.boundary is None]


def extract_all(
    model: Model, documents: list[Document], folder: Path, *, kind: str = "dependency", **settings
) -> ProbeData:
    parts = [[d for d in documents if number_part(d, ASSIGNMENT) == part] for part in range(PARTS)]
    plan = Plan(batch_tokens=settings.pop("batch_tokens", 512))
    *_, data = extract(
        model, parts, Vocabulary.from_documents(documents, kind), ASSIGNMENT, folder, plan=plan, **settings
    )
    assert isinstance(data, ProbeData)
    return data


def read_maps(data: ProbeData) -> list[np.ndarray]:
    """The maps of each document without padding."""
    maps = []
    for block in data.blocks(range(PARTS)):
        for place, real in enumerate(block.questions.real.tolist()):
            words, width = sum(real), len(real)
            keys = [*range(words), width, width + 1]
            maps.append(block.load_maps()[place, :words][:, keys].numpy())
    return maps


def attend_between_words(model: Model, document: Document) -> np.ndarray:
    """The same, from `output_attentions`, one token after the other."""
    encoded = model.tokenizer(list(document.words), is_split_into_words=True, return_tensors="pt")
    model.module.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model.module(**encoded, output_attentions=True).attentions
    word_of = encoded.word_ids()
    first = min(token for token, word in enumerate(word_of) if word is not None)
    count = Counter(word_of)
    words = len(document.words)
    heads = torch.cat([layer[0] for layer in attentions]).double().numpy()
    maps = np.zeros((words, words + 2, len(heads)))
    for query, source in enumerate(word_of):
        for key, target in enumerate(word_of):
            if source is not None:
                place = target if target is not None else words + (key > first)
                maps[source, place] += heads[:, query, key] / count[source]
    return maps


@pytest.mark.parametrize("family", ["bert", "llama", "gpt2"])
def test_attention_between_words_equals_a_naive_loop(tmp_path, family: str) -> None:
    model, documents = make_model(family), make_documents(11)
    data = extract_all(model, documents, tmp_path)
    expected = {document.words: attend_between_words(model, document) for document in documents}
    maps = read_maps(data)
    assert len(maps) == data.documents == len(documents)
    pairs = 0
    for found in maps:
        (closest,) = [
            other for other in expected.values() if other.shape == found.shape and np.abs(other - found).max() < 2e-3
        ][:1]
        np.testing.assert_allclose(found, closest, atol=1e-3)  # numbers of 16 bits
        pairs += found.size
    assert pairs == sum(other.size for other in expected.values())


def test_batches_do_not_change_what_is_read(tmp_path) -> None:
    model, documents = make_model(), make_documents()
    tables = [extract_all(model, documents, tmp_path / str(n), batch_tokens=n, hidden=True) for n in (64, 4096)]
    for part in range(PARTS):
        ours, theirs = (read_maps(replace(table, parts=(table.parts[part], *[()] * 19))) for table in tables)
        assert sorted(m.shape for m in ours) == sorted(m.shape for m in theirs)
        for found, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(found, other, atol=1e-3)
    counts = [[sum(block.questions.count for block in part) for part in table.parts] for table in tables]
    assert counts[0] == counts[1]


def test_texts_keep_their_part_and_heads_their_order(tmp_path) -> None:
    model, documents = make_model("bart"), make_documents()
    data = extract_all(model, documents, tmp_path)
    assert [sum(len(block.questions.words) for block in part) for part in data.parts] == [
        sum(number_part(document, ASSIGNMENT) == part for document in documents) for part in range(PARTS)
    ]
    assert [kind for kind, layer, head in data.heads if (layer, head) == (2, 5)] == ["encoder", "decoder", "cross"]
    assert data.blocks(range(PARTS))[0].load_maps().shape[-1] == len(data.heads)


def test_files_are_reused_only_where_that_is_wanted(tmp_path) -> None:
    documents = make_documents(7)
    extract_all(make_model(), documents, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = Model.from_module(*tiny.make("bert", seed=1))
    extract_all(other, documents, tmp_path, reuse=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    extract_all(other, documents, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} != before


@pytest.mark.parametrize("damage", ["cut", "values", "shape", "bytes", "pipe"])
def test_a_damaged_file_is_not_reused_and_not_read(tmp_path, damage: str) -> None:
    model, documents = make_model(), make_documents(7)
    expected = extract_all(model, documents, tmp_path, hidden=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    first = expected.blocks(range(PARTS))[0]
    values = np.load(first.maps)
    for path in (first.maps, first.hidden):
        if damage == "cut":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        elif damage == "pipe":
            path.unlink()
            os.mkfifo(path)
        elif damage == "bytes":
            path.write_bytes(b"text")
        else:
            np.save(path, values.astype(float) if damage == "values" else values[..., :-1, :])
    if damage in ("cut", "bytes"):
        with pytest.raises(
            HeadscopeError, match=r"npy is damaged \(.*\); run `headscope probe` again without --resume"
        ):
            replace(first).load_maps()
    data = extract_all(model, documents, tmp_path, hidden=True, reuse=True)
    assert data.layers == expected.layers
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_hidden_states_are_means_over_tokens(tmp_path) -> None:
    model, (document, *_) = make_model(), make_documents(3)
    data = extract_all(model, [document], tmp_path, hidden=True)
    encoded = model.tokenizer(list(document.words), is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        states = model.module(**encoded, output_hidden_states=True).hidden_states
    (block,) = data.blocks(range(PARTS))
    assert data.layers == len(states) == 3
    for layer, state in enumerate(states):
        for word in range(len(document.words)):
            tokens = [token for token, number in enumerate(encoded.word_ids()) if number == word]
            expected = state[0, tokens].mean(0)
            torch.testing.assert_close(block.load_hidden(layer)[0, word], expected, atol=4e-3, rtol=4e-3)


def test_choices_become_tensors(tmp_path) -> None:
    links = (Link(0, 1, "det"), Link(1, 2, "nsubj"), Link(9, 2, "obl"), Link(3, 2, "punct"))
    words = tuple("the text is , a other text of the text".split())
    document = Document("a", words, links)
    data = extract_all(make_model(), [document], tmp_path)
    (block,) = data.blocks(range(PARTS))
    questions = block.questions
    assert questions.target[0, [0, 1, 9]].tolist() == [1, 2, 2]
    assert questions.count == 3  # no root: several words have no head
    assert questions.right.sum() == 3
    assert questions.length[0, [0, 1, 9]].tolist() == [LONGEST + 1, LONGEST + 1, 0]
    assert questions.candidates[0, :, -1].all()
    assert not questions.candidates[0].diagonal().any()
    assert set(questions.fold[questions.chosen_for].tolist()) == {ASSIGNMENT.fold(document)}
    assert questions[[0]].count == 3


def test_a_choice_of_a_word_without_a_token_is_counted(tmp_path) -> None:
    document = tiny.tokenless_document()
    lost = next(word for word, text in enumerate(document.words) if not tiny.make("bert")[1].tokenize(text))
    other = (lost + 1) % len(document.words)
    document = Document("a", document.words, (Link(lost, other, "a"), Link(other, lost, "b")))
    data = extract_all(make_model(), [document], tmp_path)
    assert data.skipped["choices of a word without a token"] == 2
    assert sum(block.questions.count for block in data.blocks(range(PARTS))) == 0


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5"])
def test_the_untrained_model_keeps_the_embeddings_and_nothing_else(family: str) -> None:
    model = make_model(family)
    kept, fresh = (untrained_model(model, keep_embeddings=keep) for keep in (True, False))
    trained = dict(model.module.named_parameters())
    same, other = (
        {name for name, values in each.module.named_parameters() if torch.equal(values, trained[name])}
        for each in (kept, fresh)
    )
    added = same - other
    assert added
    assert all("emb" in name or name.split(".")[0] in ("wte", "wpe", "shared") for name in added)
    assert not any("relative_attention_bias" in name for name in added)
    assert "with its embeddings" in kept.name
    assert torch.equal(kept.module.get_input_embeddings().weight, model.module.get_input_embeddings().weight)


def test_what_does_not_fit_into_memory_is_read_in_parts_of_the_same_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that a killed run left fit, however much of a batch it ran at once."""
    model, documents, run, failed = make_model(), make_documents(), Capture.run, []
    expected = extract_all(model, documents, tmp_path / "whole", hidden=True)

    def fail(capture: Capture, batch: Batch, *arguments: object, **named: object) -> object:
        if len(batch.documents) > 3:
            failed.append(len(batch.documents))
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return run(capture, batch, *arguments, **named)

    monkeypatch.setattr(Capture, "run", fail)
    data = extract_all(model, documents, tmp_path / "parts", hidden=True)
    assert failed
    files = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "parts").iterdir())
    for name in files:
        ours, theirs = (np.load(tmp_path / folder / name).astype(float) for folder in ("parts", "whole"))
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert (data.documents, data.tokens) == (expected.documents, expected.tokens)
