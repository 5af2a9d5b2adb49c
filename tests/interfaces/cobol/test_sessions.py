"""Sessions of many programs in one server, over a Unix socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import pytest

import postroom
from postroom.errors import ArgumentInvalid, ListenRefused
from postroom.interfaces.cobol import sessions
from postroom.interfaces.cobol.building import LIBRARY, library
from postroom.interfaces.cobol.sessions import SessionServer
from postroom.interfaces.cobol.wire import Call, read_answer, write_call
from postroom.room import Postroom


class _Room(NamedTuple):
    """All that a server of sessions takes from the one beside it."""

    room: Postroom


@contextmanager
def serving(room: Postroom, path: Path) -> Iterator[SessionServer]:
    with SessionServer(str(path)) as server:
        asyncio.run(server.start(_Room(room)))  # type: ignore[arg-type]  # it needs no more
        yield server


def called(connection: socket.socket, verb: str, *fields: bytes, a: int = 0, b: int = 0, c: int = 0) -> list[bytes]:
    connection.sendall(write_call(Call(verb, a, b, c, fields)))
    head = connection.recv(4, socket.MSG_WAITALL)
    body = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    return read_answer(head + body)[1]


def program(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(30)
    made.connect(str(path))
    return made


def unprocessed(room: Postroom, queue: str) -> int:
    return room.count(queue).queues[0].unprocessed


def test_programs_share_a_server_and_each_ends_by_itself(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    for body in ("one", "two"):
        room.send("q", body)
    path, cd = tmp_path / "s", b"q".ljust(87)
    with serving(room, path), closing(program(path)) as one, closing(program(path)) as other:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for each, text in ((one, b"one"), (other, b"two")):
            called(each, "B", b"latin-1", b"")
            assert called(each, "R", cd, b=2, c=80)[1] == text
        called(one, "Q")
        other.close()  # it dies
        end = monotonic() + 30
        while unprocessed(room, "q") != 1 and monotonic() < end:
            sleep(0.02)
    assert [message.body for message in room.peek("q")] == ["two"]
    assert not path.exists()


def test_a_server_that_stops_gives_back_what_its_programs_had(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    room.send("q", "one")
    with serving(room, tmp_path / "s"), closing(program(tmp_path / "s")) as one:
        assert called(one, "R", b"q".ljust(87), b=2, c=80)[1] == b"one"
    assert unprocessed(room, "q") == 1


def test_an_encoding_that_is_none_ends_the_program_and_not_the_server(
    room: Postroom, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(room, tmp_path / "s"):
        with closing(program(tmp_path / "s")) as odd:
            odd.sendall(write_call(Call("B", 0, 0, 0, (b"no-such-code", b""))))
            assert odd.recv(1) == b""
        with closing(program(tmp_path / "s")) as next_one:
            assert called(next_one, "Q") == []
    assert "no-such-code" in capfd.readouterr().err


def test_programs_are_bounded(room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "COBOL_SESSIONS_MAX", 1)
    with serving(room, tmp_path / "s"), closing(program(tmp_path / "s")) as one:
        called(one, "B", b"", b"")
        with closing(program(tmp_path / "s")) as more:
            assert more.recv(1) == b""


def test_the_place_is_taken_only_if_it_is_free(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with SessionServer(path), pytest.raises(ListenRefused, match="in use"):
        SessionServer(path)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)  # a server was killed, and its file is left
    SessionServer(path).close()
    (tmp_path / "s").write_text("mine")
    with pytest.raises(ListenRefused):
        SessionServer(path)
    assert (tmp_path / "s").read_text() == "mine"
    with pytest.raises(ArgumentInvalid):
        SessionServer(str(tmp_path / ("x" * 200)))


def test_a_c_program_uses_the_server_and_its_own_source(cobc: str, sqlite_url: str, tmp_path: Path) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("OUT")
        room.queues.create_source("TERM-1")
    source, made, path = tmp_path / "send.c", tmp_path / "send", tmp_path / "session"
    source.write_text(
        '#include <string.h>\n#include "postroom.h"\n'
        "int main(void) { struct Output_CD cd; struct OPI_output_CD opi = {NULL, \"hello\", 5, 1, '2'}; int code;\n"
        'memcpy(&cd, "0001000500 OUT         ", sizeof cd); SEND(&cd, &opi, &code); return code; }\n'
    )
    subprocess.run(["cc", str(source), f"-I{LIBRARY}", str(library()), "-o", str(made)], check=True)
    words = [sys.executable, "-m", "postroom", "serve", "--room", sqlite_url, "--port", "0", "--session", str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "unix:" in [server.stdout.readline() for _ in range(2)][1]
        environment = {**os.environ, "POSTROOM_SESSION": str(path), "POSTROOM_SOURCE": "TERM-1"}
        assert subprocess.run([str(made)], env=environment, timeout=60).returncode == 0
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    with postroom.open(sqlite_url) as room:
        (message,) = room.peek("OUT")
        assert (message.body, message.properties["source"]) == ("hello", "TERM-1")
