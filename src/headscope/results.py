"""How results are shown: a line in a console, a small table in a notebook.

result --facts--> Line: ``CheckResult(model='new', kept=12, lost=1)``
                  HTML: a row for each fact, with what the line only counts
"""

import html
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

LONGEST = 40
"""Characters of a text in a line; a longer one is cut."""

LISTED = 12
"""Names in a cell of a table; of more, the number of the others is shown."""

Facts = Mapping[str, object]
"""What is known of a result, by name, in the order to show. None and empty texts are left out."""


class Result(Protocol):
    """What a public function returns: a dataclass with ``repr=False``, which says what it is in a line and in HTML."""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """What the result is, by name; several names as a tuple, which a line counts and a table lists."""

    def __repr__(self) -> str:
        """Return the name of the class and the facts, on one line."""
        return write_line(type(self).__name__, self.facts)

    def _repr_html_(self) -> str:
        """Show the facts as a table in a notebook."""
        return write_table(type(self).__name__, self.facts)


class Described(Protocol):
    """What has a line of its own (``__repr__``), which a notebook shows too."""

    def _repr_html_(self) -> str:
        """Show the line in a notebook."""
        return f"<code>{html.escape(repr(self))}</code>"


def list_facts(facts: Facts) -> list[tuple[str, object]]:
    """Return the facts that there are."""
    return [(name, each) for name, each in facts.items() if each is not None and each != ""]


def write_line(title: str, facts: Facts) -> str:
    """Return the facts on one line, as Python writes a call."""
    return f"{title}({', '.join(f'{name}={_shorten(each)}' for name, each in list_facts(facts))})"


def write_table(title: str, facts: Facts) -> str:
    """Return a table with a row for each fact, HTML."""
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
