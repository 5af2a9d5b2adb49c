"""Metrics of a room and its server for Prometheus.

They contain nothing of messages. ``METRICS`` lists all; the dashboard in ``deploy/`` and the tests are checked against
it.
"""

from __future__ import annotations

import resource
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from threading import Lock
from typing import NamedTuple

from postroom.limits import MEASURED_QUEUES_MAX, TOP_JOURNAL_ROWS, TOP_REREAD_ROWS
from postroom.room import Postroom
from postroom.room.overview import Overview, QueueSeen
from postroom.store.kernel.base import Store
from postroom.store.kernel.journal import Commit
from postroom.store.kernel.transaction import Transaction

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The upper ends of what a histogram counts.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class Metric(NamedTuple):
    kind: str  # counter, gauge or histogram
    help: str


METRICS: dict[str, Metric] = {
    "postroom_queue_messages": Metric("gauge", "Messages that wait in a queue."),
    "postroom_queue_processed": Metric("gauge", "Processed messages that a queue keeps."),
    "postroom_queue_leased": Metric("gauge", "Messages of a queue that are leased."),
    "postroom_queue_delayed": Metric("gauge", "Messages of a queue that wait for their time."),
    "postroom_queue_blocked": Metric("gauge", "Messages of a queue that wait for others of the same key."),
    "postroom_queue_oldest_seconds": Metric("gauge", "Age of the next message of a queue."),
    "postroom_queue_held": Metric("gauge", "1 if a queue is on hold."),
    "postroom_queue_arrived_total": Metric("counter", "Messages that have come into a queue."),
    "postroom_queue_departed_total": Metric("counter", "Messages that have left a queue or were processed."),
    "postroom_lag_messages": Metric("gauge", "Messages that wait for rules, flows, counters, procedures."),
    "postroom_error_messages": Metric("gauge", "Messages in error queues."),
    "postroom_outbox_effects": Metric("gauge", "Effects in the outbox, by state."),
    "postroom_spheres": Metric("gauge", "Spheres, by state."),
    "postroom_in_doubt": Metric("gauge", "Databases that wait for the outcome of a sphere."),
    "postroom_engine_up": Metric("gauge", "1 if an engine runs."),
    "postroom_senders_up": Metric("gauge", "1 if a process of its own sends, and not the engine."),
    "postroom_journal_last": Metric("gauge", "The last number of the journal."),
    "postroom_steps_total": Metric(
        "counter", "Steps of all engines of the room since this server began, by how they were evaluated."
    ),
    "postroom_step_messages": Metric("histogram", "Messages of one step of an engine of the room."),
    "postroom_requests_total": Metric("counter", "Requests, by operation and status."),
    "postroom_request_seconds": Metric("histogram", "Time that requests took, by operation."),
    "postroom_refusals_total": Metric("counter", "Requests that were refused, by code."),
    "postroom_commit_seconds": Metric("histogram", "Time of one shared commit of sends."),
    "postroom_commit_messages": Metric("histogram", "Messages in one shared commit of sends."),
    "postroom_requests_waiting": Metric("gauge", "Requests that work on the room or wait for it."),
    "postroom_followers": Metric("gauge", "Clients that follow events."),
    "postroom_spans_dropped_total": Metric("counter", "Spans that no collector has taken."),
    "postroom_process_cpu_seconds_total": Metric("counter", "Processor time of the server."),
    "postroom_process_memory_peak_bytes": Metric("gauge", "The most memory that the server has had."),
}


class Histogram:
    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        total, comma = 0, "," if labels else ""
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self.sum:.6f}"
        yield f"{name}_count{{{labels}}} {total}"

    def as_otlp(self) -> dict[str, object]:
        counts = [str(count) for count in self.counts]
        return {"count": str(sum(self.counts)), "sum": self.sum, "bucketCounts": counts, "explicitBounds": self._bounds}


class Measured:
    """Counters of a server since its start. Requests are counted in its loop, commits in its thread."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.refusals: Counter[str] = Counter()
        self.commit_seconds = Histogram(SECONDS)
        self.commit_messages = Histogram(SIZES)
        self.spans_dropped = 0

    def request(self, operation: str, status: int, seconds: float) -> None:
        self.requests[operation, status] += 1
        histogram = self.seconds.get(operation)
        if histogram is None:
            histogram = self.seconds[operation] = Histogram(SECONDS)
        histogram.add(seconds)

    def commit(self, messages: int, seconds: float) -> None:
        self.commit_messages.add(messages)
        self.commit_seconds.add(seconds)


class Steps:
    """The steps of all engines of a room, whatever their processes, from one look to the next.

    They are read from the journal, a part of it at a time, so that nobody waits long for the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._began = self._upto = store.read(lambda tx: tx.journal.newest())
        self._known: set[int] = set()  # the times of those that may be read again

    def new(self) -> list[Commit]:
        """Those since the last look. Lines are not always seen in the order of their numbers: some are read again."""
        newest = self._store.read(lambda tx: tx.journal.newest())
        since, found = max(self._upto - TOP_REREAD_ROWS, self._began), dict[int, Commit]()
        while since < newest:
            end = min(since + TOP_JOURNAL_ROWS, newest)
            for step in self._store.read(partial(_steps_between, since, end)):
                begun = found.get(step.at)
                found[step.at] = step if begun is None else _joined(begun, step)
            since = end
        new = [step for at, step in found.items() if at not in self._known]
        self._known, self._upto = set(found), newest
        return new


def _steps_between(since: int, upto: int, tx: Transaction) -> list[Commit]:
    return tx.journal.steps(since, upto)


def _joined(begun: Commit, rest: Commit) -> Commit:
    """A step whose lines are in two parts of the journal."""
    messages, created = begun.messages + rest.messages, begun.created + rest.created
    return begun._replace(messages=messages, created=created, evaluated=begun.evaluated or rest.evaluated)


class Numbers:
    """The text of ``/metrics``."""

    def __init__(self, room: Postroom, measured: Measured) -> None:
        self._room = room
        self._measured = measured
        self._lock = Lock()
        self._before: Overview | None = None
        self._engines = Steps(room.store)
        self._steps: Counter[str] = Counter()
        self._step_messages = Histogram(SIZES)

    def text(self, *, waiting: int, followers: int) -> bytes:
        """The text, made in a thread; reads the room once per call."""
        with self._lock:
            overview = self._room.operations.overview(self._before)
            self._before = overview
            self._note_steps()
            ages = self._room.operations.ages(MEASURED_QUEUES_MAX)
            values = [*self._of_room(overview, ages), *self._of_server(waiting, followers)]
            return "".join(f"{line}\n" for line in self._lines(values)).encode(errors="backslashreplace")

    def _note_steps(self) -> None:
        for step in self._engines.new():
            self._steps[step.evaluated or "none"] += 1
            self._step_messages.add(step.messages)

    def _of_room(self, seen: Overview, ages: Mapping[str, float]) -> Iterator[_Value]:
        for queue in _bounded(seen.queues):
            named = {"queue": queue.name}
            yield "postroom_queue_messages", named, queue.waiting
            yield "postroom_queue_processed", named, queue.processed
            yield "postroom_queue_leased", named, queue.leased
            yield "postroom_queue_delayed", named, queue.delayed
            yield "postroom_queue_blocked", named, queue.blocked
            yield "postroom_queue_held", named, int(bool(queue.hold))
            yield "postroom_queue_arrived_total", named, queue.arrived
            yield "postroom_queue_departed_total", named, queue.departed
            if queue.name in ages:
                yield "postroom_queue_oldest_seconds", named, round(ages[queue.name], 3)
        for name, label, counts in (
            ("postroom_lag_messages", "of", seen.lags),
            ("postroom_error_messages", "queue", seen.errors),
            ("postroom_outbox_effects", "state", seen.outbox),
            ("postroom_spheres", "state", seen.spheres),
            ("postroom_steps_total", "evaluated", self._steps),
        ):
            for key, count in counts.items():
                yield name, {label: key}, count
        yield "postroom_in_doubt", {}, len(seen.in_doubt)
        yield "postroom_engine_up", {}, int(seen.engine.works)
        yield "postroom_senders_up", {}, int(seen.senders.works)
        yield "postroom_journal_last", {}, seen.newest
        yield "postroom_step_messages", {}, self._step_messages

    def _of_server(self, waiting: int, followers: int) -> Iterator[_Value]:
        measured, used = self._measured, resource.getrusage(resource.RUSAGE_SELF)
        for (operation, status), count in list(measured.requests.items()):
            yield "postroom_requests_total", {"operation": operation, "status": str(status)}, count
        for operation, histogram in list(measured.seconds.items()):
            yield "postroom_request_seconds", {"operation": operation}, histogram
        for code, count in list(measured.refusals.items()):
            yield "postroom_refusals_total", {"code": code}, count
        yield "postroom_commit_seconds", {}, measured.commit_seconds
        yield "postroom_commit_messages", {}, measured.commit_messages
        yield "postroom_requests_waiting", {}, waiting
        yield "postroom_followers", {}, followers
        yield "postroom_spans_dropped_total", {}, measured.spans_dropped
        yield "postroom_process_cpu_seconds_total", {}, round(used.ru_utime + used.ru_stime, 3)
        yield "postroom_process_memory_peak_bytes", {}, used.ru_maxrss * 1024

    def _lines(self, values: Iterable[_Value]) -> Iterator[str]:
        by_name: dict[str, list[_Value]] = {name: [] for name in METRICS}
        for sample in values:
            by_name[sample[0]].append(sample)
        for name, some in by_name.items():
            yield f"# HELP {name} {METRICS[name].help}"
            yield f"# TYPE {name} {METRICS[name].kind}"
            for _, labels, value in some:
                written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
                if isinstance(value, Histogram):
                    yield from value.lines(name, written)
                else:
                    yield f"{name}{{{written}}} {value}" if written else f"{name} {value}"


_Value = tuple[str, Mapping[str, str], float | Histogram]


def _bounded(queues: Iterable[QueueSeen]) -> Iterator[QueueSeen]:
    """The first queues by name up to a limit, and the sum of all others."""
    named = sorted(queues, key=lambda queue: queue.name)
    yield from named[:MEASURED_QUEUES_MAX]
    rest = named[MEASURED_QUEUES_MAX:]
    if rest:
        summed = ("waiting", "processed", "arrived", "departed", "leased", "delayed", "blocked")
        yield QueueSeen("…", "", hold="", **{name: sum(getattr(queue, name) for queue in rest) for name in summed})


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
