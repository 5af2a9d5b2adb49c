"""Runs workloads in processes of their own that are there at once.

To start Python and import everything takes longer than most workloads live. A server that has imported everything, and
has done nothing else, forks a process for each.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from tests.passwords import cheap

from postroom import faults
from postroom.errors import PostroomError
from postroom.model import password

_SERVER = multiprocessing.get_context("forkserver")
_WORKLOADS = ("", "station_", "procedure_", "counter_", "sphere_", "staged_", "upkeep_", "consumer_")
#: Imported when they are first needed, which took some 0.2 s of each workload.
_LATER = (
    *("interfaces.opening", "room.loading", "room.languages", "room.queues", "room.consumers", "room.journal"),
    *("room.flows", "room.client", "room.stations", "room.engine", "room.access", "queues.tree.loading"),
    *("rules.stage", "rules.loading", "flows.loading", "stations.loading", "stations.procedures.interpreter"),
    *("stations.counters.stage", "gateways.outgoing", "spheres.compensation", "spheres.monitor"),
    *("engine.worker_process", "store.upkeep.kinds", "store.sqlite.store", "store.postgres.store"),
)
_SERVER.set_forkserver_preload(
    [*(f"tests.faults.{name}workload" for name in _WORKLOADS), *(f"postroom.{name}" for name in _LATER), "pandas"]
)
#: Each start reads the exit codes of all children that have ended, and a code can be read only once: of two threads
#: that read at the same time, the second would be told 255.
_CODES = threading.Lock()


@dataclass(frozen=True)
class Ended:
    """How a workload ended: 0, 3 after a failure that it was told of, or minus the signal that killed it."""

    code: int
    said: str
    complaints: str


def run(work: Callable[..., object], *arguments: object, folder: Path, fault: str = "", seconds: float = 120) -> Ended:
    """Let a function work in a process of its own, with a fault point armed as POSTROOM_FAULT would have it."""
    said, complaints = folder / "said", folder / "complaints"
    process = _SERVER.Process(target=_run, args=(work, arguments, fault, said, complaints))
    with _CODES:
        process.start()
    in_time = wait([process.sentinel], seconds)
    if not in_time:
        process.kill()
    with _CODES:
        process.join()
    if not in_time:
        raise AssertionError(f"not at its end after {seconds} seconds: {complaints.read_text()[-2000:]}")
    assert process.exitcode is not None
    return Ended(process.exitcode, said.read_text(), complaints.read_text())


def _run(work: Callable[..., object], arguments: Sequence[object], fault: str, said: Path, complaints: Path) -> None:
    for stream, file in enumerate((said, complaints), start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    password._hasher = cheap  # type: ignore[assignment]  # in this process alone
    if fault:
        point, action, nth = fault.split(":")
        faults.arm(point, action, int(nth))
    try:
        work(*arguments)
    except (faults.FaultInjected, PostroomError) as error:
        print(error, file=sys.stderr)
        sys.exit(3)


def at_each(points: Sequence[tuple[str, int]], action: str, one: Callable[[int, str, int], None]) -> None:
    """Call ``one`` with each point and its number, two at a time; a failure says at which point it was."""

    def told(number: int) -> None:
        point, nth = points[number]
        try:
            one(number, point, nth)
        except BaseException as error:
            raise AssertionError(f"at {point}:{action}:{nth}: {error}") from error

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(told, range(len(points))))
