"""A page inside a notebook: in a frame that needs no kernel, or in a widget that sends questions to it.

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
"""The height of the frame in pixels."""

LIMIT = 1_000_000
"""The largest size of a cell in bytes, unless the whole page is requested; a notebook with many cells still opens."""

Answer = Callable[[str, Any], Any]
"""A function that takes the name of a question and its content, as JSON, and returns the answer as JSON.

If there is no answer, it raises a `HeadscopeError` with the reason.
"""


def frame_page(page: str, title: str) -> str:
    """Return an HTML frame that contains a whole page.

    The element contains the page itself, which needs no server and stays in an exported notebook. The frame lets the
    page run its script and save files, but does not let it access the rest of the notebook.

    Args:
        page: HTML that loads no other files.
        title: the name of the frame, for screen readers.
    """
    content = html.escape(page, quote=False).replace("'", "&#39;")
    return (
        f"<iframe title='{html.escape(title)}' sandbox='allow-scripts allow-downloads' "
        f"style='width: 100%; height: {HEIGHT}px; border: 0' srcdoc='{content}'></iframe>"
    )


@dataclass(frozen=True, repr=False)
class Cell:
    """The output of a cell of a notebook.

    Attributes:
        title: the title of the output.
        content: the content, in HTML.
        notes: sentences below the content; Python code is in backticks.
    """

    title: str
    content: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the title and the size, on one line."""
        return f"Cell({self.title!r}, {len(self.content.encode()):,} bytes)"

    def _repr_html_(self) -> str:
        """Return the content and the notes as HTML, which a notebook shows."""
        text = re.sub("`(.*?)`", r"<code>\1</code>", html.escape(" ".join(self.notes), quote=False))
        return f"{self.content}<p>{text}</p>" if text else self.content


def make_widget(page: str, title: str, answer: Answer) -> Any:
    """Return an anywidget widget that shows a page and answers its questions.

    Args:
        page: HTML that loads no other files; its questions are ``{"id": ..., "name": ..., "question": ...}``.
        title: the name of the frame, for screen readers.
        answer: the function that answers a question.

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
