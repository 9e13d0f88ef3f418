"""The names of the reducers, in a module that does not import torch and so loads fast."""

from collections.abc import Iterable, Mapping

from headscope.errors import HeadscopeError, suggest

NAMES: Mapping[str, str] = {
    "surface": "Attention to special tokens, punctuation and neighbours, how far it reaches, and its entropy.",
    "relations": (
        "How often each head points from the source of a link at its target, or from the target at its source."
    ),
    "coreference": "How often each head points from a mention at one of its antecedents.",
    "scope": "How well each head tells which words a negation is about.",
    "aspects": "How much each head looks from the aspect that a question names to what the review says of it.",
    "classes": "Attention to nouns, verbs, pronouns, subjects, objects, words of negation, [CLS] and [SEP].",
    "roles": (
        "The largest weight between a predicate and what fills a role of it, in either direction, as a mean over links."
    ),
    "similarity": "The cosine of each head's attention map before and after fine-tuning, the mean over documents.",
    "gradients": "How much the model's loss changes with the attention weights and with the output of each head.",
    "head_distances": (
        "How far apart the attention of each two heads is: their Jensen-Shannon divergence, the mean over documents."
    ),
    "head_distances_before": (
        "How far each head's attention is from that of each head of the model before: their Jensen-Shannon divergence."
    ),
    "map_patterns": (
        "How often the maps of a head show each of five patterns: vertical, diagonal, both, block or none of these."
    ),
    "sparse_shapes": (
        "How much of its attention a head keeps in a twentieth of its map, if those cells have one of three shapes."
    ),
    "average_map": (
        "The average attention map of each head: how much it attends from each sixteenth of a text to each sixteenth."
    ),
    "induction": (
        "How much each head attends from a token that comes again to what followed it, and to where it stood."
    ),
    "nearby_tokens": (
        "How much each head attends to the token before, to the token after, and to those up to four tokens away."
    ),
    "sinks": (
        "In how many texts each head has an attention sink: at one of the first tokens, or at the first delimiter."
    ),
    "retrieval": "How often each head, where a model is to give an answer, looks at the answer in the text.",
    "copying": "How much each head attends to tokens that it copies, whose logits it raises above those of all others.",
    "streaming": (
        "How much of each head's output stays the same if it sees only the first tokens of a text and the most recent."
    ),
    "alignment": (
        "How often each head of the cross-attention looks from a word of a translation at a word it is aligned to."
    ),
}
"""The description of each reducer of `headscope.reducers.REDUCERS`, which is the first line of its docstring."""


def split_settings(name: str) -> tuple[str, str | None]:
    """Return the name of a built-in reducer and its settings; return None in place of missing settings.

    Any other name is returned unchanged, with None. The part before the first colon distinguishes
    ``surface:offsets=-2`` from ``module:Reducer``.
    """
    built_in, colon, settings = name.partition(":")
    return (built_in, settings if colon else None) if built_in in NAMES else (name, None)


def is_own(name: str) -> bool:
    """Return True if a name refers to a user's own reducer, ``module:Reducer``."""
    return ":" in split_settings(name)[0]


def check_name(name: str) -> None:
    """Raise an error for the name of an unknown reducer.

    Raises:
        HeadscopeError: The name is neither one of `NAMES`, with or without settings, nor of the form
            ``module:Reducer``.
    """
    built_in, *settings = name.partition(":")
    if built_in not in NAMES and (not is_own(name) or "=" in name):
        close = suggest(built_in, NAMES, after="".join(settings))
        raise HeadscopeError(
            f"there is no reducer {name!r}{close}; there are {', '.join(NAMES)}, and your own as module:Reducer."
        )


def check_names(reducers: object) -> None:
    """Raise an error if one of the reducers has an unknown name.

    Args:
        reducers: A name, or several names and reducers; only names are checked.

    Raises:
        HeadscopeError: A name is neither one of `NAMES`, with or without settings, nor of the form ``module:Reducer``.
    """
    several = [reducers] if isinstance(reducers, str) or not isinstance(reducers, Iterable) else reducers
    for reducer in several:
        if isinstance(reducer, str):
            check_name(reducer)
