"""The local page for labelling attention maps: a server for one browser on this machine.

browser --key--> POST /label --> labels.csv as it is now, with the label, whole, before the answer
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import torch

from headscope.commands.local_server import (
    Reply,
    Request,
    make_token,
    open_server,
    refuse,
    refuse_visitor,
    reply_json,
)
from headscope.errors import CorpusError, HeadscopeError
from headscope.files import LOCK, reserve
from headscope.learn.map_labels import LabelledMaps, read_maps_to_label, update_labels, write_labels
from headscope.reducers.support.pattern_network import PATTERNS, make_images
from headscope.view.annotation import FILES, PAGE, STYLES, read_page


def annotate(
    folder: Path, *, second: int = 0, seed: int = 0, port: int = 0, ready: Callable[[str], None] = print
) -> LabelledMaps:
    """Show the maps of a folder on a local page until the user is done, and return the maps with their labels.

    Args:
        folder: A folder from `headscope.learn.map_labels.write_maps`.
        second: The number of labelled maps that are shown a second time, in random order; their second labels are
            stored separately.
        seed: The seed of the random choice and order.
        port: The port of the page; 0 takes a free one.
        ready: A function that is called with the address of the page.

    Raises:
        CorpusError: The folder is damaged, or fewer maps are labelled than `second`.
        HeadscopeError: Another command shows the folder, or the port is taken.
    """
    labelling = _Labelling(folder, read_maps_to_label(folder), second, seed)
    with reserve(folder, folder / LOCK), open_server(labelling, port) as server:
        labelling.finish = lambda: threading.Thread(target=server.shutdown).start()
        ready(server.make_address(labelling.token))
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return labelling.maps


class _Labelling:
    """The maps of a folder while a user labels them. Called with a request of the page, it returns the reply."""

    def __init__(self, folder: Path, maps: LabelledMaps, second: int, seed: int) -> None:
        if second > len(maps.labels):
            raise CorpusError(
                f"{second} maps were to be labelled a second time, and {len(maps.labels)} are labelled; ask for fewer."
            )
        self.folder, self.maps, self.second, self.token = folder, maps, bool(second), make_token()
        self.finish: Callable[[], None] = lambda: None
        self.numbers = list(range(1, len(maps.maps) + 1))
        if second:
            again = np.random.default_rng(seed).permutation(sorted(maps.labels))[:second]
            self.numbers = [int(number) for number in again]

    def describe(self) -> dict[str, Any]:
        """Return the data that the page shows next to a map: labels, numbers of maps, and patterns."""
        return self.list_labels() | {
            "maps": self.numbers, "patterns": list(PATTERNS.items()), "second": self.second,
        }  # fmt: skip

    def list_labels(self) -> dict[str, Any]:
        """Return the labels of the shown maps (in a second pass, their second labels) by the number of the map."""
        labels = self.maps.second if self.second else self.maps.labels
        return {"labels": {number: labels[number] for number in self.numbers if number in labels}}

    def draw(self, number: int) -> dict[str, Any]:
        """Return the image of a map with values from 0 to 255, and the ends of its sentences as shares of its side."""
        each = self.maps.maps[number - 1]
        image = make_images(torch.from_numpy(each.weights)[None])[0, 0]
        ends = [(separator + 0.5) / len(each.weights) for separator in each.separators]
        return {"values": (255 * image).round().int().flatten().tolist(), "ends": ends}

    def label(self, number: int, label: str) -> None:
        """Save the label of a map.

        The other labels are read from the folder again before, since the user may have edited the file.

        Raises:
            CorpusError: The folder is missing, or its labels are damaged.
            HeadscopeError: The file cannot be written to the disk.
        """
        labelled = update_labels(self.folder, self.maps).give(number, label, second=self.second)
        write_labels(self.folder, labelled)
        self.maps = labelled

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]:
        """Answer a request of the page: send a file or a map, save a label, or end the work."""
        return self._show(request) if request.content is None else self._save(request)

    def _show(self, request: Request) -> Reply:
        name = urlsplit(request.path).path.removeprefix("/")
        if name in STYLES:
            return Reply(read_page(name), FILES[name])
        if not request.has_token(self.token):
            return refuse_visitor("headscope patterns")
        if not name:
            return Reply(read_page(PAGE), FILES[PAGE])
        if name == "state":
            return reply_json(self.describe())
        if name.startswith("map/") and (number := self._find(name.removeprefix("map/"))):
            return reply_json(self.draw(number))
        return refuse(HTTPStatus.NOT_FOUND, "there is no such page.")

    def _save(self, request: Request) -> Reply | Callable[[], Reply]:
        if not request.has_token(self.token):
            return refuse_visitor("headscope patterns")
        try:
            content = request.read_json()
            if request.path == "/finish":
                return lambda: reply_json({}, finish=self.finish)  # after earlier labels are saved
            number, label = self._find(str(content["map"])), str(content["label"])
        except (ValueError, TypeError, KeyError):
            number, label = 0, ""
        if request.path != "/label" or not number or (label and label not in PATTERNS):
            return refuse(HTTPStatus.BAD_REQUEST, "this is no label of a map.")
        return partial(self._reply_to_label, number, label)

    def _reply_to_label(self, number: int, label: str) -> Reply:
        try:
            self.label(number, label)
        except HeadscopeError as error:
            return refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return reply_json(self.list_labels())

    def _find(self, number: str) -> int:
        """Return the number of a shown map; 0 if the text is not the number of a shown map."""
        return int(number) if number.isdecimal() and int(number) in self.numbers else 0
