"""The page of an atlas, served to a browser on this machine, with a model that answers its questions.

atlas, or model --atlas--> tables, examples --render_page--> page --browser--> a text --read_texts--> its attention
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import xarray as xr
from rich.console import Console

from headscope.capture.forward.installed import describe_edits
from headscope.capture.model.model import Model
from headscope.capture.open.loading import Loadable
from headscope.commands.atlas.atlas_result import TABLE, AtlasResult
from headscope.commands.atlas.request import atlas
from headscope.commands.explore.page_model import PageModel
from headscope.commands.explore.request import Explore
from headscope.commands.local_server import (
    Reply,
    Request,
    make_token,
    open_browser,
    open_server,
    refuse,
    refuse_visitor,
    reply_json,
)
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import find_dtype
from headscope.errors import HeadscopeError, ModelError, TableError
from headscope.identity import name_differences
from headscope.intervene.prediction import SentenceReader
from headscope.results import write_line
from headscope.runner.provenance import identify_model
from headscope.text_forms import GIVEN, WRITTEN, find_form
from headscope.view import headings
from headscope.view.notebook import Cell, make_widget
from headscope.view.page import Live


class Explorer:
    """The page of an atlas, served until it is closed. It is a context manager, and a notebook shows it as a frame.

    Attributes:
        address: The address of the page for a browser on this machine.
        page: The page without a model, as HTML; a notebook shows and keeps it.
        title: The title of the page.
        notes: Sentences about what the page cannot do, and why.
    """

    def __init__(
        self, atlas: AtlasResult, model: Model | None, port: int, notes: tuple[str, ...] = (), start: str | None = None
    ) -> None:
        self.notes = notes
        self._atlas = replace(atlas, folder=None)  # the figures stay in their folder
        self.title, self.page = atlas.title, self._atlas.render()
        form = find_form(atlas.table.attrs)
        self._model = None if model is None else PageModel(model, WRITTEN if form == GIVEN else form, start)
        token = make_token()
        self._live_page = self.page if self._model is None else atlas.render(Live(token, self._model.max_tokens))
        served = self._live_page.encode("utf-8", errors="replace")
        self._server = open_server(_Answers(served, token, self._model), port)
        self.address = self._server.make_address(token)
        self._closing = ExitStack()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the server; its address stops working."""
        self._server.shutdown()
        self._server.server_close()
        self._closing.close()

    def open_browser(self) -> None:
        """Open the page in a browser on this machine."""
        self._closing.callback(open_browser(self.address).cleanup)

    def wait(self) -> None:
        """Serve until the process is interrupted (Ctrl-C), then close the server."""
        try:
            while self._thread.is_alive():
                self._thread.join(1)
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def __enter__(self) -> "Explorer":
        """Return the explorer; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the server."""
        self.close()

    def __repr__(self) -> str:
        """Return the facts about the atlas and the port on one line.

        The token is left out, since a notebook would save it.
        """
        return write_line("Explorer", {**self._atlas.facts, "port": urlsplit(self.address).port})

    def _repr_html_(self) -> str:
        """Return the page for a notebook; it needs no server."""
        return self.show()._repr_html_()

    def show(self, *, whole: bool = False) -> Cell:
        """Return the page without a model for the output cell of a notebook; for `whole`, see `AtlasResult.show`."""
        cell = self._atlas.make_cell(whole=whole, live=".widget()")
        return cell if self._model is not None else replace(cell, notes=(*cell.notes[:-1], *self.notes))

    def widget(self) -> Any:
        """Return the page as a widget; the kernel of the notebook answers its questions in place of the server.

        Raises:
            HeadscopeError: anywidget is not installed (extra ``notebook``), or there is no model.
        """
        if self._model is None:
            raise HeadscopeError(f"there is no model behind this page: {' '.join(self.notes) or 'none was loaded.'}")
        return make_widget(self._live_page, self.title, self._model.answer)


def run(request: Explore, progress: Progress) -> Explorer:
    """Open the atlas, or make one for the given model; load the model, and serve the page."""
    notes: tuple[str, ...] = ()
    opened = open_atlas(request.source)
    if opened is not None:
        loaded, notes = _load_model(opened, request, progress)
    else:
        if request.model is not None:
            raise HeadscopeError("`model` is the model of an atlas, and no atlas was given; give the model first.")
        progress("loading the model", 0, 0)
        loaded = request.load_with_head(cast(Loadable, request.source))
        opened = atlas(loaded, request.corpus, permutations=0, roles=False, progress=progress)
    if loaded is not None and request.start is not None:
        _ = SentenceReader(loaded, start=request.start).first
    if loaded is not None and (edits := describe_edits(loaded.module)):
        # Another thread answers questions; it would wait for the end of the block.
        notes += (f"The page shows no text that you type while heads of the model are edited here: {edits}.",)
        loaded = None
    elif loaded is not None and (edited := headings.describe_edits(opened.table)):
        notes += (f"{edited} The model reads the texts that you type as it is.",)
    explorer = Explorer(opened, loaded, request.port, notes, request.start)
    if not request.no_browser:
        explorer.open_browser()
    return explorer


def open_atlas(source: object) -> AtlasResult | None:
    """Open the atlas in a folder, a ``.nc`` file or a table; return None for anything else, such as a model.

    Raises:
        TableError: A file is missing or damaged, or the table is of several runs.
    """
    if isinstance(source, xr.Dataset):
        return AtlasResult(source, {}, None, None, ())
    if isinstance(source, str | Path) and ((path := Path(source)).suffix == ".nc" or (path / TABLE).is_file()):
        return AtlasResult.read(source)
    return source if isinstance(source, AtlasResult) else None


def _load_model(opened: AtlasResult, request: Explore, progress: Progress) -> tuple[Model | None, tuple[str, ...]]:
    """Load the model of an atlas.

    Returns:
        The model and no notes; or None and a note, if the model is missing and the request names no other.

    Raises:
        ModelError: The model that the request names cannot be loaded.
        TableError: The model differs from the model of the atlas.
    """
    name = str(opened.table.attrs["model"])
    progress("loading the model", 0, 0)
    try:
        held = name if opened.model is None else opened.model
        chosen = held if request.model is None else request.model
        loaded = request.load_with_head(chosen, dtype=find_dtype(opened.table.attrs))
    except ModelError as error:
        if request.model is not None:
            raise
        return None, (f"The page shows no text that you type, because the model is not there: {error}",)
    if differences := name_differences(opened.table.attrs, identify_model(loaded)):
        raise TableError(
            f"the atlas is of {name!r}, which differs from {loaded.name!r} in its {differences}; name the model of the "
            "atlas as `model`, or make the atlas again."
        )
    return loaded, ()


class _Answers:
    """A function that answers requests: it sends the page, and answers the questions of the page."""

    def __init__(self, page: bytes, token: str, model: PageModel | None) -> None:
        self.page, self.token, self.model = page, token, model

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]:
        """Send the page, or answer a question of the page."""
        return self._show(request) if request.content is None else self._answer(request)

    def _show(self, request: Request) -> Reply:
        if urlsplit(request.path).path != "/":
            return refuse(HTTPStatus.NOT_FOUND, "there is no such page.")
        if not request.has_token(self.token):
            return refuse_visitor("headscope explore")
        return Reply(self.page, "text/html")

    def _answer(self, request: Request) -> Reply | Callable[[], Reply]:
        if not request.has_token(self.token):
            return refuse(HTTPStatus.FORBIDDEN, "only the page of headscope may ask this.")
        name = request.path.removeprefix("/")
        if self.model is None or name not in self.model:
            return refuse(HTTPStatus.NOT_FOUND, "there is no such question.")
        return partial(_answer_question, self.model, name, request.read_json())


def _answer_question(model: PageModel, name: str, question: Any) -> Reply:
    try:
        return reply_json(model.answer(name, question))
    except HeadscopeError as error:
        return refuse(HTTPStatus.BAD_REQUEST, str(error))


def show(request: Explore, explorer: Explorer, console: Console) -> None:
    """Print the notes and the address of the page, and serve the page until it is interrupted."""
    for note in explorer.notes:
        console.print(note, soft_wrap=True, markup=False, highlight=False, style="yellow")
    console.print(f"Open {explorer.address} (Ctrl-C ends).", soft_wrap=True, markup=False, highlight=False)
    explorer.wait()
