"""The inputs of `headscope check`, read before torch is loaded: the old table, the new one, the corpus."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.analyse.check import list_checked_scores
from headscope.analyse.comparable import name_table
from headscope.capture.model.model_names import check_name
from headscope.commands.check.recorded_call import RecordedCall, read_call
from headscope.commands.tables import find_table, open_table
from headscope.corpora import read
from headscope.corpora.corpus import DOWNLOADED, GENERATED, MEMORY, Corpus, hash_documents
from headscope.errors import CorpusError, TableError
from headscope.files import expand_home


def open_against(against: str | Path | xr.Dataset, *, every: bool = False) -> xr.Dataset:
    """Read the table whose reported heads are checked.

    With `every`, all reported heads are checked, and not only the heads that stand out.

    Raises:
        TableError: The table is missing, has several runs, or has no reported head to check.
    """
    table = open_table(against)
    if "run" in table.dims:
        name = name_table(table, "the old table")
        raise TableError(f"{name} holds {table.sizes['run']} runs; check the table of one model against another.")
    list_checked_scores(table, every=every)
    return table


def open_new(new: object) -> xr.Dataset | None:
    """Read the head table of the new model; return None if `new` is a model, which is loaded later.

    Raises:
        TableError: The file is missing or damaged.
        ModelError: There is no such model.
    """
    table = find_table(new)
    if isinstance(new, str | Path) and table is None:
        check_name(str(new))
    return table


def open_corpus(
    old: xr.Dataset, corpus: str | Path | Iterable[Any] | None, format: str | None, patterns: str | Path | None
) -> tuple[Corpus, RecordedCall]:
    """Read the corpus of a head table in the same way as when the table was measured.

    Args:
        old: The head table.
        corpus: The present path of the corpus. Default: the recorded path. A `Corpus` is used as it is, with its own
            part and patterns.
        format: The format of the corpus. Default: the recorded format, or else the detected one.
        patterns: The file of patterns. Default: the recorded path.

    Returns:
        The corpus, and the recorded settings of the measurement.

    Raises:
        CorpusError: The corpus is missing, or has other contents than the one that was measured.
    """
    name, call = name_table(old, "the old table"), read_call(old)
    call = replace(call, format=format or call.format, patterns=str(patterns) if patterns else call.patterns)
    if corpus is None:
        if call.corpus == MEMORY:
            raise CorpusError(f"{name} was measured on {MEMORY}; give the same documents as `corpus`, in Python.")
        if _is_missing(call.corpus):
            raise CorpusError(
                f"the corpus {call.corpus!r}, on which {name} was measured, is not there; name its place as `corpus`."
            )
    if isinstance(corpus, Corpus):
        documents = corpus
    elif "patterns" in old.attrs and call.patterns is None:
        raise CorpusError(f"{name} was measured with patterns; name their file as `patterns`.")
    else:
        documents = read(
            call.corpus if corpus is None else corpus, format=call.format, patterns=call.patterns, limit=call.limit,
            sample=call.sample, seed=call.seed, hops=call.hops,
        )  # fmt: skip
    digest, recorded = hash_documents(documents), str(old.attrs["corpus_sha256"])
    if digest != recorded:
        raise CorpusError(
            f"the corpus {documents.title!r} has other contents than the one on which {name} was measured (SHA-256 "
            f"{digest[:12]} and not {recorded[:12]}); give the same texts as `corpus`, or measure the atlas again."
        )
    was, now = Path(call.corpus), documents.files
    # A path with another suffix, or none, may have been the folder of the file.
    if len(now) == 1 and was.suffix == now[0].suffix and was.name != now[0].name:
        raise CorpusError(
            f"the corpus {documents.title!r} was called {was.name} when {name} was measured, and texts are assigned to "
            "folds by the names of their files; give it that name again."
        )
    return documents, call


def _is_missing(corpus: str) -> bool:
    """Return True if a name can only be a file or folder, and that does not exist."""
    is_named = corpus.startswith(DOWNLOADED) or corpus.partition(":")[0] in GENERATED
    return not is_named and not expand_home(corpus).exists()
