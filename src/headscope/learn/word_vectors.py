"""Static word vectors for probes that read words: from a file such as GloVe's, or from the embeddings of the model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.model.dispatched import hold_weights
from headscope.capture.model.model import Model
from headscope.capture.tokens.assign import find_lead
from headscope.errors import HeadscopeError, quote
from headscope.files import sha256
from headscope.guards.formats import WORD_VECTORS
from headscope.guards.lines import LineError, read_lines

COMPONENTS = 100
"""The number of principal components to which the embeddings of a model are reduced.

Usual GloVe vectors have the same width.
"""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A vector for each word type of a corpus.

    Attributes:
        places: The index of the row of each type in `values`.
        values: The vectors, divided by the root mean square of all their numbers.
        source: A description of the source of the vectors.
        missing: The number of types without a vector; they get the mean of the other vectors.
    """

    places: dict[str, int]
    values: Float[Tensor, "type feature"]
    source: str
    missing: int

    @classmethod
    def scaled(cls, types: Sequence[str], values: Float[np.ndarray, "type feature"], source: str) -> "WordVectors":
        """Return scaled vectors of word types; a row of NaN means a missing vector, and is replaced by the mean row."""
        missing = np.isnan(values[:, 0])
        filled = np.where(missing[:, None], values[~missing].mean(0), values)
        scaled = filled / max(float(np.sqrt((filled**2).mean())), 1e-12)
        places = {word: place for place, word in enumerate(types)}
        return cls(places, torch.from_numpy(scaled.astype(np.float32)), source, int(missing.sum()))


def read_vectors(path: str | Path, types: Iterable[str]) -> WordVectors:
    """Read the vectors of word types from a text file, plain or gzipped, with a word and its numbers in each line.

    A word that is missing is looked up in lower case; if that is missing too, it gets the mean of all vectors that were
    found.

    Raises:
        HeadscopeError: The file is missing, a line is malformed, or the file has no vector for any of the words.
    """
    path = Path(path).expanduser()
    types = list(dict.fromkeys(types))
    wanted = {*types, *(word.lower() for word in types)}
    vectors: dict[str, np.ndarray] = {}
    width = 0
    for number, line in _read_lines(path):
        word, *numbers = line.split(" ")
        # The first line of word2vec's format has two numbers: the number of vectors, and their width.
        if number == 1 and len(numbers) == 1 and word.isdigit() and numbers[0].isdigit():
            continue
        width = width or len(numbers)
        if len(numbers) != width or not width:
            raise HeadscopeError(
                f"{path}:{number} has {len(numbers)} numbers after its word, and the first vector has {width}; each "
                "line needs a word and the same count of numbers, with single spaces between them."
            )
        if word in wanted and word not in vectors:
            vectors[word] = _parse_vector(numbers, f"{path}:{number}")
    if not vectors:
        raise HeadscopeError(
            f"{path} has a vector for none of the {len(types):,} different words of the treebank; give vectors of its "
            "language, such as glove.6B.100d.txt, or leave --words out to take the model's own embeddings."
        )
    missing = np.full(width, np.nan)
    rows = [vectors.get(word, vectors.get(word.lower(), missing)) for word in types]
    return WordVectors.scaled(types, np.array(rows), f"{path.name} (sha256 {sha256(path)[:12]})")


def embed_words(model: Model, types: Iterable[str]) -> WordVectors:
    """Return a vector for each word type from the input embeddings of a model, as a mean over the type's tokens.

    The vectors are reduced to `COMPONENTS` principal components over the types. With at most `COMPONENTS` types, or
    embeddings of at most this width, they are only scaled.
    """
    types = list(dict.fromkeys(types))
    lead = find_lead(model.tokenizer)
    encoded = model.tokenizer([f"{lead}{word}" for word in types], add_special_tokens=False)
    embeddings = model.module.get_input_embeddings()
    with hold_weights(embeddings):
        table = embeddings.weight.detach().float().cpu()
    missing = torch.full((table.shape[1],), torch.nan)
    rows = [table[ids].mean(0) if ids else missing for ids in encoded["input_ids"]]
    values = torch.stack(rows)
    known = ~values[:, 0].isnan()
    centred = values[known] - values[known].mean(0)
    if min(centred.shape) > COMPONENTS:
        _, axes = torch.linalg.eigh(centred.T @ centred)
        values = (values - values[known].mean(0)) @ axes[:, -COMPONENTS:].flip(1)
    return WordVectors.scaled(types, values.double().numpy(), f"input embeddings of {model.name}")


def _read_lines(path: Path) -> Iterable[tuple[int, str]]:
    """Yield the numbers and the texts of the lines of a file, plain or gzipped; empty lines are left out."""
    try:
        for number, line in read_lines(path, WORD_VECTORS):
            text = line.rstrip()
            if text:
                yield number, text
    except LineError as error:
        raise HeadscopeError(
            f"{path}:{error.number} {error}; give word vectors as GloVe has them, plain or .gz."
        ) from error


def _parse_vector(numbers: Sequence[str], where: str) -> Float[np.ndarray, " feature"]:
    try:
        vector = np.array(numbers, dtype=np.float64)
    except ValueError:
        wrong = next(text for text in numbers if not _is_number(text))
        raise HeadscopeError(
            f"{where} has {quote(wrong)} where a number is expected; a file of word vectors has a word and numbers on "
            "each line, with single spaces between them."
        ) from None
    if not np.isfinite(vector).all():
        raise HeadscopeError(f"{where} has a number that is not finite (NaN or infinite); correct or remove the line.")
    return vector


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
