"""Who holds a lock or a lease: a process or a thread of it, told apart from a later one that got the same number."""

from __future__ import annotations

import os
import socket
import threading
from functools import cache


def process_token(pid: int | None = None) -> str:
    """``MACHINE/PID/START``: a process id alone comes back, its start time does not."""
    pid = os.getpid() if pid is None else pid
    return f"{_machine()}/{pid}/{_start(pid) or '-'}"


def thread_token(serial: int) -> str:
    """``PROCESS/SERIAL/THREAD:START``: this thread of this process, and which of those that it has been."""
    pid, thread = os.getpid(), threading.get_native_id()
    return f"{process_token()}/{serial}/{thread}:{_start(pid, thread) or '-'}"


def described(token: str) -> str:
    """An owner in words."""
    machine, pid, _ = [*token.split("/"), "", ""][:3]
    if not pid:
        return token
    return f"process {pid}" if machine == _machine() else f"process {pid} on {machine}"


def is_alive(token: str) -> bool | None:
    """Whether the process lives; None when it is (or was) on another machine and only its lease can tell."""
    machine, pid, start = [*token.split("/"), "", ""][:3]
    if machine != _machine() or not pid.isdigit():
        return None
    if start != "-":
        return _start(int(pid)) == start and _thread_lives(int(pid), token)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_stopped(token: str) -> bool:
    """Whether a process of this machine is known to stand still, by a signal or in a debugger."""
    machine, pid, _ = [*token.split("/"), "", ""][:3]
    fields = _stat(int(pid)) if machine == _machine() and pid.isdigit() else None
    return fields is not None and fields[0] in ("T", "t")


def _thread_lives(pid: int, token: str) -> bool:
    """Whether the thread lives that a token names; True if it names none."""
    thread, _, start = [*token.split("/"), "", "", ""][4].partition(":")
    return not thread.isdigit() or start == "-" or _start(pid, int(thread)) == start


def _start(pid: int, thread: int | None = None) -> str | None:
    fields = _stat(pid, thread)
    # After the name: state is field 3, the start time field 22. A zombie has ended in every way that matters.
    return None if fields is None or fields[0] in ("Z", "X") else fields[19]


def _stat(pid: int, thread: int | None = None) -> list[str] | None:
    place = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    try:
        with open(place, encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:  # it has ended, perhaps while it was read
        return None


@cache
def _machine() -> str:
    """One kernel start and one process-number space: containers share the first and not the second."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip().replace("-", "")[:12]
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return socket.gethostname().replace("/", "_")
    return f"{boot}.{space}"
