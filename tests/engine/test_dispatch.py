"""Effects beside the steps: tried when they are due, each destination in its order, and recorded."""

from __future__ import annotations

import threading
from time import monotonic, sleep

import pytest

from postroom.engine.dispatch import Dispatch, Gateway, Outcome
from postroom.engine.effects_lease import EffectsLease
from postroom.room import Postroom
from postroom.store.kernel.outbox import Effect


class Notes(Gateway):
    """A way out that writes down what it was asked to do; some is refused."""

    kind = "note"

    def __init__(self, refuses: str = "") -> None:
        self.done: list[str] = []
        self._refuses = refuses

    def act(self, effect: Effect) -> Outcome:
        said = str(effect.payload["say"])
        if said == self._refuses:
            return Outcome(False, {"outcome": "refused"})
        self.done.append(said)
        return Outcome(True, {"outcome": "said"})


def put(room: Postroom, *said: str) -> None:
    room.store.transact("send", lambda tx: [tx.outbox.add("note", {"say": each}, each) for each in said])


def run(room: Postroom, way: Notes, until: int) -> tuple[int, list[tuple[str, bool, bool]]]:
    told: list[tuple[str, bool, bool]] = []

    def report(effect: Effect, outcome: Outcome, again: bool) -> None:
        told.append((str(effect.payload["say"]), outcome.done, again))

    late = monotonic() + 20
    with Dispatch(room.store, [way], EffectsLease(room.store, "tester"), report) as dispatch:
        while len(told) < until and monotonic() < late:
            dispatch.check()
            sleep(0.01)
    return dispatch.tried, told


def test_what_is_due_is_tried_and_told(room: Postroom) -> None:
    put(room, "one", "two")
    way = Notes()
    tried, told = run(room, way, until=2)
    assert (tried, sorted(way.done)) == (2, ["one", "two"])
    assert {(done, again) for _, done, again in told} == {(True, False)}
    assert room.store.read(lambda tx: tx.outbox.next_due()) is None


def test_what_fails_is_tried_again(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_ATTEMPTS_MAX", 2)
    put(room, "no")
    _, told = run(room, Notes(refuses="no"), until=2)
    assert told == [("no", False, True), ("no", False, False)]


def test_without_effects_there_is_no_thread(room: Postroom) -> None:
    before = threading.active_count()
    with Dispatch(room.store, [Notes()], EffectsLease(room.store, "tester"), None) as dispatch:
        dispatch.check()
        assert threading.active_count() == before
    assert dispatch.tried == 0
