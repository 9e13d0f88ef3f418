"""The explanations of the words in results, for `headscope help lift`."""

from collections.abc import Sequence

from headscope.view.glosses import TERMS


def explain_term(words: Sequence[str]) -> str:
    """Return the explanation of a word in results, such as ``stands out``; an empty string for an unknown word."""
    return TERMS.get("_".join(words), TERMS.get(" ".join(words), ""))
