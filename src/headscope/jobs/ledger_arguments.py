"""The arguments of the context ledger, checked before anything is imported that takes seconds. No torch here."""

from headscope.corpora.prompts import read_prompts as read_prompts
from headscope.errors import HeadscopeError


def check_tokens(tokens: int) -> None:
    """Refuse a number of tokens with which no text is generated.

    Raises:
        HeadscopeError: it is below 1.
    """
    if tokens < 1:
        raise HeadscopeError(f"a text of {tokens} tokens cannot be generated; give 1 or more.")
