"""The pages of `headscope explore` and `headscope patterns --annotate` under more requests than they can answer.

    python benchmarks/visitors.py [--requests 500] [--at-once 150] [--half-sent 300] [--rounds 3] [--model minilm]
        [--pages explore annotate]

In each round connections are opened that send half a request and then nothing, then requests are sent, many at once,
and a tenth of those that ask leave without their answer. All others must be answered, or told why they are not; whoever
is not is counted as silent. Memory and threads are those of the command after each round, when it has come to rest.
"""

import argparse
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from headscope.commands.local_server import READ_SECONDS

PATIENCE = 120.0
"""Seconds after which a request that is not answered is silent."""

SILENT = "silent"
LEFT = "left"
TEXT = "the old dog that the cats see sleeps , and "


@dataclass(frozen=True)
class Page:
    """A command that serves a page, what is asked of it, and what is not to be matches there."""

    command: tuple[str, ...]
    asked: tuple[tuple[str, object], ...]


def list_pages(model: str, folder: Path) -> dict[str, Page]:
    """The pages by name; a path that comes with None is read, others are asked a question."""
    text = {"text": TEXT * 11}
    return {
        "explore": Page(
            ("explore", model, "grammar:30", "--no-browser"),
            (("/", None), ("/attention", text), ("/what-if", text | {"heads": ["1-1"], "how": "zero"}),
             ("/attention", {"text": 7}), ("/neurons", "[" * 999), ("/nothing", None)),
        ),
        "annotate": Page(
            ("patterns", model, "grammar:60", "--annotate", str(folder / "maps"), "--maps", "10"),
            (("/", None), ("/state", None), ("/map/3", None), ("/label", {"map": 3, "label": "block"}),
             ("/label", {"map": 10**99, "label": []}), ("/nothing", None)),
        ),
    }  # fmt: skip


@contextmanager
def serve(page: Page) -> Iterator[tuple[psutil.Process, str]]:
    """The process that serves a page, and its address."""
    words = [sys.executable, "-u", "-c", "from headscope import cli; cli.main()", *page.command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            lines = process.stdout or iter(())
            matches = (re.search(r"http://\S+\?token=[\w-]+", line) for line in lines)
            address = next((match[0] for match in matches if match), None)
            if address is None:
                raise SystemExit(f"headscope {' '.join(page.command)} served no page.")
            yield psutil.Process(process.pid), address
        finally:
            process.kill()


def ask(address: str, path: str, question: object, *, leaves: bool) -> str:
    """The status of an answer; `SILENT` where there is none."""
    token, port = address.rpartition("=")[2], urlsplit(address).port
    method, body = ("GET", None) if question is None else ("POST", json.dumps(question))
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"X-Headscope-Token": token})
        if leaves:
            return LEFT
        answer = connection.getresponse()
        return str(answer.status) if answer.read() else SILENT
    except (OSError, HTTPException):
        return SILENT
    finally:
        connection.close()


def send_half(address: str) -> socket.socket:
    """A connection that sends the beginning of a request."""
    client = socket.create_connection(("127.0.0.1", urlsplit(address).port), PATIENCE)
    with suppress(OSError):
        client.sendall(b"POST /attention HTTP/1.1\r\nContent-Length: 99\r\n")
    return client


def hear(client: socket.socket) -> str:
    """The status that a connection was answered with; `SILENT` where there is none."""
    with client:
        answer = HTTPResponse(client)
        try:
            answer.begin()
            return str(answer.status) if answer.read() else SILENT
        except (OSError, HTTPException):
            return SILENT


def visit(page: Page, address: str, requests: int, at_once: int, half_sent: int, seed: int) -> tuple[Counter[str], ...]:
    """How the requests of a round were answered, and how those that were sent by half."""
    chance = random.Random(seed)
    chosen = [(*chance.choice(page.asked), chance.random() < 0.1) for _ in range(requests)]
    half = [send_half(address) for _ in range(half_sent)]
    with ThreadPoolExecutor(at_once) as pool:
        answers = Counter(pool.map(lambda each: ask(address, *each[:2], leaves=each[2]), chosen))
    return answers, Counter(map(hear, half))


def main() -> None:
    """Visit each page so many rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("requests", 500), ("at-once", 150), ("half-sent", 300), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--pages", nargs="+", default=["explore", "annotate"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        pages = list_pages(given.model, Path(name))
        for title in given.pages:
            page = pages[title]
            with serve(page) as (process, address):
                print(f"{title}: {process.memory_info().rss / 1e6:.0f} MB, {process.num_threads()} threads", flush=True)
                for number in range(given.rounds):
                    start = time.perf_counter()
                    answers, half = visit(page, address, given.requests, given.at_once, given.half_sent, number)
                    seconds = time.perf_counter() - start
                    _rest(lambda process=process: process.num_threads())
                    print(
                        f"  round {number + 1}: {seconds:.0f} s, {_describe(answers)}; half-sent {_describe(half)}; "
                        f"{process.memory_info().rss / 1e6:.0f} MB, {process.num_threads()} threads",
                        flush=True,
                    )
                status = ask(address, "/", None, leaves=False)
                print(f"  then the page: {status}")


def _rest(count: Callable[[], int]) -> None:
    """Wait until nothing has ended for a while."""
    until, before = time.monotonic() + PATIENCE, -1
    while before != (before := count()) and time.monotonic() < until:
        time.sleep(READ_SECONDS / 10)


def _describe(statuses: Counter[str]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())) or "none"


if __name__ == "__main__":
    main()
