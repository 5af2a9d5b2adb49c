"""Evaluates working sets that call functions of users in a forked process, each within its own time limit.

A function that hangs, or kills its process, fails only the set that called it.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Sequence
from enum import Enum, auto
from time import monotonic

from postroom.model.body import json_text
from postroom.stations.forms import functions
from postroom.stations.procedures.actions import CODE, LATER, SLOW, Bench, Complete, Outcome, read

_CHUNK_SECONDS = 0.7  # then what is left of a chunk comes with the next step: others wait for this one
_READ_BYTES = 1 << 16


class _End(Enum):
    DONE = auto()
    DIED = auto()
    LATE = auto()  # no answer to the next set
    ENOUGH = auto()  # of time for all


def confined(bench: Bench, sets: Sequence[Complete], seconds: float, most: float) -> list[tuple[int, Outcome]]:
    """The outcomes of sets. One that takes longer than ``seconds`` is slow; it fails beyond ``most``."""
    outcomes: list[tuple[int, Outcome]] = []
    left, died = list(sets), False
    until = monotonic() + _CHUNK_SECONDS if seconds < most else float("inf")
    while left:
        done, end = _in_child(bench, left, seconds, until)
        outcomes += done
        left = left[len(done) :]
        died = died and not done
        if not left or (end is _End.ENOUGH and outcomes):
            break
        if end is _End.DIED and not died:
            died = True  # processes die by themselves, too: guilty is who does it twice
            continue
        guilty = left.pop(0)
        outcomes.append((guilty.order, _guilt(end, seconds, most)))
        if outcomes[-1][1].is_open:  # its station has to wait for it; others have not
            behind = [working_set for working_set in left if _station(bench, working_set) == _station(bench, guilty)]
            outcomes += [(working_set.order, Outcome(code=LATER)) for working_set in behind]
            left = [working_set for working_set in left if working_set not in behind]
        died = False
    return outcomes + [(working_set.order, Outcome(code=LATER)) for working_set in left]


def _guilt(end: _End, seconds: float, most: float) -> Outcome:
    if end is _End.DIED:
        return Outcome(code=CODE, why="a function killed its worker")
    if seconds < most:
        return Outcome(code=SLOW)
    return Outcome(code=CODE, why=f"a function exceeded the limit of {most:g} seconds")


def _station(bench: Bench, complete: Complete) -> str:
    return bench.plans[complete.plan].procedure.station


def _in_child(
    bench: Bench, sets: Sequence[Complete], seconds: float, until: float
) -> tuple[list[tuple[int, Outcome]], _End]:
    """The outcomes of the first sets, up to one that is too slow or kills the process."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _work(bench, sets, theirs)
    os.close(theirs)
    outcomes: list[tuple[int, Outcome]] = []
    output = bytearray()
    try:
        late = monotonic() + seconds
        while len(outcomes) < len(sets):
            now = monotonic()
            if now > min(late, until):
                return outcomes, _End.LATE if now > late else _End.ENOUGH
            if not select.select([ours], [], [], max(0.0, min(late, until) - now))[0]:
                continue
            more = os.read(ours, _READ_BYTES)
            if not more:
                return outcomes, _End.DIED
            output += more
            *lines, rest = output.split(b"\n")
            output = bytearray(rest)
            outcomes += [read(json.loads(line)) for line in lines]
            if lines:
                late = monotonic() + seconds
        return outcomes, _End.DONE
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _work(bench: Bench, sets: Sequence[Complete], to: int) -> None:
    """In the child: one outcome per line, then exit, whatever happens."""
    try:
        functions.answer_for_themselves()
        for working_set in sets:
            line = json_text((working_set.order, bench.outcome(working_set)))
            view = memoryview(f"{line}\n".encode())
            while view:
                view = view[os.write(to, view) :]
    finally:
        os._exit(0)
