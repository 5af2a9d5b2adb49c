"""Connections: plain sends that are answered without ASGI, and clients that mean no good or have lost their way."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import ExitStack, closing, suppress
from time import monotonic, sleep
from typing import Any, ClassVar

import pytest
from tests.interfaces.http.conftest import Served

from postroom.errors import RequestHeadTooLarge
from postroom.interfaces.http import connection
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.connection import JoinedWrites
from postroom.interfaces.http.handling import plain_sends
from postroom.interfaces.http.handling.sends import Sends


def connect(here: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(here.url.rsplit(":", 1)[1])), timeout=15)


# --- plain sends ---

_KEY = re.compile(rb"[0-9]{5}\.[0-9]{5}")


def _post(here: Served, body: bytes, *lines: str, version: str = "1.1", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    more = "".join(f"{line}\r\n" for line in lines)
    head = f"POST /queues/orders/messages HTTP/{version}\r\nHost: x\r\nAuthorization: Bearer {here.token}\r\n"
    return f"{head}{more}Content-Length: {size}\r\n\r\n".encode() + body


def _said(here: Served, pieces: list[bytes], answers: int, *, ends: bool) -> bytes:
    """What is answered to some input, without the keys."""
    with closing(connect(here)) as client:
        got = b""
        for piece in pieces:
            client.sendall(piece)
            sleep(0.02)
        while got.count(b"HTTP/1.1 ") < answers or not got.endswith(b"}"):
            piece = client.recv(65_536)
            assert piece, got
            got += piece
        if ends:
            assert client.recv(1) == b""
        else:
            client.settimeout(0.05)
            with pytest.raises(TimeoutError):
                client.recv(1)
        return re.sub(rb'"incident": "[0-9a-f]+"', b"", _KEY.sub(b"KEY", got))


@pytest.fixture
def begun(here: Served, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request that has come whole, whether it was a plain send. ``orders`` is a queue, and is known."""
    here.room.queues.create("orders")
    ways: list[bool] = []
    begin = Interface.begin_send

    def noted(self: Interface, *arguments: Any) -> bool:
        ways.append(begin(self, *arguments))
        return ways[-1]

    monkeypatch.setattr(Interface, "begin_send", noted)
    here.interface._callers.refresh()
    with here.client() as client:
        while ways[-1:] != [True]:
            assert client.post("/queues/orders/messages", json={"body": "known"}).status_code == 201
    ways.clear()
    return ways


_BODY = b'{"body": "order 17"}'
_LONG = json.dumps({"body": "x" * 60_000}).encode()


@pytest.mark.parametrize(
    ("way", "answers", "ends", "plain"),
    [
        ("one", 1, False, 1),
        ("three at once", 3, False, 3),
        ("the head first", 1, False, 0),
        ("in three pieces", 1, False, 0),
        ("one that closes", 1, True, 1),
        ("HTTP/1.0", 1, True, 1),
        ("three, and the second closes", 2, True, 2),
        ("expects to be told", 2, False, 0),
        ("long", 1, False, 0),
        ("malformed", 1, False, 0),
        ("no body", 1, False, 0),
        ("chunked", 1, False, 0),
        ("another one behind it", 2, False, 1),
        ("nonsense behind it", 2, True, 1),
    ],
)
def test_a_plain_send_is_answered_as_by_the_application(
    here: Served, begun: list[bool], monkeypatch: pytest.MonkeyPatch, way: str, answers: int, ends: bool, plain: int
) -> None:
    one, head = _post(here, _BODY), _post(here, b"", length=len(_BODY))
    get = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    pieces = {
        "one": [one],
        "three at once": [one * 3],
        "the head first": [head, _BODY],
        "in three pieces": [one[:40], one[40:-5], one[-5:]],
        "one that closes": [_post(here, _BODY, "Connection: close")],
        "HTTP/1.0": [_post(here, _BODY, version="1.0")],
        "three, and the second closes": [one + _post(here, _BODY, "Connection: close") + one],
        "expects to be told": [_post(here, b"", "Expect: 100-continue", length=len(_BODY)), _BODY],
        "long": [_post(here, _LONG)[:30_000], _post(here, _LONG)[30_000:]],
        "malformed": [_post(here, _BODY[:-1])],
        "no body": [_post(here, b"")],
        "chunked": [
            head.replace(b"Content-Length: 20", b"Transfer-Encoding: chunked") + b"14\r\n" + _BODY + b"\r\n0\r\n\r\n"
        ],
        "another one behind it": [one + get],
        "nonsense behind it": [one + b"NONSENSE\r\n\r\n"],
    }[way]
    count = here.room.count("orders").queues[0].unprocessed
    short = _said(here, pieces, answers, ends=ends)
    sent = here.room.count("orders").queues[0].unprocessed - count
    assert begun.count(True) == plain, begun
    monkeypatch.setattr(Interface, "begin_send", lambda *_: False)
    assert _said(here, pieces, answers, ends=ends) == short
    assert here.room.count("orders").queues[0].unprocessed - count == 2 * sent


def test_a_plain_send_that_is_refused_is_a_problem_and_is_told(here: Served, begun: list[bool]) -> None:
    here.room.queues.set_password("orders", password="pw")
    here.room.queues.disable("orders", password="pw", input_only=True)
    answer = _said(here, [_post(here, _BODY) * 2], 2, ends=False)
    assert begun == [True, True]
    assert [answer.count(what) for what in (b"HTTP/1.1 409 ", b'"code": "')] == [2, 2], answer
    with here.client() as client:
        numbers = client.get("/metrics").text
    assert 'postroom_requests_total{operation="queues.send",status="409"} 2' in numbers
    here.room.queues.enable("orders", password="pw")
    assert b"201 Created" in _said(here, [_post(here, _BODY)], 1, ends=False)


def test_a_plain_send_that_fails_is_an_incident(
    here: Served, begun: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(here.interface._sends._verbs, "send_each", failing)
    answer = _said(here, [_post(here, _BODY)], 1, ends=False)
    assert begun == [True]
    assert answer.startswith(b"HTTP/1.1 500 "), answer
    assert b'"happened": "unknown"' in answer


def test_one_outcome_that_cannot_be_told_leaves_the_others(here: Served, begun: list[bool]) -> None:
    sends: Sends = here.interface._sends

    def lost(*_: Any) -> None:
        raise ZeroDivisionError

    async def both() -> object:
        find = here.interface._callers.known(f"Bearer {here.token}")
        assert find is not None
        posting = plain_sends.PlainSend(find, ("orders",), None).posting(_BODY)
        assert posting is not None
        sends.begin(posting, lost)
        return await sends.submit(posting)

    assert asyncio.run_coroutine_threadsafe(both(), sends._loop).result(20)


def test_one_that_goes_before_the_answer_has_sent_and_keeps_nobody(here: Served, begun: list[bool]) -> None:
    count = here.room.count("orders").queues[0].unprocessed
    with here.room.store._mutex:  # nothing is written meanwhile
        gone = [connect(here) for _ in range(20)]
        for client in gone:
            client.sendall(_post(here, _BODY) * 2)
        while begun.count(True) < 20:
            sleep(0.005)
        for client in gone:
            client.close()
    with here.client() as last:
        assert last.post("/queues/orders/messages", json={"body": "last"}).status_code == 201
    for _ in range(400):
        if here.connections() == 0:
            break
        sleep(0.05)
    assert here.connections() == 0
    assert 20 < here.room.count("orders").queues[0].unprocessed - count <= 41


def test_a_server_that_stops_answers_what_it_has_begun(here: Served, begun: list[bool]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(connect(here))) for _ in range(10)]
        with here.room.store._mutex:
            for client in clients:
                client.sendall(_post(here, _BODY))
            while begun.count(True) < 10:
                sleep(0.005)
        here.stop()
        for client in clients:
            answer = b""
            while piece := client.recv(65_536):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 201 "), answer


# --- clients that mean no good, or have lost their way ---


def test_a_head_that_comes_too_slowly_is_cut_off(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_HEAD_SECONDS", 0.6)
    with closing(connect(here)) as slow:
        began = monotonic()
        with suppress(OSError):
            for letter in b"GET /health/live HTTP/1.1\r\n" * 10:
                slow.send(bytes([letter]))
                sleep(0.05)
                if monotonic() - began > 10:
                    break
        assert monotonic() - began < 10, "it may not go on for ever"
    with here.client() as client:
        assert client.get("/health/live").status_code == 200


def _answered(connection: socket.socket) -> tuple[int, dict[str, Any], bytes]:
    """The status, the document and the head of an answer that ends its connection."""
    answer = b""
    while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
        piece = connection.recv(65_536)
        assert piece, answer
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body), head.lower()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nX-Long: " + b"x" * 3_000_000,
        b"GET /health/live HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n",
        b"GET /health/live HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
    ],
)
def test_a_head_beyond_its_bounds_is_refused_with_a_reason(here: Served, head: bytes) -> None:
    with closing(connect(here)) as long:
        long.sendall(head)
        status, problem, said = _answered(long)
        assert (status, problem["code"], problem["happened"]) == (431, RequestHeadTooLarge.code, "no")
        assert b"content-type: application/problem+json" in said
    with here.client() as client:
        assert client.get("/health/live", headers={f"x-{n}": "x" * 500 for n in range(80)}).status_code == 200


def test_what_is_no_request_is_refused_as_a_problem(here: Served) -> None:
    with closing(connect(here)) as odd:
        odd.sendall(b"HELLO\r\n\r\n")
        status, problem, said = _answered(odd)
        assert (status, problem["code"]) == (400, "request-invalid")
        assert b"connection: close" in said


def test_more_connections_than_may_be_are_told_to_wait(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS_MAX", 3)
    with ExitStack() as stack:
        several = [stack.enter_context(closing(connect(here))) for _ in range(3)]
        for client in several:
            client.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200")
        with here.client() as other:
            refused = other.get("/health/live")
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        assert refused.headers["retry-after"] == "1"
    with here.client() as other:
        for _ in range(600):  # until the server has noticed that they are gone
            if other.get("/health/live").status_code == 200:
                break
            sleep(0.05)
        assert other.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /queues HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /queues HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        b"GET /queues HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\x00y\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /queues HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_whatever_comes_is_refused_and_the_server_goes_on(here: Served, said: bytes) -> None:
    with closing(connect(here)) as odd:
        odd.sendall(said)
        odd.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(OSError):
            answer = odd.recv(65536)
        assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 5")), answer
        assert b"root:" not in answer
    with here.client() as client:
        assert client.get("/queues").status_code == 200


def test_a_half_open_connection_and_one_that_reads_nothing_keep_nobody_waiting(here: Served) -> None:
    here.room.queues.create("orders")
    here.room.send_many("orders", ["x" * 100_000] * 100)
    lazy = connect(here)
    head = f"GET /queues/orders/lines HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {here.token}\r\n\r\n"
    lazy.sendall(head.encode())  # and never reads
    half = [connect(here) for _ in range(50)]
    try:
        began = monotonic()
        with here.client() as client:
            for number in range(20):
                assert client.post("/queues/orders/messages", json={"body": f"{number}"}).status_code == 201
        assert monotonic() - began < 10
    finally:
        for connection in (lazy, *half):
            connection.close()


def test_the_head_of_an_answer_goes_out_with_its_body_and_alone_if_nothing_follows() -> None:
    class Transport:
        written: ClassVar[list[bytes]] = []

        def write(self, data: bytes) -> None:
            self.written.append(data)

        def close(self) -> None:
            self.written.append(b"closed")

        def is_closing(self) -> bool:
            return b"closed" in self.written

    async def run() -> None:
        joined = JoinedWrites(Transport(), asyncio.get_running_loop(), Transport().close)  # type: ignore[arg-type]
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        joined.write(head)
        joined.write(b"body")
        joined.write(b"more")
        assert Transport.written == [head + b"body", b"more"]
        joined.write(head)
        await asyncio.sleep(0)
        assert Transport.written[2:] == [head]
        joined.write(head)
        joined.close()
        await asyncio.sleep(0)
        assert Transport.written[3:] == [head, b"closed"]

    asyncio.run(run())
