"""The command `probe`: predict the links of a corpus from the attention of all heads together, and write a folder.

treebank, model --extract--> maps of all heads --fit, seed by seed--> sums --tabulate--> head table --view--> files

The maps are kept in a folder within the output until all probes are trained, and are then removed.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr
from rich.console import Console

from headscope.capture.model.model import Model
from headscope.capture.open.untrained import untrained_model
from headscope.capture.passes.stream import Plan
from headscope.commands.folder import OutputFolder
from headscope.commands.inputs import make_plan
from headscope.commands.output import open_folder
from headscope.commands.probe.request import STRUCTURAL, Probe
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.corpora import Corpus, CorpusSummary, summarize
from headscope.corpora.corpus import hash_documents, name_documents
from headscope.corpora.document import Document
from headscope.corpora.originals import mark_repeats
from headscope.errors import CorpusError
from headscope.identity import MODEL_PARTS
from headscope.learn.choices import find_kind, list_choices
from headscope.learn.link_kinds import DEPENDENCY
from headscope.learn.probe import PROBES, Fitting, Split, Sums, run_steps, split, split_parts
from headscope.learn.probe_data import PARTS, ProbeData, Vocabulary, extract, number_part
from headscope.learn.probe_table import tabulate_probes
from headscope.learn.probe_training import FEWEST_STEPS, HALVINGS, MAX_EPOCHS, PATIENCE, STEP_WORDS, TOGETHER
from headscope.learn.word_vectors import WordVectors, embed_words, read_vectors
from headscope.reducers.support.folds import FoldAssignment
from headscope.runner.checkpoint import RunSums
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.provenance import identify_model, identify_reading, list_versions
from headscope.view.figures.draw_probes import draw_probes
from headscope.view.headings import name_model
from headscope.view.probes_report import list_lengths, list_probes, print_probes

TABLE = "probe"
"""The name of the head table."""


def run(request: Probe, progress: Progress) -> xr.Dataset:
    """Train the probes, one seed after the other, and write the results to the folder."""
    with open_folder(request, progress) as folder:
        progress("reading the treebank", 0, 0)
        documents, tested = request.documents, request.tested
        summary = summarize(documents)
        kind = find_kind(summary, request.links)
        request.check_tree(kind)
        texts = _Texts.divide(documents, summary)
        others = None if tested is None else _Texts.divide(tested, summarize(tested))
        _refuse_few(texts, documents, kind, request.seeds, own_test=tested is not None)
        vocabulary = Vocabulary.from_documents([*texts.documents, *(others.documents if others else [])], kind)
        model, words = request.load(progress), request.words
        vectors = embed_words(model, vocabulary.types) if words is None else read_vectors(words, vocabulary.types)
        names = {"treebank": name_documents(documents), "test": "" if tested is None else name_documents(tested)}
        settings = {
            "links": kind, "words": vectors.source, "seeds": request.seeds, "decode": request.decode,
            "without": sorted(request.without), "rank": request.rank, "max_tokens": request.max_tokens,
        }  # fmt: skip
        plan = make_plan(request)
        identity = {
            "about": {"model": model.name, **names, **settings, **identify_reading(model, plan)},
            "identity": {part: identify_model(model)[part] for part in MODEL_PARTS},
            "corpus": hash_documents(documents),
            "other": "" if tested is None else hash_documents(tested),
            "parts": [repr(each.assignment) for each in (texts, others) if each is not None],
            "training": [PATIENCE, HALVINGS, MAX_EPOCHS, STEP_WORDS, FEWEST_STEPS, TOGETHER],
        }
        probing = _Probing(folder, model, vocabulary, vectors, texts, others, plan)
        left_out = {*request.without, *(() if kind == DEPENDENCY else (STRUCTURAL,))}
        parts = [part for part in request.options["without"].choices if part not in left_out]
        by_seed, data = probing.run(request.seeds, parts, request.decode, request.rank, identity)
        tests_per_text = request.seeds if tested is not None else -(-request.seeds // 5)
        table = tabulate_probes(by_seed, data, vocabulary.labels, tests_per_text=tests_per_text)
        repeated = sum(document.repeats is not None for document in texts.documents)
        about = {"test": names["test"], "links": kind, "decode": request.decode, "documents_repeated": repeated}
        table = table.assign_attrs(
            _identify(model, documents, summary, data, vectors) | about | identify_reading(model, plan)
        )
        rows = {f"{TABLE}.csv": list_probes(table), "lengths.csv": list_lengths(table)}
        names = {"model": model.name, **names}
        table = folder.finish(request, names, {TABLE: table}, rows, partial(draw_probes, table))
        shutil.rmtree(probing.maps, ignore_errors=True)
    return table


@dataclass(frozen=True, eq=False)
class _Texts:
    """The documents of a corpus, divided into parts for training and testing probes.

    Attributes:
        parts: The documents of each part.
        assignment: The assignment of documents to folds.
    """

    parts: tuple[tuple[Document, ...], ...]
    assignment: FoldAssignment

    @classmethod
    def divide(cls, documents: Iterable[Document], summary: CorpusSummary) -> "_Texts":
        """Divide the documents of a corpus into `PARTS` parts."""
        assignment = FoldAssignment.for_corpus(summary)
        parts: list[list[Document]] = [[] for _ in range(PARTS)]
        for document in mark_repeats(documents, summary.originals):
            parts[number_part(document, assignment)].append(document)
        return cls(tuple(map(tuple, parts)), assignment)

    @property
    def documents(self) -> list[Document]:
        """The documents of all parts."""
        return [document for part in self.parts for document in part]


@dataclass(frozen=True, eq=False)
class _Probing:
    """The training of all probes of one command: it extracts attention, trains, and keeps the sums on disk."""

    folder: OutputFolder
    model: Model
    vocabulary: Vocabulary
    vectors: WordVectors
    texts: _Texts
    others: _Texts | None
    plan: Plan

    @property
    def maps(self) -> Path:
        """The folder with the files of attention."""
        return self.folder.path / ".maps"

    def run(
        self, seeds: int, parts: Sequence[str], decode: str, rank: int, identity: dict[str, Any]
    ) -> tuple[dict[int, dict[str, Sums]], ProbeData]:
        """Train all probes; return the sums by seed and step, and the data of the treebank."""
        path = self.folder.sums(TABLE)
        if self.folder.resume and path.exists():
            done = resume_sums(path, identity)
        else:
            shutil.rmtree(self.maps, ignore_errors=True)
            done = RunSums({})
            save_sums(done, path, identity=identity)
        hidden = STRUCTURAL in parts
        data = self._extract(self.model, "treebank", self.texts, hidden=hidden)
        test = None if self.others is None else self._extract(self.model, "test", self.others, hidden=hidden)
        by_seed: dict[int, dict[str, Sums]] = {}
        for seed in range(seeds):
            sums = by_seed[seed] = _collect(done, seed)
            batches = split(data, seed, test)
            _refuse_unread(batches, data)
            fitting = Fitting(batches, None, self.vectors.values, len(self.vocabulary.labels), seed, decode)
            if "untrained" in parts:
                fitting = self._add_untrained(fitting, seed)
            first = seed == 0
            steps = fitting.steps(
                control="control" in parts, code_length=first and "code-length" in parts,
                rank=rank if first and hidden else None, layers=data.layers,
            )  # fmt: skip
            label = f"training probes, seed {seed + 1} of {seeds}"
            self.folder.progress(label, len(sums), len(steps))
            for name, values in run_steps(steps, sums):
                sums[name] = values
                done += RunSums({(f"seed-{seed}", name, key): value for key, value in values.items()})
                save_sums(done, path, identity=identity)
                self.folder.progress(label, len(sums), len(steps))
            shutil.rmtree(self.maps / f"untrained-{seed}", ignore_errors=True)
            shutil.rmtree(self.maps / f"untrained-test-{seed}", ignore_errors=True)
        return by_seed, data

    def _add_untrained(self, fitting: Fitting, seed: int) -> Fitting:
        untrained = untrained_model(self.model, seed=seed, keep_embeddings=True)
        data = self._extract(untrained, f"untrained-{seed}", self.texts)
        test = None if self.others is None else self._extract(untrained, f"untrained-test-{seed}", self.others)
        return Fitting(
            fitting.split, split(data, seed, test), fitting.vectors, fitting.labels, fitting.seed, fitting.way
        )

    def _extract(self, model: Model, name: str, texts: _Texts, *, hidden: bool = False) -> ProbeData:
        total = sum(len(document.words) for document in texts.documents)
        shown = "the untrained model" if name.startswith("untrained") else name_model(model.name)
        label = f"reading the attention of {shown}"
        seen = 0
        for step in extract(
            model, texts.parts, self.vocabulary, texts.assignment, self.maps / name, plan=self.plan, hidden=hidden,
            reuse=self.folder.resume,
        ):  # fmt: skip
            if isinstance(step, ProbeData):
                return step
            seen += step
            self.folder.progress(label, seen, total)
        raise AssertionError("the data comes last")


def _refuse_few(texts: _Texts, documents: Iterable[Document], kind: str, seeds: int, *, own_test: bool) -> None:
    """Raise an error if a seed has no links for training, for early stopping or for the test."""
    choices = [sum(len(list_choices(document, kind)) for document in part) for part in texts.parts]
    for seed in range(seeds):
        uses = ("training", "stopping", *([] if own_test else ["testing"]))
        for use, parts in zip(uses, split_parts(seed, own_test=own_test), strict=False):
            if not any(choices[part] for part in parts):
                count = len(texts.documents)
                raise CorpusError(
                    f"{name_documents(documents)} has {count} {'document' if count == 1 else 'documents'} with "
                    f"{sum(choices)} {kind} links; divided by text for training, stopping and testing, with seed "
                    f"{seed} none are left for {use}: give a larger treebank."
                )


def _refuse_unread(batches: Split, data: ProbeData) -> None:
    """Raise an error if all documents for training, for early stopping or for the test were left out."""
    if not all(vars(batches).values()):
        reasons = ", ".join(f"{count} {reason}" for reason, count in data.skipped.items())
        raise CorpusError(
            f"too few documents could be read ({data.documents}; left out were {reasons or 'documents of the test'}); "
            "give shorter ones, or a larger `max_tokens`."
        )


def _collect(done: RunSums, seed: int) -> dict[str, Sums]:
    """Return the finished sums of a seed, by step and name."""
    sums: dict[str, Sums] = {}
    for key, value in done.values.items():
        if key[0] == f"seed-{seed}":
            sums.setdefault(key[1], {})[key[2]] = value
    return sums


def _identify(
    model: Model, documents: Corpus, summary: CorpusSummary, data: ProbeData, vectors: WordVectors
) -> dict[str, Any]:
    """Return attributes that describe the model and the texts that were read."""
    skipped = {**summary.skipped}
    for reason, count in data.skipped.items():
        skipped[reason] = skipped.get(reason, 0) + count
    source = {"corpus_source": documents.source} if documents.source else {}
    return identify_model(model) | source | summary.attributes | {
        "corpus": name_documents(documents), "corpus_sha256": hash_documents(documents), "documents": data.documents,
        "tokens": data.tokens, "skipped": json.dumps(skipped, sort_keys=True), "word_vectors": vectors.source,
        "word_types": len(vectors.places), "word_types_missing": vectors.missing,
        "versions": json.dumps(list_versions()), "probes": json.dumps(dict(PROBES)),
    }  # fmt: skip


def show(request: Probe, table: xr.Dataset, console: Console) -> None:
    """Print the gain from attention, and the file with all relations."""
    print_probes(table, console, whole=request.whole)
    print_place("all relations", request.out, "probe.csv", console)
