"""Clients that do not read their answers hold no thread and no turn, and are ended after a while."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from time import monotonic, sleep
from typing import Any

import pytest
from tests.interfaces.http.conftest import Served, serving

import postroom
from postroom.interfaces.http import connection

_MANY = 40  # more than there are threads for requests
_LARGE = "x" * 200_000


@pytest.fixture
def small(sqlite_url: str) -> Iterator[Served]:
    """A server whose kernel keeps little of what nobody reads."""
    with postroom.open(sqlite_url) as room, serving(room, unsent=8_192) as found:
        room.queues.create("large")
        room.queues.create("jobs")
        room.queues.create("orders")
        yield found


def lazy(served: Served, *requests: tuple[str, str, dict[str, Any] | None]) -> socket.socket:
    """A client that has asked, and does not read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", int(served.url.rsplit(":", 1)[1])))
    said = b""
    for method, path, document in requests:
        body = b"" if document is None else json.dumps(document).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.token}\r\nLast-Event-ID: 0\r\n"
        said += f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    connection.sendall(said)
    return connection


def waited_for(what: Any, seconds: float = 20.0) -> bool:
    end = monotonic() + seconds
    while not what() and monotonic() < end:
        sleep(0.02)
    return bool(what())


@pytest.mark.parametrize("wish", [{}, {"wait": 30}, {"wait": 30, "lease": 60}], ids=["receive", "long poll", "lease"])
def test_those_who_do_not_read_delay_nobody(small: Served, wish: dict[str, Any]) -> None:
    """Each has asked for a long list, and for a message while that is not read."""
    small.room.send_many("large", [_LARGE] * 3)
    with ExitStack() as connections, small.client() as client:
        for _ in range(_MANY):
            asked = [("GET", "/queues/large/messages", None), ("POST", "/queues/jobs/receive", wish)]
            connections.enter_context(closing(lazy(small, *asked)))
        assert waited_for(lambda: small.connections() == _MANY)
        sleep(0.5)
        small.room.send_many("jobs", ["x"] * _MANY)
        sleep(0.5)
        began = monotonic()
        for number in range(20):
            assert client.post("/queues/orders/messages", json={"body": f"{number}"}).status_code == 201
            received = client.post("/queues/orders/receive", json={"wait": 10})
            assert received.json()["message"]["body"] == str(number)
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(client.post, "/queues/orders/receive", json={"wait": 20}) for _ in range(4)]
            small.room.send_many("orders", ["a", "b", "c", "d"])
            assert {one.result().json()["message"]["body"] for one in waiting} == {"a", "b", "c", "d"}
        assert monotonic() - began < 10
    assert waited_for(lambda: small.connections() <= 1)
    assert small.room.count("jobs").queues[0].unprocessed == _MANY  # nobody was ready to read one


def test_one_that_reads_late_gets_every_answer(small: Served) -> None:
    small.room.send_many("large", [f"{number}{_LARGE}" for number in range(3)])
    asked = [("POST", "/queues/large/receive", {"wait": 5})] * 3
    with closing(lazy(small, *asked, ("GET", "/health/live", None))) as late:
        sleep(0.3)
        told = b""
        while b'"version"' not in told:
            told += late.recv(65_536)
    places = [told.index(b'"body": "%d' % number) for number in range(3)]
    assert places == sorted(places)
    assert small.room.count("large").queues[0].unprocessed == 0


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("POST", "/queues/large/receive", {"wait": 5}),
        ("GET", "/queues/large/messages", None),
        ("GET", "/queues/large/lines", None),
        ("GET", "/queues/large/follow", None),
        ("GET", "/journal/follow", None),
        ("GET", "/backup", None),
    ],
)
def test_the_connection_of_one_that_does_not_read_ends(
    small: Served, monkeypatch: pytest.MonkeyPatch, method: str, path: str, document: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(connection, "ANSWER_READ_SECONDS", 0.3)
    small.room.send_many("large", [_LARGE] * 5)
    small.room.send_many("orders", ["x"] * 1_000)
    with closing(lazy(small, (method, path, document), (method, path, document))):
        assert waited_for(lambda: small.connections() == 1)
        assert waited_for(lambda: small.connections() == 0)
    assert waited_for(lambda: small.interface.tail.followers == 0)


def test_one_that_reads_slowly_is_not_ended(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_READ_SECONDS", 0.5)
    monkeypatch.setattr(connection, "ANSWER_READ_BYTES", 8_192)
    small.room.send_many("large", [_LARGE] * 5)
    with closing(lazy(small, ("GET", "/queues/large/messages", None))) as slow:
        told, began = b"", monotonic()
        while not told.endswith(b'"next": null}'):
            told += slow.recv(32_768)
            sleep(0.01)
    assert monotonic() - began > 1
    assert told.count(_LARGE.encode()) == 5


def test_one_that_has_gone_takes_nothing_though_it_has_asked_for_more(small: Served) -> None:
    asked = [("POST", "/queues/large/receive", {"wait": 30})] * 3
    with closing(lazy(small, *asked)):
        assert waited_for(lambda: small.connections() == 1)
        sleep(0.3)
    assert waited_for(lambda: small.connections() == 0)
    small.room.send("large", "for someone else")
    sleep(0.3)
    assert small.room.count("large").queues[0].unprocessed == 1
    with closing(lazy(small, ("GET", "/queues/large/follow", None), ("GET", "/health/live", None))):
        assert waited_for(lambda: small.interface.tail.followers == 1)
    assert waited_for(lambda: small.interface.tail.followers == 0, 5)  # before the next sign of life to it


def test_little_that_is_not_read_ends_with_its_connection(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_READ_SECONDS", 0.3)
    small.room.send("large", "y" * 50_000)  # less than what makes a server wait
    with closing(lazy(small, ("POST", "/queues/large/receive", {}))) as client:
        client.sendall(b"nonsense\r\n\r\n")  # it is answered, and the connection is closed
        assert waited_for(lambda: small.connections() == 0)
