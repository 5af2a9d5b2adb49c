"""Queues: on hold, with errors that nobody takes, locked by someone who has left."""

from __future__ import annotations

from pathlib import Path
from time import sleep

import pytest
from tests.rules.conftest import without_spark
from tests.stations.procedures.office import office

import postroom
from postroom.diagnosis.finding import Severity
from postroom.limits import ATTEMPTS_MANY
from postroom.room import Postroom

from .conftest import HandClock, Told, fine

FAILING = """\
create queue orders kind basic mode persistent errorqueue broken
create queue broken kind basic mode persistent
create queue plain kind basic mode persistent
create rule fail for orders if (error()) then do enqueue . into plain
create rule failtoo for plain if (error()) then do enqueue . into plain
"""


def test_holds_are_notes_until_something_waits(room: Postroom, told: Told) -> None:
    for name in ("in only", "all"):
        room.queues.create(name, password="pw").send("x")
    assert fine(told(room, "holds"))
    room.queues.disable("in only", password="pw", input_only=True)
    (held,) = told(room, "holds")
    assert (held.level, held.where, held.what) == (Severity.NOTE, "in only", "on hold (input only)")
    assert held.do == "postroom enable 'in only'"
    room.queues.disable("all", password="pw")
    full = next(each for each in told(room, "holds") if each.where == "all")
    assert (full.level, full.what) == (Severity.WARNING, "on hold (full), and 1 message(s) wait in it")


def test_the_advice_of_a_hold_is_followed(room: Postroom, told: Told, tmp_path: Path) -> None:
    """The password may be that of a level above."""
    tree = tmp_path / "tree.qdl"
    tree.write_text('01 INPUT-QUEUE (CLAIMS) PASSWORD IS "PW"\n   02 SUB-QUEUE-1 (NORTH)\n99\n')
    room.load(tree)
    room.queues.disable("CLAIMS", password="PW")
    (held,) = told(room, "holds")
    assert held.do == "postroom enable CLAIMS"
    room.queues.enable(*held.do.split()[2:], password="PW")
    assert fine(told(room, "holds"))


def test_a_room_with_many_holds_is_not_a_long_list(room: Postroom, told: Told) -> None:
    for number in range(12):
        room.queues.create(f"q{number:02}", password="pw")
        room.queues.disable(f"q{number:02}", password="pw")
    assert told(room, "holds")[0].where == "q00"
    room.queues.enable("q11", password="pw")
    room.send("q11", "x")
    room.queues.disable("q11", password="pw")
    assert told(room, "holds")[0].where == "q11", "the worst is not left out"
    found = told(room, "holds")
    assert len(found) == 11
    assert (found[-1].level, found[-1].what) == (Severity.NOTE, "and 2 more")


def test_a_queue_that_refuses_messages_is_told(room: Postroom, told: Told) -> None:
    for name, policy in (
        ("few", {"max_messages": 2}),
        ("light", {"max_bytes": 3}),
        ("giving", {"over": "dead-letters"}),
    ):
        room.queues.create(name)
        room.consumers.set_policy(name, **({"max_messages": 2} | policy if name == "giving" else policy))
    assert fine(told(room, "limits"))
    for name in ("few", "few", "giving", "giving"):
        room.send(name, "x")
    room.send("light", "xyz")
    assert [(each.level, each.where) for each in told(room, "limits")] == [
        (Severity.WARNING, "few"),
        (Severity.WARNING, "light"),
    ]
    assert told(room, "limits")[0].what.startswith("it refuses messages: it may have 2 messages")
    room.receive("few")
    room.receive("light")
    assert fine(told(room, "limits"))


@pytest.mark.parametrize("named", [None, "lost"])
def test_dead_letters_are_told(room: Postroom, told: Told, named: str | None) -> None:
    room.queues.create("orders")
    room.queues.create("other.dead")  # of no queue
    room.send("other.dead", "x")
    room.consumers.set_policy("orders", attempts=1, dead_letters=named)
    room.send("orders", "x")
    assert fine(told(room, "errors"))
    message = room.receive("orders", lease=60).message
    assert message is not None
    message.fail("no")
    (dead,) = told(room, "errors")
    where = named or "orders.dead"
    assert (dead.level, dead.where) == (Severity.WARNING, where)
    assert dead.what == "1 dead letter(s): messages that have failed too often, expired or found a queue full"
    assert dead.do == f"postroom peek {where}; postroom redrive {where} sends what failed again"
    room.consumers.redrive(where)
    assert fine(told(room, "errors"))


def test_errors_of_rules_grow(timed: Postroom, clock: HandClock, tmp_path: Path, told: Told) -> None:
    (tmp_path / "p.demaq").write_text(FAILING)
    without_spark(timed).load(tmp_path / "p.demaq")
    for queue in ("orders", "plain", "plain"):
        timed.send(queue, "<o/>", format="xml")
    assert fine(told(timed, "errors", "waiting"))
    timed.run_until_idle()
    found = {each.where: each for each in told(timed, "errors")}
    assert found["broken"].level is Severity.WARNING
    assert found["broken"].what == "1 error message(s), 1 of them in the last hour: it grows"
    assert found["postroom-errors"].what == "2 error message(s), 2 of them in the last hour: it grows"
    clock.pass_by(3_601)
    assert told(timed, "errors")[0].what.endswith("none of them in the last hour")
    for queue in ("broken", "postroom-errors", "postroom-errors"):
        assert timed.receive(queue)
    assert fine(told(timed, "errors"))


def test_errors_of_procedures(url: str, tmp_path: Path, told: Told) -> None:
    broken = "procedure p at ann\n  precondition a : ORDER\n  destination d on a copy 0 ship ?a.Item\n"
    with office(url, tmp_path, broken) as room:
        room.stations._station("ann").create("ORDER", No=1, Item="nobody")
        room.run_until_idle()
        (found,) = told(room, "errors")
    assert (found.level, found.where) == (Severity.WARNING, "station ann")
    assert found.what == "1 error message(s) of procedures in its dossier errors"
    assert found.do == "postroom dossier show errors --as ann"


@pytest.mark.parametrize("ended", [True, False])
def test_locks_that_were_left(timed: Postroom, url: str, clock: HandClock, told: Told, ended: bool) -> None:
    timed.queues.create("q").send("one\ntwo")
    machine = timed._parts.owner.split("/")[0]
    who = f"{machine}/999999999/1" if ended else "elsewhere/1/1"
    with postroom.open(url, clock=clock, owner=who, actor="Ann") as other:
        assert other.receive("q", segment=True)
    if not ended:
        (held,) = told(timed, "locks")
        assert held.what == "Ann (process 1 on elsewhere) is reading a message segment by segment; others wait"
        clock.pass_by(301)
    (left,) = told(timed, "locks")
    why = "has ended" if ended else "has not gone on in time"
    assert (left.level, left.where, left.do) == (Severity.NOTE, "q", "postroom receive q")
    assert f"began to read a message and {why};" in left.what
    assert timed.receive("q").message is not None
    assert fine(told(timed, "locks"))


def test_leases_that_lost_their_holder_are_told(room: Postroom, told: Told) -> None:
    room.queues.create("q")
    room.send_many("q", ["1", "2"])
    assert fine(told(room, "leases"))
    kept, lost = room.receive_many("q", count=2, lease=600)
    room._parts.leasing.extend([lost.lease], 0.001)
    sleep(0.01)
    assert [(each.level, each.what) for each in told(room, "leases")] == [
        (
            Severity.WARNING,
            "1 leased message(s) have lost their holder; the next receive gives them back, as an attempt",
        ),
        (Severity.NOTE, "1 message(s) are leased"),
    ]
    seen = next(each for each in room.operations.overview().queues if each.name == "q")
    assert (seen.leased, seen.as_dict()["leased_count"]) == (2, 2)
    kept.done()


def test_messages_that_fail_again_and_again_are_told(timed: Postroom, clock: HandClock, told: Told) -> None:
    timed.queues.create("jobs")
    timed.worker("jobs")(lambda message: 1 / 0 if message.body == "bad" else None)
    key = timed.send("jobs", "bad").key
    timed.send("jobs", "good")
    for number in range(20):
        timed.drain()
        failed = sum(event.verb == "fail" for event in timed.trace(key))
        if failed >= ATTEMPTS_MANY:
            break
        assert fine(told(timed, "leases")), number
        clock.pass_by(61)
    (note,) = told(timed, "leases")
    assert (note.level, note.where) == (Severity.NOTE, "jobs")
    assert note.what == f"1 message(s) have failed {ATTEMPTS_MANY} times or more; {key} {ATTEMPTS_MANY} times"
    assert note.do == f"postroom trace {key} tells why; postroom queue policy jobs --attempts 5"
    leased = timed.receive("jobs", lease=30)
    assert leased.message is None
    clock.pass_by(61)
    leased = timed.receive("jobs", lease=30)
    assert leased.message is not None
    assert any(each.what == note.what for each in told(timed, "leases")), "also while it is tried"
