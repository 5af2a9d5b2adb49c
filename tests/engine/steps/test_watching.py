"""Steps that follow each other: those behind are under way while one is committed; none is lost or done twice."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import LEASE
from postroom.engine.steps import watching
from postroom.engine.steps.stage import Result, Turn
from postroom.engine.steps.watching import steps
from postroom.room import Postroom
from postroom.rules.evaluation.share import RulesShare
from postroom.store.kernel.batch import Stale

QUEUES = """
create queue in kind basic mode persistent
create queue urgent kind basic mode persistent priority 5
create queue out kind basic mode persistent
create queue asked kind basic mode persistent
create queue told kind basic mode persistent
create queue later kind echo mode persistent
"""
ANSWER = "create rule answer for in if (/m) then do enqueue <r>{string(/m)}</r> into out"
COUNT = "create rule count for asked if (/m) then do enqueue <n>{count(qs:queue('out'))}</n> into told"

Begin = Callable[..., Generator[Result]]


@pytest.fixture
def load(room: Postroom, tmp_path: Path) -> Callable[..., None]:
    def load(*rules: str) -> None:
        file = tmp_path / "program.demaq"
        file.write_text("\n".join([QUEUES, *rules]))
        room.load(file)

    return load


@pytest.fixture
def begin(room: Postroom, spark: SparkSession) -> Begin:
    """Steps of three messages, under the definitions in force."""
    fence = room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, "tester", 600))

    def begin(size: int = 3, ahead: int = 2) -> Generator[Result]:
        share = RulesShare(room.store.read(room._parts.programs.plan))
        return steps(share, Turn(room.store, fence, Evaluators(lambda: spark, always=True), lambda: size), ahead)

    return begin


def send(room: Postroom, count: int, queue: str = "in") -> None:
    room.send_many(queue, [f"<m>{number}</m>" for number in range(count)], format="xml")


def answers(room: Postroom) -> list[int]:
    return [int(each.body.removeprefix("<r>").removesuffix("</r>")) for each in room.queues.info("out")]


def left(room: Postroom, queue: str = "in") -> int:
    return next(each.unprocessed for each in room.queues.accept().queues if each.queue == queue)


def test_steps_are_committed_in_their_order_and_each_message_once(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER)
    send(room, 11)
    done = list(begin())
    assert [(each.claimed, each.messages) for each in done] == [(3, 3), (3, 3), (3, 3), (2, 2)]
    assert answers(room) == list(range(11))
    assert left(room) == 0
    assert set(done[0].seconds) == {"claim", "evaluate", "commit"}
    assert list(begin()) == []


def test_a_message_that_someone_received_meanwhile_stops_the_step_it_is_in(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER)
    send(room, 9)
    under_way = begin()
    next(under_way)  # the second and the third step are claimed
    received = room.receive("in").message
    assert received is not None
    assert received.body == "<m>3</m>"
    with pytest.raises(Stale):
        next(under_way)
    assert answers(room) == [0, 1, 2]
    assert sum(each.messages for each in begin()) == 5
    assert answers(room) == [0, 1, 2, 4, 5, 6, 7, 8]


def test_steps_end_before_one_that_must_wait_for_a_queue_on_hold(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER)
    send(room, 9)
    under_way = begin()
    next(under_way)
    room.queues.set_password("out", password="pw")
    room.queues.disable("out", password="pw")
    blocked = next(under_way).blocked
    assert blocked is not None
    assert (blocked.queue, blocked.goal) == ("in", "out")
    assert next(under_way, None) is None
    room.queues.enable("out", password="pw")
    assert sum(each.messages for each in begin()) == 6
    assert answers(room) == list(range(9))


def test_steps_under_way_do_not_outlive_their_definitions(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER)
    send(room, 9)
    under_way = begin()
    next(under_way)
    load(ANSWER.replace("string(/m)", "10 * /m"))
    with pytest.raises(Stale):
        next(under_way)
    list(begin())
    assert answers(room) == [0, 1, 2, 30, 40, 50, 60, 70, 80]


def test_steps_that_are_abandoned_have_not_happened(room: Postroom, load: Callable[..., None], begin: Begin) -> None:
    load(ANSWER)
    send(room, 9)
    under_way = begin()
    next(under_way)
    under_way.close()
    assert (answers(room), left(room)) == ([0, 1, 2], 6)
    list(begin())
    assert answers(room) == list(range(9))


def test_a_message_that_looks_at_others_sees_what_those_before_it_did(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER, COUNT)
    send(room, 7)
    send(room, 1, "asked")
    send(room, 4)
    done = list(begin())
    assert len(done) == 1  # behind a step nothing is claimed as long as one waits that looks
    while list(begin()):
        pass
    assert [each.body for each in room.queues.info("told")] == ["<n>7</n>"]
    assert answers(room) == [*range(7), *range(4)]


def test_one_that_looks_at_others_and_comes_later_ends_the_steps(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER, COUNT)
    send(room, 12)
    under_way = begin()
    next(under_way)  # up to the ninth message they are under way
    send(room, 1, "asked")
    assert [each.messages for each in under_way] == [3, 3]
    while list(begin()):
        pass
    assert [each.body for each in room.queues.info("told")] == ["<n>12</n>"]


def test_an_urgent_message_goes_before_all_that_are_not_yet_claimed(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    load(ANSWER, "create rule now for urgent if (/m) then do enqueue <r>{100 + /m}</r> into out")
    send(room, 12)
    under_way = begin()
    next(under_way)
    send(room, 1, "urgent")
    list(under_way)
    assert answers(room) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 9, 10, 11]


def test_a_message_whose_time_has_come_goes_before_those_behind_it(
    room: Postroom, load: Callable[..., None], begin: Begin
) -> None:
    wait = "create rule wait for asked if (/m) then do enqueue <r>100</r> into later"
    load(ANSWER, f"{wait} with timeout value 'PT0S' with target value 'out'")
    send(room, 1, "asked")
    list(begin())
    send(room, 9)
    assert [each.claimed for each in begin()] == [3]  # the waiting message and two others
    list(begin())
    assert answers(room) == [100, *range(9)]


def test_claims_one_behind_another_are_bounded(
    room: Postroom, load: Callable[..., None], begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PIPELINE_MESSAGES_MAX", 7)
    load(ANSWER)
    send(room, 20)
    assert [each.messages for each in begin()] == [3, 3, 1]
    assert answers(room) == list(range(7))
