"""Schedules: a message for each time of a cron line, sent once, however many engines and workers run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from postroom.engine.steps.stage import Result, Turn
from postroom.errors import ArgumentInvalid, NameTaken, PostroomError, StoreError
from postroom.limits import SCHEDULE_LATE_SECONDS, SCHEDULE_MISSED_MAX
from postroom.model.cron import Cron
from postroom.model.message import Draft, properties_text
from postroom.model.moment import in_microseconds, to_datetime, to_iso
from postroom.queues.tree.addressing import names_of, one_queue
from postroom.queues.tree.administration import check_queue_name
from postroom.queues.verbs import Verbs
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.schedules import Schedule, said

_FIRST_LOOK_SECONDS = 3_600.0
NONE, LAST, ALL = CATCH_UP = ("none", "last", "all")


class Scheduling:
    """Adds schedules, and sends what is due."""

    def __init__(self, store: Store, verbs: Verbs) -> None:
        self._store = store
        self._verbs = verbs

    def add(self, name: str, cron: Cron, queue: tuple[str, ...], draft: Draft, catch_up: str) -> Schedule:
        """Add a schedule; first due at its next time from now."""
        check_queue_name(name)
        if catch_up not in CATCH_UP:
            raise ArgumentInvalid(argument="catch_up", why=f"one of {', '.join(CATCH_UP)}")
        names = names_of(queue)

        def work(tx: Transaction) -> Schedule:
            one_queue(tx, names)
            body, form, _, properties = draft
            due = cron.after(tx.now)
            assert due is not None, "it was looked at when it was read"
            made = Schedule(name, cron.text, cron.zone, "/".join(names), body, form, properties, catch_up, due)
            if not tx.schedules.add(made):
                raise NameTaken(name=name, owner="a schedule")
            tx.wake()
            return made

        return self._store.transact("schedule", work)

    def all(self) -> list[Schedule]:
        return self._store.read(lambda tx: tx.schedules.all())

    def remove(self, name: str) -> None:
        if not self._store.transact("schedule", lambda tx: tx.schedules.remove(name)):
            raise ArgumentInvalid(argument=name, why="there is no such schedule")

    def fire(self) -> int:
        """Send what is due; returns the number of messages. A concurrent second call sends nothing."""
        due = self._store.read(lambda tx: tx.schedules.due(tx.now))
        return sum(self._fired(schedule) for schedule in due)

    def _fired(self, schedule: Schedule) -> int:
        try:
            return self._store.transact("schedule", partial(self._fire, schedule))
        except StoreError:
            raise
        except PostroomError:  # its queue takes nothing now, or is gone: it stays due
            return 0

    def _fire(self, schedule: Schedule, tx: Transaction) -> int:
        moments, then = _due(schedule, tx.now)
        if not tx.schedules.move_on(schedule, then):
            return 0
        for moment in moments:
            about = {"schedule": schedule.name, "scheduled": to_iso(to_datetime(moment))}
            properties: dict[str, Any] = {**said(schedule), **about}
            draft = Draft(schedule.body, schedule.format, None, properties_text(properties))
            self._verbs.enter(tx, tuple(schedule.queue.split("/")), [draft])
        return len(moments)


def _due(schedule: Schedule, now: int) -> tuple[list[int], int]:
    """The times for which messages are sent now, and the next time."""
    cron = Cron.of(schedule.cron, schedule.zone)
    wanted = SCHEDULE_MISSED_MAX if schedule.catch_up == ALL else 1
    moments, then = _missed(cron, schedule.due, now, wanted)
    if schedule.catch_up == ALL:
        return moments, then
    late = now - moments[-1] > in_microseconds(SCHEDULE_LATE_SECONDS)
    return [] if schedule.catch_up == NONE and late else moments[-1:], then


def _missed(cron: Cron, due: int, now: int, wanted: int) -> tuple[list[int], int]:
    """The last due times, at most ``wanted``, and the next one.

    Searched backwards from now, because a schedule of every minute that was not run for a year has half a million.
    """
    span = in_microseconds(_FIRST_LOOK_SECONDS)
    while True:
        begin = max(due, now - span)
        moments = [due] if begin == due else []
        then = cron.after(begin)
        while then is not None and then <= now:
            moments.append(then)
            then = cron.after(then)
        assert then is not None, "it was looked at when it was read"
        if begin == due or len(moments) >= wanted:
            return moments[-wanted:], then
        span *= 16


class ScheduleStage:
    """The engine's stage for schedules."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._scheduling = scheduling

    def steps(self, turn: Turn) -> Generator[Result] | None:
        self._scheduling.fire()
        return None  # what was sent is seen by the next look

    def worker_module(self, store: Store) -> str:
        return ""

    def keep_warm(self, store: Store, spark: Callable[[], object]) -> None:
        """Does nothing: schedules need no Spark."""
