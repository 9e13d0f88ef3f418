"""A server for one page in a browser on this machine; requests from anywhere else are refused.

request --`_Handler`: is it ours, and whole?--> `Request` --respond--> `Reply`, or work --`Turns`--> `Reply`
"""

import json
import re
import secrets
import socket
import time
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headscope.commands.turns import BusyError, ClientLeftError, Turns
from headscope.errors import HeadscopeError, first_line
from headscope.files import parse_json

HOST = "127.0.0.1"
"""The address of the server, which no other machine can reach."""

HTTP_PORT = 80
"""The default port of HTTP, which browsers leave out of an address."""

TOKEN_HEADER = "x-headscope-token"
"""The header with which a page sends the token of its address."""

LONGEST = 100_000
"""The maximum size of the content of a request, in bytes."""

CONNECTIONS = 256
"""The maximum number of open connections.

With more, the oldest connection whose request is not complete is given up.
"""

READ_SECONDS = 10.0
"""The time in seconds within which a request must be complete."""

SEND_SECONDS = 60.0
"""The time in seconds within which the browser must read an answer."""


@dataclass(frozen=True)
class Request:
    """A request of a page on this machine.

    Attributes:
        path: The path, with the query after a question mark.
        headers: The headers, by name in lower case.
        content: The content that was sent; None for a GET request.
    """

    path: str
    headers: Mapping[str, str]
    content: bytes | None

    def has_token(self, token: str) -> bool:
        """Return whether the request has the given token, in a header or in its path."""
        query = parse_qs(urlsplit(self.path).query)
        sent = self.headers.get(TOKEN_HEADER) or query.get("token", [""])[0]
        return secrets.compare_digest(sent.encode(), token.encode())

    def read_json(self) -> Any:
        """Parse the content of the request as JSON.

        Raises:
            ValueError: The content is not JSON.
        """
        return parse_json(self.content or b"")


@dataclass(frozen=True)
class Reply:
    """The answer to a request.

    Attributes:
        content: The content, as bytes.
        kind: The media type of the content.
        status: The HTTP status.
        finish: A function that is called after the answer is sent.
    """

    content: bytes
    kind: str = "text/plain"
    status: HTTPStatus = HTTPStatus.OK
    finish: Callable[[], None] = field(default=lambda: None)


def reply_json(answer: Any, finish: Callable[[], None] = lambda: None) -> Reply:
    """Return a reply with an answer encoded as JSON."""
    return Reply(json.dumps(answer).encode(), "application/json", finish=finish)


def refuse(status: HTTPStatus, sentence: str) -> Reply:
    """Return a reply with an error message."""
    return Reply(sentence.encode(errors="replace"), status=status)


Respond = Callable[[Request], Reply | Callable[[], Reply]]
"""A function that answers a request.

It returns the reply, or work that makes the reply after earlier work is done.
"""


def make_token() -> str:
    """Return a random token that nobody can guess, so that only somebody who was given the address knows it."""
    return secrets.token_urlsafe(16)


def refuse_visitor(command: str) -> Reply:
    """Return the reply to somebody who opens a page without its token; it names the command that gives the address."""
    return refuse(HTTPStatus.FORBIDDEN, f"open the address that {command} gives, with its token.")


def open_browser(address: str) -> TemporaryDirectory[str]:
    """Open a page in the browser, and return a folder to remove when the address stops working.

    The browser gets the path of a file in this folder, which leads to the address. So the address is not among the
    arguments of a process, which all users can list; only this user can read the folder.
    """
    folder = TemporaryDirectory(prefix="headscope-", ignore_cleanup_errors=True)
    file = Path(folder.name) / "page.html"
    refresh = f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
    file.write_text(f"<!doctype html><title>headscope</title>{refresh}", encoding="utf-8")
    with suppress(webbrowser.Error):  # the address is printed too
        webbrowser.open(file.as_uri())
    return folder


def open_server(respond: Respond, port: int) -> "LocalServer":
    """Return a server on this machine that does not answer requests yet.

    Args:
        respond: A function that answers requests. It is called in several threads at once; only the work that it
            returns is done one at a time.
        port: The port; 0 takes a free one.

    Raises:
        HeadscopeError: The port is taken, or the number is not a valid port.
    """
    try:
        return LocalServer(respond, port)
    except (OSError, OverflowError) as error:
        raise HeadscopeError(
            f"port {port} of this machine cannot be opened ({error}); give another with --port, or 0 for a free one."
        ) from error


class LocalServer(ThreadingHTTPServer):
    """A server that answers each connection in a thread, and limits the time of requests and answers.

    Attributes:
        turns: The queue of work, which is done one at a time.
        unread: The time at which each connection was opened whose request is not complete.
        overdue: The connections that were given up because their requests took too long or there were too many
            connections.
    """

    daemon_threads = True
    request_queue_size = CONNECTIONS  # requests at the same time wait here, and need no second attempt

    def __init__(self, respond: Respond, port: int) -> None:
        self.turns = Turns()
        self.unread: dict[socket.socket, float] = {}
        self.overdue: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        super().__init__((HOST, port), partial(_Handler, respond))

    def make_address(self, token: str) -> str:
        """Return the address of a page that asks for a token, for a browser on this machine."""
        return f"http://{HOST}:{self.server_port}/?token={token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread.

        If there are too many connections, give up the oldest whose request is not complete. If all are complete, refuse
        the new one.
        """
        if len(self._open) >= CONNECTIONS and (oldest := next(iter([*self.unread]), None)):
            self._give_up(oldest)
        elif len(self._open) >= CONNECTIONS:
            _refuse_unread(request)
            self.shutdown_request(request)
            return
        self._open.add(request)
        self.unread[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._open.discard(request)
        self.unread.pop(request, None)
        self.overdue.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close the server; work that already waits is still done."""
        super().server_close()
        self.turns.close()

    def service_actions(self) -> None:
        """Give up the connections whose requests are not complete after `READ_SECONDS`."""
        latest = time.monotonic() - READ_SECONDS
        for connection, opened in [*self.unread.items()]:
            if opened < latest:
                self._give_up(connection)

    def _give_up(self, connection: socket.socket) -> None:
        """Stop reading from a connection, so that its thread ends, and mark the connection as overdue."""
        if self.unread.pop(connection, None) is not None:
            self.overdue.add(connection)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)


def _refuse_unread(connection: socket.socket) -> None:
    sentence = f"busy: {CONNECTIONS} requests are answered at once; ask again in a moment."
    head = f"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {len(sentence)}\r\n\r\n"
    with suppress(OSError):
        connection.setblocking(False)
        connection.send((head + sentence).encode())


_LATE = refuse(HTTPStatus.REQUEST_TIMEOUT, "the request was not whole in time, or too many others waited; ask again.")


class _Handler(BaseHTTPRequestHandler):
    """The handler of connections, which passes on the requests of a page on this machine.

    Other pages that know the port must not read or write here.
    """

    timeout = SEND_SECONDS
    default_request_version = "HTTP/1.0"  # so that every answer begins with its status
    server: LocalServer
    raw_requestline: bytes

    def __init__(self, respond: Respond, *arguments: Any) -> None:
        self.respond = respond
        super().__init__(*arguments)

    def handle(self) -> None:
        """Answer one request; a broken connection is ignored, and an overdue one gets an error message."""
        with suppress(ConnectionError, TimeoutError):
            super().handle()
            if not self.raw_requestline and self.connection in self.server.overdue:
                self.requestline, self.request_version = "", self.default_request_version
                self._send(_LATE)

    def do_GET(self) -> None:
        """Answer a GET request."""
        self._answer(lambda: None)

    def do_POST(self) -> None:
        """Answer a POST request."""
        self._answer(self._read)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: the terminal shows the address, and the page shows its answers."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error message for a request that is not valid HTTP, or that no page sends."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        status = HTTPStatus.BAD_REQUEST if status >= HTTPStatus.INTERNAL_SERVER_ERROR else status
        self._send(refuse(status, f"this is no request of a page: {message or status.phrase}."))

    def _answer(self, read: Callable[[], bytes | None]) -> None:
        try:
            reply = self._reply(read)
        except ValueError as error:  # the content is too long or cannot be parsed
            reply = refuse(HTTPStatus.BAD_REQUEST, str(error))
        except BusyError as error:
            reply = refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (ConnectionError, TimeoutError, ClientLeftError):  # nobody waits for an answer
            self.close_connection = True
            return
        except Exception as error:  # the page shows any error, and the server continues
            sentence = f"this failed with {type(error).__name__}: {first_line(error)}."
            reply = refuse(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        with suppress(ConnectionError, TimeoutError):  # the page may have been closed meanwhile
            self._send(reply)
        reply.finish()

    def _reply(self, read: Callable[[], bytes | None]) -> Reply:
        if not self._is_ours():
            return refuse(HTTPStatus.FORBIDDEN, "only the page of headscope may ask this.")
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = read()
        if self.server.unread.pop(self.connection, None) is None:
            return _LATE
        reply = self.respond(Request(self.path, headers, content))
        if isinstance(reply, Reply):
            return reply
        return self.server.turns.do(reply, self._has_left)

    def _is_ours(self) -> bool:
        """Return True if the request names this server as its host and, if it has an origin, as its origin."""
        port = self.server.server_port
        names = {f"{name}:{port}".removesuffix(f":{HTTP_PORT}") for name in (HOST, "localhost")}
        origin = self.headers.get("Origin")
        return self.headers.get("Host") in names and (origin is None or origin.removeprefix("http://") in names)

    def _has_left(self) -> bool:
        """Return True if the page has closed its connection, so that nobody waits for an answer."""
        try:
            self.connection.settimeout(0)
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(self.timeout)

    def _read(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch(r"[0-9]{1,20}", length) or int(length) > LONGEST:
            raise ValueError(f"the request has {length[:20]} bytes, and at most {LONGEST} are read.")
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise ValueError(f"the request has {length} bytes, and {len(content)} came.")
        return content

    def _send(self, reply: Reply) -> None:
        if self.connection in self.server.overdue:
            reply = _LATE
        self.send_response(reply.status)
        self.send_header("Content-Type", f"{reply.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(reply.content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(reply.content)
