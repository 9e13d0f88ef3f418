"""The examples of an evaluation, by name, file or folder: labelled examples, minimal pairs, texts, or last words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from headscope.capture.model.model_names import OWN_HEAD
from headscope.corpora import read
from headscope.corpora.blimp import MinimalPair, recognise
from headscope.corpora.corpus import Corpus, name_documents
from headscope.corpora.minimalpairs import read_minimal_pairs
from headscope.errors import CorpusError, HeadscopeError
from headscope.files import find_by_suffix, reading
from headscope.intervene.label_names import read_label_names
from headscope.learn.hub import PREFIX
from headscope.learn.task import SPLITS, TEST, Task
from headscope.learn.tasks import TASKS, read_task
from headscope.runs import Runs
from headscope.text_forms import WRITTEN

if TYPE_CHECKING:  # a command reads its task before torch is loaded
    from headscope.capture.model.model import Model
    from headscope.intervene.evaluation import Evaluation

T = TypeVar("T")

BLIMP = "blimp"
"""The name of the minimal pairs of Warstadt et al. (2020), and the name of their folder and format."""

LAST_WORDS = "last-word:"
"""The prefix for a file of texts whose last words are predicted: ``last-word:lambada.jsonl``."""


@dataclass(frozen=True)
class EvaluationSource:
    """The examples of an evaluation, before a model is loaded. Only one of `task`, `pairs` and `corpus` is given.

    Attributes:
        name: The name of the examples in messages.
        task: A task with labels; None for other examples.
        pairs: Minimal pairs; empty for other examples.
        corpus: Texts; None for other examples.
        last_words: Whether only the last word of each text is predicted.
        split: The split of the task whose examples are used.
        seed: The seed of the random sample of examples.
        limit: The maximum number of examples, of texts, or of pairs of each paradigm. None: no limit.
        label_names: The label of the task for each label of the model, if their names differ.
    """

    name: str
    task: Task | None = None
    pairs: Sequence[MinimalPair] = ()
    corpus: Corpus | None = None
    last_words: bool = False
    split: str = TEST
    limit: int | None = None
    seed: int = 0
    label_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The task head that a model needs for the examples, in the words of `headscope.load`."""
        if self.task is None:
            return OWN_HEAD
        return "tagging" if self.task.kind == "tagging" else "classification"

    def check_runs(self, runs: Runs) -> None:
        """Raise an error for runs that were not tuned on the task of this evaluation.

        Raises:
            HeadscopeError: The runs were tuned on another task or on a control, or the examples have no labels.
        """
        if self.task is None:
            raise HeadscopeError(
                f"{self.name} has no labels, so no runs are tuned on it; name the task of the runs, {runs.task}, or "
                "leave out --runs."
            )
        if runs.control or runs.task != self.task.name:
            tuned_on = f"the control of {runs.task}" if runs.control else runs.task
            raise HeadscopeError(
                f"the runs of {runs.folder} were tuned on {tuned_on}, and the task is {self.task.name}; name the "
                "folder of the runs on it."
            )

    def prepare(
        self, model: "Model", *, start: str | None = None, text: str | None = None, **settings: Any
    ) -> "Evaluation":
        """Return the evaluation of a model on the examples.

        Args:
            model: The model, with its task head.
            start: The token from which a causal model predicts the first token of a text.
            text: How to read texts without labels, ``written`` or ``spaced``. Texts with labels are read as in tuning.
            settings: ``batch_tokens`` and ``max_tokens``; minimal pairs do not accept ``max_tokens``.

        Raises:
            HeadscopeError: The examples cannot be scored with this model.
        """
        from headscope.intervene.labels import prepare_task
        from headscope.intervene.language import prepare_last_words, prepare_pairs, prepare_texts
        from headscope.intervene.prediction import SentenceReader

        if self.task is not None:
            if start is not None:
                raise HeadscopeError(f"{self.name} has labels, and no token is predicted; leave out the start token.")
            if text is not None:
                raise HeadscopeError(f"{self.name} has labels, and is read as in tuning; leave out how texts are read.")
            sample = self._sample(self.task)
            return prepare_task(model, sample, split=self.split, label_names=self.label_names, **settings)
        reader = SentenceReader(model, text or WRITTEN, start)
        if self.corpus is not None and self.last_words:
            chosen = self._choose([*self.corpus])
            return prepare_last_words(reader, chosen, name=self.name, **settings)
        if self.corpus is not None:
            return prepare_texts(reader, self.corpus, name=self.name, **settings)
        if settings.pop("max_tokens", None) is not None:
            raise HeadscopeError("minimal pairs are never cut; leave out the longest text in tokens.")
        return prepare_pairs(reader, self.pairs, name=self.name, **settings)

    def _sample(self, task: Task) -> Task:
        """Return the task with a random sample of at most `limit` examples in its split."""
        return replace(task, splits={**task.splits, self.split: self._choose(task.splits.get(self.split, ()))})

    def _choose(self, examples: Sequence[T]) -> tuple[T, ...]:
        """Choose `limit` examples at random, in their original order; without a limit, return all."""
        if self.limit is None or self.limit >= len(examples):
            return tuple(examples)
        return tuple(examples[number] for number in sorted(Random(self.seed).sample(range(len(examples)), self.limit)))


def find_evaluation(
    task: Any,
    data: str | Path = ".",
    *,
    split: str = TEST,
    paradigms: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
    labels: str | Mapping[str, str] | None = None,
) -> EvaluationSource:
    """Read the examples that a user names.

    Args:
        task: A task of `headscope tune`, by name or as a `Task`; a folder with its TSV files; minimal pairs, as
            ``blimp`` or as a file or folder in its format; ``last-word:`` and the path of texts whose last word is
            predicted; or texts, as anything that `headscope.read` reads.
        data: The file or folder of a task or of ``blimp``.
        split: The split of a task.
        paradigms: The paradigms of minimal pairs. Default: all.
        limit: The number of random examples or last words, of first texts, or of first pairs of each paradigm.
        seed: The seed of the random sample.
        labels: The label of the task for each label of the model (`headscope.intervene.label_names`).

    Raises:
        HeadscopeError: The task, a split, a file, a paradigm or a label is unknown, or the examples cannot be read.
    """
    if limit is not None and limit < 2:
        raise HeadscopeError(f"{limit} examples say nothing about a head; take 2 or more.")
    source = _find(task, Path(data).expanduser(), split, paradigms, limit)
    if paradigms and not source.pairs:
        raise HeadscopeError(f"{source.name} has no paradigms, only minimal pairs have; leave them out.")
    return name_labels(replace(source, seed=seed), labels)


def name_labels(source: EvaluationSource, labels: str | Mapping[str, str] | None) -> EvaluationSource:
    """Record which label of the task each label of a model means; without `labels`, return the source unchanged.

    Raises:
        HeadscopeError: The examples have no labels, a label is unknown, or a label is not named.
    """
    if labels is None:
        return source
    if source.task is None:
        raise HeadscopeError(f"{source.name} has no labels, only tasks have; leave out `labels`.")
    return replace(source, label_names=read_label_names(labels, source.task.name, source.task.labels))


def _find(task: Any, data: Path, split: str, paradigms: Sequence[str], limit: int | None) -> EvaluationSource:
    if _is_labelled(task):
        labelled = task if isinstance(task, Task) else read_task(str(task), data)
        if split not in SPLITS:
            raise HeadscopeError(f"there is no split {split!r}; name one of {', '.join(SPLITS)}.")
        return EvaluationSource(labelled.name, task=labelled, split=split, limit=limit)
    if isinstance(task, str) and task.startswith(LAST_WORDS):
        path = task.removeprefix(LAST_WORDS)
        if not path:
            raise CorpusError(f"{task!r} names no texts; write their path after it, as in {LAST_WORDS}lambada.jsonl.")
        return EvaluationSource(f"last words of {path}", corpus=read(path), last_words=True, limit=limit)
    where = task
    if task == BLIMP and not _has_pairs(BLIMP):  # a folder of this name may hold results
        where = find_by_suffix(data, BLIMP)
        if where is None:
            raise CorpusError(f"{data} holds no folder blimp; name the folder that holds it, or its own path as TASK.")
    if _has_pairs(where):
        pairs = _take_each(read_minimal_pairs(where, paradigms=paradigms or None), limit)
        return EvaluationSource(str(task), pairs=pairs)
    corpus = read(where, limit=limit)
    return EvaluationSource(name_documents(corpus), corpus=corpus)


def _has_pairs(where: Any) -> bool:
    """Return True for a file of minimal pairs, or a folder whose files in that format are all minimal pairs."""
    if not isinstance(where, str | Path) or not Path(where).expanduser().exists():
        return False
    try:
        files = read(where, format=BLIMP).files
    except CorpusError:
        return False
    return all(recognise(_read_beginning(file)) for file in files)


def _read_beginning(file: Path) -> list[str]:
    with reading(file) as opened:
        return [opened.readline(4096).decode(errors="replace")]


def _is_labelled(task: Any) -> bool:
    """Return True for a task with labels: a `Task`, the name of a task, or a folder of TSV files."""
    if isinstance(task, Task):
        return True
    if not isinstance(task, str | Path):
        return False
    tables = [Path(task).expanduser() / name for name in ("train.tsv", "test.tsv")]
    return str(task) in TASKS or str(task).startswith(PREFIX) or any(table.is_file() for table in tables)


def _take_each(pairs: Iterable[MinimalPair], limit: int | None) -> list[MinimalPair]:
    """Return the first `limit` pairs of each paradigm, or all pairs without a limit."""
    counts: Counter[str] = Counter()
    chosen = []
    for pair in pairs:
        counts[pair.paradigm] += 1
        if limit is None or counts[pair.paradigm] <= limit:
            chosen.append(pair)
    return chosen
