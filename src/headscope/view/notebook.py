"""A page inside a notebook: in a frame that needs no kernel, or in a widget that asks it.

page --frame_page--> HTML --Cell--> what a notebook shows
page --make_widget--> widget --a question--> `Answer` --> the page
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, resources
from typing import Any

from headscope.errors import HeadscopeError

HEIGHT = 900
"""Pixels of the frame."""

LIMIT = 1_000_000
"""Bytes of a cell with a page that is not asked for whole: a notebook with many of them still opens."""

Answer = Callable[[str, Any], Any]
"""Of the name of a question and what is asked, as JSON, the answer; a `HeadscopeError` says why there is none."""


def frame_page(page: str, title: str) -> str:
    """Return an HTML element that holds a whole page.

    The page stands in the element itself: it needs no server, and stays in a notebook that is exported. The frame lets
    it run its script and save files, and keeps it from everything else in the notebook.

    Args:
        page: HTML that loads nothing from elsewhere.
        title: the name of the frame, for screen readers.
    """
    content = html.escape(page, quote=False).replace("'", "&#39;")
    return (
        f"<iframe title='{html.escape(title)}' sandbox='allow-scripts allow-downloads' "
        f"style='width: 100%; height: {HEIGHT}px; border: 0' srcdoc='{content}'></iframe>"
    )


@dataclass(frozen=True, repr=False)
class Cell:
    """What a cell of a notebook shows.

    Attributes:
        title: of what is shown.
        content: HTML.
        notes: sentences below it; names of Python are in backticks.
    """

    title: str
    content: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the title and the size, on one line."""
        return f"Cell({self.title!r}, {len(self.content.encode()):,} bytes)"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        text = re.sub("`(.*?)`", r"<code>\1</code>", html.escape(" ".join(self.notes), quote=False))
        return f"{self.content}<p>{text}</p>" if text else self.content


def make_widget(page: str, title: str, answer: Answer) -> Any:
    """Return a widget of anywidget that shows a page and passes on its requests.

    Args:
        page: HTML that loads nothing from elsewhere; its questions are ``{"id": ..., "name": ..., "question": ...}``.
        title: the name of the frame, for screen readers.
        answer: to a question.

    Raises:
        HeadscopeError: anywidget is not installed.
    """
    try:
        anywidget, traitlets = import_module("anywidget"), import_module("traitlets")
    except ImportError as error:
        raise HeadscopeError(
            'the page as a widget needs anywidget, which is not installed; run pip install "headscope[notebook]".'
        ) from error
    synced = {
        name: traitlets.Any(value).tag(sync=True)
        for name, value in (("page", page), ("title", title), ("height", HEIGHT))
    }
    script = resources.files("headscope.view").joinpath("notebook.js").read_text(encoding="utf-8")
    widget = type("PageWidget", (anywidget.AnyWidget,), {"_esm": script, **synced})()

    def reply(_: Any, content: Any, __: Any) -> None:
        match content:
            case {"id": str(number), "name": str(name), "question": question}:
                widget.send({"id": number, **_reply(answer, name, question)})

    widget.on_msg(reply)
    return widget


def _reply(answer: Answer, name: str, question: Any) -> dict[str, Any]:
    try:
        return {"answer": answer(name, question)}
    except HeadscopeError as error:
        return {"refusal": str(error)}
