"""Running a room: engine steps, and effects outside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from postroom.engine.evaluators import LOCAL, Choice, choice
from postroom.errors import ArgumentInvalid, OutboxUnknown
from postroom.limits import RETENTION_DAYS_MAX
from postroom.room.parts import RoomPart, spark_session
from postroom.store.kernel.outbox import SENDING, Effect
from postroom.store.kernel.transaction import Transaction
from postroom.store.upkeep.kinds import Kind

if TYPE_CHECKING:
    from postroom.engine.dispatch import Report
    from postroom.engine.runner import Totals
    from postroom.flows.streams.totals import StreamTotals


class RoomEngine(RoomPart):
    """The run loop, retention, and the outbox."""

    def run(
        self,
        *,
        until_idle: bool = False,
        report: Report | None = None,
        progress: Callable[[Totals], None] | None = None,
        master: str = LOCAL,
        conf: Mapping[str, str] | None = None,
        spark: str | None = None,
        step_messages: int | None = None,
    ) -> int:
        """Run the engine: rules, arcs, procedures, timers, command lines. Engines share a room.

        With ``spark="auto"``, few messages are evaluated in a worker process, and Spark is started in the background
        when it is worth it; with ``"always"``, Spark evaluates everything. The default is auto, and always if a master
        or settings are given. Returns the number of messages processed and effects tried; ``progress`` is called after
        each step.
        """
        totals = self.run_totals(
            until_idle=until_idle,
            report=report,
            progress=progress,
            master=master,
            conf=conf,
            spark=spark,
            step_messages=step_messages,
        )
        return totals.messages + totals.effects

    def run_totals(
        self,
        *,
        master: str = LOCAL,
        conf: Mapping[str, str] | None = None,
        spark: str | None = None,
        **options: Any,
    ) -> Totals:
        """As ``run``, but returns everything that was done. Spheres are compensated in parallel."""
        from postroom.engine.spark.executor_store import exchange, settings_of_spark

        chosen = choice(spark, master, conf or {})
        by_store = exchange(self._parts.store, master, conf or {})
        if by_store is not None and chosen is Choice.AUTO:
            raise ArgumentInvalid(argument="spark", why="auto needs messages that the engine hands over itself")
        once, other = bool(options.get("until_idle")), chosen is Choice.AUTO
        return self._parts.runner.run(
            spark=lambda: spark_session(master, settings_of_spark(conf or {}), other=other, lasting=not once),
            always=chosen is Choice.ALWAYS,
            exchange=by_store,
            beside=self._compensating(once=once),
            **options,
        )

    @contextmanager
    def _compensating(self, *, once: bool) -> Iterator[None]:
        """Abort spheres that lost their owner, once or repeatedly."""
        compensator = self._parts.monitor.compensator()
        compensator.announce()
        compensator.check()
        with nullcontext() if once else compensator.beside():
            yield

    def run_until_idle(self, report: Report | None = None, **options: Any) -> int:
        """Run until no work is left; has the arguments of ``run``."""
        return self.run(until_idle=True, report=report, **options)

    def run_senders(self, *, until_idle: bool = False, report: Report | None = None) -> int:
        """Send the effects in the outbox and evaluate nothing: a separate process for messages to partners and
        commands.

        While it runs, the engines of the room send nothing. It starts no Spark. Returns the number of effects tried.
        ``stop`` ends it.
        """
        return self._parts.senders.run(until_idle=until_idle, report=report)

    def stream(
        self,
        *spaces: str,
        until_idle: bool = False,
        checkpoints: str | None = None,
        every: float = 0.0,
        refused: str | None = None,
        restart: bool = False,
        master: str = LOCAL,
        conf: Mapping[str, str] | None = None,
        packages: str | None = None,
        show: Callable[[str, str], None] | None = None,
        progress: Callable[[StreamTotals], None] | None = None,
    ) -> list[StreamTotals]:
        """Run the external streams of some spaces, by default all, until ``stop`` is called.

        ``until_idle`` ends when all available input has been read. ``checkpoints`` is a folder, by default beside the
        room's file. ``every`` is the time from one batch to the next, in seconds. ``refused`` is the gateway and folder
        for dead letters; by default they become error messages. ``restart`` forgets offsets and states. ``show`` is
        called with space and line of console output; ``progress`` after each batch.
        """
        from postroom.room.streaming import StreamWishes, run_streams

        wishes = StreamWishes(until_idle, checkpoints, every, refused, restart, master, conf, packages, show, progress)
        self._parts.streaming.clear()
        return run_streams(self._parts, spaces, wishes, self._parts.streaming)

    def stop(self) -> None:
        """Let ``run`` finish its current steps, ``run_senders`` its effects, ``stream`` its batches, and return."""
        self._parts.streaming.set()
        made = vars(self._parts)
        if "senders" in made:
            self._parts.senders.stop()
        if "runner" in made:
            self._parts.runner.stop()
        elif "senders" not in made:  # it is being made, perhaps by this thread, which a signal has interrupted
            threading.Thread(target=lambda: self._parts.runner.stop(), name="postroom-stop", daemon=True).start()

    def sweep(self) -> int:
        """Delete messages and records that are no longer needed; returns how many.

        Deletes processed messages that belong to no slice, and records after the time of ``set_retention``.
        ``sweepable`` returns how many that would be.
        """
        return sum(self.sweep_by_kind().values())

    def sweep_by_kind(self) -> dict[str, int]:
        """As ``sweep``, but returns the number for each kind."""
        return {"messages": self._parts.sweep(), **{swept.kind: swept.number for swept in self._parts.cleaning.sweep()}}

    def sweepable(self) -> dict[str, int]:
        """How many records of each kind ``sweep`` would delete now, without the kinds that are kept forever."""
        from postroom.rules import retention

        numbers = {"messages": retention.sweepable(self._parts.store, self._parts.programs)}
        return {**numbers, **{swept.kind: swept.number for swept in self._parts.cleaning.sweepable()}}

    def retentions(self) -> dict[str, timedelta | None]:
        """The retention time of each kind of record that grows with use; None means forever."""
        known = self._parts.store.read(lambda tx: tx.upkeep.retentions())
        return {kind: _span(known.get(kind)) for kind in Kind}

    def set_retention(self, kind: str, age: timedelta | None) -> None:
        """Let a sweep, or a running engine, delete older records; None keeps them forever.

        After a receipt is deleted, its idempotency key is not recognised: a retry then creates a second message.
        """
        if kind not in list(Kind):
            raise ArgumentInvalid(argument="kind", why=f"one of {', '.join(Kind)}")
        if age is not None and not timedelta(0) <= age <= timedelta(days=RETENTION_DAYS_MAX):
            raise ArgumentInvalid(argument="age", why=f"from 0 to {RETENTION_DAYS_MAX} days")
        microseconds = None if age is None else age // timedelta(microseconds=1)
        self._parts.store.transact("retention", lambda tx: tx.upkeep.retain(Kind(kind), microseconds))

    def outbox(self) -> list[Effect]:
        """Effects that are pending or have failed."""
        return self._parts.store.read(lambda tx: tx.outbox.all())

    def retry(self, effect: int) -> None:
        """Give a failed effect new attempts, with the current command line of its queue."""

        def work(tx: Transaction) -> None:
            row = self._effect(tx, effect)
            queue = tx.queues.named_to_read(row.payload.get("queue", ""))
            payload = dict(row.payload)
            if queue is not None and queue.command is not None:
                payload["command"] = queue.command
                payload.pop("seconds", None)
                if queue.command_seconds is not None:
                    payload["seconds"] = queue.command_seconds
            tx.outbox.revive(row, payload)
            tx.wake()

        self._parts.store.transact("outbox-retry", work)

    def drop_effect(self, effect: int) -> None:
        """Remove an effect from the outbox without executing it; the journal keeps a record of it."""

        def work(tx: Transaction) -> None:
            row = self._effect(tx, effect)
            tx.outbox.drop(row)
            if row.kind == SENDING:
                from postroom.gateways.outgoing import note_dropped  # a tenth of a second, for the few that need it

                note_dropped(tx, row)

        self._parts.store.transact("outbox-drop", work)

    @staticmethod
    def _effect(tx: Transaction, number: int) -> Effect:
        row = tx.outbox.find(number) if 0 < number < 2**63 else None
        if row is None:
            raise OutboxUnknown(row=number)
        return row


def _span(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)
