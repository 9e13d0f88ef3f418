r"""The data that probes are trained on: for each batch, its choices and the attention between its words.

documents --by text--> parts --stream--> batches --+--list_choices--> Questions (which word is right)
                                                   \--capture--> maps of all heads, files that are read block by block

A batch belongs to one part of the corpus, so training, validation and test are lists of whole batches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.forward.hidden import compute_hidden_states
from headscope.capture.model.model import Model
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.assign import SPECIAL
from headscope.capture.tokens.batch import Batch
from headscope.capture.tokens.words import membership, pool_queries
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.files import atomic_write
from headscope.guards.archives import map_array
from headscope.guards.formats import PROBED_MAPS
from headscope.learn.choices import ROOT, list_choices
from headscope.learn.link_kinds import DEPENDENCY
from headscope.reducers.support.folds import FOLDS, FoldAssignment

PARTS = 20
"""The number of parts of a corpus, of three or four folds each: for test, early stopping and training of a seed."""

MAX_TOKENS = 512
"""The limit of a document's tokens; longer documents are left out, since the matrix of every head is kept."""

SIDES = ("before", "behind")
"""The special tokens before the first word of a text and after it, to which words attend: [CLS] and [SEP] of BERT."""

LONGEST = 6
"""The length in words of the longest links with their own count; longer links count with them."""

Documents = Sequence[int] | slice
"""Some documents of a batch, by their indices."""

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Questions:
    """The choices of a batch, as tensors. The last candidate, after all words, means that there is no head (ROOT).

    Attributes:
        words: The indices of the words in the vectors of words; 0 for padding.
        real: False for padding.
        candidates: The candidates that each word may choose from.
        right: The right candidates; none for words without a choice.
        target: The right candidate that is trained on, which is the nearest; -1 for words without a choice.
        row: The row of each choice in `Vocabulary.labels`, by document and word; -1 for words without a choice.
        length: The length of the link of each choice, as an index; -1 without a length.
        fold: The fold of each choice; -1 for words without a choice.
        skipped: The number of choices that are left out because a word has no token.
    """

    words: Int[Tensor, "document word"]
    real: Bool[Tensor, "document word"]
    candidates: Bool[Tensor, "document word candidate"]
    right: Bool[Tensor, "document word candidate"]
    target: Int[Tensor, "document word"]
    row: Int[Tensor, "document word"]
    length: Int[Tensor, "document word"]
    fold: Int[Tensor, "document word"]
    skipped: int = 0

    @property
    def chosen_for(self) -> Bool[Tensor, "document word"]:
        """A mask of the words that have a choice."""
        return self.target >= 0

    @property
    def count(self) -> int:
        """The number of choices."""
        return int(self.chosen_for.sum())

    def __getitem__(self, documents: Documents) -> "Questions":
        """Return the choices of some documents."""
        tensors = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "skipped"}
        return replace(self, **{name: value[documents] for name, value in tensors.items()})

    @classmethod
    def join(cls, parts: Sequence["Questions"]) -> "Questions":
        """Join the choices of several batches that have the same number of words."""
        names = [each.name for each in fields(cls) if each.name != "skipped"]
        tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(**tensors, skipped=sum(part.skipped for part in parts))

    def keep(self, kept: Bool[Tensor, "document word"]) -> "Questions":
        """Keep the choices of some words, and remove the others."""
        return replace(self, target=self.target.where(kept, -1))

    def answer(self, target: Int[Tensor, "document word"], candidates: Tensor) -> "Questions":
        """Return the same words with other right answers, among other candidates."""
        right = torch.zeros_like(self.right).scatter_(2, target.clamp_min(0)[..., None], True)
        return replace(self, target=target.where(self.chosen_for, -1), right=right, candidates=candidates)


@dataclass(frozen=True)
class Vocabulary:
    """The word types and labels of a corpus, in the order of their numbers.

    Attributes:
        types: The word types.
        labels: The labels of choices.
        kind: The kind of links.
    """

    types: tuple[str, ...]
    labels: tuple[str, ...]
    kind: str
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {word: place for place, word in enumerate(self.types)})

    @classmethod
    def from_documents(cls, documents: Iterable[Document], kind: str) -> "Vocabulary":
        """Collect the vocabulary of documents."""
        types, labels = dict[str, None](), dict[str, None]()
        for document in documents:
            types.update(dict.fromkeys(document.original.words))
            labels.update(dict.fromkeys(choice.label for choice in list_choices(document, kind)))
        return cls(tuple(types), tuple(sorted(labels)), kind)

    def make_questions(self, batch: Batch, assignment: FoldAssignment) -> Questions:
        """Make the choices of a batch."""
        size, width = len(batch.documents), batch.words
        words = torch.zeros(size, width, dtype=torch.long)
        real = torch.zeros(size, width, dtype=torch.bool)
        right = torch.zeros(size, width, width + 1, dtype=torch.bool)
        target, row, length, fold = (torch.full((size, width), -1) for _ in range(4))
        skipped = 0
        labels = {label: place for place, label in enumerate(self.labels)}
        words_with_tokens = batch.encoder.list_words()
        for place, document in enumerate(batch.documents):
            # A unit of several words counts as its first word.
            numbered = [*zip(document.original.words, document.unit_numbers, strict=True)]
            first = {unit: word for word, unit in reversed(numbered)}
            words[place, : len(document.words)] = torch.tensor([self._places[first[unit]] for unit in sorted(first)])
            real[place, : len(document.words)] = True
            inside = words_with_tokens[place] | {ROOT}
            for choice in list_choices(document, self.kind):
                # Units may have choices that single words do not have.
                if not {choice.word, choice.answers[0]} <= inside or choice.label not in labels:
                    skipped += 1
                    continue
                answers = [width if answer == ROOT else answer for answer in choice.answers]
                right[place, choice.word, answers] = True
                target[place, choice.word] = answers[0]
                row[place, choice.word] = labels[choice.label]
                fold[place, choice.word] = assignment.fold(document)
                if choice.length is not None:
                    length[place, choice.word] = LONGEST + max(-LONGEST, min(LONGEST, choice.length))
        others = real[:, None, :] & ~torch.eye(width, dtype=torch.bool)
        root = torch.full((size, width, 1), self.kind == DEPENDENCY)
        return Questions(words, real, torch.cat([others, root], -1), right, target, row, length, fold, skipped)


@dataclass(frozen=True, eq=False)
class Block:
    """A batch as probes read it.

    Attributes:
        questions: The choices of the batch.
        maps: The file of the attention between the words, and from the words to special tokens (`SIDES`), which are the
            keys after the words.
        hidden: The file of the hidden states of the words; None if they are not kept.
    """

    questions: Questions
    maps: Path
    hidden: Path | None = None

    def load_maps(self, documents: Documents = ALL) -> Float[Tensor, "document word key head"]:
        """Load the attention of all heads in some documents, the heads of the first layer first."""
        return _read_rows(self._mapped, documents)

    @cached_property
    def _mapped(self) -> np.ndarray:
        """The file of the maps, opened once: a step of the training reads a few documents of many batches."""
        return _map(self.maps)

    def load_hidden(self, layer: int, documents: Documents = ALL) -> Float[Tensor, "document word width"]:
        """Load the hidden states of a layer, as means over the tokens of each word; layer 0 has the embeddings."""
        if self.hidden is None:
            raise ValueError("the hidden states of the batch were not kept")
        return _read_rows(_map(self.hidden)[layer], documents)


@dataclass(frozen=True, eq=False)
class ProbeData:
    """A corpus as probes read it.

    Attributes:
        parts: The batches of each part of the corpus.
        heads: The attention type, layer and number of each head, in the order of the maps.
        layers: The number of layers of hidden states, including the embeddings; 0 if none are kept.
        skipped: The number of skipped documents and choices, by reason.
        documents: The number of documents.
        tokens: The number of tokens of the documents.
    """

    parts: tuple[tuple[Block, ...], ...]
    heads: tuple[tuple[str, int, int], ...]
    layers: int
    skipped: Mapping[str, int]
    documents: int
    tokens: int

    def blocks(self, parts: Iterable[int]) -> list[Block]:
        """Return the batches of some parts."""
        return [block for part in parts for block in self.parts[part]]


def number_part(document: Document, assignment: FoldAssignment) -> int:
    """Return the part of the corpus to which a document belongs, with the other documents of its text."""
    return assignment.fold(document) * PARTS // FOLDS


def extract(
    model: Model,
    parts: Sequence[Sequence[Document]],
    vocabulary: Vocabulary,
    assignment: FoldAssignment,
    folder: Path,
    *,
    plan: Plan,
    hidden: bool = False,
    reuse: bool = False,
) -> Iterator["int | ProbeData"]:
    """Write the attention between the words of all documents to files, and yield the number of words after each batch.

    The files hold the heads of all attention types, as 16-bit numbers, which keep a weight to about three digits.

    The documents come in the order of the parts of the corpus. With `hidden`, hidden states are kept too. With `reuse`,
    files that a run with the same arguments left in the folder are not written again.

    Yields:
        The number of words of each batch, and finally the data.

    Raises:
        ModelError: The attention or the hidden states of the model cannot be captured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        (attention_type, layer, head)
        for attention_type, numbers in model.attention_layers.items()
        for layer in numbers
        for head in range(1, model.shape.heads[attention_type] + 1)
    ]
    blocks: list[tuple[Block, ...]] = []
    skipped: dict[str, int] = {}
    documents = tokens = layers = 0
    room = Room.measure(model, plan.batch_tokens)
    for number, part in enumerate(parts):
        of_part: list[Block] = []
        for portion in Stream(part, (model,), plan, max_tokens=MAX_TOKENS) if part else ():
            for reason, count in portion.skipped.items():
                skipped[reason] = skipped.get(reason, 0) + count
            for batch in portion.batches:
                stem = f"{number:02}-{len(of_part):04}"
                questions = vocabulary.make_questions(batch, assignment)
                maps, states = folder / f"{stem}.npy", folder / f"{stem}-hidden.npy" if hidden else None
                # A block is a whole batch, so that files of an earlier run fit; its parts have equal widths.
                shape = len(batch.documents), batch.words
                if not (reuse and _is_whole(maps, (*shape, batch.words + len(SIDES), len(names)))):
                    pooled = room.run(portion, partial(_pool_maps, words=batch.words))
                    _save(maps, np.concatenate([*pooled]))
                if states is not None:
                    if not (reuse and _is_whole(states, (layers or None, *shape, None))):
                        pooled = room.run(portion, partial(_pool_hidden, words=batch.words))
                        _save(states, np.concatenate([*pooled], axis=1))
                    layers = len(_map(states))
                of_part.append(Block(questions, maps, states))
                documents += len(batch.documents)
                tokens += int(batch.encoder.real.sum())
                if questions.skipped:
                    reason = "choices of a word without a token"
                    skipped[reason] = skipped.get(reason, 0) + questions.skipped
                yield sum(len(document.words) for document in batch.documents)
        blocks.append(tuple(of_part))
    yield ProbeData(tuple(blocks), tuple(names), layers, skipped, documents, tokens)


def _read_rows(values: np.ndarray, documents: Documents) -> Tensor:
    """Read the rows of some documents from a file, and nothing else of the file."""
    return torch.from_numpy(np.array(values[documents])).float()


def _map(path: Path) -> np.ndarray:
    """Return the numbers of a file as a memory map, which reads only the numbers that are used.

    Raises:
        HeadscopeError: The file is damaged, or the system refuses to read it.
    """
    try:
        return map_array(path, PROBED_MAPS)
    except ValueError as error:
        raise HeadscopeError(f"{path} is damaged ({error}); run `headscope probe` again without --resume.") from error


def _is_whole(path: Path, shape: tuple[int | None, ...]) -> bool:
    """Return whether a file that an earlier run left has 16-bit numbers of this shape; None is any length."""
    try:
        values = _map(path)
    except HeadscopeError:
        return False
    same = all(size in (None, length) for size, length in zip(shape, values.shape, strict=False))
    return same and values.ndim == len(shape) and values.dtype == np.float16


def _save(path: Path, values: np.ndarray) -> None:
    """Write a file of numbers, whole or not at all."""
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.save(file, values)


def _pool_maps(portion: Portion, words: int) -> np.ndarray:
    """Pool the attention between words: sums over the tokens of the key, means over the query's (Clark et al., 4.1)."""
    (capture,), (batch,) = portion.captures, portion.batches
    by_type: dict[str, list[Tensor]] = {attention_type: [] for attention_type in capture.model.layers}

    def see(attention: Attention) -> None:
        queries, keys = attention.queries, attention.keys
        columns = torch.cat([membership(keys.word, words), _mark_special(keys.word, keys.real)], dim=-1)
        pooled = pool_queries(attention.average(columns), membership(queries.word, words))
        by_type[attention.attention_type].append(pooled.permute(0, 2, 3, 1).half().cpu())

    capture.run(batch, see, whole=True)
    return torch.cat([layer for layers in by_type.values() for layer in layers], dim=-1).numpy()


def _pool_hidden(portion: Portion, words: int) -> np.ndarray:
    """Return the hidden states of words, as means over their tokens."""
    (capture,), (batch,) = portion.captures, portion.batches
    tokens = membership(batch.encoder.word, words)
    share = (tokens / tokens.sum(1, keepdim=True).clamp_min(1)).mT
    states = compute_hidden_states(capture.model, batch)
    return torch.stack([(share.to(state.device) @ state).half().cpu() for state in states]).numpy()


def _mark_special(
    word: Int[Tensor, "document token"], real: Bool[Tensor, "document token"]
) -> Float[Tensor, "document token side"]:
    """Return 1 for the special tokens before the first word, and for those after it, in two columns."""
    special = real & (word == SPECIAL)
    before = special & ((word >= 0).cumsum(1) == 0)
    return torch.stack([before, special & ~before], dim=-1).float()
