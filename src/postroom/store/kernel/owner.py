"""Identifies the owner of a lock or lease: a process or thread, distinguished from a later one with the same number.

On Linux the start time of a process or thread is that in ``/proc``: ticks since the machine started. psutil has no
start of threads, and its start of a process moves with the clock of the machine: after a correction of the clock a
living owner would be taken for a dead one. On other systems (macOS) psutil says when a process was created, and the
start of the machine is kept beside it, so that a changed clock is noticed.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache
from typing import NamedTuple

_LINUX: bool = sys.platform == "linux"
_CLOCK_SECONDS = 2  # two readings of the machine's start that differ by less are of the same clock


class _Seen(NamedTuple):
    """A live process or thread: its start time, and whether it is stopped (SIGSTOP or debugger)."""

    start: str
    stopped: bool


def process_token(pid: int | None = None) -> str:
    """``MACHINE/PID/START``: process ids are reused, so the start time is part of it."""
    pid = os.getpid() if pid is None else pid
    return f"{_machine()}/{pid}/{_start(pid)}"


def own_token() -> str:
    """The token of this process; cached."""
    return _read_token(os.getpid())


_read_token = cache(process_token)


def thread_token(serial: int) -> str:
    """``PROCESS/SERIAL/THREAD:START``: identifies this thread of this process."""
    pid, thread = os.getpid(), threading.get_native_id()
    return f"{process_token()}/{serial}/{thread}:{_start(pid, thread)}"


def described(token: str) -> str:
    """An owner in words."""
    machine, pid, _ = [*token.split("/"), "", ""][:3]
    if not pid:
        return token
    return f"process {pid}" if machine == _machine() else f"process {pid} on {machine}"


def is_alive(token: str) -> bool | None:
    """Whether the process lives; None if unknown: on another machine, or after a clock change."""
    machine, pid, start = [*token.split("/"), "", ""][:3]
    if machine != _machine() or not pid.isdigit():
        return None
    if start != "-":
        present = _start(int(pid))
        if _other_clock(present, start):
            return None
        return present.partition("@")[0] == start.partition("@")[0] and _thread_lives(int(pid), token)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_stopped(token: str) -> bool:
    """Whether a process of this machine is known to be stopped, by a signal or debugger."""
    machine, pid, _ = [*token.split("/"), "", ""][:3]
    seen = _seen(int(pid)) if machine == _machine() and pid.isdigit() else None
    return seen is not None and seen.stopped


def _thread_lives(pid: int, token: str) -> bool:
    """Whether the thread in a token lives; True if it has none."""
    thread, _, start = [*token.split("/"), "", "", ""][4].partition(":")
    return not thread.isdigit() or start == "-" or _start(pid, int(thread)) == start


def _start(pid: int, thread: int | None = None) -> str:
    """The start time of a process or thread; ``-`` if it has ended or is unknown."""
    seen = _seen(pid, thread)
    return "-" if seen is None else seen.start


def _other_clock(present: str, start: str) -> bool:
    """Whether two start times were read before and after a change of the clock or a reboot; not on Linux."""
    now, then = present.partition("@")[2], start.partition("@")[2]
    return bool(now and then) and abs(int(now) - int(then)) >= _CLOCK_SECONDS


def _seen(pid: int, thread: int | None = None) -> _Seen | None:
    """The state of a process or thread; None if it has ended or is a zombie."""
    if _LINUX:
        return _seen_on_linux(pid, thread)
    return None if thread is not None else _seen_elsewhere(pid)


def _seen_on_linux(pid: int, thread: int | None) -> _Seen | None:
    place = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    try:
        with open(place, encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # it has ended, perhaps while it was read
        return None
    state, start = fields[0], fields[19]  # fields 3 and 22; the name was the second
    return None if state in ("Z", "X") else _Seen(start, state in ("T", "t"))


def _seen_elsewhere(pid: int) -> _Seen | None:
    """``CREATED@BOOT``, both in seconds by the machine's clock."""
    import psutil

    try:
        process = psutil.Process(pid)
        state, created = process.status(), process.create_time()
    except psutil.Error:
        return None
    if state in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
        return None
    stopped = state in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return _Seen(f"{created:.2f}@{psutil.boot_time():.0f}", stopped)


@cache
def _machine() -> str:
    """Identifies boot and process namespace: containers share the first and not the second."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip().replace("-", "")[:12]
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return os.uname().nodename.replace("/", "_")
    return f"{boot}.{space}"
