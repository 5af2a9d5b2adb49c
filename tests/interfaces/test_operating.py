"""doctor: what it prints, what it exits with, and that it makes nothing."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from .conftest import Run


def test_the_doctor_in_a_folder_without_a_room(run: Run, tmp_path: Path) -> None:
    ran = run("doctor")
    assert (ran.code, ran.err) == (0, "nothing is wrong\n")
    assert "note     store       ./postroom.db: there is no room here\n" in ran.out
    assert "→ postroom queue create NAME" in ran.out
    assert list(tmp_path.iterdir()) == []
    named = run("doctor", "--room", "other.db")
    assert (named.code, named.err) == (1, "1 problem(s) found\n")


def test_the_doctor_of_a_sound_room_says_so_and_of_a_held_queue_what_to_do(run: Run) -> None:
    run("queue", "create", "q")
    assert run("doctor").code == 0
    run("queue", "password", "q", stdin="pw\n")
    run("send", "q", "--body", "x")
    run("disable", "q", stdin="pw\n")
    ran = run("doctor", "--deep")
    assert (ran.code, ran.err) == (1, "1 problem(s) found\n")
    told = "warning  holds       q: on hold (full), and 1 message(s) wait in it\n"
    assert told + " " * 21 + "→ postroom enable q\n" in ran.out


def test_the_doctor_in_json(run: Run) -> None:
    run("queue", "create", "q")
    fine = run("doctor", "--json").json
    assert fine["status"] == "00"
    assert {"level", "check", "what", "where", "do"} == set(fine["findings"][0])
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
