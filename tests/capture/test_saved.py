"""Saved queries, keys and values give the table of the model that they were taken from, or are refused."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import headscope
import plain_reducers
import saved
import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.open.untrained import untrained_model
from headscope.corpora import Document, summarize
from headscope.errors import ModelError
from headscope.intervene.edit import capture_model
from headscope.reducers import REDUCERS
from headscope.reducers.surface import Surface
from headscope.runner import Plan, measure, resolve_reducers

DOCUMENTS = [replace(document, boundary=None) for document in tiny.documents(7)]
HEADERS: dict[str, dict[str, Any]] = {
    "bert": {"mask": "all", "special": {"cls": "[CLS]", "sep": "[SEP]"}},
    "llama": {"mask": "causal"},
    "mistral": {"mask": "causal", "window": tiny.WINDOW},
    "modernbert": {"mask": "all", "window": [None, 3, 3], "special": {"cls": "[CLS]", "sep": "[SEP]"}},
}


def save(folder: Path, family: str, **how: Any) -> Model:
    """All documents but the last in a folder, and the model that they come from."""
    module, tokenizer = tiny.make(family)
    model = Model.from_module(module, tokenizer, name=family)
    for document in DOCUMENTS[:-1]:
        saved.save_text(folder, model.module, model.tokenizer, document.id, document.words, HEADERS[family], **how)
    return model


@pytest.mark.parametrize("plan", [Plan(), Plan(fused=True), Plan(batch_tokens=1, rows=3)], ids=["", "fused", "rows"])
@pytest.mark.parametrize("family", HEADERS)
def test_the_table_is_that_of_the_model(family: str, plan: Plan, tmp_path: Path) -> None:
    model = save(tmp_path, family)
    summary = summarize(DOCUMENTS)
    names = [name for name in plain_reducers.OF_ONE_MODEL if REDUCERS[name].supports(summary)]
    reducers = [*resolve_reducers(names, summary)]
    assert len(reducers) > 5
    live = measure(model, DOCUMENTS[:-1], reducers, plan=plan)
    replayed = measure(str(tmp_path), DOCUMENTS[:-1], reducers, plan=plan)
    assert live.sizes == replayed.sizes
    for name in live.data_vars:
        np.testing.assert_allclose(replayed[name], live[name], atol=2e-5, rtol=1e-4, err_msg=str(name))
    for about in ("documents", "words", "tokens"):
        assert live.attrs[about] == replayed.attrs[about]


def test_a_mask_may_be_a_tensor(tmp_path: Path) -> None:
    """Here one that two texts could share: the first five tokens see each other, and the others what a decoder sees."""
    save(tmp_path, "llama", parts=("query", "key", "value"))
    expected = {}
    for file in sorted(tmp_path.iterdir()):
        tensors, header = read(file)
        tokens = tensors["layers.1.query"].shape[1]
        seen = torch.ones(tokens, tokens).tril().bool()
        seen[:5, :5] = True
        save_file(tensors | {"mask": seen}, file, header | {"mask": "tensor"})
        query, key = (tensors[f"layers.2.{part}"].double() for part in ("query", "key"))
        scores = json.loads(header["scale"])[1] * query @ key.repeat_interleave(3, 0).transpose(-1, -2)
        expected[header["id"]] = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    table = measure(str(tmp_path), DOCUMENTS[:-1], [Surface()])
    first = [weights[..., 0].mean(-1) for weights in expected.values()]
    np.testing.assert_allclose(table["mass_first"].sel(layer=2), torch.stack(first).mean(0), atol=1e-5)


def test_texts_that_are_too_long_or_not_there_are_counted(tmp_path: Path) -> None:
    model = save(tmp_path, "llama")
    table = measure(str(tmp_path), DOCUMENTS, [Surface()], plan=Plan(max_tokens=11))
    live = measure(model, DOCUMENTS[:-1], [Surface()], plan=Plan(max_tokens=11))
    assert json.loads(table.attrs["skipped"]) == {
        **json.loads(live.attrs["skipped"]),
        "documents without saved attention": 1,
    }
    np.testing.assert_allclose(table["entropy"], live["entropy"], atol=1e-5)
    # In a decoder the beginning of a text has the same queries and keys whatever stands behind.
    cut, cut_live = (
        measure(each, DOCUMENTS[:-1], [Surface()], plan=Plan(max_tokens=11, cut=True))
        for each in (str(tmp_path), model)
    )
    assert cut.attrs["skipped"] == cut_live.attrs["skipped"]
    np.testing.assert_allclose(cut["entropy"], cut_live["entropy"], atol=1e-5)


def test_outputs_that_were_saved_are_compared(tmp_path: Path) -> None:
    save(tmp_path, "llama")
    file = sorted(tmp_path.iterdir())[4]
    tensors, header = read(file)
    save_file(tensors, file, header | {"scale": json.dumps([json.loads(header["scale"])[0]] * 2)})
    tensors["layers.2.query"] = tensors["layers.2.query"] * 1.01
    save_file(tensors, file, header)
    with pytest.raises(
        ModelError, match=rf"^the attention of layer 2 in {re.escape(str(file))} gives other outputs than"
    ):
        measure(str(tmp_path), DOCUMENTS, [Surface()])


def test_outputs_are_compared_where_a_beginning_has_the_same(tmp_path: Path) -> None:
    """Of a text that is cut, a special token at the end sees other keys than it did."""
    model = save(tmp_path, "llama", parts=("query", "key", "value"))
    for file in sorted(tmp_path.iterdir()):
        tensors, header = read(file)
        longer = {name: torch.cat([tensor, tensor[:, :1]], dim=1) for name, tensor in tensors.items()}
        for layer, scale in enumerate(json.loads(header["scale"]), start=1):
            query, key, value = (longer[f"layers.{layer}.{part}"] for part in ("query", "key", "value"))
            key, value = (side.repeat_interleave(3, 0) for side in (key, value))
            scores = (scale * query @ key.mT).masked_fill(
                torch.ones(key.shape[1], key.shape[1]).triu(1).bool(), -torch.inf
            )
            longer[f"layers.{layer}.output"] = scores.softmax(-1) @ value
        ends = {
            "tokens": [*json.loads(header["tokens"]), "</s>"],
            "word_of_token": [*json.loads(header["word_of_token"]), -1],
        }
        save_file(longer, file, header | {name: json.dumps(value) for name, value in ends.items()})
    table = measure(str(tmp_path), DOCUMENTS[:-1], [Surface()])
    assert table.attrs["tokens"] == measure(model, DOCUMENTS[:-1], [Surface()]).attrs["tokens"] + 6


def test_a_mask_shows_each_token_something(tmp_path: Path) -> None:
    save(tmp_path, "llama", parts=("query", "key", "value"))
    for file in sorted(tmp_path.iterdir()):
        tensors, header = read(file)
        seen = torch.ones(*tensors["layers.1.query"].shape[1:2] * 2).tril(-1).bool()
        save_file(tensors | {"mask": seen}, file, header | {"mask": "tensor"})
    with pytest.raises(ModelError, match="shows a token nothing, not even itself; let each token see one at least"):
        measure(str(tmp_path), DOCUMENTS, [Surface()])


def test_saved_tokens_are_not_read_in_another_way(tmp_path: Path) -> None:
    save(tmp_path, "llama")
    assert measure(str(tmp_path), DOCUMENTS[:-1], [Surface()]).attrs["text"] == "given"
    with pytest.raises(ModelError, match="has the tokens that another engine read, and no text is read as spaced"):
        headscope.measure(str(tmp_path), DOCUMENTS[:-1], "surface", text="spaced")
    # A study reads texts in the form of its paper, and a table from before there were forms names none.
    table = headscope.measure(str(tmp_path), DOCUMENTS[:-1], "surface")
    assert measure(str(tmp_path), DOCUMENTS[:-1], [Surface()], plan=Plan(text="spaced")).attrs["text"] == "given"
    del table.attrs["text"]
    assert headscope.rerun(table, given={"corpus": DOCUMENTS[:-1]}).differing == ()


def test_what_needs_the_model_says_so(tmp_path: Path) -> None:
    save(tmp_path, "llama")
    saved_attention = load(tmp_path)
    for act in (lambda: untrained_model(saved_attention), lambda: capture_model(saved_attention)):
        with pytest.raises(ModelError, match="holds saved queries, keys and values, and"):
            act()


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "howto" / "saved-attention.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    assert names["table"].sizes["layer"] == 2
    assert names["table"].attrs["documents"] == 2


def read(file: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors and the header of a file."""
    with safe_open(file, framework="pt") as opened:
        return {name: opened.get_tensor(name) for name in [*opened.keys()]}, opened.metadata()


Tensors, Header = dict[str, torch.Tensor], dict[str, str]
REFUSED: dict[str, tuple[Callable[[Tensors, Header], Any], str]] = {
    "no format": (lambda t, h: h.pop("format"), "has the format None where 'headscope-attention-1' is wanted; save"),
    "no mask": (lambda t, h: h.pop("mask"), "says nothing for `mask`; give causal, all, tensor."),
    "another mask": (lambda t, h: h.update(mask="prefix"), "says prefix for `mask`; give causal, all, tensor."),
    "a mask that is not there": (
        lambda t, h: h.update(mask="tensor"),
        "says tensor for `mask`, and it has no tensor `mask`; save one of the",
    ),
    "a mask too many": (
        lambda t, h: t.update(mask=torch.ones(3, 3).bool()),
        "says causal for `mask`, and it has a tensor `mask` of the shape",
    ),
    "no scale": (lambda t, h: h.pop("scale"), "says nothing for `scale`; give a number, or a list of 2, one for each"),
    "scales of other layers": (lambda t, h: h.update(scale="[1, 2, 3]"), "says [1, 2, 3] for `scale`; give a number"),
    "no tokens": (lambda t, h: h.pop("tokens"), "says nothing for `tokens`; give a JSON list."),
    "tokens of no list": (lambda t, h: h.update(tokens="the dog"), "says 'the dog' for `tokens`; give a JSON list."),
    "a token without a word": (lambda t, h: h.update(word_of_token="[0]"), "says of 1 of its "),
    "a word that is not there": (
        lambda t, h: h.update(word_of_token=json.dumps([99] * len(json.loads(h["tokens"])))),
        "words they are part of",
    ),
    "a window of nothing": (lambda t, h: h.update(window="0"), "says 0 for `window`; give a number, or a list of 2"),
    "other special tokens": (
        lambda t, h: h.update(special='{"bos": "<s>"}'),
        "has the special tokens bos, and only cls and sep are known; leave the",
    ),
    "a layer without values": (lambda t, h: t.pop("layers.2.value"), "has 'layers.2.key', and its tensors are called"),
    "no layers": (lambda t, h: t.clear(), "has no tensors, and its tensors are called"),
    "queries of another text": (
        lambda t, h: t.update({"layers.2.query": t["layers.2.query"][:, 1:]}),
        "layers.2.query of ",
    ),
    "keys of another size": (lambda t, h: t.update({"layers.1.key": t["layers.1.key"][..., 1:]}), "layers.1.key of "),
    "values of fewer heads": (lambda t, h: t.update({"layers.1.value": t["layers.1.value"][1:]}), "layers.1.value of "),
    "another type": (
        lambda t, h: t.update({name: tensor.double() for name, tensor in t.items()}),
        "are of the types F64; save all",
    ),
    "another model": (
        lambda t, h: [t.pop(f"layers.2.{part}") for part in ("query", "key", "value")] + [h.update(scale="1")],
        "are not of one model: scales is",
    ),
    "a word that is a number": (
        lambda t, h: h.update(words=json.dumps([1, *json.loads(h["words"])[1:]])),
        "says 1 for `words`; give a JSON",
    ),
    "special tokens that are numbers": (
        lambda t, h: h.update(special='{"cls": 5}'),
        "says 5 for `special`; give a JSON",
    ),
    "a scale of nothing": (lambda t, h: h.update(scale="0"), "says 0 for `scale`; give a number"),
    "a scale that is not a number": (lambda t, h: h.update(scale="NaN"), "says NaN for `scale`; give a number"),
    "a misspelt key": (
        lambda t, h: h.update(windows="7"),
        "has the key 'windows', which means nothing here; there are",
    ),
    "a mask that is added": (
        lambda t, h: [h.update(mask="tensor"), t.update(mask=torch.zeros(len(json.loads(h["tokens"])), 1))],
        "is of the type F32, and truth values are wanted: true where the token of the row sees",
    ),
    "a mask and a window": (
        lambda t, h: [h.update(mask="tensor", window="3"), t.update(mask=torch.ones(2, 2).bool())],
        "says tensor for `mask` and has a `window` as well; put the window into the tensor.",
    ),
    "no heads": (
        lambda t, h: t.update({f"layers.1.{part}": t[f"layers.1.{part}"][:0] for part in ("key", "value")}),
        "and three sizes are wanted (heads, tokens, numbers of each), none of them 0; save it so.",
    ),
    "a text twice": (lambda t, h: h.update(id=DOCUMENTS[1].id), "are both of the text"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_files_that_do_not_fit_are_refused_when_they_are_opened(what: str, tmp_path: Path) -> None:
    save(tmp_path, "llama", parts=("query", "key", "value"))
    file = sorted(tmp_path.iterdir())[-1]
    tensors, header = read(file)
    change, sentence = REFUSED[what]
    change(tensors, header)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file, header)
    with pytest.raises(ModelError, match=re.escape(sentence)) as refused:
        load(tmp_path)
    assert str(file) in str(refused.value)


def test_damaged_files_and_what_needs_a_model_are_refused(tmp_path: Path) -> None:
    save(tmp_path, "llama")
    with pytest.raises(ModelError, match="and a task head needs the model that they come from; give that, or measure"):
        load(tmp_path, task="causal-lm")
    for view, sentence in {"norm": "add cannot be seen", "gradient": "has no task head"}.items():
        with pytest.raises(ModelError, match=sentence):
            measure(str(tmp_path), DOCUMENTS, [Surface()], plan=Plan(view=view))
    file = sorted(tmp_path.iterdir())[2]
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(ModelError, match=rf"^{re.escape(str(file))} cannot be read as safetensors \("):
        load(tmp_path)


def test_a_corpus_of_other_texts_is_refused_before_it_is_measured(tmp_path: Path) -> None:
    save(tmp_path, "llama")
    words = DOCUMENTS[2].words
    other = replace(DOCUMENTS[2], words=(*words[:-1], "else"))
    sentence = (
        f"{sorted(tmp_path.iterdir())[2]} was saved for another text than {other.id!r}: word {len(words)} is "
        f"{words[-1]!r} there and 'else' in the corpus; give the corpus whose texts were saved."
    )
    with pytest.raises(ModelError, match=f"^{re.escape(sentence)}$"):
        measure(str(tmp_path), [*DOCUMENTS[:2], other], [Surface()])
    longer = replace(DOCUMENTS[2], words=(*words, "else"))
    with pytest.raises(ModelError, match=f"word {len(words) + 1} is not there and 'else' in the corpus"):
        measure(str(tmp_path), [longer], [Surface()])
    with pytest.raises(
        ModelError, match=f"^{re.escape(str(tmp_path))} has no text of this corpus: the first of its 6 texts is"
    ):
        measure(str(tmp_path), [Document("another", ("one",))], [Surface()])
