"""The dry run: where proposed arcs would have routed stored events. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.tryout import Tried, begins
from postroom.errors import TryExpired
from postroom.flows.graph import catalog
from postroom.flows.graph.changes import typed
from postroom.flows.graph.versions import RoomGraph, RoomGraphs, with_queues
from postroom.flows.language.definitions import Statement
from postroom.flows.language.tables import Rows
from postroom.limits import TRY_SECONDS
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.way import Way

_AGAIN = 0.5  # seconds
_PAGE = 1_000  # so many at once, so that the first answers come soon


@dataclass
class _Deadline:
    """Cancels the jobs of this thread when the time is over."""

    seconds: float
    over: bool = False

    @contextmanager
    def kept(self, spark: SparkSession, left: float) -> Iterator[None]:
        group, context = f"postroom-try-{id(self)}", spark.sparkContext

        done = Event()

        def watch() -> None:
            wait = left
            while not done.wait(wait):  # another job may begin after one was ended
                self.over, wait = True, _AGAIN
                context.cancelJobGroup(group)

        watcher = Thread(target=watch, name="postroom-try", daemon=True)
        context.setJobGroup(group, "postroom try", interruptOnCancel=True)
        watcher.start()
        from postroom.engine.spark.jobs import forget  # imports what evaluation needs

        try:
            yield
        finally:
            done.set()
            watcher.join()
            forget(spark, ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"))

    def check(self) -> None:
        if self.over:
            raise TryExpired(seconds=f"{self.seconds:g}")


def tried(
    store: Store,
    room_graphs: RoomGraphs,
    proposed: Sequence[Statement],
    rows: Mapping[str, Rows],
    since: datetime | None,
    spark: Callable[[], SparkSession],
    seconds: float = TRY_SECONDS,
) -> Iterator[Tried]:
    """Every stored event of the spaces that the proposed arcs leave, oldest first, with what they would deliver.

    Raises ``TryExpired`` if the time was too short for all of them.
    """

    def work(tx: Transaction) -> tuple[RoomGraph, list[Stored]]:
        now = room_graphs.now(tx)
        room_graph = RoomGraph(0, with_queues(typed(catalog.proposed(tx, now, proposed, rows)), now.kept))
        after = begins(since)
        events = [
            stored
            for name in room_graph.flowing
            if tx.queues.named_to_read(name) is not None
            for stored in tx.slices.queue(name)
            if stored.sound and stored.created >= after
        ]
        return room_graph, sorted(events, key=lambda stored: stored.key)

    room_graph, messages = store.read(work)
    if not messages:
        return
    from postroom.engine.spark.jobs import OnSpark
    from postroom.flows.evaluation.folding import MemoryStates
    from postroom.flows.evaluation.share import FlowShare
    from postroom.flows.evaluation.states import Folding

    class TimedShare(FlowShare):
        """A share that searches for no guilty message when the time is over."""

        def _evaluated(self, way: Way, arrivals: Sequence[Arrival]) -> Iterator[Mapping[int, Effects]]:
            deadline.check()
            yield from super()._evaluated(way, arrivals)

    folding = Folding(room_graph, room_graph.places, sorted(room_graph.flowing), lambda _, __: MemoryStates())
    share = TimedShare(0, room_graph, room_graph.places, dict.fromkeys(room_graph.flowing, (0, 0)))
    session = spark()
    began, deadline = monotonic(), _Deadline(seconds)
    for start in range(0, len(messages), _PAGE):
        some = messages[start : start + _PAGE]
        arrivals = share.arrivals(None, some)
        with deadline.kept(session, max(seconds - (monotonic() - began), 0.001)):
            groups = list(share.evaluate(OnSpark(session), arrivals, {}, {}))
        deadline.check()
        effects = {order: made for group in groups for order, made in group.items()}
        for stored, arrival in zip(some, arrivals, strict=True):
            made = (*effects.get(arrival.order, ()), *folding.effects(share.entered(arrival)))
            yield Tried(key_text(stored.key), stored.queue, made)
