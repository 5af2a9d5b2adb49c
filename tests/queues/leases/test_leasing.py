"""Leased receives on both stores: every verb in every state of a lease, and every way in which a lease ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.faults.upkeep_workload import write_here

import postroom
from postroom.engine import archiving
from postroom.errors import ArgumentInvalid, LeaseOver, MessageCorrupt, PostroomError, QueueHeld, QueueInUse
from postroom.queues.leases import leasing
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom

_DIES = """
import os, sys, postroom
room = postroom.open(sys.argv[1])
for queue in sys.argv[2:]:
    assert room.receive(queue, lease=600).message is not None
os._exit(0)
"""


_SLEEPS = [
    "room = postroom.open(sys.argv[1])",
    "room.receive('q', lease=600)",
    "print(flush=True)",
    "time.sleep(600)",
]


def leased(room: Postroom, queue: str = "q", seconds: float = 600) -> LeasedMessage:
    message = room.receive(queue, lease=seconds).message
    assert message is not None
    return message


def bodies(room: Postroom, queue: str = "q") -> list[str]:
    return [message.body for message in room.peek(queue)]


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    for number in range(1, 5):
        room.send("q", str(number))
    return room


# --- a table of every verb in every state ---


def _lost(room: Postroom, q: str) -> LeasedMessage:
    """Its time is over, and another has the message."""
    message = leased(room, q, 0.001)
    sleep(0.01)
    other = leased(room, q)
    assert other.key == message.key
    return message


def _lapsed(room: Postroom, q: str) -> LeasedMessage:
    message = leased(room, q, 0.001)
    sleep(0.01)
    room.receive(q, lease=600).message.release()  # type: ignore[union-attr]
    return message


def _over(room: Postroom, q: str) -> LeasedMessage:
    """Its time is over, and nobody has come by."""
    message = leased(room, q, 0.001)
    sleep(0.01)
    return message


def _ended(end: Callable[[LeasedMessage], object]) -> Callable[[Postroom, str], LeasedMessage]:
    def work(room: Postroom, q: str) -> LeasedMessage:
        message = leased(room, q)
        end(message)
        return message

    return work


def _held(room: Postroom, q: str) -> LeasedMessage:
    message = leased(room, q)
    room.queues.disable(q, password="pw")
    return message


STATES: dict[str, Callable[[Postroom, str], LeasedMessage]] = {
    "leased": lambda room, q: leased(room, q),
    "time over": _over,
    "given back": _lapsed,
    "with another": _lost,
    "done": _ended(lambda message: message.done()),
    "released": _ended(lambda message: message.release()),
    "delayed": _ended(lambda message: message.release(delay=60)),
    "failed": _ended(lambda message: message.fail("no")),
    "buried": _ended(lambda message: message.fail("no", final=True)),
    "held": _held,
}
VERBS: dict[str, Callable[[LeasedMessage], object]] = {
    "done": lambda message: message.done(),
    "release": lambda message: message.release(),
    "delay": lambda message: message.release(delay=60),
    "extend": lambda message: message.extend(60),
    "fail": lambda message: message.fail("no"),
    "bury": lambda message: message.fail("no", final=True),
}
#: Where the message is then: processed, waiting, delayed, leased, dead; or the refusal, and where it stays.
TABLE = """
         leased     time over  given back  with another  done        released   delayed    failed     buried  held
done     processed  processed  !waiting    !leased       !processed  !waiting   !delayed   !waiting   !dead   processed
release  waiting    waiting    !waiting    !leased       !processed  !waiting   !delayed   !waiting   !dead   waiting
delay    delayed    delayed    !waiting    !leased       !processed  !waiting   !delayed   !waiting   !dead   delayed
extend   leased     leased     !waiting    !leased       !processed  !waiting   !delayed   !waiting   !dead   leased
fail     waiting    waiting    !waiting    !leased       !processed  !waiting   !delayed   !waiting   !dead   waiting
bury     dead       dead       !waiting    !leased       !processed  !waiting   !delayed   !waiting   !dead   dead
"""


def _where(room: Postroom, q: str) -> str:
    count = room.count(q).queues[0]
    (dead,) = [each.unprocessed for each in room.count().queues if each.queue == f"{q}.dead"] or [0]
    places = {
        "waiting": count.unprocessed,
        "processed": count.processed,
        "leased": count.leased,
        "delayed": count.delayed,
        "dead": dead,
    }
    (place,) = [name for name, number in places.items() if number]
    return place


@pytest.mark.parametrize("state", STATES)
def test_every_verb_in_every_state(room: Postroom, state: str) -> None:
    _, *rows = TABLE.strip("\n").splitlines()
    column = list(STATES).index(state)
    for row in rows:
        verb, *expected = row.split()
        q = f"{verb}-{column}"
        room.queues.create(q, password="pw")
        room.send(q, "x")
        message = STATES[state](room, q)
        refused = ""
        try:
            VERBS[verb](message)
        except LeaseOver as error:
            refused = "!" if error.status == "93" else "?"
        assert refused + _where(room, q) == expected[column], (verb, state)
    sound(room)


# --- order and attempts ---


def test_a_leased_message_keeps_its_place_and_the_next_are_given_out(q: Postroom) -> None:
    first, second = leased(q), leased(q)
    assert (first.body, second.body, bodies(q)) == ("1", "2", ["3", "4"])
    count = q.count("q").queues[0]
    assert (count.unprocessed, count.leased, count.as_dict()["leased_count"]) == (2, 2, 2)
    first.release()
    assert bodies(q) == ["1", "3", "4"]
    second.fail("no")
    assert bodies(q) == ["1", "2", "3", "4"]
    assert [leased(q).attempts for _ in range(4)] == [1, 2, 1, 1]
    sound(q)


def test_attempts_are_counted_by_what_was_tried(q: Postroom) -> None:
    leased(q).release()
    leased(q).fail("first")
    assert leased(q, seconds=0.001).attempts == 2
    sleep(0.01)
    message = leased(q)
    assert (message.body, message.attempts) == ("1", 3)
    message.done()
    verbs = [(event.verb, event.detail) for event in q.trace(message.key)]
    assert [verb for verb, _ in verbs] == [
        "put",
        "lease",
        "release",
        "lease",
        "fail",
        "lease",
        "lapse",
        "lease",
        "take",
    ]
    assert verbs[4][1] == {"why": "first", "attempts": 1}
    assert verbs[6][1] == {"why": "its lease ran out", "attempts": 2}
    sound(q)


def test_one_shot_receives_pass_what_is_leased(q: Postroom) -> None:
    first = leased(q)
    got = [q.receive("q").message for _ in range(4)]
    assert [message and message.body for message in got] == ["2", "3", "4", None]
    first.release()
    assert q.receive("q").message == q.show(first.key)
    sound(q)


def test_a_queue_that_keeps_nothing_lets_go_what_is_done(room: Postroom) -> None:
    room.queues.create("q", keep_processed=False)
    key = room.send("q", "x").key
    leased(room).done()
    assert [event.verb for event in room.trace(key)] == ["put", "lease", "take"]
    assert room.count("q").queues[0].as_dict()["processed_count"] == 0
    sound(room)


def test_many_are_leased_and_done_in_one_commit(q: Postroom) -> None:
    messages = q.receive_many("q", count=3, lease=60)
    assert [message.body for message in messages] == ["1", "2", "3"]
    messages[1].release()
    with pytest.raises(LeaseOver):
        q.consumers.done_many(messages)
    assert q.count("q").queues[0].leased == 2, "all or none"
    q.consumers.done_many([messages[0], messages[2]])
    assert [message.body for message in q.queues.history("q")] == ["1", "3"]
    assert [message.body for message in q.receive_many("q", count=9)] == ["2", "4"]
    sound(q)


# --- ends that nobody says ---


def test_a_process_that_dies_gives_its_messages_back_at_once(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "x")
        subprocess.run([sys.executable, "-c", _DIES, url, "q"], check=True)
        begun = monotonic()
        message = room.receive("q", lease=60, wait=10).message
        assert message is not None
        assert monotonic() - begun < 5
        assert (message.body, message.attempts) == ("x", 2)
        assert [event.detail for event in room.trace(message.key) if event.verb == "lapse"] == [
            {"why": "its process ended", "attempts": 1}
        ]
        sound(room)


def test_one_who_waits_gets_what_a_process_had_that_dies(url: str) -> None:
    program = "\n".join(["import sys, postroom, time", *_SLEEPS])
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "x")
        worker = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        worker.stdout.readline()
        assert room.receive("q").message is None, "it is leased"
        threading.Timer(0.3, worker.kill).start()
        begun = monotonic()
        message = room.receive("q", lease=60, wait=20).message
        assert message is not None
        assert 0.2 < monotonic() - begun < 10
        worker.wait()
        worker.stdout.close()


def test_one_who_waits_gets_it_when_its_time_is_over(q: Postroom) -> None:
    begun = monotonic()
    q.receive_many("q", count=4, lease=0.3)
    assert q.receive("q", lease=1, wait=10).message is not None
    assert 0.29 < monotonic() - begun < 5


def test_a_delayed_message_comes_to_one_who_waits(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    message, begun = leased(room), monotonic()
    message.release(delay=1)
    assert room.receive("q").message is None
    assert room.receive("q", lease=1).message is None
    assert room.receive("q", lease=1, wait=10).message is not None
    assert 0.99 < monotonic() - begun < 5


def test_a_room_that_is_closed_gives_back_what_it_has(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", "x")
        with postroom.open(url) as other:
            leased(other)
        assert leased(room).attempts == 1, "that was no attempt"


def test_a_lease_is_ended_by_its_number(url: str) -> None:
    with postroom.open(url) as room, postroom.open(url) as other:
        room.queues.create("q")
        room.send("q", "x")
        message = leased(room)
        found = other.consumers.lease(message.lease)
        assert (found.key, found.attempts, found.lease) == (message.key, 1, message.lease)
        found.done()
        with pytest.raises(LeaseOver):
            message.done()
        with pytest.raises(LeaseOver):
            other.consumers.lease(message.lease)
        with pytest.raises(LeaseOver, match="no message was given out"):
            other._parts.leasing.done(1)


def test_who_has_a_lease_that_began_in_the_archive_is_not_known(q: Postroom, tmp_path: Path) -> None:
    leased(q)
    archiving.archive(q.store, 2**62, tmp_path / "old", write_here)
    (lease,) = q.consumers.leases()
    assert (lease.by, lease.as_dict()["by"]) == (None, None)


def test_an_extended_lease_does_not_run_out(q: Postroom) -> None:
    message = leased(q, seconds=0.2)
    message.extend(60)
    sleep(0.3)
    assert leased(q).body == "2"
    message.done()
    assert (message.until - message.created).total_seconds() > 50


# --- beside other states of a queue ---


def test_a_hold_keeps_leases_from_beginning_and_lets_them_end(room: Postroom) -> None:
    room.queues.create("q", password="pw")
    room.send_many("q", ["1", "2"])
    message = leased(room)
    room.queues.disable("q", password="pw")
    with pytest.raises(QueueHeld):
        room.receive("q", lease=60)
    message.done()
    room.queues.enable("q", password="pw")
    assert leased(room).body == "2"
    sound(room)


def test_a_queue_with_leases_is_not_removed(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    message = leased(room)
    with pytest.raises(QueueInUse):
        room.queues.remove("q")
    message.release(delay=60)
    with pytest.raises(QueueInUse):
        room.queues.remove("q")
    assert room.count("q").queues[0].delayed == 1


def test_a_load_does_not_remove_a_queue_with_leases(room: Postroom, write: Callable[[str], object]) -> None:
    room.load(write("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (B)\n99"))  # type: ignore[arg-type]
    room.send("B", "x")
    message = room.receive("B", lease=60).message
    assert message is not None
    with pytest.raises(QueueInUse):
        room.load(write("01 INPUT-QUEUE (A)\n99"))  # type: ignore[arg-type]
    message.done()
    room.load(write("01 INPUT-QUEUE (A)\n99"))  # type: ignore[arg-type]


def test_a_level_leases_from_its_first_queue_with_messages(tree: Postroom) -> None:
    tree.send(("MASTER-QUEUE", "SUBQ-3", "QUE6"), "six")
    message = tree.receive("MASTER-QUEUE", lease=60).message
    assert message is not None
    assert message.body == "six"
    message.done()
    assert tree.receive("MASTER-QUEUE", lease=60).message is None


def test_a_message_read_by_segments_is_not_leased(url: str) -> None:
    with postroom.open(url) as room, postroom.open(url, owner="elsewhere/1/1") as other:
        room.queues.create("q")
        room.send("q", "one\ntwo")
        other.receive("q", segment=True)
        with pytest.raises(PostroomError, match="locked"):
            room.receive("q", lease=60)
        other.receive("q", segment=True)
        assert room.receive("q", lease=60).message is None


def test_segments_pass_what_is_leased(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["one\ntwo", "three\nfour"])
    leased(room)
    got = [room.receive("q", segment=True).message for _ in range(2)]
    assert [message and message.body for message in got] == ["three", "four"]
    sound(room)


def test_a_leased_message_of_a_sphere_is_compensated_and_never_comes_back(room: Postroom) -> None:
    room.queues.create("q")
    room.queues.create("undo")
    sphere = room.sphere("order")
    sphere.send("q", "pay", compensation=postroom.Compensation("undo it", "undo"))
    message = leased(room)
    assert message.sphere is not None
    sphere.abort("no")
    assert [each.body for each in room.peek("undo")] == ["undo it"]
    message.release()
    assert room.count("q").queues[0].unprocessed == 0, "its sphere has failed"
    sound(room)


def test_a_damaged_message_is_set_aside(room: Postroom) -> None:
    room.queues.create("q")
    room.send_many("q", ["bad", "good"])
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = 'odd' WHERE body = 'bad'"))
    with pytest.raises(MessageCorrupt):
        room.receive("q", lease=60)
    assert leased(room).body == "good"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"lease": 0}, "lease"),
        ({"lease": 1e9}, "lease"),
        ({"lease": 10, "wait": -1}, "wait"),
        ({"lease": 10, "segment": True}, "whole"),
    ],
)
def test_what_makes_no_sense_is_refused(q: Postroom, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ArgumentInvalid, match=why):
        q.receive("q", **options)
    with pytest.raises(ArgumentInvalid, match="count"):
        q.receive_many("q", count=0)
    with pytest.raises(ArgumentInvalid, match="delay"):
        leased(q).release(delay=-1)


# --- the express way and the long way ---


def test_the_express_way_does_what_the_long_way_does(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with postroom.open(sqlite_url) as room:
        for name in ("short", "long"):
            room.queues.create(name)
            room.send_many(name, ["1", "2"])
            if name == "long":
                monkeypatch.setattr(type(room.store), "lease_one", lambda *_: None)
                monkeypatch.setattr(type(room.store), "done_one", lambda *_: False)
            for _ in range(2):
                leased(room, name).done()
        shown = [
            [(event.verb, event.detail) for event in room.trace(message.key)]
            for name in ("short", "long")
            for message in room.queues.history(name)
        ]
        assert shown == [[("put", None), ("lease", None), ("take", None)]] * 4
        sound(room)


def test_workers_in_threads_get_each_message_once(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send_many("q", [str(number) for number in range(60)])
    seen: list[str] = []

    def work() -> None:
        with postroom.open(url) as own:
            while message := own.receive("q", lease=60).message:
                seen.append(message.body)
                message.done()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, seen)) == list(range(60))
    with postroom.open(url) as room:
        assert room.count("q").queues[0].processed == 60
        sound(room)


# --- a loop: the end of one and the lease of the next are one commit ---


def test_a_loop_ends_one_and_leases_the_next_in_one_commit(q: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "OWNERS_LOOK_SECONDS", 1e9)  # nobody looks after others meanwhile
    turns: list[bool] = []
    real = q.store.turn_one

    def turned(*words: Any) -> Any:
        answer = real(*words)
        turns.append(answer[0])
        return answer

    def never(*words: Any) -> Any:
        raise AssertionError("a commit of its own")

    monkeypatch.setattr(q.store, "turn_one", turned)
    monkeypatch.setattr(q.store, "done_one", never)
    monkeypatch.setattr(q.store, "lease_one", never)
    seen = []
    for message in q.consumers.each("q", lease=600):
        seen.append((message.body, message.attempts))
        assert q.consumers.lease(message.lease).key == message.key
        if message.body == "4":  # there is no next one, and it is looked for
            monkeypatch.setattr(q.store, "lease_one", lambda *words: None)
    assert seen == [(str(number), 1) for number in range(1, 5)]
    assert turns == [True] * 4
    lines = [(event.verb, event.key) for event in q.journal.after(0) if event.verb in ("lease", "take")]
    keys = [message.key for message in q.queues.history("q")]
    assert lines == [(verb, key) for key in keys for verb in ("lease", "take")]
    sound(q)


def test_a_loop_whose_lease_was_lost_says_so_and_has_leased_nothing_else(q: Postroom, url: str) -> None:
    loop = q.consumers.each("q", lease=600)
    next(loop)
    message = next(loop)
    message.extend(0.001)
    sleep(0.01)
    with postroom.open(url) as other:
        assert leased(other).key == message.key
        with pytest.raises(LeaseOver):
            next(loop)
        assert q.count("q").queues[0].leased == 1
    sound(q)


def test_a_loop_stops_at_a_damaged_message_and_what_was_done_is_done(
    q: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "OWNERS_LOOK_SECONDS", 1e9)
    loop = q.consumers.each("q", lease=600)
    next(loop)
    q.store.transact(
        "done", lambda tx: tx.session.run("UPDATE messages SET body = 'damaged' WHERE number = ?", (number_of(tx, 3),))
    )
    assert next(loop).body == "2"
    with pytest.raises(MessageCorrupt):
        next(loop)
    assert [message.body for message in q.queues.history("q")] == ["1", "2"]
    assert leased(q).body == "4"


def number_of(tx: Any, place: int) -> int:
    numbers = [row[0] for row in tx.session.rows("SELECT number FROM messages WHERE state <> 0 ORDER BY position")]
    number: int = numbers[place - 1]
    return number


@pytest.mark.parametrize("text", ["unexpected byte \x00", "half \udcff"])
def test_an_error_whose_text_no_store_can_hold_is_a_reason_all_the_same(room: Postroom, text: str) -> None:
    room.queues.create("odd")
    room.consumers.set_policy("odd", attempts=1)
    room.send("odd", "x")
    with pytest.raises(ValueError, match=r"byte|half"), room.work("odd"):
        raise ValueError(text)
    (letter,) = room.peek("odd.dead")
    assert "\N{REPLACEMENT CHARACTER}" in str(letter.properties["dead.reason"])


@pytest.mark.parametrize("number", [2**63, 2**70, 0, -1])
def test_no_lease_has_such_a_number(room: Postroom, number: int) -> None:
    with pytest.raises(LeaseOver):
        room.consumers.lease(number)


@pytest.mark.parametrize("number", ["x", True, 1.5, None])
def test_what_is_no_number_is_no_lease_and_no_count(room: Postroom, number: Any) -> None:
    room.queues.create("odd")
    with pytest.raises(ArgumentInvalid):
        room.consumers.lease(number)
    if number is not True:
        with pytest.raises(ArgumentInvalid):
            room.receive_many("odd", count=number)
