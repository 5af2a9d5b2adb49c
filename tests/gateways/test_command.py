"""The way out to a command: argv from the description only, no shell, a clean environment, a deadline."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import pytest

from postroom.gateways.command import CommandGateway
from postroom.limits import COMMAND_OUTPUT_BYTES_MAX, OUTBOX_ATTEMPTS_MAX
from postroom.room import Postroom
from postroom.store.kernel.outbox import Effect

PROBE = """
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "stdin": sys.stdin.read(),
                  "group": os.getpgid(0) == os.getpid()}))
"""


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A program that tells how it was called."""
    file = tmp_path / "probe.py"
    file.write_text(f"#!{sys.executable}\n{PROBE}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def effect(command: str, queue: str = "INP_0000") -> Effect:
    payload = {"command": command, "queue": queue, "path": "M/A"}
    return Effect(7, "command", payload, created=0, due=0, attempts=0, state="pending", note=None)


def test_the_command_runs_with_its_queue_appended(probe: Path) -> None:
    outcome = CommandGateway("/r.db").act(effect(f"{probe} one 'two words' $HOME `id` ; | > x"))
    assert outcome.done
    told = json.loads(outcome.result["output"])
    assert told["argv"] == ["one", "two words", "$HOME", "`id`", ";", "|", ">", "x", "-arg", "INP_0000"]
    assert told["stdin"] == ""
    assert told["group"] is True
    assert outcome.result["outcome"] == "exit 0"


@pytest.mark.parametrize("queue", ["-rf", "a;b", "$(id)", "a\nb", "a b", "'\"", "x" * 200])
def test_a_queue_name_is_one_word_whatever_it_contains(probe: Path, queue: str) -> None:
    outcome = CommandGateway("/r.db").act(effect(str(probe), queue))
    assert json.loads(outcome.result["output"])["argv"] == ["-arg", queue]


def test_the_environment_is_clean(probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    outcome = CommandGateway("/r.db").act(effect(str(probe)))
    environment = json.loads(outcome.result["output"])["env"]
    ours = {name for name in environment if not name.startswith(("LC_", "__"))}
    assert ours == {"PATH", "LANG", "POSTROOM_URL", "POSTROOM_QUEUE", "POSTROOM_PATH", "POSTROOM_EFFECT"}
    assert environment["POSTROOM_URL"] == "/r.db"
    assert (environment["POSTROOM_QUEUE"], environment["POSTROOM_PATH"]) == ("INP_0000", "M/A")
    assert environment["POSTROOM_EFFECT"] == "7"


def test_a_failing_command_is_not_done_and_its_output_is_kept() -> None:
    outcome = CommandGateway("/r.db").act(effect(f"{sys.executable} -c \"print('why'); raise SystemExit(3)\""))
    assert not outcome.done
    assert outcome.result["outcome"] == "exit 3"
    assert outcome.result["output"] == "why\n"


def test_a_program_that_is_not_there_is_told() -> None:
    outcome = CommandGateway("/r.db").act(effect("/no/such/program"))
    assert not outcome.done
    assert "cannot start /no/such/program" in outcome.result["outcome"]


def test_a_command_past_its_deadline_is_killed_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "still-alive"
    child = f"import time, pathlib; time.sleep(1.5); pathlib.Path({str(mark)!r}).touch()"
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    script = tmp_path / "parent.py"
    script.write_text(parent)
    started = monotonic()
    outcome = CommandGateway("/r.db", seconds=0.7).act(effect(f"{sys.executable} {script}"))
    assert not outcome.done
    assert "killed after its time limit of 0.7 s" in outcome.result["outcome"]
    assert monotonic() - started < 10
    while monotonic() - started < 2.5:
        os.sched_yield()
    assert not mark.exists()


def test_a_child_left_behind_does_not_keep_the_engine_waiting(tmp_path: Path) -> None:
    script = tmp_path / "leaver.py"
    script.write_text(
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])\n"
    )
    started = monotonic()
    outcome = CommandGateway("/r.db", seconds=20).act(effect(f"{sys.executable} {script}"))
    assert outcome.done
    assert monotonic() - started < 10


def test_output_without_end_is_bounded() -> None:
    script = "import sys\nfor _ in range(2000): sys.stdout.write('x' * 1000)"
    outcome = CommandGateway("/r.db").act(effect(f'{sys.executable} -c "{script}"'))
    assert outcome.done
    assert len(outcome.result["output"]) == COMMAND_OUTPUT_BYTES_MAX


def test_output_that_is_not_text_can_still_be_kept() -> None:
    outcome = CommandGateway("/r.db").act(
        effect(f"{sys.executable} -c \"import sys; sys.stdout.buffer.write(b'a\\x00\\xff')\"")
    )
    assert outcome.result["output"] == "a\ufffd\ufffd"


def test_a_command_that_closes_its_output_costs_no_processor_time(tmp_path: Path) -> None:
    script = tmp_path / "quiet.py"
    script.write_text("import os, time\nos.close(1); os.close(2)\ntime.sleep(1.5)\n")
    before = process_time()
    outcome = CommandGateway("/r.db").act(effect(f"{sys.executable} {script}"))
    assert outcome.done
    assert process_time() - before < 0.5


def test_an_interrupt_leaves_no_command_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def remember(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(real(*words, **options))
        return started[-1]

    monkeypatch.setattr("postroom.gateways.command.subprocess.Popen", remember)
    monkeypatch.setattr("postroom.gateways.command._keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        CommandGateway("/r.db").act(effect(f'{sys.executable} -c "print(1, flush=True); import time; time.sleep(60)"'))
    assert started[0].returncode is not None


# --- a queue that says how often ---


@pytest.fixture
def commanded(room: Postroom, tmp_path: Path) -> Callable[[str], Postroom]:
    """A room with a queue whose command is a program of this text."""

    def commanded(program: str) -> Postroom:
        (tmp_path / "consume.py").write_text(program)
        file = tmp_path / "t.qdl"
        file.write_text(f'01 INPUT-QUEUE (M) COMMAND LINE IS "{sys.executable} {tmp_path / "consume.py"}"\n99\n')
        room.load(file)
        return room

    return commanded


#: Takes one message after another; one that says "bad" is given back, and the command fails.
CONSUME = """
import os, postroom, sys
with postroom.open(os.environ["POSTROOM_URL"]) as room:
    while message := room.receive(os.environ["POSTROOM_QUEUE"], lease=60).message:
        if message.body == "bad":
            message.release()
            sys.exit(7)
        message.done()
"""


def test_a_message_that_a_command_fails_at_is_a_dead_letter_after_the_last_attempt(
    commanded: Callable[[str], Postroom],
) -> None:
    room = commanded(CONSUME)
    room.consumers.set_policy("M", attempts=2, backoff=0.01, dead_letters="graves")
    keys = [room.send("M", body).key for body in ("good", "bad", "better")]
    room.run_until_idle()
    (dead,) = room.peek("graves").messages
    assert (dead.key, dead.properties["dead.attempts"]) == (keys[1], 2)
    assert "exit 7" in str(dead.properties["dead.reason"])
    assert room.count("M").queues[0].processed == 2, "the command was run again for what came behind it"
    assert [event.verb for event in room.trace(keys[1])][-2:] == ["lease", "dead-letter"]
    assert [event.verb for event in room.trace(keys[1])].count("fail") == 1
    assert room.journal.verify().differences == ()


def test_a_command_that_cannot_run_makes_dead_letters_of_all_that_wait(commanded: Callable[[str], Postroom]) -> None:
    room = commanded("raise SystemExit(3)")
    room.consumers.set_policy("M", attempts=5)
    keys = [room.send("M", body).key for body in ("one", "two")]
    room.run_until_idle()
    assert [message.key for message in room.peek("INP_0000.dead")] == keys
    assert [message.properties["dead.attempts"] for message in room.peek("INP_0000.dead")] == [5, 5]
    assert [effect.state for effect in room.engine.outbox()] == ["failed", "failed"], "told to the operator, too"
    assert room.journal.verify().differences == ()


def test_what_a_command_has_leased_fails_once_by_its_lease(commanded: Callable[[str], Postroom]) -> None:
    room = commanded(CONSUME.replace("message.release()", "pass").replace("sys.exit(7)", "os._exit(7)"))
    room.consumers.set_policy("M", attempts=2, backoff=0.01)
    room.send("M", "bad")
    behind = room.send("M", "behind").key
    room.run_until_idle()
    assert [event.verb for event in room.trace(behind)] == ["put", "lease", "take"]
    assert room.journal.verify().differences == ()


def test_without_attempts_a_command_has_those_of_the_room(commanded: Callable[[str], Postroom]) -> None:
    room = commanded("raise SystemExit(3)")
    key = room.send("M", "one").key
    (failed,) = _run_quickly(room)
    assert (failed.state, failed.attempts) == ("failed", OUTBOX_ATTEMPTS_MAX)
    assert [event.verb for event in room.trace(key)] == ["put"]


def _run_quickly(room: Postroom) -> list[Effect]:
    """Every attempt at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.0)
        room.run_until_idle()
    return room.engine.outbox()


def test_a_command_that_cannot_be_begun_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine ended, and every one after it."""
    assert "No closing quotation" in str(CommandGateway("room.db").act(effect("print 'x")).result["outcome"])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("postroom.gateways.command.tempfile.TemporaryFile", full)
    outcome = CommandGateway("room.db").act(effect("true"))
    assert not outcome.done
    assert "No space left" in str(outcome.result["outcome"])
