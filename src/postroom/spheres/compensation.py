"""Detached compensation: an engine that finds spheres whose owner has ended, and undoes what they did.

An owner has ended if its process or thread is known to be gone, or if its heartbeat has not changed for a check
interval; for several intervals if its thread is known to run, because a long call in C stops heartbeats, too. Clocks of
machines are not compared. The engine writes at every check: if that blocks, owners could not write heartbeats either,
and get a new interval. Several engines may run, because a token moves only once. ``outcome.py`` decides what is
withdrawn and sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic

from postroom.engine.machine import SPHERES
from postroom.errors import ArgumentInvalid, CheckTooShort, PostroomError, StoreBusy
from postroom.limits import (
    CHECK_SECONDS_MAX,
    CHECKS_MAX,
    GRACE_SECONDS,
    HEARTBEAT_SECONDS_MIN,
    PAGE_ROWS,
    RUNNING_CHECKS,
)
from postroom.model.moment import in_microseconds
from postroom.spheres import outcome
from postroom.spheres.access import QueueAccess
from postroom.spheres.conditions import failed
from postroom.spheres.heartbeat import still
from postroom.store.kernel.base import Store, Waiter
from postroom.store.kernel.owner import described, is_alive, is_stopped
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTING, ACTIVE, COMMITTING, Beat

_LOOKS = 4  # in a check interval
#: Who aborts spheres in the journal.
ENGINE = "compensation engine"


@dataclass
class Checked:
    """The result of one check, or of all of them."""

    spheres: int = 0  # that were looked at
    aborted: int = 0  # because their owner had ended, or their time was up
    compensated: int = 0  # undone to the last message
    parked: int = 0  # for which something is left to do, because a queue takes nothing now
    doubtful: int = 0  # owners that may have ended: the next look will tell

    def add(self, other: Checked) -> None:
        """Add the result of another check."""
        self.spheres, self.parked, self.doubtful = other.spheres, other.parked, other.doubtful
        self.aborted += other.aborted
        self.compensated += other.compensated

    def as_dict(self) -> dict[str, int]:
        return {
            "sphere_count": self.spheres,
            "aborted_count": self.aborted,
            "compensated_count": self.compensated,
            "parked_count": self.parked,
        }


@dataclass(frozen=True)
class _Seen:
    """A heartbeat count, and since when it has not changed."""

    count: int | None
    since: float


class Compensator:
    """Finds spheres whose owner has ended, and undoes them."""

    def __init__(self, store: Store, access: QueueAccess, check: float) -> None:
        if not isinstance(check, (int, float)) or not HEARTBEAT_SECONDS_MIN < check <= CHECK_SECONDS_MAX:
            why = f"seconds above {HEARTBEAT_SECONDS_MIN} and up to {CHECK_SECONDS_MAX:.0f}"
            raise ArgumentInvalid(argument="check", why=why)
        self._store = store
        self._access = access
        self._check = float(check)
        self._pause = self._check / _LOOKS
        self._seen: dict[str, _Seen] = {}
        self._announced = False  # only an engine that goes on says how often it looks
        self._stop = threading.Event()

    def announce(self) -> None:
        """Announce the check interval: new spheres need a faster heartbeat.

        Raises if it is too short for an active one.
        """
        microseconds = in_microseconds(self._check)

        def work(tx: Transaction) -> None:
            if not self._fits(tx):
                tx.spheres.announce(microseconds)

        if not self._store.read(self._fits):  # most often there is nothing to write
            self._store.transact("check", work)
        self._announced = True

    def _fits(self, tx: Transaction) -> bool:
        """Raise if the interval is too short for an active sphere; True if it is the announced one."""
        microseconds = in_microseconds(self._check)
        heartbeat, sphere = _slowest(tx)
        if heartbeat >= microseconds:
            raise CheckTooShort(check=self._check, sphere=sphere, heartbeat=heartbeat / 1_000_000)
        return tx.spheres.announced() == microseconds

    def stop(self) -> None:
        """End ``run`` after its current check."""
        self._stop.set()

    def run(self) -> Checked:
        """Check until stopped; spheres that others abort are undone immediately."""
        self.announce()
        total = Checked()
        with self._store.waiter() as waiter:
            due = monotonic()
            while not self._stop.is_set():
                try:
                    if monotonic() >= due:
                        due = monotonic() + self._pause
                        total.add(self.check())
                    else:
                        total.add(self._finish(Checked(total.spheres, doubtful=total.doubtful)))
                except StoreBusy:  # there is another look
                    pass
                self._rest(waiter, due)
        return total

    def once(self, most: float = inf) -> Checked:
        """One check: waits until each owner has sent a heartbeat or is known to have ended, at most one interval.

        It takes longer, within limits, if the store blocks the engine itself, but not longer than ``most`` seconds. It
        does not restrict later spheres: if one with a slower heartbeat is started meanwhile, the check ends.
        """
        self._store.read(self._fits)
        end = monotonic() + min(self._check * CHECKS_MAX, most)
        total = self.check()
        while total.doubtful and (left := end - monotonic()) > 0 and not self._stop.wait(min(self._pause, left)):
            self._store.read(self._fits)
            total.add(self.check())
        return total

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Check in a thread of its own."""
        self._stop.clear()
        thread = threading.Thread(target=self._run_quietly, name="postroom-compensation", daemon=True)
        try:
            thread.start()
            yield
        finally:
            self.stop()
            if thread.ident is not None:  # Ctrl-C may come while it starts
                thread.join()

    def _run_quietly(self) -> None:
        """Run; if the store is lost, end silently, because the main thread reports it."""
        while not self._stop.is_set() and not self._store.stopped:
            try:
                self.run()
            except PostroomError:
                self._stop.wait(self._check)

    def _rest(self, waiter: Waiter, due: float) -> None:
        while not self._stop.is_set():
            left = due - monotonic()
            if left <= 0 or waiter.wait(min(left, 0.2)):
                return

    # --- one check ---

    def check(self) -> Checked:
        """Check every active sphere once."""
        checked = Checked()
        owners, beats, parts = self._store.read(_alive_and_active)
        checked.spheres = sum(owners.values())
        watched = {*owners, *(owner for owner, _, _ in parts)}
        if watched:
            self._write()
        looked = monotonic()
        judged = {owner: self._has_ended(owner, beats.get(owner), looked, checked) for owner in watched}
        ended = {owner: why for owner, why in judged.items() if why is not None}
        if any(is_alive(owner) is not False for owner in ended):
            # Who seems to have ended may only have waited until another let go of the store: let all such go first.
            self._stop.wait(min(self._pause, GRACE_SECONDS))
        self._seen = {owner: seen for owner, seen in self._seen.items() if owner in watched}
        for owner, why in ended.items():
            self._abort_all_of(owner, why, beats.get(owner), parts, checked)
        self._abort_failed(checked)
        self._finish(checked)
        self._tidy(watched, beats)
        return checked

    def _write(self) -> None:
        """Time a write. If it took long, others could not write heartbeats either, so observations are discarded."""
        begun = monotonic()
        microseconds, announced = in_microseconds(self._check), self._announced
        self._store.transact("check", lambda tx: tx.spheres.announce(microseconds, binding=announced))
        if monotonic() - begun > self._pause:
            self._seen.clear()

    def _has_ended(self, owner: str, beat: Beat | None, now: float, checked: Checked) -> str | None:
        """How an owner is known to have ended; None if it lives, or may live."""
        lives = is_alive(owner)
        if lives is False:
            return "has ended"
        count = None if beat is None else beat.beats
        seen = self._seen.get(owner)
        if seen is None or seen.count != count:
            self._seen[owner] = _Seen(count, now)
            checked.doubtful += seen is None
            return None
        silent, stopped = now - seen.since, is_stopped(owner)
        runs = lives is True and beat is not None and not stopped
        if silent >= self._check * (RUNNING_CHECKS if runs else 1):
            what = "is stopped, and" if stopped else "runs, and" if runs else "may live, and"
            return f"{what} has not beaten for {silent:.1f} s" if beat is not None else "beats no more"
        checked.doubtful += silent < self._check
        return None

    def _abort_all_of(
        self, owner: str, how: str, beat: Beat | None, parts: list[tuple[str, str, int]], checked: Checked
    ) -> None:
        why = f"its owner ({described(owner)}) {how}"
        joined = f"a recipient that took part ({described(owner)}) {how}"
        owned = self._store.read(lambda tx: tx.spheres.owned(ACTIVE, owner) + tx.spheres.owned(COMMITTING, owner))
        for id in owned:
            self._abort(id, why, owner, beat, checked)
        for whose, id, _ in parts:
            if whose == owner:
                self._abort(id, joined, owner, beat, checked)

    def _abort(self, id: str, why: str, owner: str, beat: Beat | None, checked: Checked) -> None:
        begun = monotonic()

        def work(tx: Transaction) -> bool | None:
            # Whoever waited long for this transaction was not alone: others may be about to beat.
            if monotonic() - begun > self._pause and is_alive(owner) is not False:
                return None
            if beat is not None and tx.spheres.beaten(owner) not in (0, beat.beats):
                return False
            return outcome.begin_abort(tx, id, why) in (ACTIVE, COMMITTING)

        with self._store.acting(ENGINE):
            done = self._store.transact("sphere-aborting", work)
        checked.aborted += done is True
        checked.doubtful += done is None

    def _abort_failed(self, checked: Checked) -> None:
        """Abort spheres whose conditions cannot be met any more, and overdue commits."""
        grace = in_microseconds(self._check)

        def look(tx: Transaction) -> list[tuple[str, str]]:
            conditional = [(id, failed(tx, id)) for id in tx.spheres.requiring(tx.now)]
            late = [(id, "its commit took too long") for id in tx.spheres.overdue(tx.now - grace)]
            return [(id, why) for id, why in conditional if why is not None] + late

        for id, why in self._store.read(look):
            with self._store.acting(ENGINE):
                state = self._store.transact("sphere-aborting", partial(outcome.begin_abort, id=id, reason=why))
            checked.aborted += state in (ACTIVE, COMMITTING)

    def _finish(self, checked: Checked) -> Checked:
        """Undo spheres in state ABORTING, each in one transaction."""
        checked.parked = 0
        after = 0
        while page := self._store.read(partial(_aborting, after=after)):
            for kept, position in page:
                done = outcome.undo(self._store, kept, self._access, ENGINE)  # None if others have done it meanwhile
                checked.compensated += done is True
                checked.parked += done is False
                after = position
        return checked

    def _tidy(self, watched: set[str], beats: dict[str, Beat]) -> None:
        """Remove heartbeats of owners that have ended and own nothing."""
        gone = [beat.key for owner, beat in beats.items() if owner not in watched and is_alive(owner) is False]
        if gone:
            self._store.transact("heartbeat", lambda tx: still(tx, gone))


def _alive_and_active(tx: Transaction) -> tuple[dict[str, int], dict[str, Beat], list[tuple[str, str, int]]]:
    """The owners of undecided spheres, all heartbeats, and the participants of others' spheres."""
    owners = tx.spheres.owners(ACTIVE)
    for owner, count in tx.spheres.owners(COMMITTING).items():
        owners[owner] = owners.get(owner, 0) + count
    return owners, tx.spheres.beats(), tx.spheres.part_owners(ACTIVE) + tx.spheres.part_owners(COMMITTING)


def _slowest(tx: Transaction) -> tuple[int, str]:
    """The slowest heartbeat of an undecided sphere, and the sphere; 0 if there is none."""
    spheres = [slow for state in (ACTIVE, COMMITTING) if (slow := tx.spheres.slowest(state)) is not None]
    parts = [part for state in (ACTIVE, COMMITTING) for part in tx.spheres.part_owners(state)]
    heartbeats = [(heartbeat, id) for id, heartbeat in spheres] + [(heartbeat, id) for _, id, heartbeat in parts]
    return max(heartbeats, default=(0, ""))


def _aborting(tx: Transaction, after: int) -> list[tuple[str, int]]:
    """The next spheres to be undone."""
    return [(entity.name, entity.position) for entity in tx.tokens.entities(SPHERES.name, ABORTING, after, PAGE_ROWS)]
