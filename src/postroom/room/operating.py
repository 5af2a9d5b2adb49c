"""Looking after a room: what waits in it, what is wrong with it, and what to do."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from postroom.diagnosis.examination import examine
from postroom.diagnosis.finding import Case, Finding
from postroom.room.overview import Picture, look
from postroom.room.parts import Parts
from postroom.store import backup
from postroom.store.backup import BackedUp
from postroom.store.base import Progress
from postroom.store.transaction import Transaction
from postroom.store.verification import Verified


class OperatingFace(Parts):
    """What an operator asks of a room."""

    def lag(self) -> int:
        """How many messages wait in queues that rules watch, in spaces that arcs leave, for counters and procedures."""
        return sum(self.lags().values())

    def lags(self) -> dict[str, int]:
        """The same, by who is to work on them: rules, flows, counters, procedures."""

        def work(tx: Transaction) -> dict[str, int]:
            watched = self._programs.plan(tx).queues
            waiting = sum(queue.unprocessed for queue in tx.queues.all() if queue.name in watched)
            flowing = sum(map(tx.epochs.count, tx.epochs.flowing()))
            return {"rules": waiting, "flows": flowing, "counters": self._handing.lag(tx)}

        return {**self.store.read(work), "procedures": self._interpreter.lag()}

    def overview(self, before: Picture | None = None) -> Picture:
        """A picture of the room at work; with the one before, also how fast messages come and go."""
        return look(self.store, self._programs.plan, self.lags, before)

    def backup(
        self,
        file: str | os.PathLike[str],
        *,
        replace: bool = False,
        check: bool = True,
        progress: Progress | None = None,
    ) -> BackedUp:
        """Write the whole room into one file while it is in use, as it is in one moment; verified before it is there.

        The file is a room on SQLite, whatever store this one is in, and is restored into either. A room that does not
        verify is refused, unless ``check`` is off.
        """
        return backup.backup(self.store, Path(file).absolute(), replace=replace, check=check, progress=progress)

    def restore(
        self, file: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None
    ) -> Verified:
        """Make this room, which must be empty, what a backup says; then it is closed, and is to be opened again.

        With ``replace``, all that is in it goes: end every other process that uses it first.
        """
        return backup.restore(self.store, Path(file).absolute(), replace=replace, progress=progress)

    def diagnose(self, *, deep: bool = False) -> list[Finding]:
        """What is wrong with this room and this machine, and what to do; nothing is changed.

        ``deep`` reads every message and the whole journal, however long it takes; else the newest of them.
        """
        from postroom.diagnosis import machine  # it reads what is installed, and nothing else needs that

        plan = partial(self.store.read, self._programs.plan)
        case = Case(self.store, self._network, plan, self.lags, deep)
        return machine.examine(self.url) + examine(case)
