"""The page of an atlas served to a browser on this machine, with the model behind it.

atlas, or model --atlas--> tables, examples --render_page--> page --browser--> a text --read_texts--> its attention
"""

import secrets
import threading
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import xarray as xr

from headscope import heads
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.capture.names import OWN_HEAD
from headscope.capture.stream import Plan
from headscope.capture.views import VIEWS
from headscope.corpora import read
from headscope.errors import HeadscopeError, ModelError, TableError
from headscope.examples import read_examples
from headscope.intervene.prediction import find_mask, find_start
from headscope.intervene.what_if import TextModel
from headscope.jobs.atlas import AtlasResult, atlas
from headscope.jobs.local_server import HOST, Reply, Request, open_server, refuse, reply_json
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.runner.examples import read_texts
from headscope.runner.query_key import read_query_key
from headscope.view.headings import name_model
from headscope.view.notebook import frame_page
from headscope.view.page import Live, describe_text, render_page

MOST_WEIGHTS = 30_000_000
"""Weights of all heads on a text that is typed: what a browser unpacks and a reader waits for."""

MOST_TOKENS = 512

Answer = Callable[[Any], Any]
"""Of a question of the page, as JSON, the answer."""


class Explorer:
    """The page of an atlas, served until it is closed; a context manager, and a frame in a notebook.

    Attributes:
        address: where a browser on this machine finds the page.
        page: the page without the model, as HTML: what a notebook shows and keeps.
        title: of the page.
        notes: sentences about what the page cannot do, and why.
    """

    def __init__(
        self, atlas: "Atlas", model: Model | None, port: int, notes: tuple[str, ...] = (), start: str | None = None
    ) -> None:
        self.notes = notes
        self.title = f"Head atlas of {name_model(atlas.table.attrs['model'])}"
        self.page = atlas.render(None)
        token = secrets.token_urlsafe(16)
        live = None if model is None else Live(token, _limit_tokens(model))
        answers: dict[str, Answer] = {}
        if model is not None and live is not None:
            answers["/attention"] = partial(show_attention, model, live.max_tokens)
            answers["/neurons"] = partial(show_neurons, model, live.max_tokens)
            answers["/what-if"] = partial(show_what_if, TextModel(model, live.max_tokens, start))
        served = atlas.render(live).encode("utf-8", errors="replace")
        self._server = open_server(_Answers(served, token, answers), port)
        self.address = f"http://{HOST}:{self._server.server_port}/?token={token}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server; the address leads nowhere from then on."""
        self._server.shutdown()
        self._server.server_close()

    def wait(self) -> None:
        """Serve until the process is interrupted (Ctrl-C), and close."""
        try:
            while self._thread.is_alive():
                self._thread.join(1)
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def __enter__(self) -> "Explorer":
        """The explorer, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the server."""
        self.close()

    def _repr_html_(self) -> str:
        """Show the page in a notebook, where it needs no server."""
        return frame_page(self.page, self.title)


@shows_progress
def explore(
    source: Loadable | str | Path | AtlasResult | xr.Dataset = "minilm",
    corpus: str | Path = "grammar:100",
    *,
    model: Loadable | None = None,
    start: str | None = None,
    port: int = 0,
    no_browser: bool = False,
    device: str = "cpu",
    trust_remote_code: bool = False,
    progress: Progress | bool | None = None,
) -> Explorer:
    """Serve the page of an atlas on this machine, where the attention on a text that one types can be seen.

    Only a browser on this machine that has the address with its token gets an answer. In a notebook, what is returned
    shows the page itself, without the texts that one types.

    Args:
        source: the folder of an atlas or its ``heads.nc``, what `headscope.atlas` returned, or a head table; or a
            model, of which an atlas of `corpus` is made first, in a folder that is removed in the end.
        corpus: for a model: what its heads are measured on (`headscope.atlas`).
        model: for an atlas: the model, where it lies elsewhere than when it was measured. Default: the one that the
            atlas names. Its weights must be those of the atlas.
        start: the token from which a causal model predicts the first one of a text, such as ``<|endoftext|>``.
            Default: as the tokenizer does it, or its token for the beginning.
        port: of the page; 0 takes a free one.
        no_browser: leave it to the user to open the address.
        device: where to run the model.
        trust_remote_code: run the Python code of the model's repository.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the atlas, the model or the port.
    """
    progress = progress if callable(progress) else ignore_progress
    notes: tuple[str, ...] = ()
    opened = open_atlas(source)
    if opened is not None:
        loaded, notes = _load_model(opened, model, device, trust_remote_code, progress)
    else:
        if model is not None:
            raise HeadscopeError("`model` is the model of an atlas, and no atlas was given; give the model first.")
        progress("loading the model", 0, 0)
        loaded = _load_with_head(source, device, trust_remote_code)
        with TemporaryDirectory(prefix="headscope-explore-") as folder:
            out = Path(folder) / "atlas"
            atlas(loaded, corpus, out, figures="none", permutations=0, device=device, progress=progress)
            opened = Atlas.read(out)
    if loaded is not None and start is not None:
        find_start(loaded, start, causal=find_mask(loaded) is None)
    explorer = Explorer(opened, loaded, port, notes, start)
    if not no_browser:
        webbrowser.open(explorer.address)
    return explorer


@dataclass(frozen=True, eq=False)
class Atlas:
    """What an atlas measured, of which its page is made; the figures stay in their folder."""

    table: xr.Dataset
    views: Mapping[str, xr.Dataset]
    examples: xr.Dataset | None
    distances: xr.Dataset | None

    @classmethod
    def read(cls, source: str | Path) -> "Atlas":
        """The atlas in a folder; of a file, what lies beside it too.

        Raises:
            TableError: a file is missing or damaged.
        """
        path = Path(source)
        folder, table = (path.parent, path) if path.suffix == ".nc" else (path, path / "heads.nc")
        views = {view: folder / f"heads-{view}.nc" for view in VIEWS}
        examples, distances = folder / "examples.nc", folder / "head-distances.nc"
        return cls(
            heads.read_table(table),
            {view: heads.read_table(file) for view, file in views.items() if file.is_file()},
            read_examples(examples) if examples.is_file() else None,
            heads.read_table(distances) if distances.is_file() else None,
        )

    def render(self, live: Live | None) -> str:
        """The page, as HTML; with `live`, one that a server answers."""
        return render_page(
            self.table, figures={}, views=self.views, examples=self.examples, distances=self.distances, live=live
        )


def open_atlas(source: object) -> Atlas | None:
    """The atlas in a folder, of a file or of a table; None of what is no atlas, and so a model.

    Raises:
        TableError: a file is missing or damaged.
    """
    if isinstance(source, xr.Dataset):
        return Atlas(source, {}, None, None)
    if isinstance(source, AtlasResult):
        return Atlas.read(source.folder)
    if isinstance(source, str | Path) and ((path := Path(source)).suffix == ".nc" or (path / "heads.nc").is_file()):
        return Atlas.read(source)
    return None


def _load_model(
    opened: Atlas, model: Loadable | None, device: str, trust_remote_code: bool, progress: Progress
) -> tuple[Model | None, tuple[str, ...]]:
    """The model of an atlas or, where it is gone and none was named, none and a sentence about that.

    Raises:
        ModelError: the model that was named cannot be loaded.
        TableError: its weights are not those of the atlas.
    """
    name, weights = (str(opened.table.attrs[key]) for key in ("model", "weights_sha256"))
    progress("loading the model", 0, 0)
    try:
        loaded = _load_with_head(name if model is None else model, device, trust_remote_code)
    except ModelError as error:
        if model is not None:
            raise
        return None, (f"The page shows no text that you type, because the model is not there: {error}",)
    if loaded.weights_sha256 != weights:
        raise TableError(
            f"the atlas is of {name!r} with other weights than {loaded.name!r} has; name the model with its weights as "
            "`model`, or make the atlas again."
        )
    return loaded, ()


def _load_with_head(model: Loadable, device: str, trust_remote_code: bool) -> Model:
    """A model with the task head of its weights, if they have one."""
    try:
        return load(model, device=device, trust_remote_code=trust_remote_code, task=OWN_HEAD)
    except ModelError:
        return load(model, device=device, trust_remote_code=trust_remote_code)


def _limit_tokens(model: Model) -> int:
    """The most tokens of a text that is typed."""
    return min(MOST_TOKENS, model.max_tokens or MOST_TOKENS, isqrt(MOST_WEIGHTS // model.shape.together))


def show_attention(model: Model, max_tokens: int, question: Any) -> dict[str, Any]:
    """A text with the attention of all heads on it, as the page has its texts.

    Args:
        model: whose attention it is.
        max_tokens: a longer text is cut.
        question: ``{"text": ...}``.

    Raises:
        HeadscopeError: it is no text, or the model cannot read it.
    """
    text = question.get("text") if isinstance(question, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise HeadscopeError("the text is empty; type some words.")
    document = read([text])
    texts = read_texts(model, [*document], Plan(max_tokens=max_tokens, cut=True))
    if not texts:
        raise HeadscopeError(f"{model.name} has no tokens for this text; type another.")
    words = len(next(iter(document)).words)
    tokens = max(len(side.tokens) for side in texts[0].sides.values())
    cut = f"Cut to {tokens} tokens." if len(texts[0].words) < words else ""
    return {"text": describe_text(texts[0], quick=True), "note": cut}


def show_neurons(model: Model, max_tokens: int, question: Any) -> dict[str, Any]:
    """The query of a token and the key of another, neuron by neuron.

    Args:
        model: whose head it is.
        max_tokens: a longer text is cut.
        question: ``{"text": ..., "attention_type": "cross", "head": "3-1", "from": 2, "to": 5}``, tokens counted from
            0; the attention type is empty of a model with one.

    Raises:
        HeadscopeError: there is no such head or token, or the text is empty.
        ModelError: the queries of the model cannot be reached.
    """
    match question:
        case {"text": str(text), "attention_type": str(name), "head": str(head), "from": int(query), "to": int(key)} if (
            text.strip()
        ):
            (document,) = read([text])
            plan = Plan(max_tokens=max_tokens, cut=True)
            return asdict(read_query_key(model, document, head, query, key, plan, attention_type=name))
    raise HeadscopeError("the text is empty, or no two tokens are named; type some words, and choose tokens.")


def show_what_if(model: TextModel, question: Any) -> dict[str, Any]:
    """What the model says of a text with and without heads.

    Args:
        model: that is asked.
        question: ``{"text": ..., "heads": ["3-1"], "how": "zero"}``.

    Raises:
        HeadscopeError: the text is empty, no such head or way is known, or the heads cannot be edited.
    """
    match question:
        case {"text": str(text), "heads": [*heads], "how": str(how)} if text.strip():
            return asdict(model.ask(text, [str(head) for head in heads], how))
    raise HeadscopeError("the text is empty, or no head is named; type some words, and choose heads.")


class _Answers:
    """Answers the page, and the questions that it asks with its token; one at a time, since the model is one."""

    def __init__(self, page: bytes, token: str, answers: Mapping[str, Answer]) -> None:
        self.page, self.token, self.answers = page, token, answers
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        """The page, or the answer to a question."""
        return self._show(urlsplit(request.path)) if request.content is None else self._answer(request)

    def _show(self, address: SplitResult) -> Reply:
        if address.path != "/":
            return refuse(HTTPStatus.NOT_FOUND, "there is no such page.")
        if not self._is_token(parse_qs(address.query).get("token", [""])[0]):
            return refuse(HTTPStatus.FORBIDDEN, "open the address that headscope explore gives, with its token.")
        return Reply(self.page, "text/html")

    def _answer(self, request: Request) -> Reply:
        if not self._is_token(request.headers.get("x-headscope-token", "")):
            return refuse(HTTPStatus.FORBIDDEN, "only the page of headscope may ask this.")
        if request.path not in self.answers:
            return refuse(HTTPStatus.NOT_FOUND, "there is no such question.")
        try:
            with self._lock:
                return reply_json(self.answers[request.path](request.read_json()))
        except HeadscopeError as error:
            return refuse(HTTPStatus.BAD_REQUEST, str(error))

    def _is_token(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())
