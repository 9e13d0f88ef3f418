"""What the words of the results mean, for `headscope help lift`."""

from collections.abc import Sequence

from headscope.view.glosses import TERMS


def explain_term(words: Sequence[str]) -> str:
    """Return what a word of the results means, such as ``stands out``; an empty string for any other word."""
    return TERMS.get("_".join(words), TERMS.get(" ".join(words), ""))
