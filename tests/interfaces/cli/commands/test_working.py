"""The command work: a module of a user's own, until nothing is left or a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.interfaces import shapes

from ...conftest import Run

MODULE = """
import postroom
workers = postroom.Workers()

@workers.worker("orders", concurrency=2)
def handle(order: dict) -> None:
    if order["n"] < 0:
        raise ValueError("less than nothing")
"""


def test_workers_of_a_module_work_until_idle(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop_idle.py").write_text(MODULE)
    run("queue", "create", "orders")
    run("queue", "policy", "orders", "--attempts", "1")
    for n in (1, 2, -3):
        run("send", "orders", "--format", "json", "--body", f'{{"n": {n}}}')
    ran = run("work", "shop_idle:workers", "--until-idle", "--health", "health.json")
    assert (ran.code, ran.out) == (0, "done: 2, failed: 0, dead letters: 1, lost: 0\n")
    health = json.loads((tmp_path / "health.json").read_text())
    shapes.check(["work"], health)
    assert health["done_count"] == 2
    assert run("work", "shop_idle:workers", "--until-idle", "--json").json["lost_count"] == 0
    for odd in ("shop_idle", "nowhere:workers", "shop_idle:handle"):
        assert "argument-invalid" in run("work", odd).err


def test_failed_attempts_are_told_on_standard_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop_told.py").write_text(MODULE)
    run("queue", "create", "orders")
    run("queue", "policy", "orders", "--attempts", "1")
    run("send", "orders", "--format", "json", "--body", '{"n": -3}')
    command = [sys.executable, "-m", "postroom", "work", "shop_told:workers", "--until-idle"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "done: 0, failed: 0, dead letters: 1, lost: 0\n"
    assert "attempt 1 of 1 failed, it is a dead letter in orders.dead: ValueError: less than nothing" in ran.stderr


@pytest.mark.parametrize(
    ("text", "app", "why"),
    [
        ("", "../shop_broken:workers", "it is not MODULE:NAME"),
        ("", ".shop_broken:workers", "it is not MODULE:NAME"),
        ("def (", "shop_unread:workers", "invalid syntax (shop_unread.py, line 1)"),
        ("x = 1\n{}[x]", "shop_failing:workers", "shop_failing.py, line 2, as it was loaded)"),
        ("import json\n\njson.loads('{')", "shop_calling:workers", "shop_calling.py, line 3, as it was loaded)"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_refused_with_its_place(
    run: Run, tmp_path: Path, text: str, app: str, why: str
) -> None:
    (tmp_path / f"{app.partition(':')[0].strip('./')}.py").write_text(text)
    run("queue", "create", "orders")
    refused = run("work", app)
    assert refused.code != 0
    assert refused.err.startswith("postroom: argument-invalid: ")
    assert why in refused.err


BROKEN = {
    "f(": "'(' was never closed (shop_signal.py, line 1)",
    "from postroom import Workers\nworkers = Workers()\n": "there is none; decorate a function with worker(QUEUE)",
    "raise SystemExit(3)": "it ended with 3",
}


def test_a_signal_loads_the_module_again_or_ends_it_gracefully(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop_signal.py").write_text(MODULE)
    run("queue", "create", "orders")
    run("send", "orders", "--format", "json", "--body", '{"n": 1}')
    command = [sys.executable, "-m", "postroom", "work", "shop_signal:workers", "--health", "health.json"]
    errors = tmp_path / "errors.txt"
    with errors.open("w") as err:
        program = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=err, text=True)
    end = monotonic() + 60
    while monotonic() < end and _processed(run, "orders") < 1:
        sleep(0.2)
    for number, (broken, why) in enumerate(BROKEN.items(), 2):
        (tmp_path / "shop_signal.py").write_text(broken)
        program.send_signal(signal.SIGHUP)
        while monotonic() < end and why not in errors.read_text():
            sleep(0.2)
        assert f"{why}; going on with shop_signal:workers as it was\n" in errors.read_text()
        run("send", "orders", "--format", "json", "--body", '{"n": 1}')
        while monotonic() < end and _processed(run, "orders") < number:
            sleep(0.2)
        assert _processed(run, "orders") == number
    (tmp_path / "shop_signal.py").write_text(MODULE.replace("orders", "letters"))
    run("queue", "create", "letters")
    run("send", "letters", "--format", "json", "--body", '{"n": 1}')
    program.send_signal(signal.SIGHUP)
    while monotonic() < end and _processed(run, "letters") < 1:
        sleep(0.2)
    program.send_signal(signal.SIGTERM)
    out, _ = program.communicate(timeout=30)
    assert (program.returncode, out) == (0, "done: 1, failed: 0, dead letters: 0, lost: 0\n")


def _processed(run: Run, queue: str) -> int:
    return int(run("count", queue, "--json").json["queues"][0]["processed_count"])
