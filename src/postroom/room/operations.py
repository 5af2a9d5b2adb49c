"""Administration: what waits in a room, what is wrong with it, and what to do."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from postroom.model.progress import OnProgress
from postroom.room.overview import Overview, look
from postroom.room.parts import RoomPart
from postroom.room.paths import path_of
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import COUNTER, PROCEDURE

if TYPE_CHECKING:
    from postroom.diagnosis.finding import Finding
    from postroom.store.proof.verification import Verified
    from postroom.store.upkeep.backup import BackedUp


class RoomOperations(RoomPart):
    """Operations for administrators of a room."""

    def lag(self) -> int:
        """The number of messages that wait for rules, arcs, counters and procedures."""
        return sum(self.lags().values())

    def lags(self) -> dict[str, int]:
        """The number of waiting messages for each of rules, flows, counters and procedures."""

        def work(tx: Transaction) -> dict[str, int]:
            watched = self._parts.programs.program(tx).watched
            waiting = sum(queue.unprocessed for queue in tx.queues.all() if queue.name in watched)
            flowing = sum(map(tx.epochs.count, tx.epochs.flowing()))
            counters = self._parts.counter_stage.lag(tx) if tx.definitions.of_kind(COUNTER) else 0
            return {"rules": waiting, "flows": flowing, "counters": counters}

        lags, procedures = self._parts.store.read(lambda tx: (work(tx), tx.definitions.of_kind(PROCEDURE)))
        return {**lags, "procedures": self._parts.interpreter.lag() if procedures else 0}

    def overview(self, before: Overview | None = None) -> Overview:
        """A status picture of the room; with an earlier one as ``before``, also the rates of arrival and departure."""
        return look(self._parts.store, self._parts.programs.program, self.lags, before)

    def ages(self, limit: int) -> dict[str, float]:
        """How long the next message has waited, for the first queues by name that have one."""

        def work(tx: Transaction) -> dict[str, float]:
            queues = sorted(tx.queues.all(), key=lambda queue: queue.name)[:limit]
            heads = ((queue, tx.messages.head(queue)) for queue in queues if queue.unprocessed)
            return {queue.name: (tx.now - head.created) / 1e6 for queue, head in heads if head is not None}

        return self._parts.store.read(work)

    def backup(
        self,
        file: str | os.PathLike[str],
        *,
        replace: bool = False,
        check: bool = True,
        progress: OnProgress | None = None,
    ) -> BackedUp:
        """Write a consistent, verified copy of the whole room into one file, while it is in use.

        The file is a room on SQLite, whatever store this one is in, and can be restored into either. A room that does
        not pass ``verify`` is refused, unless ``check`` is off.
        """
        from postroom.store.upkeep import backup

        return backup.backup(
            self._parts.store, path_of(file).absolute(), replace=replace, check=check, progress=progress
        )

    def restore(
        self, file: str | os.PathLike[str], *, replace: bool = False, progress: OnProgress | None = None
    ) -> Verified:
        """Fill this room, which must be empty, from a backup; then it is closed, and must be opened again.

        With ``replace``, its content is deleted: end every other process that uses it first.
        """
        from postroom.store.upkeep import backup

        return backup.restore(self._parts.store, path_of(file).absolute(), replace=replace, progress=progress)

    def diagnose(self, *, deep: bool = False) -> list[Finding]:
        """What is wrong with this room and this machine, and what to do; nothing is changed.

        ``deep`` reads every message and the whole journal, however long it takes; otherwise only the newest.
        """
        from postroom.diagnosis import machine  # it reads what is installed, and nothing else needs that
        from postroom.diagnosis.examination import examine
        from postroom.diagnosis.finding import Case

        program = partial(self._parts.store.read, self._parts.programs.program)
        case = Case(self._parts.store, self._parts.network, program, self.lags, deep)
        return machine.examine(self._parts.url) + examine(case)
