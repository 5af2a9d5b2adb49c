"""Who holds a lock or a lease: a process, told apart from a later one that got the same number."""

from __future__ import annotations

import os
import socket
from functools import cache


def process_token(pid: int | None = None) -> str:
    """``MACHINE/PID/START``: a process id alone comes back, its start time does not."""
    pid = os.getpid() if pid is None else pid
    return f"{_machine()}/{pid}/{_start(pid) or '-'}"


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
        return _start(int(pid)) == start
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    # After the name: state is field 3, the start time field 22. A zombie has ended in every way that matters.
    return None if fields[0] in ("Z", "X") else fields[19]


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
