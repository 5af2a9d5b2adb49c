"""Leases in the store: what finds them costs the same however many messages wait, and damage to them is mended."""

from __future__ import annotations

import pytest

import postroom
from postroom.room import Postroom
from postroom.store.kernel import deliveries, messages
from postroom.store.sqlite import express

#: Every statement that a lease or its end asks, and that could pass through all that waits.
ASKED = {
    name: statement
    for module in (deliveries, messages, express)
    for name, statement in vars(module).items()
    if isinstance(statement, str) and "FROM messages" in statement
    if name
    in "_URGENT _NEXT _DUE _FIRST_DUE _EXPIRED _FIRST_EXPIRY _STALE _LANE_TAKEN _LANE_HELD _LANE_NEXT _HEAD".split()
    or name == "_NEXT_ONE"
}


@pytest.mark.parametrize("name", ASKED)
def test_nothing_passes_through_all_that_waits(sqlite_url: str, name: str) -> None:
    with postroom.open(sqlite_url) as room:
        connection = room.store.session.connection  # type: ignore[attr-defined]
        asked = ASKED[name].replace("BEGIN IMMEDIATE;", "")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked}", (1,) * asked.count("?"))]
        assert plan
        for step in plan:
            assert not (step.startswith("SCAN") and "messages" in step), plan
            assert "TEMP B-TREE" not in step or "due" in ASKED[name], plan


def test_a_lease_whose_row_is_lost_is_found_and_mended(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["1", "2"])
    lost, kept = room.receive_many("q", count=2, lease=600)
    room.store.transact("send", lambda tx: tx.session.run("DELETE FROM deliveries WHERE fence = ?", (lost.lease,)))
    assert [difference.what for difference in room.journal.verify().differences] == [f"lease {lost.lease}"]
    room.journal.mend()
    assert room.journal.verify().differences == ()
    again = room.receive("q", lease=60).message
    assert again is not None
    assert (again.key, again.attempts) == (lost.key, 2)
    kept.done()


def test_a_lease_that_is_not_in_the_journal_is_found_and_mended(room: Postroom) -> None:
    room.queues.create("q")
    room.store.transact("send", lambda tx: tx.session.run(deliveries.ADD, (7_777, 1, 1, "", 0)))
    assert room.journal.verify().differences != ()
    room.journal.mend()
    assert room.journal.verify().differences == ()


def test_attempts_that_were_changed_are_found_and_mended(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x", priority=3)
    message = room.receive("q", lease=600).message
    assert message is not None
    message.fail("no")
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET attempts = 0, priority = 0"))
    assert [difference.journal for difference in room.journal.verify().differences] == ["attempts 1, priority 3"]
    room.journal.mend()
    assert room.journal.verify().differences == ()


def test_a_room_is_archived_with_leases_in_it(room: Postroom) -> None:
    from postroom.store.proof import snapshot
    from postroom.store.proof.replay import told

    room.queues.create("q")
    room.consumers.set_policy("q", attempts=3)
    room.send_many("q", ["1", "2"])
    room.receive("q", lease=600)
    known = room.store.read(lambda tx: told(tx.journal.lines()))
    again = snapshot.read(snapshot.written(known))
    assert (again.leases, again.policies, again.messages) == (known.leases, known.policies, known.messages)
    assert len(known.leases) == 1
