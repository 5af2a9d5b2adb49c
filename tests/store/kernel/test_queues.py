"""Queues: made, found by name, path and kind, held, watched, locked by a reader, retired."""

from __future__ import annotations

import pytest
from tests.store.places import put, queue

from postroom.errors import QueueWatched, StateTaken, StoreCorrupt
from postroom.store.kernel.queues import STATE, Admission, Hold, Keep, Queue
from postroom.store.kernel.transaction import Transaction


def names(queues: list[Queue]) -> list[str]:
    return [found.name for found in queues]


def test_a_queue_is_found_by_its_name_and_by_what_it_is_below(tx: Transaction) -> None:
    for number, path in enumerate(("A/B", "A/C", "AB", "A")):
        tx.queues.create(f"q{number}", "tree", path=path, ordinal=number)
    assert names(tx.queues.below("A")) == ["q3"], "the queue of the very path"
    tx.queues.retire(queue(tx, "q3"))
    assert names(tx.queues.below("A")) == ["q0", "q1"]
    assert names(tx.queues.of_kind("tree")) == ["q0", "q1", "q2", "q3"], "retired ones too"
    assert set(tx.queues.locked_all(["q1", "q2", "none"])) == {"q1", "q2"}
    assert tx.queues.kind("q1") == "tree"
    assert tx.queues.kind("none") is None
    assert tx.queues.named("none") is None
    assert ("q1", "A/C") in tx.queues.names()
    with pytest.raises(StoreCorrupt, match="is missing"):
        tx.queues.locked(999_999)


def test_a_hold_a_mode_and_an_admission_are_kept_and_told(tx: Transaction) -> None:
    place = queue(tx, "q")
    tx.queues.hold(place, Hold.INPUT)
    tx.queues.keep_processed(place, False)
    tx.queues.set_admission(place, Admission.RULES, True)
    now = queue(tx, "q")
    assert (now.accepts, now.releases, now.keep, now.admission) == (False, True, Keep.NOTHING, Admission.RULES)
    tx.queues.set_admission(now, Admission.RULES, True)
    tx.queues.hold(now, Hold.NONE)
    assert [event.verb for event in tx.journal.tail(4)] == ["hold", "mode", "door", "release"]


def test_one_capability_watches_a_queue(tx: Transaction) -> None:
    place = queue(tx, "q")
    tx.queues.set_watcher(place, "rules", True)
    tx.queues.set_watcher(place, "flows", False)
    assert tx.queues.watcher(place) == "rules"
    with pytest.raises(QueueWatched):
        tx.queues.set_watcher(place, "flows", True)
    tx.queues.set_watcher(place, "rules", False)
    assert tx.queues.watcher(place) is None


def test_a_reader_in_segments_has_the_queue_until_it_is_freed(tx: Transaction) -> None:
    place = queue(tx, "q")
    stored = put(tx, place)
    expires = tx.now + 1_000_000
    about = {"actor": "ann", "reference": "q", "message": stored.key, "segment": 2, "expires": expires}
    tx.queues.lock(place, owner="elsewhere/1/1", **about)  # type: ignore[arg-type]  # each is of its own type
    locked = queue(tx, "q")
    assert (locked.lock_message, locked.lock_segment) == (stored.key, 2)
    assert locked.in_use(tx.now)
    assert not locked.in_use(expires + 1)
    assert names(tx.queues.locked_by("elsewhere/1/1")) == ["q"]
    tx.queues.unlock(locked, "it was left")
    assert not queue(tx, "q").in_use(tx.now)
    assert [event.verb for event in tx.journal.trace(stored.key)] == ["put", "segment", "unlock"]


def test_a_queue_of_a_capability_is_of_its_kind(tx: Transaction) -> None:
    assert tx.queues.own("state", STATE).kind == STATE
    assert tx.queues.has_own(["state"], STATE)
    assert not tx.queues.has_own(["state", "other"], STATE)
    queue(tx, "plain")
    with pytest.raises(StateTaken):
        tx.queues.own("plain", STATE)
    assert "plain" in tx.queues.open_names()
    assert "state" not in tx.queues.open_names()


def test_a_changed_description_is_told_once(tx: Transaction) -> None:
    place = queue(tx, "q")
    tx.queues.evolve(place, path="new", ordinal=3, command="true", command_seconds=5)
    now = queue(tx, "q")
    assert (now.path, now.names, now.ordinal, now.command, now.command_seconds) == ("new", ("new",), 3, "true", 5)
    newest = tx.journal.newest()
    tx.queues.evolve(now, path="new", ordinal=3, command="true", command_seconds=5)
    assert tx.journal.newest() == newest
