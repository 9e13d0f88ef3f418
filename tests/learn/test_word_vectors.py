"""Vectors of words: read from a file, or the model's own."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import tiny
from headscope.capture.open.loading import load
from headscope.errors import HeadscopeError
from headscope.learn.word_vectors import COMPONENTS, embed_words, read_vectors

LINES = "dog 1 2 3\ncat 4 5 6\nDog 7 8 9\nunused 100 100 100\n"


def write(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_vectors_are_those_of_the_file_up_to_one_factor(tmp_path, name: str) -> None:
    vectors = read_vectors(write(tmp_path, LINES, name), ["cat", "dog", "Cat", "bird"])
    values = vectors.values.numpy()
    expected = np.array([[4, 5, 6], [1, 2, 3], [4, 5, 6], [3, 4, 5]])  # the mean of what is there
    np.testing.assert_allclose(values / values[0, 0] * 4, expected, rtol=1e-6)
    assert np.sqrt((values.astype(float) ** 2).mean()) == pytest.approx(1)
    assert vectors.missing == 1
    assert vectors.places == {"cat": 0, "dog": 1, "Cat": 2, "bird": 3}


def test_a_first_line_with_counts_is_no_vector(tmp_path) -> None:
    vectors = read_vectors(write(tmp_path, "3 2\ndog 1 2\n3 5 5\n"), ["dog", "3"])
    assert vectors.values.shape == (2, 2)
    assert vectors.missing == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dog 1 2\ncat 1\n", r"vectors.txt:2 has 1 numbers after its word, and the first vector has 2"),
        ("dog 1 two\n", r"vectors.txt:1 has 'two' where a number is expected"),
        ("dog 1 nan\n", r"vectors.txt:1 has a number that is not finite"),
        ("bird 1 2\n", r"has a vector for none of the 1 different words"),
        ("", r"has a vector for none of the 1 different words"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, text: str, expected: str) -> None:
    with pytest.raises(HeadscopeError, match=expected):
        read_vectors(write(tmp_path, text), ["dog"])


def test_bytes_that_are_no_text_are_refused(tmp_path) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(b"dog \xff\xfe\n")
    with pytest.raises(HeadscopeError, match="is no text in UTF-8"):
        read_vectors(path, ["dog"])
    damaged = write(tmp_path, LINES * 50, "vectors.txt.gz")
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(HeadscopeError, match="is damaged"):
        read_vectors(damaged, ["dog"])


def test_own_embeddings_keep_the_distances_of_words(tmp_path) -> None:
    model = load(tiny.save(tmp_path))
    types = ["the", "text", "a", "other"]
    vectors = embed_words(model, types)
    table = model.module.get_input_embeddings().weight.detach()
    tokens = [
        model.tokenizer([[word]], is_split_into_words=True, add_special_tokens=False)["input_ids"][0] for word in types
    ]
    raw = np.stack([table[ids].mean(0).numpy() for ids in tokens])
    ours = vectors.values.numpy()
    raw_distances, distances = (np.linalg.norm(v[:, None] - v, axis=-1) for v in (raw, ours))
    np.testing.assert_allclose(distances * raw_distances[0, 1] / distances[0, 1], raw_distances, rtol=1e-4, atol=1e-6)


@pytest.mark.demo
def test_own_embeddings_have_as_many_components_as_glove() -> None:
    model = load("minilm")
    words = [word for word in model.tokenizer.get_vocab() if word.isalpha()][:997]
    values = embed_words(model, words).values.numpy().astype(float)
    assert values.shape == (997, COMPONENTS)
    spread = values.var(0)
    assert (np.diff(spread) <= 1e-9).all()  # the first components are the largest
    correlation = np.corrcoef(values.T)
    assert np.abs(correlation - np.eye(COMPONENTS)).max() < 1e-3
