"""The second corpus of a command, on which the reported heads of the first corpus are scored again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.analyse.replicate import refuse_same_corpus
from headscope.commands.progress import Progress
from headscope.corpora import Corpus, CorpusSummary, summarize
from headscope.corpora.corpus import hash_documents, name_documents
from headscope.errors import CorpusError, HeadscopeError
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import resolve_reducers

if TYPE_CHECKING:
    from headscope.commands.atlas.request import Atlas
    from headscope.commands.measure.request import Measure


@dataclass(frozen=True)
class Replication:
    """A corpus to replicate on, and the reducers that are measured on it.

    Attributes:
        name: The name of the corpus, with its measured part.
        documents: The corpus.
        summary: The summary of the corpus.
        reducers: The reducers that choose heads and whose annotation the corpus has, without permutations: the heads
            are fixed in advance, so there is no choice to correct for.
    """

    name: str
    documents: Corpus
    summary: CorpusSummary
    reducers: tuple[Reducer, ...]


def open_replication(
    request: "Atlas | Measure", reducers: Sequence[str | Reducer], resolved: Sequence[Reducer], progress: Progress
) -> Replication | None:
    """Read and check the corpus to replicate on, before any model runs; return None without `replicate`.

    Args:
        request: The request, which names both corpora.
        reducers: The reducers as the user gave them, by name or as objects.
        resolved: The reducers that were made from `reducers` for the first corpus, in the same order. Named reducers
            are made anew for the second corpus, since its labels may differ; objects stay as they are.
        progress: A function that is called as the work advances.

    Raises:
        HeadscopeError: No reducer chooses heads; or the second corpus cannot be read, is the same as the first, or
            lacks the annotation for all reducers that choose heads.
    """
    if request.replicate is None:
        return None
    choosing = [(named, reducer) for named, reducer in zip(reducers, resolved, strict=True) if reducer.reports_heads]
    if not choosing:
        raise HeadscopeError(
            f"none of the reducers {', '.join(reducer.name for reducer in resolved)} chooses heads, so there is "
            "nothing to replicate; measure one that does, such as those of a treebank, or leave out `replicate`."
        )
    second = request.read(request.replicate)
    name = name_documents(second)
    progress("reading the corpus to replicate on", 0, 0)
    refuse_same_corpus(hash_documents(request.documents), hash_documents(second), name)
    summary = summarize(second)
    suited = [named for named, reducer in choosing if reducer.is_annotated(summary)]
    if not suited:
        raise CorpusError(
            f"the corpus to replicate on, {name}, has no annotation for any of "
            f"{', '.join(reducer.name for _, reducer in choosing)}; give one that is annotated like the first."
        )
    return Replication(name, second, summary, tuple(with_permutations(r, 0) for r in resolve_reducers(suited, summary)))
