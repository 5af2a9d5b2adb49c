"""How queues deliver: attempts, backoff, dead letters, order, expiry and limits; on both stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from postroom.errors import ArgumentInvalid, DescriptionInvalid
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.tree.policy import checked, clauses, of_words
from postroom.room import Postroom
from postroom.store.kernel.policies import NO_POLICY, Policy
from postroom.store.kernel.transaction import Transaction

Write = Callable[[str], Path]


def leased(room: Postroom, queue: str = "q") -> LeasedMessage:
    message = room.receive(queue, lease=True).message
    assert message is not None
    return message


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    return room


def test_after_the_last_attempt_a_message_is_a_dead_letter(q: Postroom) -> None:
    q.consumers.set_policy("q", attempts=2, dead_letters="graves")
    key = q.send("q", "x", properties={"customer": "Oscar"}).key
    assert leased(q).fail("no address") is None
    assert leased(q).fail("still none") == "graves"
    (dead,) = q.peek("graves").messages
    assert dead.key == key
    assert dead.properties == {
        "customer": "Oscar",
        "dead.attempts": 2,
        "dead.queue": "q",
        "dead.reason": "still none",
    }
    assert [event.verb for event in q.trace(key)] == ["put", "lease", "fail", "lease", "dead-letter"]
    assert q.trace(key)[-1].detail == {"reason": "still none", "attempts": 2}
    assert leased(q, "graves").attempts == 1
    sound(q)


def test_a_lease_that_runs_out_is_an_attempt(q: Postroom) -> None:
    q.consumers.set_policy("q", attempts=1, lease=0.02)
    q.send("q", "x")
    leased(q)
    sleep(0.05)
    assert q.receive("q", lease=True).message is None
    (dead,) = q.peek("q.dead").messages
    assert dead.properties["dead.reason"] == "its lease ran out"
    sound(q)


def test_between_attempts_a_message_waits_longer_each_time(q: Postroom) -> None:
    q.consumers.set_policy("q", backoff=100, backoff_max=350)
    q.send("q", "x")
    for attempt in range(1, 5):
        message = leased(q)
        message.fail("no")
        event = q.trace(message.key)[-1]
        assert event.detail is not None
        seconds = event.detail["due"] / 1_000_000 - event.time.timestamp()
        whole = min(100 * 2 ** (attempt - 1), 350)
        assert whole / 2 - 0.01 <= seconds <= whole + 0.01
        assert q.receive("q", lease=True).message is None
        q.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET due = 1"))
    q.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET due = 1"))
    assert leased(q).attempts == 5


def test_strict_order_waits_for_what_is_leased(q: Postroom) -> None:
    q.consumers.set_policy("q", order="strict", backoff=60)
    q.send_many("q", ["1", "2", "3"])
    first = leased(q)
    assert q.receive("q", lease=True).message is None
    assert q.receive("q").message is None, "and so does a receive without a lease"
    first.release()
    assert leased(q).body == "1"
    q.consumers.lease(_fence(q)).done()
    second = leased(q)
    assert second.body == "2"
    second.fail("no")
    assert q.receive("q", lease=True).message is None, "it waits for its next attempt"
    q.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET due = 1 WHERE state = 3"))
    assert leased(q).body == "2"
    assert len(q.receive_many("q", count=5)) == 0


def _fence(room: Postroom) -> int:
    return room.store.read(lambda tx: tx.deliveries.all()[-1].fence)


def test_order_by_a_property_is_strict_for_each_value(q: Postroom) -> None:
    q.consumers.set_policy("q", by="customer")
    for body, customer in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a"), ("b2", "b"), ("free", None)):
        q.send("q", body, properties={} if customer is None else {"customer": customer})
    a1, b1, free = leased(q), leased(q), leased(q)
    assert (a1.body, b1.body, free.body) == ("a1", "b1", "free")
    assert q.receive("q", lease=True).message is None
    count = q.count("q").queues[0]
    assert (count.leased, count.unprocessed + count.blocked) == (3, 3)
    sound(q)
    a1.fail("no")
    assert leased(q).body == "a1"
    assert q.receive("q", lease=True).message is None
    b1.done()
    b2 = leased(q)
    assert b2.body == "b2"
    q.consumers.lease(_leases(q)["a1"]).done()
    assert leased(q).body == "a2"
    assert q.receive("q").message is None, "a3 comes after a2"
    q.consumers.lease(_leases(q)["a2"]).fail("no", final=True)
    got = q.receive("q").message
    assert got is not None
    assert got.body == "a3"
    sound(q)


def _leases(room: Postroom) -> dict[str, int]:
    def work(tx: Any) -> dict[str, int]:
        return {tx.messages.find(each.message).body: each.fence for each in tx.deliveries.all()}

    return room.store.read(work)


def test_many_of_one_key_are_leased_one_at_a_time(q: Postroom) -> None:
    q.consumers.set_policy("q", by="k")
    q.send_many("q", [str(number) for number in range(50)], properties={"k": 1})
    seen = []
    while messages := q.receive_many("q", count=10):
        assert len(messages) == 1
        seen.append(messages[0].body)
        messages[0].done()
    assert seen == [str(number) for number in range(50)]
    sound(q)


# --- setting ---


def test_a_policy_is_changed_by_what_is_named(q: Postroom) -> None:
    assert q.consumers.policy("q") == {"q": NO_POLICY}
    assert q.consumers.set_policy("q", lease=5, attempts=3) == ["q"]
    assert q.consumers.set_policy("q", attempts=3) == []
    assert q.consumers.policy("q") == {"q": Policy(lease=5, attempts=3)}
    assert q.consumers.reset_policy("q") == ["q"]
    assert q.consumers.policy("q") == {"q": NO_POLICY}
    sound(q)


@pytest.mark.parametrize(
    "changes",
    [
        {"lease": 0},
        {"lease": None},
        {"attempts": 0},
        {"attempts": True},
        {"backoff": float("nan")},
        {"order": "odd"},
        {"by": ""},
        {"by": "k", "order": "strict"},
        {"dead_letters": "a/b"},
        {"dead_letters": "q"},
        {"max_messages": -1},
        {"over": "drop"},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(q: Postroom, changes: dict[str, Any]) -> None:
    with pytest.raises(ArgumentInvalid):
        q.consumers.set_policy("q", **changes)
    assert q.consumers.policy("q") == {"q": NO_POLICY}


def test_the_order_is_not_changed_under_leases(q: Postroom) -> None:
    q.send("q", "x")
    message = leased(q)
    with pytest.raises(ArgumentInvalid, match="leased"):
        q.consumers.set_policy("q", by="customer")
    message.done()
    q.consumers.set_policy("q", by="customer")


FULL = Policy(5.0, 3, 2.0, 60.0, "graves", "strict", None, "dead-letters", 10, 9_000, 30.0, "dead-letters")


@pytest.mark.parametrize("end", ["release", "delay", "fail", "lapse"])
def test_an_urgent_message_that_comes_back_never_blocks_its_key(q: Postroom, end: str) -> None:
    """It stands behind an earlier one that waits for its sake."""
    q.consumers.set_policy("q", by="k", lease=600, attempts=9)
    q.send("q", "early", properties={"k": 1})
    q.send("q", "urgent", properties={"k": 1}, priority=9)
    urgent = leased(q)
    assert q.receive("q", lease=600).message is None, "the early one is blocked"
    q.send("q", "more urgent", properties={"k": 1}, priority=9)
    ends: dict[str, Callable[[], object]] = {
        "release": urgent.release,
        "delay": lambda: urgent.release(0.01),
        "fail": lambda: urgent.fail("no"),
        "lapse": lambda: urgent.extend(0.01),
    }
    ends[end]()
    sleep(0.05)
    said = []
    while message := q.receive("q", lease=600).message:
        said.append(message.body)
        message.done()
    assert said == ["urgent", "more urgent", "early"]
    sound(q)


@pytest.mark.parametrize("way", ["expires", "moved", "received"])
def test_who_waits_for_one_of_its_key_that_leaves_unleased_is_not_forgotten(q: Postroom, way: str) -> None:
    q.consumers.set_policy("q", by="k", lease=600)
    q.queues.create("elsewhere")
    q.send("q", "first", properties={"k": 1}, expires=600)
    q.send("q", "second", properties={"k": 1})
    first = leased(q)
    assert q.receive("q", lease=600).message is None, "the second is blocked"
    if way == "expires":  # as soon as nobody has it any more
        soon = "UPDATE messages SET expires = ? WHERE state = -2"
        q.store.transact("extend", lambda tx: tx.session.run(soon, (tx.now + 1,)))
    first.release()
    if way == "moved":
        q.consumers.move("q", to="elsewhere", keys=[first.key])
    elif way == "received":
        assert q.receive("q").message is not None
    assert leased(q).body == "second"
    sound(q)


def test_messages_of_a_key_that_all_wait_for_each_other_are_freed(q: Postroom) -> None:
    """As earlier versions could leave them."""
    q.consumers.set_policy("q", by="k", lease=600)
    for number in (1, 2):
        q.send("q", str(number), properties={"k": 1})

    def block_all(tx: Transaction) -> None:
        queue = tx.queues.named("q")
        assert queue is not None
        for stored in tx.deliveries.claim(queue, 2, NO_POLICY):
            tx.deliveries.block(queue, stored, "1")

    q.store.transact("hand-out", block_all)
    assert q.count("q").queues[0].blocked == 2
    first = leased(q)
    assert first.body == "1"
    assert q.receive("q", lease=True).message is None
    first.done()
    assert leased(q).body == "2"
    sound(q)


def test_a_queue_with_messages_at_work_keeps_its_order(q: Postroom) -> None:
    q.consumers.set_policy("q", by="k")
    for number in (1, 2):
        q.send("q", str(number), properties={"k": 1, "j": number})
    leased(q)
    changes: list[dict[str, Any]] = [{"by": "j"}, {"by": None}, {"by": None, "order": "strict"}]
    for change in changes:
        with pytest.raises(ArgumentInvalid, match="change its order when it has none"):
            q.consumers.set_policy("q", **change)
    assert q.consumers.policy("q")["q"].by == "k"


def test_a_load_changes_no_order_under_leases(room: Postroom, write: Write) -> None:
    room.load(write('01 INPUT-QUEUE (N) ORDER IS BY "k"\n99'))
    room.send("INP_0000", "x", properties={"k": 1})
    message = leased(room, "INP_0000")
    other = write("01 INPUT-QUEUE (N) ORDER IS STRICT\n99")
    with pytest.raises(ArgumentInvalid, match="change its order when it has none"):
        room.load(other)
    message.done()
    room.load(other)
    assert room.consumers.policy("INP_0000")["INP_0000"].order == "strict"


@pytest.mark.parametrize("policy", [FULL, FULL._replace(order="free", by="customer"), Policy(lease=1.0)])
def test_what_is_printed_reads_back(policy: Policy, room: Postroom, write: Write) -> None:
    text = " ".join(clauses(checked(policy)))
    room.load(write(f"01 INPUT-QUEUE (A) {text}\n   02 SUB-QUEUE-1 (B)\n01 OUTPUT-QUEUE (C)\n99"))
    assert room.consumers.policy("A", "B") == {"INP_0000": policy}
    assert room.consumers.policy("C") == {"OUT_0000": NO_POLICY}
    printed = room.definitions.hierarchy()
    assert text in printed
    room.load(write(printed))
    assert room.consumers.policy("A", "B") == {"INP_0000": policy}
    room.load(write("01 INPUT-QUEUE (A)\n   02 SUB-QUEUE-1 (B)\n01 OUTPUT-QUEUE (C)\n99"))
    assert room.consumers.policy("A", "B") == {"INP_0000": NO_POLICY}
    room.consumers.set_policy("A", "B", lease=7)
    room.load(write("01 INPUT-QUEUE (A)\n   02 SUB-QUEUE-1 (B)\n01 OUTPUT-QUEUE (C)\n99"))
    assert room.consumers.policy("A", "B") == {"INP_0000": Policy(lease=7)}, "what a description never said stays"
    sound(room)


@pytest.mark.parametrize(
    "clause",
    ["LEASE IS 0 SECONDS", "LEASE IS x SECONDS", "ATTEMPTS IS none", "ORDER IS odd", 'ORDER IS BY ""', "EXPIRED IS 5"],
)
def test_a_description_with_a_senseless_policy_is_refused(clause: str, room: Postroom, write: Write) -> None:
    with pytest.raises(DescriptionInvalid, match="policy-form"):
        room.load(write(f"01 INPUT-QUEUE (A) {clause}\n99"))


def test_words_become_a_policy() -> None:
    assert of_words([("lease", "5"), ("attempts", "3"), ("by", "customer")]) == Policy(
        lease=5, attempts=3, by="customer"
    )


# --- what waits for others of its key is seen ---


def test_messages_that_wait_for_others_of_their_key_are_seen_and_say_so(q: Postroom, tmp_path: Path) -> None:
    q.consumers.set_policy("q", by="c")
    for body, key in ("a1", "A"), ("a2", "A"), ("b1", "B"), ("a3", "A"), ("none", None):
        q.send("q", body, properties={} if key is None else {"c": key, "n": int(body[1])})
    leased = q.receive_many("q", count=5, lease=600)
    assert [message.body for message in leased] == ["a1", "b1", "none"]
    assert [(message.body, message.blocked) for message in q.peek("q")] == [("a2", True), ("a3", True)]
    assert [message.as_dict()["state"] for message in q.peek("q")] == ["blocked", "blocked"]
    q.send("q", "b2", properties={"c": "C"})
    assert [(message.body, message.blocked) for message in q.peek("q")][-1] == ("b2", False)
    first = q.peek("q", limit=1)
    assert [message.body for message in first] == ["a2"]
    assert [message.body for message in q.peek("q", after=first.next)] == ["a3", "b2"]
    assert [message.body for message in q.peek("q", where="n > 2")] == ["a3"]
    assert [message.body for message in q.peek("q", where="n > 1 or = ''")] == ["b2", "a2", "a3"]
    assert [message.body for message in q.peek("q", where="n > 1 or = ''", limit=2)] == ["b2", "a2"]
    assert q.queues.export("q", tmp_path / "q.jsonl").message_count == 3
    assert (q.count("q").queues[0].blocked, q.count("q").queues[0].unprocessed) == (2, 1)
    assert "<th>blocked" in q.count("q")._repr_html_()


def test_one_value_is_one_key_however_it_is_written(q: Postroom) -> None:
    q.consumers.set_policy("q", by="c")
    same: list[list[Any]] = [[1, "1", 1.0, "1.00", "001"], [True, "true"], [2.5, "2.50"], ["x"], [10**17, 1e17]]
    for values in same:
        for value in values:
            q.send("q", repr(value), properties={"c": value})
    first = q.receive_many("q", count=50, lease=600)
    assert [message.body for message in first] == [repr(values[0]) for values in same]
    q.consumers.done_many(first)
    second = q.receive_many("q", count=50, lease=600)
    assert [message.body for message in second] == [repr(values[1]) for values in same if len(values) > 1]
    q.consumers.done_many(second)
    assert [each.body for each in q.receive_many("q", count=50, lease=600, where="c = 1")] == ["1.0"]
    assert q.receive_many("q", count=50, lease=600, where="c = 1") == []
    sound(q)


def test_the_longest_wait_is_no_shorter_than_the_first(q: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="backoff_max: the longest wait, 1 seconds, is less than the first, 2"):
        q.consumers.set_policy("q", backoff=2, backoff_max=1)
    with pytest.raises(ArgumentInvalid, match="3600 seconds, is less than the first, 7200"):
        q.consumers.set_policy("q", backoff=7_200)
    q.consumers.set_policy("q", backoff=2, backoff_max=2)
