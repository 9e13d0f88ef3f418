"""Context managers that change heads of a model: within one, every forward pass of the model is changed.

==========  ===================================================================================================
`zero`      no output
`mean`      the mean output of the head over a corpus
`uniform`   attention with equal weights (Kovaleva et al. 2019, section 4.6)
`resample`  the output of the head on another text
`shuffle`   the output of the head on another example of the batch
`cut`       attention in which some tokens do not see some others
`disable`   any of the first five, by name
==========  ===================================================================================================

They can be nested; each acts on what those around it leave. A head is its output before the output projection: a slice
of what comes after the projection is no head. Heads are named as `select_heads` says, and a model is what
`headscope.load` gave or a loaded model of transformers, alone or as ``(model, tokenizer)``: whatever runs it within the
block, training or generating too, runs it without the heads. Afterwards the model is as it was, also after an error.
All take the model and the heads as `disable` does, and raise what it raises.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.open.loading import Loadable, load
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.corpora import Corpus, read
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.intervene import replacement
from headscope.intervene.collect import average_outputs, record_outputs
from headscope.intervene.head_names import HeadNames
from headscope.intervene.replacement import CutEdges, EditedHeads, Replacement, Shuffle, list_edges
from headscope.intervene.selected_heads import Selection, name_selection, select_heads


def zero(model: Loadable, heads: HeadNames) -> AbstractContextManager[Model]:
    """Without the output of the heads."""
    return _replace(model, heads, lambda *_: replacement.zero, lambda: "zero")


def uniform(model: Loadable, heads: HeadNames) -> AbstractContextManager[Model]:
    """With attention of equal weights to all that a token may see (Kovaleva et al. 2019, section 4.6)."""
    return _replace(model, heads, lambda *_: replacement.uniform, lambda: "uniform")


def mean(model: Loadable, heads: HeadNames, corpus: Any, *, by_position: bool = False) -> AbstractContextManager[Model]:
    """With the mean output of each head over a corpus, which is what `headscope.read` takes.

    With `by_position` it is the mean at each place of a text, padding before it counted.
    """
    documents, places = read(corpus), " by position" if by_position else ""
    return _replace(
        model, heads, lambda whose, which: average_outputs(whose, which, documents, by_position=by_position),
        lambda: f"mean{places} over {_identify(documents)}",
    )  # fmt: skip


def resample(model: Loadable, heads: HeadNames, corpus: Any, *, seed: int = 0) -> AbstractContextManager[Model]:
    """With the output that each head has on a text of a corpus, at the same place.

    The `seed` decides which text of the corpus takes the place of which text of a batch.
    """
    documents = read(corpus)
    return _replace(
        model, heads, lambda whose, which: record_outputs(whose, which, documents, seed=seed),
        lambda: f"resample of {_identify(documents)} (seed {seed})",
    )  # fmt: skip


def shuffle(model: Loadable, heads: HeadNames, *, step: int = 1) -> AbstractContextManager[Model]:
    """With the output that each head has on the example `step` before it in the batch, at the same place.

    While the model runs, a batch without another example is a `HeadscopeError`.
    """
    return _replace(model, heads, lambda *_: Shuffle(step), lambda: f"shuffle by {step}")


def cut(model: Loadable, heads: HeadNames, edges: Iterable[tuple[int, int]]) -> AbstractContextManager[Model]:
    """With some tokens out of sight of some others in the heads; the weight goes to the tokens still in sight.

    An edge is a pair of places in a text, from the token that attends to the one it shall not see, counted from 0.
    """
    listed = list_edges(edges)
    return _replace(model, heads, lambda *_: CutEdges(listed), lambda: f"attention without the edges {[*listed]}")


WAYS: Mapping[str, Callable[..., AbstractContextManager[Model]]] = {
    "uniform": uniform, "zero": zero, "mean": mean, "resample": resample, "shuffle": shuffle,
}  # fmt: skip
"""The ways to disable heads."""


def disable(model: Loadable, heads: HeadNames, how: str = "uniform", **options: Any) -> AbstractContextManager[Model]:
    """Disable heads of a model during a block.

    >>> with headscope.disable(model, ["3-1", "4-10"], how="uniform"):  # doctest: +SKIP
    ...     model.module(**inputs)

    Args:
        model: whose heads they are.
        heads: such as ``3-1``, layers and heads counted from 1; ``3`` is the whole layer. A table that is measured
            within the block names them in its attribute ``edited``.
        how: what takes the place of their output: attention with equal weights (``uniform``), nothing (``zero``), the
            head's ``mean`` output over a corpus, its output on another text of a corpus (``resample``) or on another
            example of the batch (``shuffle``).
        options: of that way: ``corpus`` and ``by_position`` of ``mean``, ``corpus`` and ``seed`` of ``resample``,
            ``step`` of ``shuffle``.

    Raises:
        HeadscopeError: there is no such head or way, or it has no such option or lacks one.
        ModelError: the heads of the model cannot be edited.
    """
    if how not in WAYS:
        raise HeadscopeError(f"heads cannot be disabled by {how!r}; name one of {', '.join(WAYS)}.")
    try:
        inspect.signature(WAYS[how]).bind(model, heads, **options)
    except TypeError as error:
        raise HeadscopeError(f"heads cannot be disabled by {how!r} so: {error}; give what it takes.") from error
    return WAYS[how](model, heads, **options)


@contextmanager
def _replace(
    model: Loadable, heads: HeadNames, make: Callable[[Model, Selection], Replacement], describe: Callable[[], str]
) -> Iterator[Model]:
    """Within, what `make` gives takes the place of the heads; `describe` names it."""
    with _evaluating(_find_module(model)):
        model = load(model)
        selection = select_heads(model, heads)
        names = ", ".join(name_selection(model, selection))
        edit = EditedHeads(selection, make(model, selection), lambda: f"{describe()} in place of {names}")
        capture = capture_model(model)
    with capture.editing(edit):
        yield model


def _identify(documents: Corpus) -> str:
    return f"{documents.title}, SHA-256 {documents.sha256[:12]}"


def capture_model(model: Model) -> Capture:
    """The way to a model's heads, verified on a short text.

    Raises:
        ModelError: the attention cannot be captured.
    """
    return Capture.verified(model, collate_sample(model))


def collate_sample(model: Model) -> Batch:
    """A short text, on which the way to a model's heads can be verified."""
    model.require_weights("a change of heads")
    text = Document("a short text", ("The", "dog", "sees", "the", "old", "house", "."))
    return collate(model, Alignment.for_model(model, cut=True).align([text])[0])


def _find_module(model: Loadable) -> torch.nn.Module | None:
    """The module of a model that is loaded already."""
    loaded = model[0] if isinstance(model, tuple) else model.module if isinstance(model, Model) else model
    return loaded if isinstance(loaded, torch.nn.Module) else None


@contextmanager
def _evaluating(module: torch.nn.Module | None) -> Iterator[None]:
    """Within, no part of a module is in training mode; afterwards those are that were."""
    training = [] if module is None else [part for part in module.modules() if part.training]
    if module is not None:
        module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
