"""Examples on disk and back: all of it, whatever stands in the words; what is no such file is refused in a sentence."""

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import TableError
from headscope.examples import (
    CLEAR,
    FORMAT_ATTRIBUTE,
    READS,
    STEPS,
    Example,
    Item,
    Judged,
    Side,
    Text,
    pack,
    quantize,
    read_examples,
    unpack,
    write_examples,
)

SHAPES = {"encoder": (3, 5), "decoder": (2, 7), "cross": (2, 7)}
WORDS = st.lists(st.text(min_size=1, max_size=7), min_size=1, max_size=7)


def make_text(name: str, words: list[str], seed: int = 0) -> Text:
    draw = np.random.default_rng(seed)
    read = Side(("[CLS]", *words, "[SEP]"), (-1, *range(len(words)), -1))
    sides = {"encoder": read, "decoder": Side(("<s>", *read.tokens), (-1, *read.token_words))}
    weights = {
        kind: draw.integers(0, STEPS + 1, (*shape, *(len(sides[side].tokens) for side in READS[kind]))).astype(np.uint8)
        for kind, shape in SHAPES.items()
    }
    links = tuple((place, place - 1, "obj") for place in range(1, len(words)))
    items = tuple(Item(place, (place - 1,), ("relation:obj", "relation:all")) for place in range(1, len(words)))
    judged = {
        kind: Judged(*(draw.integers(0, 4, (*leading, len(items))).astype(np.uint8) for leading in ((), shape)))
        for kind, shape in SHAPES.items()
    }
    content, offsets = " ".join(words), list[tuple[int, int]]()
    for word in words:
        start = offsets[-1][1] + 1 if offsets else 0
        offsets.append((start, start + len(word)))
    return Text(
        name, tuple(words), content, tuple(offsets), max(0, len(words) - 2) or None, sides, links,
        ((0, 1, "1", "cue"),), weights, items=items, judged=judged,
        picks={"relation:obj": tuple((item.source, -1) for item in items)} if items else {},
    )  # fmt: skip


def assert_same(texts: list[Text], others: list[Text]) -> None:
    assert len(texts) == len(others)
    for text, other in zip(texts, others, strict=True):
        for name in Text.__slots__:
            if name == "weights":
                assert [*text.weights] == [*other.weights]
                for kind in text.weights:
                    np.testing.assert_array_equal(text.weights[kind], other.weights[kind])
            elif name == "judged":
                assert [*text.judged] == [*other.judged]
                for kind in text.judged:
                    np.testing.assert_array_equal(text.judged[kind].counts, other.judged[kind].counts)
                    np.testing.assert_array_equal(text.judged[kind].right, other.judged[kind].right)
            else:
                assert getattr(text, name) == getattr(other, name)


@given(st.lists(WORDS, min_size=1, max_size=3))
def test_what_is_packed_is_unpacked(words: list[list[str]]) -> None:
    texts = [make_text(f"text {place}", each, place) for place, each in enumerate(words)]
    examples = [Example("relation:obj", CLEAR, len(texts) - 1, 2.0, 3.0)]
    unpacked, chosen = unpack(pack(texts, examples, {"model": "made up"}))
    assert_same(unpacked, texts)
    assert chosen == examples


def test_what_is_written_is_read_whatever_the_words_are(tmp_path: Path) -> None:
    texts = [make_text("a", ["\x00", "</script>", "\ud800", "🙂", "שלום"]), make_text("b", ["x" * 300], seed=1)]
    dataset = pack(texts, [], {"model": "made up", "seed": 7})
    stored = read_examples(write_examples(dataset, tmp_path / "examples.nc"))
    assert_same(unpack(stored)[0], texts)
    assert stored.attrs == dataset.attrs
    assert stored["encoder_layer"].values.tolist() == [1, 2, 3]
    assert stored["cross_head"].values.tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(("weight", "steps"), [(0, 0), (1, STEPS), (0.5, STEPS // 2), (0.004, 0), (1.0000001, STEPS)])
def test_weights_are_rounded_to_steps(weight: float, steps: int) -> None:
    assert quantize(np.array([weight])).tolist() == [steps]


def write(dataset: xr.Dataset, tmp_path: Path) -> Path:
    return write_examples(dataset, tmp_path / "examples.nc")


def test_a_file_that_holds_no_examples_is_refused(tmp_path: Path) -> None:
    dataset = pack([make_text("a", ["dog", "sees"])], [], {})
    with pytest.raises(TableError, match=r"^there is no file .*none\.nc; examples are written by `headscope atlas`\.$"):
        read_examples(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("text")
    with pytest.raises(TableError, match=r"text\.nc is not a netCDF-4 file; examples are written by"):
        read_examples(tmp_path / "text.nc")
    dataset.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(TableError, match=r"other\.nc holds no examples; give the file examples\.nc of an atlas\.$"):
        read_examples(tmp_path / "other.nc")
    path = write(dataset, tmp_path)
    with h5py.File(path, "r+") as root:
        root.attrs[FORMAT_ATTRIBUTE] = 99
    with pytest.raises(TableError, match="has examples of format 99, and this headscope reads format 4"):
        read_examples(path)


@pytest.mark.parametrize("change", ["content", "weights", "items", "examples", "half"])
def test_a_damaged_file_is_refused(tmp_path: Path, change: str) -> None:
    dataset = pack([make_text("a", ["dog", "sees"])], [], {})
    if change == "content":
        dataset["content"] = ("text", np.array(["{"], dtype=object))
    elif change == "weights":
        dataset = dataset.isel(cross_cell=slice(1, None))
    elif change == "items":
        dataset = dataset.isel(cross_item=slice(1, None))
    elif change == "examples":
        dataset["examples"] = '[{"row": "a", "kind": "clear", "text": 1, "right": 1, "count": 1}]'
    path = write(dataset, tmp_path)
    if change == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(TableError, match="damaged"):
        read_examples(path)


@pytest.mark.parametrize(("version", "lacks"), [(3, ()), (2, ("content", "offsets"))])
def test_texts_of_the_versions_before_have_nothing_judged(tmp_path: Path, version: int, lacks: tuple[str, ...]) -> None:
    """Format 2 had no texts either: its words had spaces between them."""
    text = make_text("a", ["dog", "sees", "."])
    dataset = pack([text], [], {}).drop_vars([f"{kind}_{part}" for kind in SHAPES for part in ("counts", "right")])
    content = json.loads(str(dataset["content"].values[0]))
    dropped = (*lacks, "items", "picks")
    dataset["content"].values[0] = json.dumps({k: v for k, v in content.items() if k not in dropped})
    path = write(dataset, tmp_path)
    with h5py.File(path, "r+") as root:
        root.attrs[FORMAT_ATTRIBUTE] = version
    assert_same(unpack(read_examples(path))[0], [replace(text, items=(), judged={}, picks={})])
