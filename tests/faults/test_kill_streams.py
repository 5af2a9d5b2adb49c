"""A stream that ends anywhere goes on as if it had not: states, messages and files are those of one run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.flows.streams.conftest import Folders, folders, streaming

import postroom
from postroom import faults
from postroom.errors import LeaseHeld
from postroom.room import Postroom

__all__ = ["folders", "streaming"]
GRAPH = """
domain d
space In : [k: string, n: int] from files "data/in" format json
space Sums : [k: string, n: int] to files "data/sums" format json
space Odd : [n: int] to files "data/odd" format json
space Kept : [n: int]
arc sums : In -> Sums collapse [k: k, n: n] by k => [k: k, n: sum(n)]
arc odd : In -> Odd transform [n: n = n - n % 2 + 1] => [n: n]
arc kept : In -> Kept transform [n: n] => [n: n]
"""
FILES = 4
POINTS = [f"{label}.{moment}" for label in faults.STREAM_LABELS for moment in faults.MOMENTS]


def prepared(room: Postroom, folders: Folders, files: int) -> list[int]:
    (folders.root.parent / "graph.flow").write_text(GRAPH)
    room.gateways.add("slowly", "files", folder=str(folders.root), max_files="1")
    text = GRAPH.replace('from files "data/', 'from files "slowly/')
    (folders.root.parent / "graph.flow").write_text(text)
    room.load(folders.root.parent / "graph.flow")
    numbers = list(range(files * 5))
    for start in range(0, len(numbers), 5):
        folders.put("in", [*[{"k": f"k{each % 3}", "n": each} for each in numbers[start : start + 5]], "bad"])
    return numbers


def check(room: Postroom, folders: Folders, numbers: list[int]) -> None:
    sums: dict[str, int] = {}
    wanted = []
    for each in numbers:
        sums[f"k{each % 3}"] = sums.get(f"k{each % 3}", 0) + each
        wanted.append({"k": f"k{each % 3}", "n": sums[f"k{each % 3}"]})
    assert folders.read("sums") == wanted
    assert sorted(each["n"] for each in folders.read("odd")) == [each for each in numbers if each % 2]
    assert [json.loads(message.body)["n"] for message in room.queues.info("Kept")] == numbers
    assert len(list(room.queues.info("postroom-errors"))) == len(numbers) // 5
    assert room.journal.verify().differences == ()


@pytest.mark.parametrize(
    "point",
    [
        *(
            pytest.param(point, marks=pytest.mark.slow)
            for point in POINTS
            if point not in ("stream.begun", "stream.committed")
        ),
        "stream.begun",  # files are written, the room knows nothing of it
        "stream.committed",  # the room knows, Spark does not
    ],
)
def test_a_batch_that_ended_anywhere_is_there_once(streaming: Postroom, folders: Folders, point: str) -> None:
    numbers = prepared(streaming, folders, FILES)
    faults.arm(point, "raise", 1 if point.startswith("stream-open") else 3)
    with pytest.raises((postroom.PostroomError, faults.FaultInjected)):
        streaming.stream(until_idle=True)
    faults.disarm()
    with postroom.open(streaming.url) as again:  # a room whose commit was not confirmed takes no more work
        _once_free(again)
        check(again, folders, numbers)


def _once_free(room: Postroom) -> None:
    """Run it when the lease of the room that was stopped has run out; that of a process that has ended is free."""
    turn = threading.Event()
    for _ in range(120):
        try:
            room.stream(until_idle=True)
            return
        except LeaseHeld:
            turn.wait(0.5)
    raise AssertionError("the lease is still held")


@pytest.mark.slow
def test_processes_that_are_killed_at_any_moment(sqlite_url: str, folders: Folders, tmp_path: Path) -> None:
    with postroom.open(sqlite_url) as room:
        room.gateways.add("data", "files", folder=str(folders.root))
        numbers = prepared(room, folders, 12)
    dice, command = random.Random(3), [sys.executable, "-m", "postroom", "--room", sqlite_url, "stream", "--until-idle"]
    kills = 0
    for _ in range(30):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        batches = dice.randrange(1, 4)
        for line in process.stderr:
            batches -= line.startswith("stream=")
            if batches == 0:
                break
        if batches == 0 and kills < 5:
            dice.random() < 0.5 and process.stderr.readline()
            process.kill()
            kills += 1
        process.stderr.close()
        if process.wait() == 0:
            break
    assert kills == 5
    with postroom.open(sqlite_url) as room:
        check(room, folders, numbers)


def test_every_commit_of_streams_is_reached_here() -> None:
    assert {point.split(".")[0] for point in POINTS} == set(faults.STREAM_LABELS)
    assert os.environ.get("POSTROOM_FAULT") is None
