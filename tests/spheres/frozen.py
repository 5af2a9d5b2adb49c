"""A process that stands still at a fault point, as one does that was stopped there: ``python -m tests.spheres.frozen``.

``heart ROOM POINT`` owns a sphere and stops at a point; ``sender ROOM POINT`` stops while it sends into ``work``. Each
says ``ready`` before, and what came of it after it was woken. ``busy ROOM SECONDS`` owns a sphere and calls a function
of C that keeps the interpreter.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from time import sleep

import postroom
from postroom import faults
from postroom.errors import PostroomError

ROOT = Path(__file__).parents[2]


def heart(url: str, point: str) -> None:
    with postroom.open(url) as room:
        sphere = room.sphere("frozen", heartbeat=0.2)
        print("ready", flush=True)
        faults.arm(point, "stop")
        sleep(1)
        print(_told(sphere.commit), flush=True)


def sender(url: str, point: str) -> None:
    with postroom.open(url) as room:
        print("ready", flush=True)
        faults.arm(point, "stop")
        print(_told(lambda: room.send("work", "from a frozen one")), flush=True)


def busy(url: str, seconds: str) -> None:
    with postroom.open(url) as room:
        sphere = room.sphere("busy", heartbeat=0.2)
        sphere.send("work", "book 7", compensation="cancel 7")
        print("ready", flush=True)
        sys.stdin.readline()
        ctypes.PyDLL(None).usleep(int(float(seconds) * 1_000_000))  # with the interpreter's lock
        print(_told(sphere.commit), flush=True)


def _told(work: object) -> str:
    try:
        work()  # type: ignore[operator]
    except PostroomError as error:
        return error.code
    return "done"


def started(*arguments: str) -> subprocess.Popen[str]:
    """Such a process, which is ready."""
    command = [sys.executable, "-m", "tests.spheres.frozen", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert heard(process) == "ready"
    return process


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


if __name__ == "__main__":
    {"heart": heart, "sender": sender, "busy": busy}[sys.argv[1]](*sys.argv[2:])
