"""The process of a session: a program that ends, one that dies, one that talks nonsense."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

import postroom
from postroom.errors import RoomMissing
from postroom.interfaces.cobol.building import LIBRARY, library
from postroom.interfaces.cobol.process import refuse_all, serve
from postroom.interfaces.cobol.wire import Call, read_answer, write_call
from postroom.room import Postroom

RECEIVE = write_call(Call("R", 0, 2, 80, (b"q".ljust(87),)))
QUIT = write_call(Call("Q", 0, 0, 0, ()))


@pytest.mark.parametrize(
    ("said", "left"),
    [(RECEIVE + QUIT, 0), (RECEIVE, 1), (RECEIVE + b"\0\0", 1), (RECEIVE + b"\0\0\0\x05nonsense", 1), (b"", 1)],
    ids=["ended", "died", "died within a frame", "nonsense", "never spoke"],
)
def test_what_was_received_is_final_only_for_a_program_that_ended(room: Postroom, said: bytes, left: int) -> None:
    room.queues.create("q")
    room.send("q", "message")
    here, there = socket.socketpair()
    answers = bytearray()

    def program() -> None:
        with there, suppress(ConnectionResetError):
            there.sendall(said)
            there.shutdown(socket.SHUT_WR)
            while data := there.recv(4096):
                answers.extend(data)

    thread = Thread(target=program)
    thread.start()
    with here:
        serve(room, here, encoding="utf-8", source=None)
    thread.join()
    assert (b"message" in answers) == bool(said)
    assert room.count("q").queues[0].unprocessed == left


def test_a_session_whose_room_has_stopped_ends_so_that_the_next_call_begins_another(room: Postroom) -> None:
    room.queues.create("q")
    here, there = socket.socketpair()
    with here, there:
        thread = Thread(target=serve, args=(room, there), kwargs={"encoding": "utf-8", "source": None})
        thread.start()
        room.store._stop("the database is gone")
        here.sendall(write_call(Call("C", 0, 0, 0, (b"q".ljust(87),))))
        head = here.recv(4, socket.MSG_WAITALL)
        _, (area,) = read_answer(head + here.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        assert area[79:81] == b"99"
        thread.join(30)
        assert not thread.is_alive()


def test_without_a_room_a_program_learns_that_there_is_no_session(capsys: pytest.CaptureFixture[str]) -> None:
    here, there = socket.socketpair()
    with there:
        refuse_all(here, RoomMissing(url="nowhere.db"))
        assert there.recv(1) == b""
    assert "room-missing" in capsys.readouterr().err


def test_a_server_can_hold_the_sessions_of_many_programs(sqlite_url: str, tmp_path: Path) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        source = tmp_path / "p.c"
        source.write_text(PROGRAM)
        subprocess.run(["cc", f"-I{LIBRARY}", "-o", tmp_path / "p", source, library()], check=True)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / "s"))
            listening.listen()
            environment = {**os.environ, "POSTROOM_SESSION": str(tmp_path / "s")}
            programs = [subprocess.Popen([tmp_path / "p"], env=environment) for _ in range(3)]
            threads = []
            for _ in programs:
                connection, _ = listening.accept()
                threads.append(Thread(target=_served, args=(room, connection)))
                threads[-1].start()
            assert [program.wait(60) for program in programs] == [0, 0, 0]
            for thread in threads:
                thread.join()
        assert [message.body for message in room.peek("q")] == ["hello"] * 3


def _served(room: Postroom, connection: socket.socket) -> None:
    with connection:
        serve(room, connection, encoding="utf-8", source=None)


PROGRAM = r"""
#include <string.h>
#include "postroom.h"
int main(void) {
    char cd[23];
    memcpy(cd, "00010005990q           ", 23);
    postroom_send(cd, 23, "hello", 5, "2", 0, " ", POSTROOM_NO_LINES);
    return memcmp(cd + 8, "000", 3) != 0;
}
"""
