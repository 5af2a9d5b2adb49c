"""The table of schedules: whoever moves the next time on has sent, and only that one."""

from __future__ import annotations

from postroom.room import Postroom


def test_only_one_moves_a_schedule_on(room: Postroom) -> None:
    room.queues.create("q")
    made = room.consumers.schedule("tick", "* * * * *", "q", body="x")
    moved = room.store.transact("schedule", lambda tx: tx.schedules.move_on(made, made.due + 1))
    again = room.store.transact("schedule", lambda tx: tx.schedules.move_on(made, made.due + 2))
    assert (moved, again) == (True, False)
    assert [each.due for each in room.consumers.schedules()] == [made.due + 1]
    assert room.store.transact("schedule", lambda tx: tx.schedules.add(made)) is False
    assert room.journal.verify().differences == ()
