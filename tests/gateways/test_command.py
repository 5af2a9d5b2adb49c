"""The way out to a command: argv from the description only, no shell, a clean environment, a deadline."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import pytest

from postroom.gateways.command import CommandGateway
from postroom.limits import COMMAND_OUTPUT_BYTES_MAX
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
    monkeypatch.setattr(CommandGateway, "_keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        CommandGateway("/r.db").act(effect(f'{sys.executable} -c "print(1, flush=True); import time; time.sleep(60)"'))
    assert started[0].returncode is not None
