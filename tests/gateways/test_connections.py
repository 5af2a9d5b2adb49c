"""Connections to partners: kept for the next message, never used by two or when the partner has closed them."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import httpcore
import pytest

from postroom.gateways.connections import Connections

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Partner:
    """Answers every request; knows how often someone has connected."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}/"
        self.answer = ANSWER
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            while said := connection.recv(65_536):
                for _ in range(said.count(b"POST ")):
                    connection.sendall(self.answer)
        except OSError:
            return

    def close(self) -> None:
        self._server.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def partner() -> Iterator[Partner]:
    made = Partner()
    yield made
    made.close()


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections(ssl.create_default_context(), True, None)
    yield made
    made.close()


def said(connections: Connections, url: str) -> bytes:
    with connections.exchange(30, "POST", url, [(b"Host", b"x"), (b"Content-Length", b"0")], b"") as response:
        return response.read()


def test_one_connection_has_one_message_after_another(connections: Connections, partner: Partner) -> None:
    assert [said(connections, partner.url) for _ in range(20)] == [b"ok"] * 20
    assert len(partner.connections) == 1


def test_those_who_send_at_once_have_a_connection_each_and_eight_are_kept(
    connections: Connections, partner: Partner
) -> None:
    for _ in range(2):
        with ExitStack() as every:
            for _ in range(10):
                headers = [(b"Host", b"x"), (b"Content-Length", b"0")]
                response = every.enter_context(connections.exchange(30, "POST", partner.url, headers, b""))
                assert response.read() == b"ok"
    assert len(partner.connections) == 12


def test_what_the_partner_has_closed_is_not_used_again(connections: Connections, partner: Partner) -> None:
    said(connections, partner.url)
    partner.connections[0].shutdown(socket.SHUT_RDWR)
    assert said(connections, partner.url) == b"ok"
    assert len(partner.connections) == 2


def test_a_connection_whose_reply_was_not_read_to_its_end_is_closed(connections: Connections, partner: Partner) -> None:
    headers = [(b"Host", b"x"), (b"Content-Length", b"0")]
    with connections.exchange(30, "POST", partner.url, headers, b""):
        pass  # nobody has read the reply
    assert said(connections, partner.url) == b"ok"
    assert len(partner.connections) == 2


@pytest.mark.parametrize(
    "answer", [b"SPAM\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"]
)
def test_a_connection_that_spoke_no_http_is_closed(connections: Connections, partner: Partner, answer: bytes) -> None:
    partner.answer = answer
    with pytest.raises(httpcore.RemoteProtocolError):
        said(connections, partner.url)
    partner.answer = ANSWER
    assert said(connections, partner.url) == b"ok"
    assert len(partner.connections) == 2


def test_the_time_of_one_exchange_is_not_that_of_the_next(connections: Connections, partner: Partner) -> None:
    partner.answer = b"HTTP/1.1 200 OK\r\n"  # and no end
    headers = [(b"Host", b"x"), (b"Content-Length", b"0")]
    with (
        pytest.raises(httpcore.ReadTimeout),
        connections.exchange(0.2, "POST", partner.url, headers, b"") as response,
    ):
        response.read()
    partner.answer = ANSWER
    assert said(connections, partner.url) == b"ok"


def test_another_scheme_is_refused(connections: Connections) -> None:
    with pytest.raises(httpcore.UnsupportedProtocol):
        said(connections, "ftp://127.0.0.1/")
