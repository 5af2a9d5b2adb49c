"""Killed or failed at every fault point, on both stores: nothing acknowledged is lost, none invented or doubled."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import forked, workload

import postroom
from postroom import faults
from postroom.errors import RoomMissing
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.store import schema_of
from postroom.store.kernel.message_rows import State
from postroom.store.migrations import MIGRATIONS

from .here import evaluate_here

#: Stations, procedures, counters, spheres and executors have batteries of their own; so has reliable messaging, whose
#: partners are killed in tests/gateways/reliable/test_source.py.
_BATTERIES = (
    *(faults.STATION_LABELS, faults.PROCEDURE_LABELS, faults.COUNTER_LABELS),
    *(faults.SPHERE_LABELS, faults.STAGING_LABELS, faults.UPKEEP_LABELS, faults.CONSUMER_LABELS),
    *(faults.GATEWAY_LABELS, faults.SEQUENCE_LABELS, faults.STREAM_LABELS),
)
ELSEWHERE = {f"{label}.{moment}" for labels in _BATTERIES for label in labels for moment in faults.MOMENTS} | {
    "migrate.statement",
    *faults.FILE_POINTS,
}
WORK_POINTS = [(point, 1) for point in faults.POINTS if point not in ELSEWHERE] + [
    (point, 3) for point in ("send.committing", "send.committed", "receive.committing", "receive.committed")
]


@dataclass
class History:
    """What a workload said: what it began, and what it was told had happened."""

    begun: Counter[str] = field(default_factory=Counter)
    sent: dict[str, str] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)
    received: dict[str, list[str]] = field(default_factory=dict)
    effect: bool = False
    asked: set[str] = field(default_factory=set)
    requests: dict[str, str] = field(default_factory=dict)
    published: set[int] = field(default_factory=set)
    events: dict[int, str] = field(default_factory=dict)  # acknowledged, with the phase of the graph they met

    @classmethod
    def of(cls, said: str) -> History:
        history = cls()
        for line in said.splitlines():
            history.hear(*line.split())
        return history

    def hear(self, word: str = "", what: str = "", *more: str) -> None:
        """One line of what a workload says."""
        if (word, what) == ("begin", "send"):
            self.begun.update(more[1:])
        elif (word, what) == ("ok", "send"):
            self.sent[more[0]] = more[1]
        elif (word, what) == ("ok", "send-many"):
            self.batches.append(list(more))
        elif (word, what) == ("ok", "receive"):
            self.received.setdefault(more[0], []).append(more[1])
        elif (word, what) == ("ok", "effect"):
            self.effect = True
        elif what == "request":
            self.asked.add(more[0]) if word == "begin" else self.requests.update({more[0]: more[1]})
        elif what == "event":
            number = int(more[0])
            self.published.add(number) if word == "begin" else self.events.update({number: more[1]})


def run_workload(url: str, folder: Path, point: str, action: str, nth: int) -> History:
    folder.mkdir()
    child = forked.run(workload.work, url, folder, folder=folder, fault=f"{point}:{action}:{nth}")
    expected = -signal.SIGKILL if action == "kill" else 3
    assert child.code == expected, f"{point} was not reached: {child.said[-300:]}{child.complaints[-2000:]}"
    return History.of(child.said)


def check(url: str, history: History) -> None:
    """The total-queue check: every message that was acknowledged, once; every other at most once, and only if begun."""
    with postroom.open(url) as room:
        placed = list(stored(room))
        bodies = Counter(body.split("\n")[0] for _, queue, body, _ in placed if queue in ("keep", "drop"))
        assert all(count == 1 for count in bodies.values()), bodies
        assert set(bodies) <= set(history.begun), "a message was invented"
        keys = {key: (queue, state) for key, queue, _, state in placed}
        for key in [*history.sent, *(key for batch in history.batches for key in batch)]:
            assert key in keys or [event.verb for event in room.trace(key)][-1] == "take", f"{key} was lost"
        for queue, received in history.received.items():
            for key in received:
                assert key not in keys or keys[key] == (queue, State.PROCESSED), f"{key} would be received again"
            assert received == sorted(received, key=key_number), "not in the order of sending"
        check_counts(room)
        evaluate_here(room).run_until_idle()
        check_rules(room, history)
        check_flows(room, history)
        room.engine.sweep()
        check_counts(room)
        assert room.engine.outbox() == []
        if history.effect:
            assert "done" in [event.verb for event in room.journal.last(2_000)]
        room.queues.create("afterwards")
        room.send("afterwards", "the room works on")
        assert room.receive("afterwards").message is not None


def check_rules(room: Postroom, history: History) -> None:
    """Every request that was acknowledged has led to one end or to one error, and no other has."""
    if not any(count.queue == "requests" for count in room.queues.accept().queues):
        assert not history.asked
        return
    ended = Counter(message.body for message in room.queues.info("done"))
    failed = Counter(re.findall(r"<id>(\w+)</id>", "".join(message.body for message in room.queues.info("broken"))))
    finished = {body.removeprefix("<end>").removesuffix("</end>") for body in ended} | set(failed)
    assert set(ended.values()) | set(failed.values()) <= {1}, (ended, failed)
    assert set(history.requests.values()) <= finished <= history.asked, (history.requests, finished)
    for key in history.requests:
        assert [event.verb for event in room.trace(key)][:2] == ["put", "take"], "not processed once"


def check_flows(room: Postroom, history: History) -> None:
    """Every event that was acknowledged is where the graph of its moment led it, once and in order."""
    if not room.flows.graph().domains:
        assert not history.published
        return
    client = room.client("desk")
    if any(not each.connected for each in client.subscriptions()):
        client.connect()
    room.run_until_idle()
    acknowledged = set(history.events)
    for space, away in (("All", ()), ("Big", ("disabled",)), ("desk", ("early",)), ("Doubled", ())):
        present = any(count.queue == space for count in room.queues.accept().queues)
        bodies = [json.loads(message.body)["n"] for message in room.queues.info(space)] if present else []
        numbers = [number // 2 for number in bodies] if space == "Doubled" else bodies
        assert len(set(numbers)) == len(numbers), f"{space} has an event twice"
        assert numbers == sorted(numbers), f"{space} is not in the order of its source"
        wanted = {number for number, phase in history.events.items() if phase not in away}
        assert wanted <= set(numbers) <= history.published, f"{space} lost or invented an event"
        assert not set(numbers) & (acknowledged - wanted), f"{space} got what it must not get"
    told = Counter(
        (action, *said.values())[:2]
        for message in room.queues.info("meta:trade")
        for action, said in json.loads(message.body)["action"].items()
    )
    connected = {key: count for key, count in told.items() if key[0] not in ("EnableArc", "DisableArc")}
    assert set(connected.values()) <= {1}, f"a change was told twice: {told}"
    assert not room.queues.info("In").messages, "an event did not flow"


def stored(room: Postroom) -> Iterable[tuple[str, str, str, State]]:
    for count in room.queues.accept().queues:
        for state, listing in ((State.UNPROCESSED, room.queues.info), (State.PROCESSED, room.queues.history)):
            for message in listing(count.queue):
                assert not message.corrupt
                yield message.key, message.queue, message.body, state


def check_counts(room: Postroom) -> None:
    for count in room.queues.accept().queues:
        assert count.unprocessed == len(room.queues.info(count.queue).messages)
        assert count.processed == len(room.queues.history(count.queue).messages)


RUNS = list(product(["sqlite", "postgres"], ["kill", "raise"]))
#: All points take minutes in each kind of run. The four kinds have every second point once between them.
SOME = [pytest.param(*run, WORK_POINTS[2 * first :: 8], id="-".join(run)) for first, run in enumerate(RUNS)]
ALL = [pytest.param(*run, WORK_POINTS, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS]


@pytest.mark.parametrize(("kind", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_the_room_stays_whole(
    kind: str, action: str, points: list[tuple[str, int]], tmp_path: Path, rooms: Rooms
) -> None:
    urls = rooms(kind, len(points))

    def one(number: int, point: str, nth: int) -> None:
        check(urls[number], run_workload(urls[number], tmp_path / str(number), point, action, nth))

    forked.at_each(points, action, one)


@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_migration_killed_between_any_two_statements_leaves_the_old_schema(
    empty_url: str, tmp_path: Path, some: bool
) -> None:
    for number, statements in enumerate(map(len, MIGRATIONS), start=1):
        points = range(1, statements + 2)  # before each statement, and before the commit
        for nth in [points[number * 7 % len(points)]] if some else points:
            migrate_until(empty_url, tmp_path, nth)
            assert schema(empty_url) == number - 1, f"migration {number}, killed at {nth}"
        if number < len(MIGRATIONS):  # the next one has begun
            migrate_until(empty_url, tmp_path, points[-1] + 1)
            assert schema(empty_url) == number
    done = forked.run(workload.work, empty_url, tmp_path, folder=tmp_path, seconds=60)
    assert done.said.endswith("finished\n"), done.complaints
    history = History.of(done.said)
    assert len(history.sent) == 11
    check(empty_url, history)


def migrate_until(url: str, folder: Path, nth: int) -> None:
    child = forked.run(postroom.open, url, folder=folder, fault=f"migrate.statement:kill:{nth}", seconds=60)
    assert child.code == -signal.SIGKILL


def schema(url: str) -> int:
    try:
        return schema_of(url)[0]
    except RoomMissing:
        return 0


def test_a_migration_that_fails_leaves_the_old_schema(empty_url: str) -> None:
    faults.arm("migrate.statement", "raise", 5)
    with pytest.raises(faults.FaultInjected):
        postroom.open(empty_url)
    with pytest.raises(RoomMissing):
        postroom.open(empty_url, create=False)


def test_the_check_itself_can_fail(sqlite_url: str, tmp_path: Path) -> None:
    """A gate that cannot close is no gate: a forged history must be caught."""
    with postroom.open(sqlite_url) as room:
        room.queues.create("keep")
        key = room.send("keep", "keep-0").key
    honest = History(begun=Counter(["keep-0"]), sent={key: "keep-0"})
    check(sqlite_url, honest)
    with pytest.raises(AssertionError, match="invented"):
        check(sqlite_url, History())
    with pytest.raises(AssertionError, match="received again"):
        check(sqlite_url, History(begun=Counter(["keep-0"]), received={"keep": [key]}))
    with pytest.raises(postroom.errors.MessageUnknown):
        check(sqlite_url, History(begun=Counter(["keep-0"]), sent={"00077.00001": "keep-0"}))
