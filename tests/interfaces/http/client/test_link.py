"""The connection to a server: what is told if none answers, and what a closed room does with it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from tests.interfaces.http.conftest import Served

import postroom
from postroom import errors


@contextmanager
def asked(listener: socket.socket) -> Iterator[socket.socket]:
    """A connection whose request has come whole: to close it before would take away the answer, too."""
    connection, _ = listener.accept()
    with connection:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        while length is not None and len(body) < int(length[1]):
            body += connection.recv(65536)
        yield connection


def test_a_server_that_is_not_there_and_one_that_breaks_off_are_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def break_off() -> None:
            for _ in range(4):
                with asked(listener):
                    pass

        thread = Thread(target=break_off)
        thread.start()
        with postroom.open(url, token="x") as remote:
            with pytest.raises(errors.AnswerLost) as lost:
                remote.send("q", "x")
            assert lost.value.happened == "unknown"
            with pytest.raises(errors.AnswerLost):  # it was tried again, and again
                remote.send("q", "x", idempotency_key="k")
        thread.join(10)
    with postroom.open(url, token="x") as remote, pytest.raises(errors.ServerUnreachable) as unreachable:
        remote.send("q", "x")
    assert unreachable.value.happened == "no"


def test_an_answer_that_is_none_of_ours_is_an_error_of_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for said in (b"200 OK\r\nContent-Length: 2\r\n\r\nhi", b"302 Found\r\nContent-Length: 2\r\n\r\n{}"):
                with asked(listener) as connection:
                    connection.sendall(b"HTTP/1.1 " + said.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))

        thread = Thread(target=answer)
        thread.start()
        with postroom.open(f"http://127.0.0.1:{listener.getsockname()[1]}", token="x") as remote:
            for _ in range(2):
                with pytest.raises(errors.ServerFailed):
                    remote.queues.create("x")
        thread.join(10)


def test_urls_that_name_no_server_and_tokens_that_are_refused(here: Served) -> None:
    for url in ("http://", "https://user:secret@host", "http://host?x=1"):
        with pytest.raises(errors.UrlInvalid) as refused:
            postroom.open(url)
        assert "secret" not in str(refused.value)
    with postroom.open(here.url, token="wrong") as remote, pytest.raises(errors.TokenRefused):
        remote.count()


def test_a_key_is_any_text_and_the_same_one_everywhere(here: Served) -> None:
    here.room.queues.create("orders")
    keys = ["käse", "注文 17", "a b", "😀", "%C3%A4", "Ã¤", "ä", " a", "a ", "a\nb"]
    with postroom.open(here.url, token=here.token) as remote:
        first = [remote.send("orders", "x", idempotency_key=key).key for key in keys]
        assert [remote.send("orders", "x", idempotency_key=key).key for key in keys] == first
        assert len(set(first)) == len(keys), "no two of them are one on the way"
        for wrong in ("", "\ud800", "a\0"):
            with pytest.raises(errors.ArgumentInvalid, match="characters of text"):
                remote.send("orders", "x", idempotency_key=wrong)
        batch = remote.send_many("orders", ["a", "b"], idempotency_key="Stück")
        assert list(remote.send_many("orders", ["a", "b"], idempotency_key="Stück").keys) == list(batch.keys)
    assert here.room.count("orders").queues[0].unprocessed == len(keys) + 2


def test_a_connection_that_is_made_while_the_room_is_closed_is_closed_too(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = postroom.open(here.url, token=here.token)
    connect, connections = socket.create_connection, list[socket.socket]()
    connected, closed = Event(), Event()

    def connect_late(*args: Any, **named: Any) -> socket.socket:
        connections.append(connect(*args, **named))
        connected.set()
        closed.wait(20)
        return connections[-1]

    monkeypatch.setattr(socket, "create_connection", connect_late)
    thread = Thread(target=room.count)
    thread.start()
    assert connected.wait(20)
    room.close()
    closed.set()
    thread.join(20)
    assert [connection.fileno() for connection in connections] == [-1]
