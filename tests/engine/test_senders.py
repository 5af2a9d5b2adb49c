"""A process of its own that sends: engines make way for it, and go on where it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import postroom
from postroom.engine.dispatch import Dispatch, Gateway, Outcome
from postroom.engine.effects_lease import EFFECTS, SENDERS, EffectsLease
from postroom.engine.senders import Senders
from postroom.errors import LeaseHeld, LeaseLost
from postroom.room import Postroom
from postroom.store.kernel.outbox import Effect


class Sink:
    """What all processes of a test have done, by destination: who, what, and how many were at it at a time."""

    def __init__(self) -> None:
        self.got: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self.at_once = 0
        self._busy: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def take(self, who: str, effect: Effect, seconds: float) -> None:
        with self._lock:
            self._busy[effect.destination] += 1
            self.at_once = max(self.at_once, self._busy[effect.destination])
        sleep(seconds)
        with self._lock:
            self._busy[effect.destination] -= 1
            self.got[effect.destination].append((who, int(effect.payload["n"])))

    def by(self, who: str) -> int:
        return sum(one == who for run in self.got.values() for one, _ in run)


class Into(Gateway):
    kind = "note"
    run = 8

    def __init__(self, sink: Sink, who: str, seconds: float = 0.003) -> None:
        self._sink, self._who, self._seconds = sink, who, seconds

    def act(self, effect: Effect) -> Outcome:
        self._sink.take(self._who, effect, self._seconds)
        return Outcome(True, {"outcome": "taken"})


def put(room: Postroom, first: int, last: int, *destinations: str) -> None:
    def work(tx: Any) -> None:
        for number in range(first, last):
            for destination in destinations or ("a", "b", "c"):
                tx.outbox.add("note", {"n": number}, destination)
        tx.wake()

    room.store.transact("send", work)


def wait_until(true: Callable[[], object], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not true():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.01)


def owner_of(room: Postroom, name: str) -> str | None:
    """Who has a lease now."""
    lease = room.store.read(lambda tx: tx.leases.named(name))
    return None if lease is None or lease.released else lease.owner


@contextmanager
def beside(work: Callable[[], object], stop: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Something that runs in a thread until the block ends; its errors."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        stop()
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def engine(url: str, sink: Sink, who: str = "engine") -> Iterator[list[BaseException]]:
    with postroom.open(url) as room:
        room._parts.runner._gateways = (Into(sink, who),)
        with beside(room.run, room.stop) as errors:
            yield errors


@contextmanager
def senders(url: str, sink: Sink, who: str = "senders", seconds: float = 0.003) -> Iterator[list[BaseException]]:
    with postroom.open(url) as room:
        it = Senders(room.store, lambda: [Into(sink, who, seconds)], room._parts.holder)
        with beside(it.run, it.stop) as errors:
            yield errors


def test_it_sends_until_nothing_is_left(room: Postroom) -> None:
    sink = Sink()
    put(room, 0, 20)
    it = Senders(room.store, lambda: [Into(sink, "x", 0)], room._parts.holder)
    assert it.run(until_idle=True) == 60
    assert sorted(sink.got) == ["a", "b", "c"]
    assert all([n for _, n in got] == list(range(20)) for got in sink.got.values())
    assert it.run(until_idle=True) == 0
    assert (owner_of(room, SENDERS), owner_of(room, EFFECTS)) == (None, None), "both leases were given back"


def test_hand_over_in_both_directions_under_load(room: Postroom, url: str) -> None:
    sink, count = Sink(), 0
    with engine(url, sink) as of_engine:
        put(room, 0, 30)
        wait_until(lambda: sink.by("engine") > 10)
        for turn in ("first", "second"):
            put(room, count + 30, count + 60)
            with senders(url, sink, turn) as of_senders:
                wait_until(lambda turn=turn: sink.by(turn) > 10)  # type: ignore[misc]
                before = sink.by("engine")
                put(room, count + 60, count + 90)
                wait_until(lambda turn=turn: sink.by(turn) > 90)  # type: ignore[misc]
                assert sink.by("engine") == before, "the engine sends nothing as long as they live"
                put(room, count + 90, count + 390)  # a stop is noticed within half a second: some are left
            wait_until(lambda before=before: sink.by("engine") > before)  # type: ignore[misc]
            count += 360
        wait_until(lambda: room.engine.outbox() == [])
    assert (of_engine, of_senders) == ([], [])
    assert sink.at_once == 1, "never two at one destination"
    for got in sink.got.values():
        assert [n for _, n in got] == list(range(count + 30)), "in order, none lost, none doubled"
    assert room.journal.verify().differences == ()


def test_an_engine_until_idle_waits_for_what_the_senders_do(room: Postroom, url: str) -> None:
    sink = Sink()
    with senders(url, sink):
        wait_until(lambda: owner_of(room, SENDERS))
        put(room, 0, 30)
        assert room.run_until_idle() == 0
        assert room.engine.outbox() == []
    assert sink.by("senders") == 90


def test_a_second_one_is_refused(room: Postroom, url: str) -> None:
    with senders(url, Sink()):
        wait_until(lambda: owner_of(room, SENDERS))
        with pytest.raises(LeaseHeld, match="senders is held by process"):
            room.engine.run_senders(until_idle=True)


def test_one_room_sends_once_at_a_time_beside_its_engine(room: Postroom) -> None:
    """Both are of one process and one room, and are told apart all the same."""
    sink = Sink()
    room._parts.runner._gateways = (Into(sink, "engine", 0.2),)
    room._parts.senders._gateways = lambda: [Into(sink, "senders")]
    with beside(room.run, room.stop) as of_engine:
        put(room, 0, 40)
        wait_until(lambda: sink.by("engine") > 10)
        with beside(room.engine.run_senders, lambda: None):
            wait_until(lambda: sink.by("senders") > 10)
            with pytest.raises(LeaseHeld, match="another thread of this room"):
                room.engine.run_senders()
            wait_until(lambda: room.engine.outbox() == [])
            room.stop()
    assert (of_engine, sink.at_once) == ([], 1)
    assert all([n for _, n in got] == list(range(40)) for got in sink.got.values())


@pytest.mark.parametrize("name", [EFFECTS, SENDERS])
def test_senders_whose_lease_was_taken_say_so(
    room: Postroom, url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.engine.beating.ENGINE_LEASE_SECONDS", 0.5)
    sink = Sink()
    with senders(url, sink) as errors:
        put(room, 0, 1)
        wait_until(lambda: sink.by("senders") == 3)
        room.store.transact("lease", lambda tx: tx.leases.take(name, "elsewhere/1/1", tx.now + 600_000_000))
        wait_until(lambda: errors)
        (error,) = errors
        assert isinstance(error, LeaseLost)
        assert error.facts["lease"] == name
    left = room.store.read(lambda tx: tx.leases.named(name))
    assert left is not None
    assert left.owner == "elsewhere/1/1", "what is another's is not released"


def test_what_comes_too_late_is_not_recorded_and_what_follows_is_not_tried(room: Postroom, url: str) -> None:
    """Another process takes over while the first of a run is under way, as after a long standstill."""
    sink = Sink()
    put(room, 0, 5, "a")

    class Stolen(Into):
        def act(self, effect: Effect) -> Outcome:
            room.store.transact("lease", lambda tx: tx.leases.take(EFFECTS, "elsewhere/1/1", tx.now + 600_000_000))
            lease.forget(lease.fence)
            return super().act(effect)

    with postroom.open(url) as other:
        lease = EffectsLease(other.store, "there/1/1")
        with Dispatch(other.store, [Stolen(sink, "late")], lease, None) as dispatch:
            dispatch.check()
            wait_until(lambda: sink.got)
            wait_until(lambda: not dispatch._begun)
    assert [n for _, n in sink.got["a"]] == [0], "the others of its run are left to the other process"
    assert dispatch.tried == 0
    assert [effect.attempts for effect in room.engine.outbox()] == [1] * 5


QUIET = """
import sys
import postroom
with postroom.open(sys.argv[1]) as room:
    assert room.engine.run_senders(until_idle=True) == 1
print(*(name for name in sys.modules if name.startswith(("pyspark", "saxonche", "postroom.rules"))))
"""


def test_neither_spark_nor_the_rules_are_loaded(room: Postroom, url: str, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        "create queue out kind outgoingGateway mode persistent interface command port file\n"
    )
    room.gateways.add("file", "command", command="true")
    room.load(tmp_path / "p.demaq")
    room.send("out", "x")
    ran = subprocess.run([sys.executable, "-c", QUIET, url], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.split()) == (0, []), ran.stderr
