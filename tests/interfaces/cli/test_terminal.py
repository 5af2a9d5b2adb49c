"""As a person at a terminal: typing a message, being asked for a password, colour, and whose lock it is."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

PROGRAM = Path(sys.executable).with_name("postroom")


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell with several commands is one user to Postroom."""
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": ""},
        timeout=120,
    )


def at_terminal(folder: Path, *words: str, typed: tuple[tuple[str, str], ...] = ()) -> str:
    """Run a command on a pseudo-terminal; type each text once its prompt has appeared. Answers with the screen."""
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(PROGRAM, ["postroom", *words])
    shown, waiting, end = b"", list(typed), monotonic() + 30
    while monotonic() < end:
        if waiting and waiting[0][0].encode() in shown:
            sleep(0.1)  # a password prompt throws away what was typed before it
            os.write(screen, waiting.pop(0)[1].encode())
        if select.select([screen], [], [], 0.1)[0]:
            try:
                piece = os.read(screen, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.close(screen)  # hangs up on a command that still waits
    os.waitpid(child, 0)
    assert monotonic() < end, f"still waiting: {shown.decode()}"
    return shown.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert shell("postroom queue create q", tmp_path).returncode == 0
    return tmp_path


def test_typed_lines_end_with_a_full_stop(folder: Path) -> None:
    screen = at_terminal(folder, "send", "q", typed=(("starts with '.'", "first line\nsecond line\n. that is all\n"),))
    assert "00001.00001" in screen
    assert shell("postroom receive q", folder).stdout == "first line\nsecond line\n"


def test_a_last_line_that_is_empty_is_a_segment(folder: Path) -> None:
    at_terminal(folder, "send", "q", typed=(("starts with '.'", "first\n\n.\n"),))
    segments = [shell("postroom receive q --segment", folder) for _ in range(2)]
    assert [(one.stdout, one.stderr) for one in segments] == [("first\n", ""), ("\n", "end of message\n")]


def test_tables_have_colour_on_a_terminal_and_none_in_a_pipe(folder: Path) -> None:
    assert "\x1b[" in at_terminal(folder, "accept")
    assert "\x1b[" not in shell("postroom accept", folder).stdout


def test_a_load_shows_its_progress_on_a_terminal(folder: Path) -> None:
    (folder / "t.qdl").write_text('01 INPUT-QUEUE (A) PASSWORD IS "A"\n01 INPUT-QUEUE (B) PASSWORD IS "B"\n99\n')
    screen = at_terminal(folder, "load", "t.qdl")
    assert "preparing entries" in screen
    assert "version 1: 2 added" in screen


def test_a_password_is_asked_for_without_echo(folder: Path) -> None:
    at_terminal(folder, "queue", "password", "q", typed=(("new password:", "geheim\n"), ("again:", "geheim\n")))
    screen = at_terminal(folder, "disable", "q", typed=(("password of q:", "geheim\n"),))
    assert "on hold: q" in screen
    assert "geheim" not in screen


def test_one_shell_is_one_user_and_its_end_frees_the_lock(folder: Path) -> None:
    shell("printf 'one\\ntwo\\nthree\\n' | postroom send q", folder)
    first = shell("postroom receive q --segment; postroom receive q --segment; postroom send q --body x", folder)
    assert first.stdout == "one\ntwo\n"
    assert "queue-locked" in first.stderr  # the shell still lives while its own send is refused
    again = shell("postroom receive q --segment; true", folder)
    assert again.stdout == "one\n"


def test_another_shell_is_told_who_holds_the_queue(folder: Path) -> None:
    shell("printf 'one\\ntwo\\n' | postroom send q", folder)
    script = """
    postroom receive q --segment
    bash -c 'postroom receive q --wait 0; echo "code $?"'
    postroom receive q --segment
    """
    ran = shell(script, folder)
    assert ran.stdout == "one\ncode 1\ntwo\n"
    assert "queue-locked: q is locked by" in ran.stderr


def test_a_shell_cannot_run_two_engines(folder: Path) -> None:
    script = """
    postroom run & engine=$!
    until postroom journal --last 1 | grep -q lease; do sleep 0.1; done
    postroom run --until-idle; echo "code $?"
    kill $engine; wait $engine; echo "engine $?"
    postroom run --until-idle; echo "code $?"
    """
    ran = shell(script, folder)
    assert ran.stdout.split("\n")[:3] == ["code 1", "engine 0", "code 0"]
    assert "lease-held" in ran.stderr


def test_completion_knows_the_queues(folder: Path) -> None:
    shell("postroom queue create orders; postroom queue create other", folder)
    ran = shell("COMP_WORDS='postroom receive or' COMP_CWORD=2 _POSTROOM_COMPLETE=complete_bash postroom", folder)
    assert ran.stdout.split() == ["orders"]


def test_two_new_passwords_that_differ_change_nothing(folder: Path) -> None:
    screen = at_terminal(folder, "queue", "password", "q", typed=(("new password:", "one\n"), ("again:", "two\n")))
    assert "not the same" in screen
    assert "no password" in shell("postroom disable q </dev/null", folder).stderr


def test_an_empty_typed_message_is_not_sent(folder: Path) -> None:
    assert "nothing was sent" in at_terminal(folder, "send", "q", typed=(("starts with '.'", "\x04"),))


def test_what_cannot_be_written_out_is_told_with_its_key(folder: Path) -> None:
    shell("postroom send q --body 'caf\u00e9'; postroom send q --body second", folder)
    narrow = shell("PYTHONIOENCODING=ascii postroom receive q", folder)
    assert narrow.stdout == "caf\\xe9\n"
    full = shell("postroom receive q > /dev/full", folder)
    assert full.returncode == 1
    assert full.stderr.startswith("postroom: output-failed: message 00001.00002 of q could not be written out")
    full = shell("postroom receive q --json > /dev/full", folder)
    assert (full.returncode, full.stderr[:60]) == (1, "postroom: output-failed: message 00001.00002 of q could not ")
    assert shell("postroom receive q", folder).stdout == "second\n"
    lost = shell("postroom accept > /dev/full", folder)
    assert (lost.returncode, lost.stderr.count("\n")) == (1, 1)
    assert "Traceback" not in shell("postroom send q <&-", folder).stderr


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    shell("for i in 1 2 3; do postroom send q --body x; done", folder)
    ran = shell("set -o pipefail; postroom info q --json | head -c 5 >/dev/null; echo", folder)
    assert "Traceback" not in ran.stderr
