"""Arguments about lists of heads, checked before anything is read."""

from pathlib import Path

from headscope.errors import HeadscopeError

FILES = {
    "heads": "heads.json",
    "duo-attention": "full_attention_heads.tsv",
    "retrieval-heads": "retrieval_heads.json",
    "alignment-heads": "alignment_heads.json",
    "model-card": "heads.md",
}
"""The formats in which heads can be exported, and the file of each."""


def check_export(format: str, top: int, key_value_heads: int | None = None) -> None:
    """Refuse a format that there is not, and numbers of heads that cannot be.

    Raises:
        HeadscopeError: one of these, or key/value heads of a format that has none.
    """
    if format not in FILES:
        raise HeadscopeError(f"heads cannot be exported as {format!r}; name one of {', '.join(FILES)}.")
    if top < 0:
        raise HeadscopeError(f"{top} further heads were asked for; ask for 0 or more, such as 5.")
    if key_value_heads is not None and format != "duo-attention":
        raise HeadscopeError(
            f"the format {format!r} is of query heads; leave out the number of key/value heads, or name duo-attention."
        )


def choose_file(format: str) -> Path:
    """The file that a format is written to by default."""
    return Path(FILES[format])
