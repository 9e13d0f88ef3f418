"""The arguments of word alignment, checked before anything is imported that takes seconds. No torch here."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headscope.corpora import read, summarize
from headscope.corpora.corpus import Corpus
from headscope.errors import CorpusError, HeadscopeError

FORMAT = "alignments"
"""The format of pairs in a file."""

STEPS = ("predicting", "reading")
"""The steps of the decoder of which heads are handed on."""

MANIFEST = "alignment.json"
SETTINGS = "generation_config.json"
"""The files of the folder that lists the others, and that transformers reads."""


def check_handing_on(step: str, top: int | None) -> None:
    """Refuse a step of the decoder that there is not, and a number of heads below 1.

    Raises:
        HeadscopeError: one of these.
    """
    if step not in STEPS:
        raise HeadscopeError(f"a decoder has no step {step!r} at which words are aligned; name {' or '.join(STEPS)}.")
    if top is not None and top < 1:
        raise HeadscopeError(
            f"{top} heads cannot be handed on; give 1 or more, or leave it out for all that stand out."
        )


def check_settings(out: Path) -> None:
    """Refuse a folder with settings that headscope did not write, such as that of a model.

    Raises:
        HeadscopeError: there is a `SETTINGS` in it, and no manifest that lists it.
    """
    if (out / SETTINGS).exists() and not (out / MANIFEST).exists():
        raise HeadscopeError(
            f"{out / SETTINGS} is not of headscope, and would be overwritten; choose another folder, and copy the "
            "alignment heads from there."
        )


def read_pairs(
    pairs: str | Path | Iterable[Any], *, limit: int | None = None, sample: int | None = None, seed: int = 0
) -> Corpus:
    """The word-aligned pairs in a file or folder, or in memory; all are read once, so that what is wrong is said now.

    Raises:
        CorpusError: there is no such file, a line is malformed, or no word is surely aligned.
    """
    is_path = isinstance(pairs, str | Path)
    corpus = read(pairs, format=FORMAT if is_path else None, limit=limit, sample=sample, seed=seed)
    if not summarize(corpus).aligned:
        raise CorpusError(
            f"{corpus.name} has no sure link between a word and one of its translation, so there is nothing to score "
            "heads on; write links such as 0-0 behind each pair."
        )
    return corpus
