"""A section for a model card, in Markdown: what heads do, how sure that is, and how to reproduce it."""

import math

from headscope.headlists import HeadEntry, HeadList
from headscope.headlists.head_list import GROUP
from headscope.own_files import MODEL_CARD_TITLE
from headscope.view.headings import name_corpus, name_model
from headscope.view.wording import format_interval

COLUMNS = ("row", "head", "score [95 %]", "items", "strongest rival", "verdict")


def render_model_card(heads: HeadList) -> str:
    """Return a section in Markdown with the reported heads (or all heads, if none is reported), source and method."""
    entries = [entry for entry in heads.entries if entry.heldout] or [*heads.entries]
    lines = [MODEL_CARD_TITLE, "", _describe_source(heads), "", _make_line(COLUMNS), _make_line(["---"] * 6)]
    lines += [_make_line(_describe(entry)) for entry in entries]
    lines += ["", _escape(heads.method)] if heads.method else []
    if heads.unit == GROUP:
        lines += ["", "A number is a key/value head, with all query heads that share it."]
    return "\n".join([*lines, ""])


def _describe_source(heads: HeadList) -> str:
    """Return a sentence that names the model, corpus and version of a list of heads, and one with known hashes."""
    of_model = f" of {_quote(name_model(heads.model.name))}" if heads.model.name else ""
    corpus = f", on the corpus {_quote(name_corpus(heads.corpus))}" if heads.corpus else ""
    version = f", by headscope {_escape(heads.headscope)}" if heads.headscope else ""
    hashes = {"weights": heads.model.weights_sha256, "corpus": heads.corpus_sha256}
    digests = ", ".join(f"{what} {_quote(digest[:12])}" for what, digest in hashes.items() if digest)
    sentence = f"What attention heads{of_model} do{corpus}{version}. Layer and head count from 1."
    return f"{sentence} SHA-256: {digests}." if digests else sentence


def _describe(entry: HeadEntry) -> list[str]:
    ends = (math.nan if end is None else end for end in (entry.value, entry.lower, entry.upper))
    rival = entry.rival if entry.rival_value is None else f"{entry.rival} ({entry.rival_value:.3f})"
    count = "" if entry.count is None else f"{entry.count:,}"
    texts = (_escape(text) for text in (entry.title or entry.key, entry.place, rival, entry.verdict))
    row, place, rival, verdict = texts
    return [row, place, format_interval(*ends), count, rival, verdict]


def _make_line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Return a user's text on one line, escaped so that Markdown reads no markup, heading or end of a cell in it."""
    for character in "\\|*_`<>[#&~$":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _quote(text: str) -> str:
    """Return a user's text as code on one line, without backticks, which would end the code."""
    return f"`{' '.join(text.replace('`', ' ').split())}`"
