"""The server of both pages: who has left is not waited for, nor who sends half; all others are answered or told why."""

import http.client
import json
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from headscope.commands import local_server, turns
from headscope.commands.local_server import LocalServer, Reply, Request, open_browser, open_server

BUSY = "busy: 3 questions wait for their answers; ask again in a moment."
LATE = "the request was not whole in time, or too many others waited; ask again."


class Work:
    """What a page asks for: the answer is the question, once it may begin."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_go_on = threading.Event()

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]:
        return Reply(b"the page") if request.content is None else lambda: self.answer(request)

    def answer(self, request: Request) -> Reply:
        question = request.read_json()
        self.begun.append(question)
        assert self.may_go_on.wait(30)
        return Reply(str(question).encode())


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def server(work: Work, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """A server with room for few, which is impatient."""
    monkeypatch.setattr(local_server, "CONNECTIONS", 11)
    monkeypatch.setattr(local_server, "READ_SECONDS", 0.3)
    monkeypatch.setattr(turns, "MOST_WAITING", 3)
    monkeypatch.setattr(turns, "LOOK_SECONDS", 0.02)
    with open_server(work, 0) as opened:
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield opened
        work.may_go_on.set()
        opened.shutdown()
        thread.join()


def send(server: LocalServer, content: bytes) -> socket.socket:
    """Send bytes as they are."""
    client = socket.create_connection(("127.0.0.1", server.server_port), 30)
    client.sendall(content)
    return client


def post(server: LocalServer, question: object, length: object = None) -> socket.socket:
    body = json.dumps(question).encode()
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return send(server, head.encode() + body)


def hear(client: socket.socket) -> tuple[int, str]:
    """The status and the content of an answer."""
    with client:
        answer = http.client.HTTPResponse(client)
        answer.begin()
        return answer.status, answer.read().decode()


def await_that(condition: Callable[[], Any]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_questions_of_those_who_have_left_are_dropped(server: LocalServer, work: Work) -> None:
    first = post(server, "first")
    await_that(lambda: work.begun)
    clients = [post(server, f"left {number}") for number in range(3)]  # as many as may wait
    await_that(lambda: len(server.turns) == 4)
    for client in clients:
        client.close()
    await_that(lambda: len(server.turns) == 1)
    last = post(server, "last")
    await_that(lambda: len(server.turns) == 2)
    work.may_go_on.set()
    assert (hear(first), hear(last)) == ((200, "first"), (200, "last"))
    assert work.begun == ["first", "last"]


def test_those_who_have_just_left_keep_nobody_out(server: LocalServer, work: Work, monkeypatch) -> None:
    monkeypatch.setattr(turns, "LOOK_SECONDS", 1.0)
    clients = [post(server, number) for number in range(4)]
    await_that(lambda: len(server.turns) == 4)
    for client in clients:
        client.close()
    last = post(server, "last")
    await_that(lambda: len(server.turns) < 4)
    work.may_go_on.set()
    assert hear(last) == (200, "last")


def test_who_would_wait_behind_too_many_is_told_so(server: LocalServer, work: Work) -> None:
    clients: list[socket.socket] = []
    for number in range(4):
        clients.append(post(server, number))
        await_that(lambda: len(server.turns) == len(clients))
    assert [hear(post(server, "too many")) for _ in range(2)] == [(503, BUSY)] * 2
    assert hear(send(server, page(server))) == (200, "the page"), "which needs no turn"
    work.may_go_on.set()
    assert [hear(client) for client in clients] == [(200, str(number)) for number in range(4)]
    assert work.begun == [0, 1, 2, 3], "in the order in which they came"


def page(server: LocalServer) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "part", [b"", b"GE", b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"]
)
def test_half_a_request_holds_nothing(server: LocalServer, work: Work, part: bytes) -> None:
    part = part.replace(b"\r\nContent", f"\r\nHost: 127.0.0.1:{server.server_port}\r\nContent".encode())
    threads = threading.active_count()
    assert hear(send(server, part)) == (408, LATE)
    await_that(lambda: threading.active_count() <= threads)
    assert not work.begun


def test_a_byte_now_and_then_holds_nothing_either(server: LocalServer) -> None:
    client = send(server, b"GET / HTTP/1.1\r\n")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(hear, client)
        while not answer.done():
            time.sleep(0.05)
            try:
                client.sendall(b"x")
            except OSError:
                break
        assert answer.result(30) == (408, LATE)


def test_those_who_send_half_give_way(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "READ_SECONDS", 600.0)
    clients = [send(server, b"GET / HTTP/1.1\r\n") for _ in range(11)]
    assert hear(send(server, page(server))) == (200, "the page")
    assert hear(clients[0]) == (408, LATE), "the oldest"
    for client in clients[1:]:
        client.close()


def test_with_no_room_for_a_connection_that_is_said(
    server: LocalServer, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that are open have sent their requests, and wait for their answers."""
    monkeypatch.setattr(turns, "MOST_WAITING", 99)
    clients = [post(server, number) for number in range(11)]
    await_that(lambda: len(server.turns) == 11)
    with socket.create_connection(("127.0.0.1", server.server_port), 30) as refused:
        assert hear(refused) == (503, "busy: 11 requests are answered at once; ask again in a moment.")
    work.may_go_on.set()
    assert [hear(client)[0] for client in clients] == [200] * 11


def test_who_goes_while_an_answer_is_sent_is_let_go(server: LocalServer, work: Work, capsys) -> None:
    client = post(server, "x" * 90_000)
    await_that(lambda: work.begun)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # breaks the connection at once
    client.close()
    work.may_go_on.set()
    assert hear(send(server, page(server))) == (200, "the page")
    assert capsys.readouterr() == ("", "")


HOST = b"Host: 127.0.0.1:%d\r\n"


@pytest.mark.parametrize(
    ("request_", "status", "sentence"),
    [
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400, "the request has -1 bytes, and at most"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1_0\r\n\r\n", 400, "the request has 1_0 bytes"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n", 400, "the request has x bytes"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 9000 + b"\r\n\r\n", 400, "the request has 999"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: \xb2\r\n\r\n", 400, "the request has \u00b2 bytes"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"\r\n", 400, "Expecting value"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n\xff{", 400, "'utf-"),
        (b"PUT / HTTP/1.1\r\n" + HOST + b"\r\n", 405, "this is no request of a page: Unsupported method ('PUT')."),
        (b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n", 405, ""),
        (b"GET / HTTP/9.9\r\n" + HOST + b"\r\n", 400, "this is no request of a page: Invalid HTTP version (9.9)."),
        (b"GET / HTTP/x\r\n\r\n", 400, "this is no request of a page: Bad request version ('HTTP/x')."),
        (b"\x16\x03\x01\x02\r\n\r\n", 400, "this is no request of a page: Bad request syntax"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414, "this is no request of a page: "),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 999 + b"\r\n", 431, "this is no request of a page: Too many headers."),
        (b"GET / HTTP/1.1\r\n\r\n", 403, "only the page of headscope may ask this."),
        (b"GET //[ HTTP/1.1\r\n" + HOST + b"\r\n", 200, "the page"),
    ],
)
def test_what_is_no_request_is_one_sentence(
    server: LocalServer, work: Work, request_: bytes, status: int, sentence: str
) -> None:
    work.may_go_on.set()
    answer = hear(send(server, request_.replace(b"%d", str(server.server_port).encode())))
    assert (answer[0], answer[1][: len(sentence)]) == (status, sentence)
    assert "<" not in answer[1]


def test_a_request_that_ends_early_is_refused(server: LocalServer, work: Work) -> None:
    client = post(server, 7, length=9)
    client.shutdown(socket.SHUT_WR)
    assert hear(client) == (400, "the request has 9 bytes, and 1 came.")
    assert not work.begun


def test_many_at_once_are_answered_or_told_why(server: LocalServer, work: Work) -> None:
    work.may_go_on.set()
    half = [send(server, b"POST / HTTP/1.1\r\n") for _ in range(31)]

    def ask(number: int) -> tuple[int, str]:
        try:
            return hear(post(server, number))
        except ConnectionError:  # nothing could be said: the request came when the connection was closed
            return 503, "busy: refused"

    with ThreadPoolExecutor(17) as pool:
        answers = [*pool.map(ask, range(101))]
    statuses = Counter(status for status, _ in answers)
    assert statuses.keys() <= {200, 503, 408}
    assert statuses[200]
    assert all(sentence == str(number) for number, (status, sentence) in enumerate(answers) if status == 200)
    assert [hear(client) for client in half] == [(408, LATE)] * 31
    await_that(lambda: not server.unread and not server.overdue)


def test_no_process_has_the_token_among_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    folder = open_browser("http://127.0.0.1:7/?token=secret")
    (address,) = opened
    file = Path(unquote(urlsplit(address).path))
    assert "secret" not in address
    assert 'content="0; url=http://127.0.0.1:7/?token=secret"' in file.read_text()
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    folder.cleanup()
    assert not file.parent.exists()
