"""A room behind a STOMP server on loopback, and a client of bare sockets: what it says is what is on the wire."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import NamedTuple

import pytest
import uvicorn

import postroom
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.server import Listening, _config, bound
from postroom.interfaces.stomp.frames import written
from postroom.interfaces.stomp.server import StompServer
from postroom.room import Postroom


class Heard(NamedTuple):
    """A frame of the server."""

    command: str
    headers: dict[str, str]
    body: str


class Wire:
    """A client that writes bytes and reads frames."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self._buffer = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, command: str, body: bytes | str = b"", **headers: str) -> None:
        said = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.socket.sendall(written(command, said, body.encode() if isinstance(body, str) else body))

    def connect(self, token: str, **headers: str) -> Heard:
        self.say("CONNECT", accept_version="1.2", host="room", passcode=token, **headers)
        return self.hear("CONNECTED")

    def hear(self, command: str | None = None) -> Heard:
        """The next frame, which must be of a kind if one is named."""
        self._buffer = self._buffer.lstrip(b"\n")
        while b"\n\n" not in self._buffer:
            self._more()
        head, _, rest = self._buffer.partition(b"\n\n")
        lines = head.decode().split("\n")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers.setdefault(_plain(name), _plain(value))
        size = int(headers["content-length"]) if "content-length" in headers else None
        while len(rest := self._buffer.partition(b"\n\n")[2]) <= (size or 0) or (size is None and b"\0" not in rest):
            self._more()
        size = rest.index(b"\0") if size is None else size
        assert rest[size] == 0
        self._buffer = rest[size + 1 :]
        heard = Heard(lines[0], headers, rest[:size].decode())
        assert command is None or heard.command == command, heard
        return heard

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self._buffer)
        self._buffer += data.replace(b"\r\n", b"\n")
        self._buffer = self._buffer.lstrip(b"\n") if not self._buffer.strip(b"\n") else self._buffer

    def hears_the_end(self) -> bool:
        """Whether the server closes the connection without another frame."""
        try:
            self.hear()
        except (EOFError, OSError):
            return True
        return False

    def done(self, command: str, body: bytes | str = b"", **headers: str) -> None:
        """Say something, and wait until it is committed."""
        self.say(command, body, receipt="r", **headers)
        assert self.hear("RECEIPT").headers["receipt-id"] == "r"


def _plain(text: str) -> str:
    return text.replace(r"\n", "\n").replace(r"\r", "\r").replace(r"\c", ":").replace("\\\\", "\\")


class Stomped(NamedTuple):
    port: int
    token: str
    room: Postroom  # as the server has it
    server: uvicorn.Server

    def wire(self, token: str | None = None) -> Wire:
        """A client that is connected."""
        made = Wire(self.port)
        made.connect(self.token if token is None else token)
        return made

    def user(self, name: str, *grants: tuple[str, str]) -> str:
        self.room.flows.add_principal(name, "secret")
        for verb, object in grants:
            self.room.access.grant(name, verb, object)
        return self.room.access.create_token(name, "test")


@contextmanager
def stomping(room: Postroom, certificate: str | None = None, key: str | None = None) -> Iterator[Stomped]:
    where = Listening(port=0, certificate=certificate, key=key)
    with bound(Listening(port=0)) as web, bound(Listening(port=0)) as found:
        server = uvicorn.Server(_config(Interface(room, beside=[StompServer(found, where)]), Listening(port=0)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [web]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                sleep(0.01)
            for name in ("orders", "answers"):
                room.queues.create(name, exist_ok=True)
            room.flows.add_principal("boss", "secret")
            room.access.grant("boss", "operate")
            yield Stomped(found.getsockname()[1], room.access.create_token("boss", "test"), room, server)
        finally:
            server.should_exit = True
            thread.join(40)
            assert not thread.is_alive()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    """The same test on both stores."""
    value: str = request.getfixturevalue(f"{request.param}_url")
    return value


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stomped]:
    """One server for tests that leave its queues as they are, or do not look at them."""
    with postroom.open(str(tmp_path_factory.mktemp("shared") / "room.db")) as room, stomping(room) as found:
        yield found


@pytest.fixture
def stomped(room: Postroom) -> Iterator[Stomped]:
    """On both stores."""
    with stomping(room) as found:
        yield found


@pytest.fixture
def here(sqlite_url: str) -> Iterator[Stomped]:
    """On SQLite, for what has nothing to do with the store."""
    with postroom.open(sqlite_url) as room, stomping(room) as found:
        yield found


def eventually(what: object) -> None:
    """Wait until something holds."""
    end = monotonic() + 30
    while not what():  # type: ignore[operator]
        assert monotonic() < end, "it never came about"
        sleep(0.02)
