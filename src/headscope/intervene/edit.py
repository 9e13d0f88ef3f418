"""Context managers that change heads of a model: within the block, they change every forward pass of the model.

==========  ===================================================================================================
`zero`      no output
`mean`      the mean output of the head over a corpus
`uniform`   attention with equal weights (Kovaleva et al. 2019, section 4.6)
`resample`  the output of the head on another text
`shuffle`   the output of the head on another example of the batch
`cut`       attention in which some tokens do not see some other tokens
`disable`   any of the first five, by name
==========  ===================================================================================================

Blocks can be nested; an inner block acts on the output that the outer blocks leave. A head is its output before the
output projection: a slice of the projected output is not a head. Heads are named as in `select_heads`. A model is the
result of `headscope.load` or a loaded model of transformers, alone or as ``(model, tokenizer)``. Any code that runs the
model within the block, also to train or to generate, runs it with changed heads. Afterwards the model is as before,
also after an error. All functions take the model and the heads as `disable` does, and raise the same errors.
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
from headscope.first_guesses import explained
from headscope.intervene import replacement
from headscope.intervene.collect import average_outputs, record_outputs
from headscope.intervene.head_names import HeadNames, list_names
from headscope.intervene.replacement import CutEdges, EditedHeads, Replacement, Shuffle, list_edges
from headscope.intervene.selected_heads import Selection, name_selection, select_heads
from headscope.intervene.way_names import BlockWay


def zero(model: Loadable, heads: HeadNames) -> AbstractContextManager[Model]:
    """Remove the output of heads within a block."""
    return _replace(model, heads, lambda *_: replacement.zero, lambda: "zero")


def uniform(model: Loadable, heads: HeadNames) -> AbstractContextManager[Model]:
    """Let heads attend equally to all visible tokens within a block (Kovaleva et al. 2019, section 4.6)."""
    return _replace(model, heads, lambda *_: replacement.uniform, lambda: "uniform")


def mean(model: Loadable, heads: HeadNames, corpus: Any, *, by_position: bool = False) -> AbstractContextManager[Model]:
    """Replace the output of each head by its mean over a corpus within a block.

    The corpus has any form that `headscope.read` takes. With `by_position`, the output at each position of a text is
    replaced by the mean at this position; positions include the padding before a text.
    """
    documents, places = read(corpus), " by position" if by_position else ""
    return _replace(
        model, heads, lambda whose, which: average_outputs(whose, which, documents, by_position=by_position),
        lambda: f"mean{places} over {_identify(documents)}",
    )  # fmt: skip


def resample(model: Loadable, heads: HeadNames, corpus: Any, *, seed: int = 0) -> AbstractContextManager[Model]:
    """Replace the output of each head by its output on a text of a corpus, at the same position, within a block.

    The `seed` decides which text of the corpus replaces which text of a batch.
    """
    documents = read(corpus)
    return _replace(
        model, heads, lambda whose, which: record_outputs(whose, which, documents, seed=seed),
        lambda: f"resample of {_identify(documents)} (seed {seed})",
    )  # fmt: skip


def shuffle(model: Loadable, heads: HeadNames, *, step: int = 1) -> AbstractContextManager[Model]:
    """Replace the output of each head by its output on another example of the batch, at the same position.

    The other example is `step` examples earlier in the batch. Within the block, a batch without another example raises
    a `HeadscopeError` when the model runs.
    """
    return _replace(model, heads, lambda *_: Shuffle(step), lambda: f"shuffle by {step}")


def cut(model: Loadable, heads: HeadNames, edges: Iterable[tuple[int, int]]) -> AbstractContextManager[Model]:
    """Stop tokens from attending to certain other tokens in the given heads, within a block.

    An edge is a pair of positions in a text, counted from 0: the token that attends, and the token that it must not
    see. The weight of the hidden token goes to the tokens that are still visible.
    """
    listed = list_edges(edges)
    return _replace(model, heads, lambda *_: CutEdges(listed), lambda: f"attention without the edges {[*listed]}")


WAYS: Mapping[BlockWay, Callable[..., AbstractContextManager[Model]]] = {
    "uniform": uniform, "zero": zero, "mean": mean, "resample": resample, "shuffle": shuffle,
}  # fmt: skip
"""The function for each way to disable heads, by the name of the way."""


@explained
def disable(
    model: Loadable,
    heads: HeadNames,
    how: BlockWay = "uniform",
    *,
    corpus: Any = None,
    by_position: bool | None = None,
    seed: int | None = None,
    step: int | None = None,
) -> AbstractContextManager[Model]:
    """Disable heads of a model during a block.

    >>> model = headscope.load("minilm")
    >>> inputs = model.tokenizer("The dog sees the old house.", return_tensors="pt")
    >>> with headscope.disable(model, ["3-1", "4-10"], how="uniform"):
    ...     model.module(**inputs)

    Args:
        model: The model of the heads.
        heads: The names of the heads, such as ``3-1``, with layers and heads counted from 1; ``3`` is the whole layer.
            A table that is measured within the block names them in its attribute ``edited``.
        how: The replacement of each head's output: attention with equal weights (``uniform``), nothing (``zero``), the
            head's ``mean`` output over a corpus, its output on another text of a corpus (``resample``) or on another
            example of the batch (``shuffle``).
        corpus: For ``mean`` and ``resample``: a corpus in any form that `headscope.read` takes.
        by_position: For ``mean``: True takes the mean at each position of a text. Default: one mean for all positions.
        seed: For ``resample``: decides which text of the corpus replaces which text of a batch. Default: 0.
        step: For ``shuffle``: the distance of the other example, earlier in the batch. Default: 1.

    Raises:
        HeadscopeError: The head or the way is unknown, or the way lacks an option or has an unknown one.
        ModelError: The heads of the model cannot be edited.
    """
    if how not in WAYS:
        raise HeadscopeError(f"heads cannot be disabled by {how!r}; name one of {', '.join(WAYS)}.")
    given = {"corpus": corpus, "by_position": by_position, "seed": seed, "step": step}
    options = {name: value for name, value in given.items() if value is not None}
    try:
        inspect.signature(WAYS[how]).bind(model, heads, **options)
    except TypeError as error:
        raise HeadscopeError(f"heads cannot be disabled by {how!r} so: {error}; give what it takes.") from error
    return WAYS[how](model, heads, **options)


def _replace(
    model: Loadable, heads: HeadNames, make: Callable[[Model, Selection], Replacement], describe: Callable[[], str]
) -> AbstractContextManager[Model]:
    """Check the form of the names of heads, and return the context manager in which `make` replaces their output."""
    return _replacing(model, list_names(heads), make, describe)


@contextmanager
def _replacing(
    model: Loadable, heads: list[str], make: Callable[[Model, Selection], Replacement], describe: Callable[[], str]
) -> Iterator[Model]:
    """Replace the output of heads within a block, by the replacement that `make` returns.

    `describe` returns a description of the replacement.
    """
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
    """Return a capture of a model's heads that was verified on a short text.

    Raises:
        ModelError: The attention cannot be captured.
    """
    return Capture.verified(model, collate_sample(model))


def collate_sample(model: Model) -> Batch:
    """Return a batch with a short text, on which a capture of a model's heads can be verified."""
    model.require_weights("a change of heads")
    text = Document("a short text", ("The", "dog", "sees", "the", "old", "house", "."))
    return collate(model, Alignment.for_model(model, cut=True).align([text])[0])


def _find_module(model: Loadable) -> torch.nn.Module | None:
    """Return the torch module of a loaded model; None if the model is not loaded, such as a name."""
    loaded = model[0] if isinstance(model, tuple) else model.module if isinstance(model, Model) else model
    return loaded if isinstance(loaded, torch.nn.Module) else None


@contextmanager
def _evaluating(module: torch.nn.Module | None) -> Iterator[None]:
    """Turn off the training mode of a module and its parts within a block, and restore it afterwards."""
    training = [] if module is None else [part for part in module.modules() if part.training]
    if module is not None:
        module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
