"""Rooms with gateways on loopback, partners that note what they get, and an engine that needs no Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom.room import Postroom

Answer = tuple[int, dict[str, str], bytes]
Program = Callable[[Postroom, str], None]


@dataclass
class Partner:
    """An HTTP server that notes what it gets, and answers as it is told."""

    answers: list[Answer] = field(default_factory=list)  # one after another; then 204
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @property
    def bodies(self) -> list[str]:
        return [body.decode() for _, _, body in self.got]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        self.got.append((path, headers, body))
        return self.answers.pop(0) if self.answers else (204, {}, b"")


def _handler(partner: Partner) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            partner.connections += 1
            super().setup()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, said = partner.take(self.path, headers, body)
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_OPTIONS = do_POST
        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    return Handler


@pytest.fixture
def partner() -> Iterator[Partner]:
    made = Partner()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    """The same test on both stores."""
    value: str = request.getfixturevalue(f"{request.param}_url")
    return value


@pytest.fixture
def room(url: str) -> Iterator[Postroom]:
    with postroom.open(url, actor="tester") as opened:
        evaluate_here(opened)
        yield opened
        differences = opened.journal.verify().differences
        assert differences == (), "the journal comes to what is stored"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def load(room: Postroom, text: str) -> None:
        file = tmp_path / "p.demaq"
        file.write_text(text)
        room.load(file)

    return load
