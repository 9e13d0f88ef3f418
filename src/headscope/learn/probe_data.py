r"""The training data of probes: for each batch, its questions and the attention between its words.

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
"""The number of parts into which a corpus is divided, each of three or four folds.

Each seed uses some parts for the test, some for early stopping and the others for training.
"""

MAX_TOKENS = 512
"""The maximum number of tokens of a document; longer ones are left out, since the maps of all heads are kept."""

SIDES = ("before", "behind")
"""The names of two keys: the special tokens before the first word, and those after it ([CLS] and [SEP] of BERT)."""

LONGEST = 6
"""The greatest length of a link, in words, that is counted separately; longer links are counted with it."""

Documents = Sequence[int] | slice
"""The indices of some documents of a batch."""

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Questions:
    """The questions of a batch, as tensors over documents and words.

    The last candidate, after all words, means that a word has no syntactic head.

    Attributes:
        words: The numbers of the word types; 0 for padding.
        real: False for padding.
        candidates: The candidates from which each word may choose.
        right: The right candidates; none for words without a question.
        target: The right candidate for training, which is the nearest; -1 for words without a question.
        row: The index in `Vocabulary.labels` of the label of the right link; -1 for words without a question.
        length: The length of the right link, as an index; -1 without a length.
        fold: The fold of the document of a question; -1 for words without a question.
        skipped: The number of questions that are left out because a word has no token or the label is unknown.
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
        """A mask of the words that have a question."""
        return self.target >= 0

    @property
    def count(self) -> int:
        """The number of questions."""
        return int(self.chosen_for.sum())

    def __getitem__(self, documents: Documents) -> "Questions":
        """Return the questions of the given documents."""
        tensors = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "skipped"}
        return replace(self, **{name: value[documents] for name, value in tensors.items()})

    @classmethod
    def join(cls, parts: Sequence["Questions"]) -> "Questions":
        """Join the questions of several batches that have the same number of words."""
        names = [each.name for each in fields(cls) if each.name != "skipped"]
        tensors = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(**tensors, skipped=sum(part.skipped for part in parts))

    def keep(self, kept: Bool[Tensor, "document word"]) -> "Questions":
        """Return the questions without those of words that are not in the mask `kept`."""
        return replace(self, target=self.target.where(kept, -1))

    def answer(self, target: Int[Tensor, "document word"], candidates: Tensor) -> "Questions":
        """Return the same questions with other right answers, among other candidates."""
        right = torch.zeros_like(self.right).scatter_(2, target.clamp_min(0)[..., None], True)
        return replace(self, target=target.where(self.chosen_for, -1), right=right, candidates=candidates)


@dataclass(frozen=True)
class Vocabulary:
    """The word types and the labels of a corpus, in the order of their numbers.

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
        """Collect the word types and the labels of documents."""
        types, labels = dict[str, None](), dict[str, None]()
        for document in documents:
            types.update(dict.fromkeys(document.original.words))
            labels.update(dict.fromkeys(choice.label for choice in list_choices(document, kind)))
        return cls(tuple(types), tuple(sorted(labels)), kind)

    def make_questions(self, batch: Batch, assignment: FoldAssignment) -> Questions:
        """Return the questions of a batch."""
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
        questions: The questions of the batch.
        maps: The file of the attention between the words. Its last keys are special tokens (`SIDES`).
        hidden: The file of the hidden states of the words; None if they are not kept.
    """

    questions: Questions
    maps: Path
    hidden: Path | None = None

    def load_maps(self, documents: Documents = ALL) -> Float[Tensor, "document word key head"]:
        """Load the attention of all heads on the given documents, with the heads of the first layer first."""
        return _read_rows(self._mapped, documents)

    @cached_property
    def _mapped(self) -> np.ndarray:
        """The memory-mapped file of the attention. It is opened once, since training reads few documents at a time."""
        return _map(self.maps)

    def load_hidden(self, layer: int, documents: Documents = ALL) -> Float[Tensor, "document word width"]:
        """Load the hidden states of a layer (0: the embeddings), as means over the tokens of each word."""
        if self.hidden is None:
            raise ValueError("the hidden states of the batch were not kept")
        return _read_rows(_map(self.hidden)[layer], documents)


@dataclass(frozen=True, eq=False)
class ProbeData:
    """The training data of probes from one corpus.

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
        """Return the batches of the given parts."""
        return [block for part in parts for block in self.parts[part]]


def number_part(document: Document, assignment: FoldAssignment) -> int:
    """Return the number of the part to which a document belongs; all documents of a group have the same part."""
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
    """Write the attention between the words of all documents to files, and yield the progress and then the data.

    The files hold the heads of all attention types, as 16-bit numbers, which keep about three digits of a weight. The
    documents come in the order of the parts.

    Args:
        model: The model.
        parts: The documents of each part.
        vocabulary: The word types and labels.
        assignment: The assignment of documents to folds.
        folder: The folder for the files.
        plan: How the model reads the texts.
        hidden: Write hidden states too.
        reuse: Keep files that a killed command with the same arguments left in the folder.

    Yields:
        The number of words of each batch, and at the end a `ProbeData`.

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
    """Read the rows of the given documents from a memory-mapped file, as 32-bit numbers."""
    return torch.from_numpy(np.array(values[documents])).float()


def _map(path: Path) -> np.ndarray:
    """Open a file of numbers as a memory map, from which only the numbers that are used are read.

    Raises:
        HeadscopeError: The file is damaged, or the system refuses to read it.
    """
    try:
        return map_array(path, PROBED_MAPS)
    except ValueError as error:
        raise HeadscopeError(f"{path} is damaged ({error}); run `headscope probe` again without --resume.") from error


def _is_whole(path: Path, shape: tuple[int | None, ...]) -> bool:
    """Return True if a file is a complete array of 16-bit numbers with this shape; None matches any length."""
    try:
        values = _map(path)
    except HeadscopeError:
        return False
    same = all(size in (None, length) for size, length in zip(shape, values.shape, strict=False))
    return same and values.ndim == len(shape) and values.dtype == np.float16


def _save(path: Path, values: np.ndarray) -> None:
    """Write an array to a file in one step, so that a killed command leaves no part of a file."""
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.save(file, values)


def _pool_maps(portion: Portion, words: int) -> np.ndarray:
    """Return the attention between words: sums over the tokens of a key, means over the tokens of a query."""
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
    """Return the hidden states of the words in each layer, as means over the tokens of each word."""
    (capture,), (batch,) = portion.captures, portion.batches
    tokens = membership(batch.encoder.word, words)
    share = (tokens / tokens.sum(1, keepdim=True).clamp_min(1)).mT
    states = compute_hidden_states(capture.model, batch)
    return torch.stack([(share.to(state.device) @ state).half().cpu() for state in states]).numpy()


def _mark_special(
    word: Int[Tensor, "document token"], real: Bool[Tensor, "document token"]
) -> Float[Tensor, "document token side"]:
    """Return indicators of special tokens.

    The first column has 1 for special tokens before the first word, the second for all others.
    """
    special = real & (word == SPECIAL)
    before = special & ((word >= 0).cumsum(1) == 0)
    return torch.stack([before, special & ~before], dim=-1).float()
