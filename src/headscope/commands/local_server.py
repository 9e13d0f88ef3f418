"""A server for one page in a browser on this machine; whoever else asks is refused.

request --`_Handler`: is it ours?--> `Request` --respond--> `Reply`
"""

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headscope.errors import HeadscopeError, first_line

HOST = "127.0.0.1"
"""No other machine can reach the server."""

HTTP_PORT = 80
"""The port that browsers leave out of an address."""

TOKEN_HEADER = "x-headscope-token"
"""The header with which a page says that it was opened at its whole address."""

LONGEST = 100_000
"""Bytes of what a page sends."""


@dataclass(frozen=True)
class Request:
    """What a page of this machine asks.

    Attributes:
        path: with what follows a question mark.
        headers: by name, in small letters.
        content: what it sent; None if it only reads.
    """

    path: str
    headers: Mapping[str, str]
    content: bytes | None

    def has_token(self, token: str) -> bool:
        """Return whether the page sent a token, in a header or in its address."""
        query = parse_qs(urlsplit(self.path).query)
        sent = self.headers.get(TOKEN_HEADER) or query.get("token", [""])[0]
        return secrets.compare_digest(sent.encode(), token.encode())

    def read_json(self) -> Any:
        """What was sent, as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.content or b"")


@dataclass(frozen=True)
class Reply:
    """What is answered.

    Attributes:
        content: the bytes.
        kind: their media type.
        status: of the answer.
        finish: called when it is sent.
    """

    content: bytes
    kind: str = "text/plain"
    status: HTTPStatus = HTTPStatus.OK
    finish: Callable[[], None] = field(default=lambda: None)


def reply_json(answer: Any, finish: Callable[[], None] = lambda: None) -> Reply:
    """An answer as JSON."""
    return Reply(json.dumps(answer).encode(), "application/json", finish=finish)


def refuse(status: HTTPStatus, sentence: str) -> Reply:
    """A sentence that says what is wrong."""
    return Reply(sentence.encode(), status=status)


Respond = Callable[[Request], Reply]


def make_token() -> str:
    """Return a token that nobody can guess: who knows it was given the address of a page."""
    return secrets.token_urlsafe(16)


def refuse_visitor(command: str) -> Reply:
    """Return the answer to somebody who opens a page without its token."""
    return refuse(HTTPStatus.FORBIDDEN, f"open the address that {command} gives, with its token.")


def open_server(respond: Respond, port: int) -> ThreadingHTTPServer:
    """A server on this machine that does not answer yet.

    Args:
        respond: to each request of a page of this machine; called in several threads at once.
        port: 0 takes a free one.

    Raises:
        HeadscopeError: the port is taken, or none can have this number.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Handler, respond))
    except (OSError, OverflowError) as error:
        raise HeadscopeError(
            f"port {port} of this machine cannot be opened ({error}); give another with --port, or 0 for a free one."
        ) from error
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    """Passes on what a page of this machine asks. Another page that knows the port must neither read nor write here."""

    def __init__(self, respond: Respond, *arguments: Any) -> None:
        self.respond = respond
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer a request that reads."""
        self._answer(lambda: None)

    def do_POST(self) -> None:
        """Answer a request that asks or writes."""
        self._answer(self._read)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet: the terminal shows the address, and the page what it was answered."""

    def _answer(self, read: Callable[[], bytes | None]) -> None:
        if not self._is_ours():
            reply = refuse(HTTPStatus.FORBIDDEN, "only the page of headscope may ask this.")
        else:
            try:
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = self.respond(Request(self.path, headers, read()))
            except ValueError as error:  # what was sent is too long, or nothing that can be read
                reply = refuse(HTTPStatus.BAD_REQUEST, str(error))
            except Exception as error:  # whatever it is, the page is to say so, and the server to go on
                sentence = f"this failed with {type(error).__name__}: {first_line(error)}."
                reply = refuse(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        with suppress(ConnectionError):  # the page may have been closed meanwhile
            self._send(reply)
        reply.finish()

    def _is_ours(self) -> bool:
        """True if the page itself asks, by a name of this machine."""
        server: Any = self.server
        port = server.server_port
        names = {f"{name}:{port}".removesuffix(f":{HTTP_PORT}") for name in (HOST, "localhost")}
        origin = self.headers.get("Origin")
        return self.headers.get("Host") in names and (origin is None or origin.removeprefix("http://") in names)

    def _read(self) -> bytes:
        size = int(self.headers.get("Content-Length", 0))
        if not 0 <= size <= LONGEST:
            raise ValueError(f"the request has {size} bytes, and at most {LONGEST} are read.")
        return self.rfile.read(size)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", f"{reply.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(reply.content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(reply.content)
