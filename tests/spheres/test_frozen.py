"""Processes that stand still where others might wait for them, and owners that live and cannot say so."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

import postroom
from postroom.errors import HeartbeatTooSlow
from postroom.room import Postroom
from postroom.store.kernel.owner import is_alive, is_stopped, thread_token

from .frozen import heard, started
from .invariants import check
from .wait import until

CHECK = 1.0


@pytest.fixture
def work(room: Postroom) -> Postroom:
    room.queues.create("work")
    return room


@contextmanager
def frozen(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = started(*arguments)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def stands(process: subprocess.Popen[str]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_frozen_owner_ends_no_living_one(postgres_url: str) -> None:
    """It stops in its heartbeat's transaction, with all locks that this has."""
    with postroom.open(postgres_url) as room, postroom.open(postgres_url) as other:
        room.queues.create("work")
        with frozen("heart", postgres_url, "heartbeat.committing") as process:
            until(lambda: stands(process))
            engine = other.spheres.compensator(CHECK)
            beside = threading.Thread(target=engine.run)
            beside.start()
            try:
                sphere = room.sphere("living", heartbeat=0.2)
                sphere.send("work", "book 7", compensation="cancel 7")
                began = monotonic()
                while monotonic() - began < 4 * CHECK:
                    assert sphere.state == "ACTIVE"
                    sleep(0.2)
                until(lambda: room.spheres.show("frozen").sphere.state == "ABORTED")
                sphere.commit()
            finally:
                engine.stop()
                beside.join()
            why = str(room.spheres.show("frozen").sphere.reason)
            assert f"its owner (process {process.pid}) is stopped, and has not beaten for" in why
            process.send_signal(signal.SIGCONT)
            assert heard(process) == "sphere-over"
        check(room, over=True)


def test_senders_behind_one_that_stands_still_go_on_and_it_is_told(postgres_url: str) -> None:
    with postroom.open(postgres_url) as room:
        room.queues.create("work")
        with frozen("sender", postgres_url, "send.committing") as process:
            until(lambda: stands(process))
            began = monotonic()
            room.send("work", "from a living one")
            assert monotonic() - began < 10
            process.send_signal(signal.SIGCONT)
            assert heard(process) == "store-unavailable"
        assert [message.body for message in room.queues.info("work")] == ["from a living one"]
        assert room.journal.verify().differences == ()


def test_an_owner_whose_c_call_keeps_the_interpreter_lives(work: Postroom) -> None:
    with frozen("busy", work.url, str(4 * CHECK)) as process:
        engine = work.spheres.compensator(CHECK)
        engine.announce()
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        began = monotonic()
        while monotonic() - began < 3 * CHECK:
            assert engine.check().aborted == 0
            sleep(CHECK / 4)
        assert heard(process) == "done"
    assert [message.body for message in work.queues.info("work")] == ["book 7"]
    check(work, over=True)


def test_a_thread_is_known_by_its_number_and_its_start() -> None:
    tokens: list[str] = []
    thread = threading.Thread(target=lambda: tokens.append(thread_token(1)))
    thread.start()
    thread.join()
    mine = thread_token(2)
    assert is_alive(mine) is True
    until(lambda: is_alive(tokens[0]) is False)
    assert is_alive(mine.rpartition(":")[0] + ":1") is False, "another with the same number"
    assert not is_stopped(mine)
    assert is_alive(f"{mine.split('/')[0]}/{os.getpid()}/1/1/1:1") is False


def test_one_check_binds_nobody_who_comes_later(work: Postroom) -> None:
    work.spheres.compensate(1.0)
    with work.sphere("slow", heartbeat=2.0):
        pass
    engine = work.spheres.compensator(1.0)
    engine.announce()
    with pytest.raises(HeartbeatTooSlow):
        work.sphere("too slow", heartbeat=2.0)
