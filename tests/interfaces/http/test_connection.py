"""Connections: plain sends that are answered without ASGI, and clients that mean no good or have lost their way."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from itertools import pairwise
from random import Random
from time import monotonic, sleep
from typing import Any, ClassVar

import pytest
from tests.interfaces.http.conftest import Served

from postroom.errors import RequestHeadTooLarge
from postroom.interfaces.http import connection
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.connection import BoundedProtocol, JoinedWrites
from postroom.interfaces.http.handling import plain_sends
from postroom.interfaces.http.handling.sends import Sends
from postroom.limits import REQUEST_HEAD_BYTES_MAX


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


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * REQUEST_HEAD_BYTES_MAX + b"\r\n\r\n", b"431"),
        (b"POST /queues/orders/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nNONSENSE", b"400"),
    ],
)
def test_what_is_refused_is_answered_after_what_came_before(
    here: Served, begun: list[bool], monkeypatch: pytest.MonkeyPatch, refused: bytes, status: bytes
) -> None:
    monkeypatch.setattr(connection, "_LINGER_SECONDS", 0.1)
    get = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    one = _post(here, _BODY)
    for before in ([one], [get], [one, get, one, one]):
        with closing(connect(here)) as client:
            client.sendall(b"".join(before) + refused)
            got = b""
            while piece := client.recv(65_536):
                got += piece
        expected = [b"200" if each is get else b"201" for each in before]
        assert re.findall(rb"HTTP/1.1 ([0-9]+) ", got) == [*expected, status]


# --- the same head again ---


def _talk(here: Served, sent: Sequence[bytes], cuts: Random, *, waits: bool) -> bytes:
    """What is answered to requests that are cut into pieces, until the connection is quiet; without keys."""
    with closing(connect(here)) as client:
        got = b""
        for one in sent:
            places = sorted(cuts.sample(range(1, len(one)), cuts.choice([0, 0, 0, 1, 2])))
            try:
                for start, end in pairwise([0, *places, len(one)]):
                    client.sendall(one[start:end])
                    sleep(0.003 if places else 0)
            except OSError:  # it was closed by what came before
                break
            client.settimeout(0.1 if waits else 0.001)
            with suppress(TimeoutError, OSError):
                got += client.recv(65_536)
        client.settimeout(0.1)
        with suppress(TimeoutError, OSError):
            while piece := client.recv(65_536):
                got += piece
        return re.sub(rb'"incident": "[0-9a-f]+"', b"", _KEY.sub(b"KEY", got))


def _requests(here: Served, random: Random) -> list[bytes]:
    """Mostly plain sends of one client; some have another head, go elsewhere, or are nonsense."""
    get = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    made: list[bytes] = []
    while len(made) < 12:
        body = json.dumps({"body": "x" * random.choice([0, 1, 9, 90, 5_000])}).encode()
        others = [
            get,
            _post(here, body, "Accept: */*"),
            _post(here, body, f"Idempotency-Key: k{random.random()}"),
            _post(here, body[:-1]),
            _post(here, b"\r\n" + body + b"\r\n"),
            _post(here, body) + b"\r\n",
            _post(here, body) * 2,
            _post(here, body) + get,
            _post(here, body).replace(b"/orders/", b"/nowhere/"),
            _post(here, body).replace(b"Bearer ", b"Bearer x"),
            _post(here, b""),
        ]
        ends = [_post(here, body, "Connection: close"), b"NONSENSE\r\n\r\n", _post(here, body, version="1.0")]
        made.append(random.choice(others if random.random() < 0.3 else [_post(here, body)]))
        if random.random() < 0.02:
            made.append(random.choice(ends))
    return made


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 400))])
def test_a_head_that_is_not_parsed_again_changes_no_answer(
    here: Served, begun: list[bool], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    waits = random.random() < 0.8
    requests = _requests(here, random)
    first = here.room.count("orders").queues[0].unprocessed
    short = _talk(here, requests, Random(seed), waits=waits)
    bodies = [message.body for message in here.room.queues.info("orders")][first:]
    monkeypatch.setattr(BoundedProtocol, "_sends_again", lambda *_: False)
    requests = [re.sub(rb"(Idempotency-Key: )k", rb"\1l", one) for one in requests]
    assert _talk(here, requests, Random(seed), waits=waits) == short
    assert [message.body for message in here.room.queues.info("orders")][first + len(bodies) :] == bodies


def test_of_the_sends_of_a_client_only_the_first_is_parsed(
    here: Served, begun: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[BoundedProtocol] = []
    begin = BoundedProtocol.on_message_begin

    def noted(self: BoundedProtocol) -> None:
        parsed.append(self)
        begin(self)

    monkeypatch.setattr(BoundedProtocol, "on_message_begin", noted)
    with closing(connect(here)) as client:
        for length in (1, 10, 100, 1_000):
            client.sendall(_post(here, json.dumps({"body": "x" * length}).encode()))
            assert b" 201 " in client.recv(65_536)
    assert len(parsed) == 1
    assert [len(message.body) for message in here.room.queues.info("orders")][-4:] == [1, 10, 100, 1_000]


def test_rights_and_holds_are_looked_at_though_the_head_is_known(here: Served, begun: list[bool]) -> None:
    one = _post(here, _BODY)
    with closing(connect(here)) as client:

        def status() -> bytes:
            client.sendall(one)
            return client.recv(65_536).split()[1]

        assert [status() for _ in range(3)] == [b"201"] * 3
        here.room.queues.set_password("orders", password="pw")
        here.room.queues.disable("orders", password="pw", input_only=True)
        assert [status(), status()] == [b"409"] * 2
        here.room.queues.enable("orders", password="pw")
        assert [status(), status()] == [b"201"] * 2
        (token,) = here.room.access.tokens()
        here.room.access.revoke_token(token.id)
        here.interface._callers.refresh()
        assert status() == b"401"


def test_a_connection_is_closed_when_nothing_comes_and_not_while_a_send_is_under_way(
    here: Served, begun: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BoundedProtocol.connection_made

    def short(self: BoundedProtocol, transport: Any) -> None:
        made(self, transport)
        self.timeout_keep_alive = 0.2  # type: ignore[assignment]

    monkeypatch.setattr(BoundedProtocol, "connection_made", short)
    with closing(connect(here)) as client:
        for _ in range(2):
            client.sendall(_post(here, _BODY))
            assert b" 201 " in client.recv(65_536)
        with here.room.store._mutex:
            client.sendall(_post(here, _BODY))
            sleep(0.5)
        assert b" 201 " in client.recv(65_536)
        assert client.recv(1) == b"", "nothing came any more"
    assert begun == [True] * 3


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
