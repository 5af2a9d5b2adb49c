"""Run commands of the operator: the command line of a queue that became non-empty, or one for each message to send.

The arguments come from the operator's description, never from a message; the first kind gets ``-arg QUEUE`` appended,
the second the message on standard input. No shell, no inherited environment, its own process group, a deadline, bounded
output.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, NamedTuple

from postroom.engine.dispatch import Attempts, Gateway, Outcome
from postroom.gateways.transport import SENDING_SETTINGS, Delivered, Letter, Setting, Undelivered
from postroom.limits import (
    COMMAND_BYTES_MAX,
    COMMAND_OPEN_FILES_MAX,
    COMMAND_OUTPUT_BYTES_MAX,
    COMMAND_SECONDS,
    GATEWAY_SECONDS,
    OUTBOX_ATTEMPTS_MAX,
)
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.store.kernel.outbox import Effect
from postroom.store.kernel.policies import NO_POLICY
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.endpoints import OUT, Endpoint


class Ended(NamedTuple):
    """How a command ended."""

    done: bool
    outcome: str
    output: str | None = None  # None if it could not be started


class CommandGateway(Gateway):
    kind = "command"

    def __init__(self, room_url: str, seconds: float = COMMAND_SECONDS) -> None:
        self._room_url = room_url
        self._seconds = seconds
        self._begun: dict[int, int] = {}  # when, by the numbers of effects

    def attempting(self, tx: Transaction, run: Sequence[Effect]) -> None:
        """Note when a command was started: it can only have failed at messages that were there."""
        self._begun.update({effect.id: tx.now for effect in run})

    def act(self, effect: Effect) -> Outcome:
        if effect.attempts >= OUTBOX_ATTEMPTS_MAX:
            return Outcome(False, {"outcome": f"given up: {effect.attempts} attempts ended without a result"})
        argv = ["-arg", effect.payload["queue"]]
        environment = {
            "POSTROOM_URL": self._room_url,
            "POSTROOM_QUEUE": effect.payload["queue"],
            "POSTROOM_PATH": effect.payload["path"],
            "POSTROOM_EFFECT": str(effect.id),  # the same on every attempt: the command's idempotency key
        }
        try:
            argv = [*shlex.split(effect.payload["command"]), *argv]
            ended = run(argv, environment, float(effect.payload.get("seconds", self._seconds)))
        except Exception as error:  # a full disk, or memory that is used up, is no end of the engine
            ended = Ended(False, f"cannot be run: {type(error).__name__}: {error}")
        result: dict[str, Any] = {"outcome": ended.outcome, "argv": argv}
        if ended.output is not None:
            result["output"] = ended.output
        return Outcome(ended.done, result)

    def judged(self, tx: Transaction, effect: Effect, outcome: Outcome) -> Outcome:
        """If the queue has attempts, a failed command counts as a failed attempt at its next message.

        The message waits for a retry, for which the command runs again; after the last one it is a dead letter, and
        attempts start anew for the next message.
        """
        queue = tx.queues.named(effect.payload["queue"])
        policy = None if queue is None else tx.policies.of(queue)
        if outcome.done or queue is None or policy is None or policy.attempts is None:
            return outcome
        why = str(outcome.result["outcome"])
        message = _blamed(tx, queue, self._begun.get(effect.id, effect.due))
        if message is None:
            return replace(outcome, attempts=Attempts(policy.attempts, policy.backoff))
        buried = tx.deliveries.fail_at_once(queue, message, f"{effect.payload['command']}: {why}", final=False)
        if buried is None:
            due = tx.deliveries.details(message.key).due or tx.now
            # The message counts its attempts; those of the effect are for commands that end without a result.
            return replace(outcome, tried=False, after_seconds=max(0.0, (due - tx.now) / 1_000_000))
        if tx.counts.waiting(queue):
            tx.outbox.add(self.kind, effect.payload, effect.destination)
        return replace(outcome, final=True, result={**outcome.result, "dead_letter": key_text(message.key)})


def _blamed(tx: Transaction, queue: Queue, begun: int) -> Stored | None:
    """The message that a command failed at: the next one, if it was there when the command started."""
    if tx.deliveries.count(queue):
        return None  # what the command has leased fails by its lease
    tx.deliveries.free_due(queue)
    head = next(iter(tx.deliveries.claim(queue, 1, NO_POLICY)), None)
    return head if head is not None and head.sound and head.created <= begun else None


class CommandTransport:
    """A gateway that runs a program for each message; exit code 0 means that the message was accepted."""

    name = "command"
    settings = (Setting("command", "the program and its arguments; no shell runs it"), *SENDING_SETTINGS)

    def __init__(self, room_url: str) -> None:
        self._room_url = room_url

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        if not shlex.split(settings.get("command", "")):
            raise ValueError("command=… is missing: the program that gets each message")
        return frozenset({OUT})

    def outgoing(self, letter: Letter) -> Delivered:
        settings = letter.endpoint.settings
        argv = shlex.split(settings["command"])
        environment = {
            "POSTROOM_URL": self._room_url,
            "POSTROOM_QUEUE": letter.queue,
            "POSTROOM_KEY": letter.key,
            "POSTROOM_FORMAT": letter.format,
            "POSTROOM_NUMBER": letter.number,  # the same on every attempt
        }
        ended = run(argv, environment, float(settings.get("seconds", GATEWAY_SECONDS)), letter.body.encode())
        if ended.done:
            return Delivered(ended.outcome)
        raise Undelivered(f"{argv[0]}: {ended.outcome}", disconnected=argv[0] if ended.output is None else None)

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def probe(self, endpoint: Endpoint) -> str:
        program = shlex.split(endpoint.settings["command"])[0]
        executable = shutil.which(program)
        if executable is None:
            raise Undelivered(f"there is no program {program}", disconnected=program)
        return f"{executable} can be run"


def run(argv: Sequence[str], environment: Mapping[str, str], seconds: float, body: bytes = b"") -> Ended:
    """Run a command with ``body`` on its standard input."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    with tempfile.TemporaryFile() as given:
        given.write(body)
        given.seek(0)
        try:
            process = subprocess.Popen(
                argv,
                stdin=given if body else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PATH": path, "LANG": "C.UTF-8", **environment},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Ended(False, f"cannot start {argv[0]}: {error}")
        _limit(process.pid, seconds)
        output, in_time = _watch(process, seconds)
    outcome = f"exit {process.returncode}" if in_time else f"killed after its time limit of {seconds:g} s"
    return Ended(in_time and process.returncode == 0, outcome, output)


def _watch(process: subprocess.Popen[bytes], seconds: float) -> tuple[str, bool]:
    """Wait for a command; returns its output, up to a limit, and whether it ended in time. Kills its process group."""
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
                elif selector.select(pause) and not _keep(pipe, kept):
                    selector.unregister(pipe)  # it closed its output and goes on
            in_time = process.poll() is not None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        while _keep(pipe, kept):
            pass
    return kept[:COMMAND_OUTPUT_BYTES_MAX].decode(errors="replace").replace("\0", "\ufffd"), in_time


def _keep(pipe: IO[bytes], kept: bytearray) -> bool:
    """Read available output; False at the end."""
    chunk = pipe.read(65536)
    if chunk and len(kept) < COMMAND_OUTPUT_BYTES_MAX:
        kept += chunk
    return bool(chunk)


def _limit(pid: int, seconds: float) -> None:
    """No core files, and limits for processor time, open files and memory as for a worker.

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
