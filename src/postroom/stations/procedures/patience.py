"""Working sets with slow functions are evaluated in the background, one at a time.

Only their own stations wait for them: the messages of a station are handled in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import NamedTuple

from postroom.stations.procedures.actions import Outcome
from postroom.stations.procedures.claiming import Look, WorkingSet

_PAUSE_SECONDS = 0.05  # between two looks whether one is done
Work = Callable[[], Mapping[int, Outcome]]


class _Begun(NamedTuple):
    identity: tuple[object, ...]  # which set it is
    keys: tuple[int, ...]  # of its new messages
    coming: Future[Mapping[int, Outcome]]


class Patience:
    """The slow sets."""

    def __init__(self) -> None:
        self._begun: dict[str, _Begun] = {}  # by station
        self._todo: SimpleQueue[tuple[Work, Future[Mapping[int, Outcome]]]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ready: set[str] = set()  # stations whose outcome nobody has taken

    @property
    def busy(self) -> set[str]:
        """The stations with a slow set."""
        return {station for station, begun in self._begun.items() if not begun.coming.done()}

    def begin(self, seen: Look, working: WorkingSet, work: Work) -> None:
        """Evaluate a set in the background. A hanging thread does not keep the process alive."""
        coming: Future[Mapping[int, Outcome]] = Future()
        self._begun[seen.desk.station] = _Begun(_identity(seen, working), working.keys, coming)
        self._todo.put((work, coming))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, daemon=True, name="postroom-slow-procedures")
            self._thread.start()

    def _run(self) -> None:
        while True:
            work, coming = self._todo.get()
            try:
                coming.set_result(work())
            except BaseException as error:
                coming.set_exception(error)

    def give(self, looks: Sequence[Look]) -> None:
        """Give sets their background outcomes; an outcome for a set that has changed is dropped."""
        for seen in looks:
            known = self._begun.pop(seen.desk.station, None)
            if known is None:
                continue
            for working in seen.sets:
                if _identity(seen, working) == known.identity and working.outcome is None:
                    working.keys = known.keys
                    (working.outcome,) = known.coming.result().values()

    def pause(self) -> bool:
        """Wait a moment for running sets; False if there are none."""
        for station in self._ready & self._begun.keys():
            del self._begun[station]  # the station has other messages now, or is on a node that does not answer
        under_way = [begun.coming for begun in self._begun.values() if not begun.coming.done()]
        if under_way:
            wait(under_way, _PAUSE_SECONDS)
        self._ready = self._begun.keys() - self.busy
        return bool(self._begun)

    def forget(self, stations: Mapping[str, str]) -> None:
        """Forget stations that were removed or have no procedures."""
        for station in self._begun.keys() - stations.keys():
            del self._begun[station]


def _identity(seen: Look, working: WorkingSet) -> tuple[object, ...]:
    members = sorted((sketch, member.message, member.position) for sketch, member in working.members.items())
    return seen.desk.edition, working.plan.name, *members
