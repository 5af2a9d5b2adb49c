"""doctor and top: what they print, what they exit with, and that they make nothing."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import apsw
import pytest

import postroom

from ...conftest import Run

PROGRAM = Path(sys.executable).with_name("postroom")


def test_the_doctor_in_a_folder_without_a_room(run: Run, tmp_path: Path) -> None:
    ran = run("doctor")
    assert (ran.code, ran.err) == (0, "nothing is wrong\n")
    assert "note     store       ./postroom.db: there is no room here\n" in ran.out
    assert "→ postroom queue create NAME" in ran.out
    assert list(tmp_path.iterdir()) == []
    named = run("doctor", "--room", "other.db")
    assert (named.code, named.err) == (1, "1 wrong\n")


def test_the_doctor_of_a_sound_room_says_so_and_of_a_held_queue_what_to_do(run: Run) -> None:
    run("queue", "create", "q")
    assert run("doctor").code == 0
    run("queue", "password", "q", stdin="pw\n")
    run("send", "q", "--body", "x")
    run("disable", "q", stdin="pw\n")
    ran = run("doctor", "--deep")
    assert (ran.code, ran.err) == (1, "1 warning(s)\n")
    told = "warning  holds       q: on hold (full), and 1 message(s) wait in it\n"
    advice = told + " " * 21 + "→ postroom enable q\n"
    assert advice in ran.out
    assert run("doctor", "--brief").out == advice


def test_the_doctor_in_json(run: Run) -> None:
    run("queue", "create", "q")
    fine = run("doctor", "--json").json
    assert fine["status"] == "00"
    assert {"severity", "check", "finding", "concerns", "do"} == set(fine["findings"][0])
    failed = run("doctor", "--json", "--room", "none.db")
    assert (failed.code, failed.json["status"]) == (1, "99")


def test_the_doctor_leaves_an_older_room_as_it_is(run: Run, tmp_path: Path) -> None:
    run("queue", "create", "q")
    connection = apsw.Connection(str(tmp_path / "postroom.db"))
    connection.execute("PRAGMA user_version = 4")
    ran = run("doctor")
    assert ran.code == 1
    assert "warning  schema      ./postroom.db: schema 4 of " in ran.out
    assert connection.execute("PRAGMA user_version").get == 4
    connection.close()


@pytest.mark.parametrize("url", ["mysql://host/db", ""])
def test_the_doctor_of_what_is_no_room(run: Run, url: str) -> None:
    ran = run("doctor", "--room", url)
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_top_prints_one_picture_in_a_pipe(run: Run) -> None:
    run("queue", "create", "q")
    run("send", "q", "--body", "x")
    for words in (("top",), ("top", "--once")):
        ran = run(*words)
        assert (ran.code, ran.err) == (0, "")
        first, second, heading, row = ran.out.splitlines()
        assert first.endswith("  no engine runs")
        assert (
            second == "waiting: 0 for rules, 0 for flows, 0 for counters, 0 for procedures; outbox: 0 pending, 0 failed"
        )
        assert heading.split() == ["queue", "waiting", "processed", "in/s", "out/s", "state"]
        assert row.split() == ["q", "1", "0"]
    assert run("top", "--json").json["queues"][0]["unprocessed"] == 1


def test_top_of_no_room_and_too_often(run: Run, tmp_path: Path) -> None:
    assert run("top").err.startswith("postroom: room-missing: ")
    assert run("top", "--every", "0").code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_top_takes_pictures_until_it_is_stopped(run: Run, tmp_path: Path, way: signal.Signals) -> None:
    run("queue", "create", "q")
    process = subprocess.Popen(
        [PROGRAM, "top", "--every", "0.2"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while sum(line.startswith("q ") for line in lines) < 3:
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        process.send_signal(way)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said) == (0, "")
    rates = [line.split() for line in lines if line.startswith("q ")]
    assert rates[1] == ["q", "0", "0", "0.0", "0.0"]


def test_top_lives_on_a_terminal_and_leaves_cleanly(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "postroom.db") as room:
        for number in range(40):
            room.queues.create(f"q{number}")
    child, screen = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ.update(COLUMNS="100", LINES="20", TERM="xterm")
        os.execv(PROGRAM, ["postroom", "top", "--every", "0.2"])
    shown, end, pressed = b"", monotonic() + 60, False
    while monotonic() < end:
        if not pressed and shown.count(b"no engine runs") >= 3:
            os.write(screen, b"\x03")
            pressed = True
        if select.select([screen], [], [], 0.1)[0]:
            try:
                piece = os.read(screen, 65536)
            except OSError:
                break
            shown += piece
    os.close(screen)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    text = shown.decode()
    assert "messages/s" in text, "the second picture knows how fast"
    assert "queue(s) more; postroom count lists all" in text
    assert text.rstrip().endswith("\x1b[?25h"), "the cursor is there again"
    assert "Traceback" not in text


def test_top_tells_who_sends_if_it_is_not_the_engine(run: Run, tmp_path: Path) -> None:
    with postroom.open(str(tmp_path / "postroom.db")) as room:
        assert " sends" not in run("top").out
        fence = room.store.transact("lease", lambda tx: tx.leases.acquire("senders", "elsewhere/7/1", 60))
        assert "\nprocess 7 on elsewhere sends\n" in run("top").out
        assert run("top", "--json").json["senders"] == {
            "state": "runs",
            "owner": "process 7 on elsewhere",
            "number": fence,
        }
        room.store.transact("lease", lambda tx: tx.leases.renew("senders", fence, 0))
        assert "\nthe senders' process (process 7 on elsewhere) is silent\n" in run("top").out
