"""Probes of what the attention of all heads together says of the links of a corpus, written to a folder.

treebank, model --extract--> maps of all heads --fit, seed by seed--> sums --tabulate--> head table --view--> files

The maps are kept in a folder within the output until all probes are trained, and are then removed.
"""

import datetime
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model, untrained_model
from headscope.capture.stream import Plan
from headscope.corpora import CorpusSummary, read, summarize
from headscope.corpora.corpus import hash_documents, name_documents
from headscope.corpora.document import Document
from headscope.corpora.originals import mark_copies
from headscope.errors import CorpusError
from headscope.heads import write_table
from headscope.identity import MODEL_PARTS
from headscope.jobs.arguments import PROBE_PARTS, check_model, check_probing
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.inputs import make_plan
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.learn.choices import DEPENDENCY, find_kind, list_choices
from headscope.learn.probe import PROBES, Fitting, Split, Sums, run_steps, split, split_parts
from headscope.learn.probe_data import PARTS, ProbeData, Vocabulary, extract, number_part
from headscope.learn.probe_table import tabulate_probes
from headscope.learn.word_vectors import WordVectors, embed_words, read_vectors
from headscope.reducers.support.folds import FoldAssignment
from headscope.runner.checkpoint import RunSums
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.provenance import identify_model, list_versions
from headscope.view.figures import save
from headscope.view.figures.probes import draw_probes
from headscope.view.headings import name_model
from headscope.view.probes import list_lengths, list_probes

MANIFEST = "probe.json"
"""The manifest of the folder."""

TABLE = "probe"
"""The name of the head table in it."""

STRUCTURAL = "structural"
"""The part that reads hidden states."""


@shows_progress
def probe(
    model: Loadable,
    treebank: str | Path | Iterable[Any],
    out: str | Path = "headscope-probe",
    *,
    test: str | Path | Iterable[Any] | None = None,
    format: str | None = None,
    links: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    words: str | Path | None = None,
    seeds: int = 3,
    decode: str = "word",
    without: Sequence[str] = (),
    rank: int = 64,
    max_tokens: int | None = None,
    batch_tokens: int | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Train probes that find the links of a corpus from the attention of all heads: accuracies, baselines, weights.

    Args:
        model: a hub id, a folder, a ``.gguf`` file, ``minilm`` or ``smollm2`` (`headscope.load`), or a loaded model of
            transformers, alone or as ``(model, tokenizer)``.
        treebank: a file or folder, ``grammar``, or documents in memory (`headscope.read`).
        out: the folder for ``probe.nc``, ``probe.csv``, ``lengths.csv``, ``figures/`` and ``probe.json``, which lists
            them.
        test: texts on which the probes are tested, such as the dev file of the treebank. Default: for each seed another
            fifth of the texts of `treebank`, so that five seeds test on all of them.
        format: format of both corpora. Detected automatically if omitted.
        links: the kind of links that the probes find: ``dependency``, ``role``, ``coreference``, ``scope`` (from a word
            to the cue of its negation) or ``pattern``. Default: the first of these that the corpus has.
        limit: take the first so many documents of `treebank`. Default: all.
        sample: take so many documents of `treebank` at random. Default: all.
        words: a file of word vectors such as ``glove.6B.100d.txt``, plain or .gz. Default: the model's own input
            embeddings, in 100 principal components.
        seeds: how many times probes are trained, each with another split and order of the texts, another untrained
            model and another control task.
        decode: ``word`` chooses the best candidate of each word, ``tree`` the best tree over the words of a sentence.
        without: parts to leave out, which take time: ``untrained`` (a probe of the untrained model with the trained
            embeddings), ``control`` (probes on a control task, in which each word type attaches to itself, the first or
            the last word), ``code-length`` (the online code length, measured with the first seed), ``structural`` (the
            structural probe of Hewitt and Manning on the hidden states of each layer, with the first seed; of
            ``dependency`` only).
        rank: of the structural probe.
        max_tokens: leave out longer texts. Default: 512.
        batch_tokens: tokens in a batch, padding included.
        device: where to run the model; probes are trained on the processor.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Returns:
        The head table that is in ``probe.nc``, with the dimension ``probe`` (`headscope.learn.probe.PROBES`): see
        `headscope.analyse.probes.add_probe_scores`, and ``probe_weight`` of each head.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, a corpus, the word vectors or an argument.
    """
    progress = progress if callable(progress) else ignore_progress
    check_probing(links, seeds, decode, rank, without)
    check_model(model)
    with OutputFolder("the probes", Path(out), MANIFEST, (TABLE,), resume=resume, progress=progress) as folder:
        progress("reading the treebank", 0, 0)
        documents = read(treebank, format=format, limit=limit, sample=sample)
        summary = summarize(documents)
        kind = find_kind(summary, links)
        tested = None if test is None else read(test, format=format)
        check_probing(kind, seeds, decode, rank, without)
        texts = _Texts.divide(documents, summary)
        others = None if tested is None else _Texts.divide(tested, summarize(tested))
        _refuse_few(texts, documents, kind, seeds, own_test=tested is not None)
        vocabulary = Vocabulary.from_documents([*texts.documents, *(others.documents if others else [])], kind)
        progress("loading the model", 0, 0)
        model = load(model, device=device, trust_remote_code=trust_remote_code)
        vectors = embed_words(model, vocabulary.types) if words is None else read_vectors(words, vocabulary.types)
        settings = {
            "test": None if tested is None else name_documents(tested), "links": kind, "words": vectors.source,
            "seeds": seeds, "decode": decode, "without": sorted(without), "rank": rank, "max_tokens": max_tokens,
        }  # fmt: skip
        identity = {
            "about": {"model": model.name, "treebank": name_documents(documents), **settings},
            "identity": {part: identify_model(model)[part] for part in MODEL_PARTS},
            "corpus": hash_documents(documents),
            "other": "" if tested is None else hash_documents(tested),
        }  # fmt: skip
        plan = make_plan(max_tokens, None, None, batch_tokens)
        probing = _Probing(folder, model, vocabulary, vectors, texts, others, plan)
        parts = [part for part in PROBE_PARTS if part not in without and (part != STRUCTURAL or kind == DEPENDENCY)]
        by_seed, data = probing.run(seeds, parts, decode, rank, identity)
        tests_per_text = seeds if tested is not None else -(-seeds // 5)
        table = tabulate_probes(by_seed, data, vocabulary.labels, tests_per_text=tests_per_text)
        repeated = sum(document.copy_of is not None for document in texts.documents)
        about = _identify(model, documents, summary, data, vectors, settings, kind)
        table = table.assign_attrs(about, documents_repeated=repeated)
        folder.write(lambda fresh: _fill(fresh, table), {"model": model.name, "treebank": name_documents(documents)})
        shutil.rmtree(probing.maps, ignore_errors=True)
    return table


@dataclass(frozen=True, eq=False)
class _Texts:
    """A corpus, divided for probes.

    Attributes:
        parts: its documents, by part.
        assignment: of documents to folds.
    """

    parts: tuple[tuple[Document, ...], ...]
    assignment: FoldAssignment

    @classmethod
    def divide(cls, documents: Iterable[Document], summary: CorpusSummary) -> "_Texts":
        """The documents of a corpus by part."""
        assignment = FoldAssignment.for_corpus(summary)
        parts: list[list[Document]] = [[] for _ in range(PARTS)]
        for document in mark_copies(documents, summary.originals):
            parts[number_part(document, assignment)].append(document)
        return cls(tuple(map(tuple, parts)), assignment)

    @property
    def documents(self) -> list[Document]:
        """All of them."""
        return [document for part in self.parts for document in part]


@dataclass(frozen=True, eq=False)
class _Probing:
    """The probes of one job: extracts attention, trains, and keeps sums on disk."""

    folder: OutputFolder
    model: Model
    vocabulary: Vocabulary
    vectors: WordVectors
    texts: _Texts
    others: _Texts | None
    plan: Plan

    @property
    def maps(self) -> Path:
        """The folder of the files of attention."""
        return self.folder.path / ".maps"

    def run(
        self, seeds: int, parts: Sequence[str], decode: str, rank: int, identity: dict[str, Any]
    ) -> tuple[dict[int, dict[str, Sums]], ProbeData]:
        """The sums of each seed by step, and the data of the treebank."""
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
    """Refuse a corpus of which some seed would have nothing to train on, to stop by or to test."""
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
    """Refuse a corpus whose documents were left out, all that were to be trained on, to stop by or to test."""
    if not all(vars(batches).values()):
        reasons = ", ".join(f"{count} {reason}" for reason, count in data.skipped.items())
        raise CorpusError(
            f"too few documents could be read ({data.documents}; left out were {reasons or 'documents of the test'}); "
            "give shorter ones, or a larger --max-tokens."
        )


def _collect(done: RunSums, seed: int) -> dict[str, Sums]:
    """The sums of a seed by step."""
    sums: dict[str, Sums] = {}
    for key, value in done.values.items():
        if key[0] == f"seed-{seed}":
            sums.setdefault(key[1], {})[key[2]] = value
    return sums


def _identify(
    model: Model, documents: Any, summary: CorpusSummary, data: ProbeData, vectors: WordVectors,
    settings: dict[str, Any], kind: str,
) -> dict[str, Any]:  # fmt: skip
    """The attributes of the table."""
    skipped = {**summary.skipped}
    for reason, count in data.skipped.items():
        skipped[reason] = skipped.get(reason, 0) + count
    call = ", ".join(f"{name}={value!r}" for name, value in {"model": model.name, **settings}.items())
    return identify_model(model) | {
        "corpus": name_documents(documents), "corpus_sha256": hash_documents(documents), "documents": data.documents,
        "tokens": data.tokens, "skipped": json.dumps(skipped, sort_keys=True), "links": kind,
        "word_vectors": vectors.source, "word_types": len(vectors.places), "word_types_missing": vectors.missing,
        "decode": settings["decode"], "test": settings["test"] or "", "versions": json.dumps(list_versions()),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "call": f"probe({call})",
        "probes": json.dumps(dict(PROBES)),
    }  # fmt: skip


def _fill(fresh: Path, table: xr.Dataset) -> None:
    """Write all files of the folder."""
    write_table(table, fresh / f"{TABLE}.nc")
    write_csv(list_probes(table), fresh / f"{TABLE}.csv")
    write_csv(list_lengths(table), fresh / "lengths.csv")
    for name, figure in draw_probes(table).items():
        save(figure, fresh / "figures", name, pdf=False)
