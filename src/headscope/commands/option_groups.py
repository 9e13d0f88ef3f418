"""Groups of options that several commands share."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.commands.option import CORPUS, MEASURED, MODEL, TRAINING, argument, option
from headscope.commands.record import Options
from headscope.text_forms import WRITTEN, Form

if TYPE_CHECKING:  # requests are cheap to import; the checks import more
    from headscope.commands.evaluations import EvaluationSource
    from headscope.corpora import Corpus
    from headscope.runs import Runs


class RunsOptions(Options):
    """The option for fine-tuned runs that are measured in place of the model."""

    runs: "str | Path | Runs | None" = option(
        MODEL,
        "Folder of runs that were tuned from `model`, such as headscope-runs: each run is measured instead of the "
        "model.",
        default=None,
        metavar="FOLDER",
        typed=Path,
        python="The table has the dimension ``run``. Runs have the head of their task, and their heads are not "
        "replicated.",
    )

    @cached_property
    def tuned(self) -> "Runs | None":
        """The runs; None if no folder of runs is named.

        Raises:
            HeadscopeError: The folder holds no runs.
        """
        from headscope.runs import read

        return None if self.runs is None else read(self.runs)


class LanguageOptions(Options):
    """The option for the token with which a language model begins a text."""

    start: str | None = option(
        MODEL,
        "Token from which a causal model predicts the first one of a text, such as <|endoftext|>.",
        default=None,
        unset="what the tokenizer puts there, or before spaced texts its token for a beginning",
        metavar="TOKEN",
    )


class TaskData(Options):
    """The option for the file or folder with the corpus of a task."""

    data: str | Path = option(
        CORPUS,
        "File or folder that holds the corpus of the task, or the folder blimp, such as corpora.",
        default=".",
        unset="the current folder",
        metavar="PATH",
        envvar="HEADSCOPE_DATA",
        basic=True,
    )


class TextForm(Options):
    """The option for the form in which a model reads texts."""

    text: Form | None = option(
        CORPUS,
        "How a text is read: as `written`, such as don't, or `spaced`, such as do n't: its words with a space before "
        "each, as many papers did.",
        default=None,
        unset=WRITTEN,
        metavar="HOW",
    )

    def check_form(self, model: object) -> None:
        """Raise an error if a form of texts is requested for saved attention, whose tokens are fixed.

        Raises:
            ModelError: The model is the folder of saved attention.
        """
        from headscope.capture.model.model_names import has_saved_attention
        from headscope.errors import ModelError

        if self.text is not None and isinstance(model, str | Path) and has_saved_attention(str(model)):
            raise ModelError(
                f"{model} has the tokens that another engine read, and no text is read as {self.text}; leave out "
                "`text`."
            )


class EvaluationOptions(TaskData, TextForm, LanguageOptions):
    """The options for the examples on which a model is evaluated."""

    paradigms: Sequence[str] = option(
        CORPUS,
        "Paradigm of the minimal pairs, such as causative; may be repeated.",
        "--paradigm",
        default=(),
        unset="all",
        metavar="NAME",
    )
    limit: int | None = option(
        CORPUS,
        "Take N examples of the task at random, the first N texts, or the first N pairs of each paradigm, such as 100.",
        default=None,
        unset="all",
        at_least=2,
        why="which says nothing about a head",
        basic=True,
    )

    labels: str | Mapping[str, str] | None = option(
        MODEL,
        "Which label of the model is which of the task, such as LABEL_0=negative,LABEL_1=positive.",
        default=None,
        unset="the one of the same name",
        metavar="LIST",
        typed=str,
        python='Or a mapping, such as ``{"LABEL_0": "negative", "LABEL_1": "positive"}``.',
    )

    def find_examples(self, task: Any, *, seed: int, split: str = "test") -> "EvaluationSource":
        """Return the examples of a task: those of a name are read, an `EvaluationSource` only gets the label names.

        Raises:
            HeadscopeError: The task, a split, a file, a paradigm or a label is unknown, or the examples cannot be read.
        """
        from headscope.commands.evaluations import EvaluationSource, find_evaluation, name_labels

        if isinstance(task, EvaluationSource):
            return name_labels(task, self.labels)
        return find_evaluation(
            task, self.data, split=split, paradigms=self.paradigms, limit=self.limit, seed=seed, labels=self.labels
        )


class TrainingOptions(Options):
    """The options for the training examples, and for the split on which an epoch is chosen."""

    max_examples: int | None = option(
        TRAINING, "Train on a random sample of at most N examples, such as 5000.", default=None, unset="all", at_least=1
    )
    select: Literal["validation", "test"] = option(
        TRAINING,
        "Split on which the best epoch is chosen: validation, or test, which also trains on validation.",
        default="validation",
        metavar="SPLIT",
    )


class CorpusFormat(Options):
    """The option for the format of a corpus."""

    format: str | None = option(
        CORPUS,
        "Format of the corpus, such as conllu (`headscope list corpora`).",
        default=None,
        unset="detected",
        metavar="NAME",
    )


class CorpusSize(Options):
    """The options for the number of documents that are read from a corpus."""

    limit: int | None = option(
        CORPUS, "Take the first N documents, such as 500.", default=None, unset="all", at_least=1
    )
    sample: int | None = option(
        CORPUS,
        "Take N documents at random, such as 500.",
        default=None,
        unset="all",
        at_least=1,
        basic=True,
    )


class CorpusPart(CorpusSize):
    """The options for the part of a corpus that is measured."""

    seed: int = option(CORPUS, "Random seed of `sample`, such as 7.", default=0)

    @property
    def selection(self) -> dict[str, Any]:
        """The arguments of `headscope.read` that select the part of the corpus."""
        return {"limit": self.limit, "sample": self.sample, "seed": self.seed}


CORPORA = (
    "File or folder such as en_ewt-ud-dev.conllu (`headscope list corpora`), ud:CODE[:SPLIT] for a treebank that is "
    "downloaded once, such as ud:en_ewt, hf:DATASET[:CONFIG[:SPLIT]] for a dataset (extra `datasets`), or "
    "grammar[:COUNT[:SEED]] for generated sentences, such as grammar:300, repeats[:COUNT[:SEED]] for random tokens "
    "that are repeated, or needles[:COUNT[:SEED]] for facts in long texts that are asked for."
)
"""The help text of an option that names a corpus."""

TEXTS_IN_MEMORY = "Or texts in memory: strings, lists of words, a dataset, spaCy Docs, documents (`headscope.read`)."
"""The sentence in the docstring of a function that also takes texts in memory."""


class PairLength(Options):
    """The option for the number of tokens that are read of a pair of segments."""

    pair_tokens: int | None = option(
        CORPUS,
        "Longest pair of paragraphs in tokens, such as 256; longer ones are cut.",
        default=None,
        unset="128",
        at_least=5,
    )


class ShortTexts(TextForm):
    """The options for texts that are read whole or left out, and never cut."""

    max_tokens: int | None = option(
        CORPUS, "Longest text in tokens, such as 128; longer ones are left out.", default=None, unset="512", at_least=3
    )


class CorpusOptions(CorpusFormat, CorpusPart, TextForm, PairLength):
    """The options for a corpus, and for how its texts are read."""

    corpus: str | Path | Iterable[Any] = argument("CORPUS", CORPORA, kw_only=False, typed=str, python=TEXTS_IN_MEMORY)
    patterns: str | Path | None = option(
        CORPUS,
        "File of spaCy patterns, such as own.json; their matches are added to the corpus as links (extra `spacy`).",
        default=None,
        metavar="FILE",
    )
    hops: int = option(
        CORPUS,
        "Of a treebank, add the most frequent paths of up to N dependencies as links, such as obl+case: 2 or 3.",
        default=1,
    )
    max_tokens: int | None = option(
        CORPUS, "Longest text in tokens, such as 128.", default=None, unset="the limit of the model", at_least=3
    )
    cut: bool | None = option(
        CORPUS,
        "Cut longer texts, or skip them.",
        "--cut/--skip",
        default=None,
        unset="cut if the corpus has coreference, else skip",
    )

    @cached_property
    def documents(self) -> "Corpus":
        """The corpus of the request; its documents are read only when they are used.

        Raises:
            CorpusError: The file, folder, format or part does not exist, or the patterns cannot be used.
        """
        return self.read(self.corpus)

    def read(self, corpus: str | Path | Iterable[Any]) -> "Corpus":
        """Read another corpus with the same format, patterns and part as the corpus of the request.

        Raises:
            CorpusError: The file, folder, format or part does not exist, or the patterns cannot be used.
        """
        from headscope.corpora import read

        return read(corpus, format=self.format, patterns=self.patterns, hops=self.hops, **self.selection)

    def check_corpora(self, *corpora: str | Path | Iterable[Any] | None) -> None:
        """Raise an error for corpora or patterns on disk that cannot be read; spaCy is not loaded for this.

        Raises:
            CorpusError: The file, folder, format or part does not exist, or the patterns are malformed.
        """
        from headscope.corpora import read, spacy_patterns

        for corpus in corpora:
            if isinstance(corpus, str | Path):
                read(corpus, format=self.format, hops=self.hops, **self.selection)
        if self.patterns is not None:
            spacy_patterns.check(self.patterns)


PERMUTATIONS = "Number of permutations for the p-values, such as 1999; 0 skips them."
"""The help text of an option for the number of permutations."""

OWN_REDUCERS = "Reducer of your own that was measured, such as repetition:Repetition (module:Reducer); may be repeated."
"""The help text of an option that names the user's own reducers, with which a table or a file was measured."""


class Replicable(Options):
    """The option for a second corpus, on which the reported heads of the first are scored again."""

    replicate: str | Path | Iterable[Any] | None = option(
        MEASURED,
        "Another corpus, such as grammar:300:7, on which the heads that are chosen on `corpus` are scored again; "
        "`format`, `patterns`, `hops`, `limit` and `sample` hold for both.",
        default=None,
        metavar="CORPUS",
        typed=str,
        python="Or texts in memory.",
    )
