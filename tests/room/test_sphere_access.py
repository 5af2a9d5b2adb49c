"""How spheres reach queues: plain ones by the verbs, stations by their mailboxes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import QueueUnknown, TypeUnknown
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.room.sphere_access import SphereAccess
from postroom.store.kernel.queues import MAILBOX


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def access(room: Postroom) -> SphereAccess:
    return SphereAccess(room._parts.verbs, lambda: room._parts.network)


def test_a_recipient_is_a_queue_or_a_station(small: Postroom) -> None:
    small.queues.create("q")
    small.stations.add("Ada", "pw")
    found = access(small)
    assert small.store.read(lambda tx: found.recipient(tx, ("q",))) == "q"
    assert small.store.read(lambda tx: found.recipient(tx, ("Ada",))) == "mailbox:Ada"
    with pytest.raises(QueueUnknown):
        small.store.read(lambda tx: found.recipient(tx, ("nobody",)))


def test_a_queue_of_the_name_of_a_station_comes_first(small: Postroom) -> None:
    small.stations.add("Ada", "pw")
    small.queues.create("Ada")
    assert small.store.read(lambda tx: access(small).recipient(tx, ("Ada",))) == "Ada"


def test_what_is_put_is_in_the_queue_and_what_is_withdrawn_is_gone(small: Postroom) -> None:
    small.queues.create("q")
    found = access(small)
    key = small.store.transact("sphere-send", lambda tx: found.put(tx, found.reach(tx, "q"), Draft.of("x")))
    (stored,) = small.store.read(lambda tx: list(tx.slices.queue("q")))
    assert stored.key == key
    small.store.transact("compensate", lambda tx: found.withdraw(tx, found.reach(tx, "q"), stored))
    assert small.count("q").queues[0].unprocessed == 0


def test_a_mailbox_works_on_what_enters_and_a_plain_queue_does_not(small: Postroom) -> None:
    small.queues.create("q")
    small.stations.add("Ada", "pw")
    found = access(small)
    plain = small.store.read(lambda tx: found.find(tx, ("q",)))
    box = small.store.transact("sphere-send", lambda tx: found.reach(tx, "mailbox:Ada"))
    assert box.kind == MAILBOX
    assert (found.works_on(plain), found.works_on(box)) == (False, True)
    with pytest.raises(TypeUnknown):
        small.store.read(lambda tx: found.check(tx, plain, Draft.of({"n": 1}, type="NONE")))
