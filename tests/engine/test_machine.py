"""A machine of states inside one transaction; ``tests/spheres/test_machine.py`` has those that users make."""

from __future__ import annotations

import pytest

from postroom.engine.machine import SPHERES, Machine
from postroom.errors import EntityExists, EntityUnknown, TransitionRefused
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, ACTIVE, COMMITTED

DOORS = Machine("doors", ["OPEN", "SHUT"], [("OPEN", "SHUT")])


def test_a_token_moves_as_the_machine_allows(room: Postroom) -> None:
    def work(tx: Transaction) -> list[str]:
        DOORS.start(tx, "front")
        before = DOORS.state(tx, "front")
        DOORS.move(tx, DOORS.locked(tx, "front"), "SHUT", "cold")
        return [before, DOORS.state(tx, "front")]

    assert room.store.transact("send", work) == ["OPEN", "SHUT"]
    with pytest.raises(TransitionRefused):
        room.store.transact("send", lambda tx: DOORS.move(tx, DOORS.locked(tx, "front"), "OPEN"))


def test_an_entity_is_there_once(room: Postroom) -> None:
    room.store.transact("send", lambda tx: DOORS.start(tx, "front"))
    with pytest.raises(EntityExists):
        room.store.transact("send", lambda tx: DOORS.start(tx, "front"))
    with pytest.raises(EntityUnknown):
        room.store.read(lambda tx: DOORS.state(tx, "back"))


def test_a_sphere_that_has_ended_goes_nowhere() -> None:
    assert not [way for way in SPHERES.transitions if way[0] in (COMMITTED, ABORTED)]
    assert SPHERES.states[0] == ACTIVE
