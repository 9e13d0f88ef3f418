"""Cues of negation and speculation in XML, as far as the SFU corpus and BioScope share them."""

from collections.abc import Iterable
from pathlib import Path

from headscope.corpora.markup import Element, Markup
from headscope.errors import CorpusError

NEGATION, SPECULATION = "negation", "speculation"


def read_types(markup: Markup, path: Path, cues: Iterable[Element], key: str, sentence: str) -> dict[str, str]:
    """Return the type of each cue of a sentence, ``negation`` or ``speculation``, by the ID of the cue.

    Args:
        markup: the markup of the format.
        path: the path of the file.
        cues: the elements; elements with the same ID are one cue.
        key: the attribute with the ID.
        sentence: the name of the sentence in error messages.

    Raises:
        CorpusError: an attribute is missing, or a cue is neither a negation nor a speculation, or both.
    """
    types: dict[str, str] = {}
    for cue in cues:
        cue_id, type = markup.get_attribute(path, cue, key), markup.get_attribute(path, cue, "type")
        if type not in (NEGATION, SPECULATION):
            raise CorpusError(
                f"{path}:{cue.line} has a cue of the type {type!r} in sentence {sentence}; {markup.title} has "
                f"{NEGATION!r} and {SPECULATION!r}: correct it."
            )
        if types.setdefault(cue_id, type) != type:
            raise CorpusError(
                f"{path}:{cue.line} has the {key} {cue_id!r} for a cue of {type} and one of {types[cue_id]} in "
                f"sentence {sentence}; only the parts of one cue share an ID: renumber one of them."
            )
    return types
