"""The local page to label attention maps: a server for one browser on this machine.

browser --key--> POST /label --> labels.csv, whole, before the answer
"""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headscope.errors import CorpusError, HeadscopeError
from headscope.learn.map_labels import LabelledMaps, read_maps_to_label, write_labels
from headscope.reducers.support.map_patterns import PATTERNS, make_images
from headscope.view.annotation import FILES, read_page

LONGEST = 10_000
"""Bytes of a request; a label has less than a hundred."""


def annotate(
    folder: Path, *, second: int = 0, seed: int = 0, port: int = 0, ready: Callable[[str], None] = print
) -> LabelledMaps:
    """Show the maps of a folder on a local page until the user is done, and return them with their labels.

    Args:
        folder: as `headscope.learn.map_labels.write_maps` wrote it.
        second: show so many of the labelled maps, in random order, and keep their labels as those of a second pass.
        seed: of that choice.
        port: of the page; 0 takes a free one.
        ready: called with the address of the page.

    Raises:
        CorpusError: the folder is damaged, or fewer maps are labelled than are to be labelled a second time.
    """
    labelling = _Labelling(folder, read_maps_to_label(folder), second, seed)
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, labelling))
    server.daemon_threads = True
    labelling.finish = lambda: threading.Thread(target=server.shutdown).start()
    with server:
        ready(f"http://127.0.0.1:{server.server_port}/")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return labelling.maps


class _Labelling:
    """The maps of a folder while they are labelled."""

    def __init__(self, folder: Path, maps: LabelledMaps, second: int, seed: int) -> None:
        if second > len(maps.labels):
            raise CorpusError(
                f"{second} maps were to be labelled a second time, and {len(maps.labels)} are labelled; ask for fewer."
            )
        self.folder, self.maps, self.second = folder, maps, bool(second)
        self.finish: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self.numbers = list(range(1, len(maps.maps) + 1))
        if second:
            again = np.random.default_rng(seed).permutation(sorted(maps.labels))[:second]
            self.numbers = [int(number) for number in again]

    def describe(self) -> dict[str, Any]:
        """What the page shows beside a map."""
        labels = self.maps.second if self.second else self.maps.labels
        return {
            "maps": self.numbers, "labels": {number: labels[number] for number in self.numbers if number in labels},
            "patterns": list(PATTERNS.items()), "second": self.second,
        }  # fmt: skip

    def draw(self, number: int) -> dict[str, Any]:
        """The image of a map, from 0 to 255, and where its sentences end, as shares of its side."""
        each = self.maps.maps[number - 1]
        image = make_images(torch.from_numpy(each.weights)[None])[0, 0]
        ends = [(separator + 0.5) / len(each.weights) for separator in each.separators]
        return {"values": (255 * image).round().int().flatten().tolist(), "ends": ends}

    def label(self, number: int, label: str) -> None:
        """Save the label of a map."""
        with self._lock:
            labelled = self.maps.give(number, label, second=self.second)
            write_labels(self.folder, labelled)
            self.maps = labelled


class _Handler(BaseHTTPRequestHandler):
    """Answers the page; refuses whoever is not the page."""

    def __init__(self, labelling: _Labelling, *arguments: Any) -> None:
        self.labelling = labelling
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """The files of the page, what it shows, and the image of a map."""
        name = self.path.removeprefix("/") or "page.html"
        if not self._is_ours():
            return
        if name in FILES:
            self._answer(read_page(name), FILES[name])
        elif name == "state":
            self._answer_json(self.labelling.describe())
        elif name.startswith("map/") and (number := self._find(name.removeprefix("map/"))):
            self._answer_json(self.labelling.draw(number))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page.")

    def do_POST(self) -> None:
        """A label, or the end."""
        if not self._is_ours():
            return
        try:
            request = json.loads(self.rfile.read(min(int(self.headers.get("Content-Length", 0)), LONGEST)))
            if self.path == "/finish":
                self._answer_json({})
                self.labelling.finish()
                return
            number, label = self._find(str(request["map"])), str(request["label"])
        except (ValueError, TypeError, KeyError):
            number, label = 0, ""
        if self.path != "/label" or not number or (label and label not in PATTERNS):
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no label of a map.")
            return
        try:
            self.labelling.label(number, label)
        except HeadscopeError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
            return
        self._answer_json({})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet: the terminal shows the address and what is labelled."""

    def _find(self, number: str) -> int:
        """The number of a map that is shown; 0 for another."""
        return int(number) if number.isdecimal() and int(number) in self.labelling.numbers else 0

    def _is_ours(self) -> bool:
        """True if the page itself asks, on this machine. Another page that knows the port must not write labels."""
        server: Any = self.server
        names = {f"{name}:{server.server_port}" for name in ("127.0.0.1", "localhost")}
        origin = self.headers.get("Origin")
        ours = self.headers.get("Host") in names and (origin is None or origin.removeprefix("http://") in names)
        if not ours:
            self._refuse(HTTPStatus.FORBIDDEN, "only the page of headscope may ask this.")
        return ours

    def _answer_json(self, answer: dict[str, Any]) -> None:
        self._answer(json.dumps(answer).encode(), "application/json")

    def _answer(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._answer(sentence.encode(), "text/plain", status)
