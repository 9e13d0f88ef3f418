"""The display of results: one line in a console, a small table in a notebook.

result --facts--> Line: ``CheckResult(model='new', kept=12, lost=1)``
                  HTML: a row for each fact, with the names that the line only counts
"""

import html
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

LONGEST = 40
"""The largest number of characters of a text in a line; a longer text is cut."""

LISTED = 12
"""The largest number of names in a cell of a table; further names are only counted."""

Facts = Mapping[str, object]
"""The facts about a result by name, in the order in which they are shown. None and empty texts are not shown."""


class Result(Protocol):
    """The base class of results of public functions, which shows a result as a line and as a table in HTML.

    Its subclasses are dataclasses with ``repr=False``.
    """

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """The facts about the result by name; a line shows only the length of a tuple, a table its items."""

    def __repr__(self) -> str:
        """Return the name of the class and the facts, on one line."""
        return write_line(type(self).__name__, self.facts)

    def _repr_html_(self) -> str:
        """Return the facts as a table in HTML, which a notebook shows."""
        return write_table(type(self).__name__, self.facts)


class Described(Protocol):
    """The base class of objects whose line from ``__repr__`` is also shown in notebooks."""

    def _repr_html_(self) -> str:
        """Return the line from ``__repr__`` as HTML, which a notebook shows."""
        return f"<code>{html.escape(repr(self))}</code>"


def list_facts(facts: Facts) -> list[tuple[str, object]]:
    """Return the names and values of the facts that are not None or an empty text."""
    return [(name, each) for name, each in facts.items() if each is not None and each != ""]


def write_line(title: str, facts: Facts) -> str:
    """Return a title and facts on one line, in the form of a call: ``CheckResult(kept=12, lost=1)``."""
    return f"{title}({', '.join(f'{name}={_shorten(each)}' for name, each in list_facts(facts))})"


def write_table(title: str, facts: Facts) -> str:
    """Return a table in HTML with a row for each fact, and `title` as its caption."""
    rows = "".join(
        f"<tr><th scope='row' style='text-align: left'>{html.escape(name.replace('_', ' '))}</th>"
        f"<td style='text-align: left'>{html.escape(_spell(each))}</td></tr>"
        for name, each in list_facts(facts)
    )
    caption = f"<caption style='text-align: left; font-weight: bold'>{html.escape(title)}</caption>"
    return f"<table>{caption}<tbody>{rows}</tbody></table>"


def _shorten(fact: object) -> str:
    """Return a fact as short text for one line: a long text is cut, a collection becomes its length."""
    match fact:
        case str():
            text = " ".join(fact.split())
            return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
        case os.PathLike():
            return _shorten(os.fspath(fact))
        case Sequence() | Mapping():
            return str(len(fact))
        case float():
            return f"{fact:.3f}"
    return str(fact)


def _spell(fact: object) -> str:
    """Return a fact as text for a cell of a table: a collection is listed, up to `LISTED` names."""
    match fact:
        case str():
            return fact
        case Mapping():
            return _spell([f"{name}: {_spell(each)}" for name, each in fact.items()])
        case Sequence():
            others = f" and {len(fact) - LISTED} more" if len(fact) > LISTED else ""
            return (", ".join(map(_spell, fact[:LISTED])) + others) or "none"
        case bool():
            return "yes" if fact else "no"
        case int():
            return f"{fact:,}"
        case float():
            return f"{fact:.3f}"
    return str(fact)
