"""The options that several jobs have in common, turned into a model, documents and a plan."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from headscope.capture import load
from headscope.capture.model import Model
from headscope.corpora import read
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.reducers import add_offsets_and_classes as add_offsets_and_classes
from headscope.runner import Plan


def load_model(model: str | Path | Model, device: str, trust_remote_code: bool) -> Model:
    """The model of this name; a loaded one is returned as it is."""
    return model if isinstance(model, Model) else load(model, device=device, trust_remote_code=trust_remote_code)


def read_documents(
    corpus: str | Path | Iterable[Document], format: str | None, patterns: str | Path | None
) -> Iterable[Document]:
    """The documents of a corpus, which can be read more than once.

    Raises:
        HeadscopeError: documents are given together with a format or patterns; or the corpus cannot be read.
    """
    if isinstance(corpus, str | Path):
        return read(corpus, format=format, patterns=patterns)
    if format is not None or patterns is not None:
        raise HeadscopeError("`format` and `patterns` are for a corpus on disk; leave them out, or give a path.")
    return list(corpus) if isinstance(corpus, Iterator) else corpus


def make_plan(max_tokens: int | None, cut: bool | None, pair_tokens: int | None, batch_tokens: int | None) -> Plan:
    """The plan of these options; a size that is None has the default of `Plan`."""
    return Plan(
        max_tokens=max_tokens,
        cut=cut,
        pair_tokens=Plan.pair_tokens if pair_tokens is None else pair_tokens,
        batch_tokens=Plan.batch_tokens if batch_tokens is None else batch_tokens,
    )
