"""One step in its three parts: what is claimed, in which order, and what a commit refuses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import LEASE
from postroom.engine.steps.effects import Arrival, Effects, Enqueue
from postroom.engine.steps.stage import Watched
from postroom.engine.steps.step import Claim, claim, commit, evaluate
from postroom.errors import LeaseLost
from postroom.model.message import Stored
from postroom.room import Postroom
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True)
class Copying:
    """A share that copies each message to another queue."""

    watched: Watched
    version: int
    target: str = "out"
    agent: str = "copier"
    admission: Admission = Admission.RULES
    asked: list[Any] = field(default_factory=list)

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return [
            Arrival(at, each.queue, each.key, each.format, None, each.body, each.properties, each.created, None)
            for at, each in enumerate(claimed)
        ]

    def weight(self, arrivals: Sequence[Arrival]) -> int:
        return len(arrivals)

    def evaluate(
        self, way: Any, arrivals: Sequence[Arrival], base: Any, known: Any, bay: Any
    ) -> Iterator[Mapping[int, Effects]]:
        self.asked.append(bay)
        yield {
            each.order: (Enqueue("r", self.target, each.format, None, "{}", each.body.upper()),) for each in arrivals
        }

    def folding(self, tx: Transaction, queues: Collection[str]) -> None:
        return None

    def barring(self, barred: Mapping[str, str]) -> Copying:
        raise AssertionError("everyone may act here")

    def keep_warm(self, spark: Any) -> None:
        raise AssertionError("nobody is idle here")


@pytest.fixture
def fence(room: Postroom) -> int:
    for name in ("low", "high", "out"):
        room.queues.create(name)
    return room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, "tester", 600))


def share(room: Postroom, **windows: tuple[int, int]) -> Copying:
    version = room.store.read(lambda tx: tx.definitions.version())
    return Copying(Watched({"low": 0, "high": 5}, windows=windows), version)


def claimed(room: Postroom, fence: int, size: int = 10, **windows: tuple[int, int]) -> Claim | None:
    copying = share(room, **windows)
    return room.store.transact("claim", lambda tx: claim(tx, copying, size, fence, {}, {}))


def test_a_higher_priority_goes_first_and_a_step_takes_so_many(room: Postroom, fence: int) -> None:
    room.send_many("low", ["a", "b"])
    room.send("high", "c")
    found = claimed(room, fence, 2)
    assert found is not None
    assert [(each.body, found.more) for each in found.stored] == [("c", True), ("a", True)]


def test_a_window_hides_what_is_before_and_behind_it(room: Postroom, fence: int) -> None:
    room.send_many("low", ["a", "b", "c"])
    found = claimed(room, fence)
    assert found is not None
    first, second, third = (each.position for each in found.stored)
    inside = claimed(room, fence, low=(first, third))
    assert inside is not None
    assert [each.position for each in inside.stored] == [second]


def test_what_is_evaluated_is_committed_with_the_message(room: Postroom, fence: int) -> None:
    room.send_many("low", ["a", "b"])
    found = claimed(room, fence)
    assert found is not None
    effects, settled = evaluate(found, Evaluators(lambda: None))  # type: ignore[arg-type, return-value]  # it needs none
    result = room.store.transact("step", lambda tx: commit(tx, found, effects, settled, fence))
    assert (settled, result.messages, result.created) == (2, 2, 2)
    assert [each.body for each in room.queues.info("out")] == ["A", "B"]
    assert room.queues.info("low").messages == []
    assert claimed(room, fence) is None


def test_a_commit_is_refused_when_the_lease_or_the_definitions_have_changed(room: Postroom, fence: int) -> None:
    room.send("low", "a")
    found = claimed(room, fence)
    assert found is not None
    effects, settled = evaluate(found, Evaluators(lambda: None))  # type: ignore[arg-type, return-value]  # it needs none
    with pytest.raises(LeaseLost):
        room.store.transact("step", lambda tx: commit(tx, found, effects, settled, fence + 1))
    found.share = Copying(found.share.watched, found.share.version + 1)
    with pytest.raises(Stale):
        room.store.transact("step", lambda tx: commit(tx, found, effects, settled, fence))
    assert [each.body for each in room.queues.info("low")] == ["a"]


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize(("count", "keep"), [(1, True), (9, True), (1, False), (9, False)])
def test_a_message_that_someone_has_had_since_the_claim_is_not_taken(
    room: Postroom, fence: int, count: int, keep: bool, shares: bool
) -> None:
    """It waits as before, but its last line is another: the journal would tell of two lines behind one."""
    room.queues.set_mode("low", keep_processed=keep)
    room.send_many("low", ["x"] * count)
    found = claimed(room, fence)
    assert found is not None
    leased = room.receive("low", lease=60).message
    assert leased is not None
    leased.release()
    effects, settled = evaluate(found, Evaluators(lambda: None))  # type: ignore[arg-type, return-value]  # it needs none
    with pytest.raises(Stale):
        room.store.transact("step", lambda tx: commit(tx, found, effects, settled, fence, shares=shares))
    again = claimed(room, fence)
    assert again is not None
    room.store.transact("step", lambda tx: commit(tx, again, effects, settled, fence, shares=shares))
    assert len(room.queues.info("out").messages) == count
    assert room.journal.verify().differences == ()
