"""Running a room: steps, and what the engine does outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

from postroom.engine.depot import exchange, settings_of_spark
from postroom.engine.dispatch import Report
from postroom.engine.runner import Totals
from postroom.errors import ArgumentInvalid, OutboxUnknown
from postroom.limits import RETENTION_DAYS_MAX
from postroom.room.parts import Parts, spark_session
from postroom.rules import retention
from postroom.store.outbox import Effect
from postroom.store.transaction import Transaction
from postroom.store.upkeep import Kind


class EngineFace(Parts):
    """The run loop, retention, and the outbox."""

    def run(
        self,
        *,
        until_idle: bool = False,
        report: Report | None = None,
        progress: Callable[[Totals], None] | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
        step_messages: int | None = None,
    ) -> int:
        """Do what is to be done: rules, arcs, procedures, timers, command lines. One engine per room.

        Spark is started when there is a message to evaluate. Answers with the number of messages processed and effects
        tried; ``progress`` is told more after each step.
        """
        totals = self.engine_run(
            until_idle=until_idle,
            report=report,
            progress=progress,
            master=master,
            conf=conf,
            step_messages=step_messages,
        )
        return totals.messages + totals.effects

    def engine_run(self, *, master: str = "local[*]", conf: Mapping[str, str] | None = None, **options: Any) -> Totals:
        """As ``run``, and answers with everything that was done. Spheres are compensated beside it."""
        return self._runner.run(
            spark=lambda: spark_session(master, settings_of_spark(conf or {})),
            exchange=exchange(self.store, master, conf or {}),
            beside=self._compensating(once=bool(options.get("until_idle"))),
            **options,
        )

    @contextmanager
    def _compensating(self, *, once: bool) -> Iterator[None]:
        """Look for spheres that lost their owner, once or again and again."""
        compensator = self._monitor.compensator()
        compensator.announce()
        compensator.check()
        with nullcontext() if once else compensator.beside():
            yield

    def run_until_idle(self, report: Report | None = None, **options: Any) -> int:
        """Run until nothing is left to do; takes what ``run`` takes."""
        return self.run(until_idle=True, report=report, **options)

    def stop(self) -> None:
        """Let ``run`` finish what it has in hand and return."""
        self._runner.stop()

    def sweep(self) -> int:
        """Remove what nothing needs any more; answers with how much went.

        These are messages that are processed and that no slice holds, and what was kept as long as ``set_retention``
        says. ``sweepable`` says before how much that is.
        """
        return sum(self.sweep_by_kind().values())

    def sweep_by_kind(self) -> dict[str, int]:
        """As ``sweep``, and answers with how much of each kind went."""
        return {"messages": self._sweep(), **{each.kind: each.number for each in self._cleaning.sweep()}}

    def sweepable(self) -> dict[str, int]:
        """How much of each kind ``sweep`` would remove now; of the kinds that are kept for ever nothing is said."""
        found = {"messages": retention.sweepable(self.store, self._programs)}
        return {**found, **{each.kind: each.number for each in self._cleaning.sweepable()}}

    def retentions(self) -> dict[str, timedelta | None]:
        """How long each kind of thing is kept that would else grow for ever; None is for ever."""
        known = self.store.read(lambda tx: tx.upkeep.retentions())
        return {kind: _span(known.get(kind)) for kind in Kind}

    def set_retention(self, kind: str, age: timedelta | None) -> None:
        """Let what is older go, with a sweep or with an engine that runs; None keeps it for ever.

        A receipt that is gone no longer recognises its idempotency key: a retry after that makes a second message.
        """
        if kind not in list(Kind):
            raise ArgumentInvalid(argument="kind", why=f"one of {', '.join(Kind)}")
        if age is not None and not timedelta(0) <= age <= timedelta(days=RETENTION_DAYS_MAX):
            raise ArgumentInvalid(argument="age", why=f"from 0 to {RETENTION_DAYS_MAX} days")
        microseconds = None if age is None else age // timedelta(microseconds=1)
        self.store.transact("retention", lambda tx: tx.upkeep.retain(Kind(kind), microseconds))

    def outbox(self) -> list[Effect]:
        """Effects that are pending, or failed and kept."""
        return self.store.read(lambda tx: tx.outbox.all())

    def retry(self, effect: int) -> None:
        """Give a failed effect new attempts, with the command line that its queue has now."""

        def work(tx: Transaction) -> None:
            found = self._effect(tx, effect)
            queue = tx.queues.named_to_read(found.payload.get("queue", ""))
            payload = dict(found.payload)
            if queue is not None and queue.command is not None:
                payload["command"] = queue.command
                payload.pop("seconds", None)
                if queue.command_seconds is not None:
                    payload["seconds"] = queue.command_seconds
            tx.outbox.revive(found, payload)
            tx.wake()

        self.store.transact("outbox-retry", work)

    def drop_effect(self, effect: int) -> None:
        """Take an effect out of the outbox without doing it; the journal keeps what it was."""

        def work(tx: Transaction) -> None:
            tx.outbox.drop(self._effect(tx, effect))

        self.store.transact("outbox-drop", work)

    @staticmethod
    def _effect(tx: Transaction, number: int) -> Effect:
        found = tx.outbox.find(number) if 0 < number < 2**63 else None
        if found is None:
            raise OutboxUnknown(row=number)
        return found


def _span(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)
