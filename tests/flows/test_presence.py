"""Clients that are present: connected while their process lives, disconnected when it ends in whatever way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from tests.flows.conftest import Load

import postroom
from postroom.errors import LeaseHeld
from postroom.room import Postroom

GRAPH = "domain d space A : [n: int] space B : [n: int] arc b : A -> B merge"
PRESENT = """
import sys, time, postroom
with postroom.open(sys.argv[1]) as room, room.client("desk").present():
    print("here", flush=True)
    time.sleep(60)
"""


def actions(room: Postroom) -> list[str]:
    return [next(iter(json.loads(each.body)["action"])) for each in room.queues.info("meta:d")]


def connected(room: Postroom) -> list[bool]:
    return [each.connected for each in room.flows.subscriptions()]


@pytest.fixture
def process(room: Postroom, load: Load, url: str) -> Iterator[subprocess.Popen[str]]:
    """A process in which the client is present."""
    load(GRAPH)
    room.client("desk").subscribe("A", durable=True)
    room.client("desk").disconnect()
    with subprocess.Popen([sys.executable, "-c", PRESENT, url], stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        assert made.stdout.readline() == "here\n"
        yield made
        made.kill()


def test_a_client_that_is_killed_becomes_disconnected(
    room: Postroom, process: subprocess.Popen[str], run: Callable[..., int]
) -> None:
    assert connected(room) == [True]
    with pytest.raises(LeaseHeld), room.client("desk").present():
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait(20)
    assert connected(room) == [False], "whoever asks finds out"
    assert actions(room)[-2:] == ["EnableArc", "DisableArc"], "and everyone is told"
    room.publish("A", "[1]")
    run()
    assert [each.body for each in room.queues.info("desk")] == []
    with room.client("desk").present():
        assert connected(room) == [True]
        run()
    assert [each.body for each in room.queues.info("desk")] == ['{"n":1}'], "it was durable"
    assert connected(room) == [False]


def test_the_engine_finds_a_client_that_was_killed(
    room: Postroom, process: subprocess.Popen[str], run: Callable[..., int]
) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait(20)
    run()
    assert actions(room)[-1] == "DisableArc"


def test_a_client_that_has_unsubscribed_meanwhile_may_go(room: Postroom, load: Load) -> None:
    load(GRAPH)
    desk = room.client("desk")
    desk.subscribe("A")
    with desk.present():
        desk.unsubscribe()
    assert room.flows.subscriptions() == []


def test_a_client_without_subscriptions_cannot_be_present(room: Postroom, load: Load) -> None:
    load(GRAPH)
    with pytest.raises(postroom.PostroomError, match="subscription of desk"), room.client("desk").present():
        pass
