"""Run the command line of a queue that became non-empty.

The words come from the operator's description, never from a message; ``-arg QUEUE`` is appended. No shell, no
inherited environment, its own process group, a deadline, bounded output.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any

from postroom.engine.dispatch import Outcome
from postroom.limits import COMMAND_BYTES_MAX, COMMAND_OPEN_FILES_MAX, COMMAND_OUTPUT_BYTES_MAX, COMMAND_SECONDS
from postroom.store.kernel.outbox import Effect


class CommandGateway:
    kind = "command"

    def __init__(self, room_url: str, seconds: float = COMMAND_SECONDS) -> None:
        self._room_url = room_url
        self._seconds = seconds

    def act(self, effect: Effect) -> Outcome:
        argv = [*shlex.split(effect.payload["command"]), "-arg", effect.payload["queue"]]
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment(effect),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Outcome(False, {"outcome": f"cannot start {argv[0]}: {error}", "argv": argv})
        seconds = float(effect.payload.get("seconds", self._seconds))
        _limit(process.pid, seconds)
        output, in_time = self._watch(process, seconds)
        outcome = f"exit {process.returncode}" if in_time else f"killed after its time limit of {seconds:g} s"
        result: dict[str, Any] = {"outcome": outcome, "argv": argv, "output": output}
        return Outcome(in_time and process.returncode == 0, result)

    def _environment(self, effect: Effect) -> dict[str, str]:
        return {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8",
            "POSTROOM_URL": self._room_url,
            "POSTROOM_QUEUE": effect.payload["queue"],
            "POSTROOM_PATH": effect.payload["path"],
            "POSTROOM_EFFECT": str(effect.id),  # the same on every attempt: the command's idempotency key
        }

    def _watch(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[str, bool]:
        """What the command printed, up to a bound, and whether it ended in time. Leaves none of its group running."""
        assert process.stdout is not None
        end = monotonic() + seconds
        kept = bytearray()
        with process.stdout as pipe, selectors.DefaultSelector() as selector:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
            try:
                while process.poll() is None and monotonic() < end:
                    # Look again soon: a grandchild can keep the pipe open after the command has ended.
                    pause = min(0.05, max(0.0, end - monotonic()))
                    if not selector.get_map():
                        sleep(pause)
                    elif selector.select(pause) and not self._keep(pipe, kept):
                        selector.unregister(pipe)  # it closed its output and goes on
                in_time = process.poll() is not None
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            while self._keep(pipe, kept):
                pass
        return kept[:COMMAND_OUTPUT_BYTES_MAX].decode(errors="replace").replace("\0", "\ufffd"), in_time

    def _keep(self, pipe: IO[bytes], kept: bytearray) -> bool:
        """Read what is there; False at the end of it."""
        chunk = pipe.read(65536)
        if chunk and len(kept) < COMMAND_OUTPUT_BYTES_MAX:
            kept += chunk
        return bool(chunk)


def _limit(pid: int, seconds: float) -> None:
    """No core files, no runaway processor time, no flood of open files, no more memory than a worker's.

    Linux can set these from outside.
    """
    prlimit = getattr(resource, "prlimit", None)
    if prlimit is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        prlimit(pid, resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        prlimit(pid, resource.RLIMIT_NOFILE, (COMMAND_OPEN_FILES_MAX, COMMAND_OPEN_FILES_MAX))
        _, most = prlimit(pid, resource.RLIMIT_DATA)
        memory = COMMAND_BYTES_MAX if most == resource.RLIM_INFINITY else min(COMMAND_BYTES_MAX, most)
        prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
