"""Receiving by selectors: with leases, priorities and every order, on both stores; and that no receive reads all."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

import postroom
from postroom.errors import ArgumentInvalid
from postroom.room import Postroom


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    return room


def fill(room: Postroom, *messages: tuple[str, dict[str, Any]], **options: Any) -> None:
    for body, properties in messages:
        room.send("q", body, properties=properties, **options)


def bodies(room: Postroom, where: str | None = None) -> list[str]:
    return [message.body for message in room.peek("q", where=where)]


EU, US = {"region": "EU"}, {"region": "US"}


# --- both ways of receiving ---


def test_a_receive_takes_the_next_that_is_meant_and_leaves_the_rest_in_order(q: Postroom) -> None:
    fill(q, ("a", EU), ("b", US), ("c", {}), ("d", US), ("e", EU))
    got = q.receive("q", where="region = 'US'").message
    assert got is not None
    assert got.body == "b"
    assert bodies(q) == ["a", "c", "d", "e"]
    assert bodies(q, "region = 'EU'") == ["a", "e"]
    assert bodies(q, "region = ''") == ["c"]
    assert [message.body for message in q.peek("q", limit=1, where="region <> ''")] == ["a"]
    assert q.receive("q", where="region = 'AP'").message is None
    sound(q)


def test_what_came_before_and_after_the_first_selector_is_found(q: Postroom) -> None:
    """The first who asks has the entries made; from then on every change keeps them."""
    fill(q, ("a", EU), ("b", US))
    assert q.receive("q", where="region = 'AP'").message is None
    fill(q, ("c", EU), ("d", {"region": "AP"}))
    q.send_many("q", ["e", "f"], properties=US)
    assert [bodies(q, f"region = '{region}'") for region in ("EU", "US", "AP")] == [["a", "c"], ["b", "e", "f"], ["d"]]
    with q.work("q", where="region = 'AP'") as message:
        assert message is not None
        assert message.body == "d"
        assert bodies(q, "region = 'AP'") == []
    q.queues.create("r")
    q.consumers.move("q", to="r", limit=1)
    assert bodies(q, "region = 'EU'") == ["c"]
    q.consumers.move("r", to="q")
    assert bodies(q, "region = 'EU'") == ["c", "a"]
    sound(q)


def test_a_leased_message_is_chosen_and_comes_back_to_the_selector(q: Postroom) -> None:
    fill(q, ("a", {"total": 50}), ("b", {"total": 150}), ("c", {"total": 250}))
    first = q.receive("q", lease=True, where="total > 100").message
    assert first is not None
    assert (first.body, first.attempts) == ("b", 1)
    second = q.receive("q", lease=True, where="total > 100").message
    assert second is not None
    assert second.body == "c"
    assert not q.receive("q", lease=True, where="total > 100")
    first.fail("not now")
    again = q.receive("q", lease=True, where="total > 100").message
    assert again is not None
    assert (again.body, again.attempts) == ("b", 2)
    again.done()
    second.release()
    assert [message.body for message in q.each("q", where="total > 100")] == ["c"]
    assert bodies(q) == ["a"]
    sound(q)


def test_receive_many_and_each_take_only_what_is_meant(q: Postroom) -> None:
    q.send_many("q", [str(n) for n in range(10)], properties=EU)
    q.send_many("q", [str(n) for n in range(10, 15)], properties=US)
    leased = q.receive_many("q", count=8, where="region = US")
    assert [message.body for message in leased] == ["10", "11", "12", "13", "14"]
    q.consumers.done_many(leased)
    assert q.count("q").queues[0].unprocessed == 10
    sound(q)


def test_urgent_messages_come_first_among_those_that_are_meant(q: Postroom) -> None:
    for body, priority, properties in (("a", 0, EU), ("b", 9, US), ("c", 5, EU), ("d", 9, EU)):
        q.send("q", body, priority=priority, properties=properties)
    assert bodies(q, "region = 'EU'") == ["d", "c", "a"]
    taken = [q.receive("q", where="region = 'EU'").message for _ in range(3)]
    assert [message and message.body for message in taken] == ["d", "c", "a"]
    sound(q)


def test_delayed_and_expired_messages_are_not_chosen(q: Postroom) -> None:
    q.send("q", "later", properties=EU, delay=3_600)
    q.send("q", "gone", properties=EU, expires=0.000001)
    q.send("q", "now", properties=EU)
    got = q.receive("q", where="region = 'EU'").message
    assert got is not None
    assert got.body == "now"
    assert not q.receive("q", lease=1, where="region = 'EU'")
    sound(q)


# --- orders ---


def test_in_a_strict_order_only_the_first_may_be_chosen(q: Postroom) -> None:
    q.consumers.set_policy("q", order="strict")
    fill(q, ("a", US), ("b", EU))
    assert not q.receive("q", where="region = 'EU'")
    assert not q.receive("q", lease=True, where="region = 'EU'")
    with q.work("q", where="region = 'US'") as message:
        assert message is not None
        assert message.body == "a"
        assert not q.receive("q", where="region = 'EU'")
    got = q.receive("q", where="region = 'EU'").message
    assert got is not None
    assert got.body == "b"
    sound(q)


def test_by_a_key_only_the_first_of_each_value_may_be_chosen(q: Postroom) -> None:
    q.consumers.set_policy("q", by="customer")
    fill(
        q,
        ("a1", {"customer": 1, "region": "US"}),
        ("a2", {"customer": 1, "region": "EU"}),
        ("b1", {"customer": 2, "region": "EU"}),
        ("b2", {"customer": 2, "region": "EU"}),
    )
    first = q.receive("q", lease=True, where="region = 'EU'").message
    assert first is not None
    assert first.body == "b1"  # before a2 comes a1, which is not meant
    assert not q.receive("q", lease=True, where="region = 'EU'")
    plain = q.receive("q").message
    assert plain is not None
    assert plain.body == "a1"
    freed = q.receive("q", where="region = 'EU'").message
    assert freed is not None
    assert freed.body == "a2"
    first.done()
    last = q.receive("q", lease=True, where="region = 'EU'").message
    assert last is not None
    assert last.body == "b2"
    last.done()
    sound(q)


@pytest.mark.parametrize("policy", [{}, {"by": "customer"}, {"order": "strict"}])
def test_selectors_lose_and_double_nothing_in_any_order(q: Postroom, policy: Any) -> None:
    """At random: send, lease, end in every way, receive, with and without selectors; the journal replays to it."""
    q.consumers.set_policy("q", **policy)
    dice = random.Random(f"{policy}")
    sent, done, held = set(), [], []
    for n in range(150):
        draw = dice.random()
        where = dice.choice([None, "region = 'EU'", "total > 5", "region = 'US' and total < 5 or 7"])
        if draw < 0.45:
            about: dict[str, Any] = {
                "region": dice.choice(["EU", "US"]),
                "total": dice.randrange(10),
                "customer": dice.randrange(3),
            }
            sent.add(str(n))
            q.send("q", str(n), properties=about)
        elif draw < 0.6:
            got = q.receive("q", where=where).message
            if got is not None:
                done.append(got.body)
        elif draw < 0.8:
            held += q.receive_many("q", count=2, where=where)
        elif held:
            message = held.pop(dice.randrange(len(held)))
            end = dice.choice(["done", "release", "fail"])
            message.fail("no") if end == "fail" else getattr(message, end)()
            done += [message.body] if end == "done" else []
    for message in held:
        message.release()
    while got := q.receive("q").message:
        done.append(got.body)
    assert sorted(done) == sorted(sent)
    sound(q)


# --- waiting and limits ---


def test_a_receiver_that_waits_is_woken_by_a_message_that_it_means(q: Postroom) -> None:
    fill(q, ("a", US))
    got: list[Any] = []
    with postroom.open(q.url) as other:
        waiting = threading.Thread(
            target=lambda: got.append(other.receive("q", where="region = 'EU'", wait=60).message)
        )
        waiting.start()
        while not q.store.read(lambda tx: tx.session.number("SELECT count(*) FROM selections")):
            pass
        fill(q, ("b", US), ("c", EU))
        waiting.join(60)
    assert [message.body for message in got] == ["c"]
    assert bodies(q) == ["a", "b"]


def test_a_selector_goes_with_whole_messages_only(q: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="whole"):
        q.receive("q", segment=True, where="a = 1")
    with pytest.raises(ArgumentInvalid, match="whole"):
        q.receive("q", area=10, where="a = 1")
    with pytest.raises(ArgumentInvalid, match="character 4"):
        q.receive("q", where="a =")
    assert q.journal.verify().differences == ()


def test_more_properties_than_have_entries_are_found_by_reading(q: Postroom) -> None:
    q.send("q", "a", properties={f"p{n}": n for n in range(20)})
    q.send("q", "b", properties={f"p{n}": n + 1 for n in range(20)})
    for n in range(20):
        assert not q.receive("q", where=f"p{n} = 99")
        assert bodies(q, f"p{n} = {n + 1}") == ["b"]
    sound(q)


def test_odd_names_and_values_are_found(q: Postroom) -> None:
    odd: list[tuple[str, Any]] = [
        ('quo"te', "it's"),
        ("back\\slash", 'dou"ble'),
        ("Größe", "ü" * 1_000),
        ("big", 2**62 + 1),
        ("small", 1e-300),
        ("yes", True),
        ("a.b", "x\ny"),
    ]
    for name, value in odd:
        q.send("q", name, properties={name: value})
        written = str(value).lower() if isinstance(value, bool) else value
        literal = "'" + written.replace("'", "''") + "'" if isinstance(written, str) else None
        condition = f"= {literal}" if literal else "> 0"
        where = '"' + name.replace('"', '""') + '" ' + condition
        got = q.receive("q", where=where).message
        assert got is not None, name
        assert got.body == name
    sound(q)


def test_a_backup_of_a_room_with_selectors_is_a_room(q: Postroom, tmp_path: Any) -> None:
    fill(q, ("a", EU), ("b", US))
    assert not q.receive("q", where="region = 'AP'")
    q.backup(tmp_path / "copy.db")
    with postroom.open(tmp_path / "copy.db") as copy:
        got = copy.receive("q", where="region = 'US'").message
        assert got is not None
        assert got.body == "b"
        sound(copy)


def test_a_selective_receive_reads_few_of_very_many(q: Postroom) -> None:
    """Counted in messages that were read, not in time."""
    q.send_many("q", ["x"] * 3_000, properties={"region": "US", "total": 1})
    q.send("q", "mine", properties={"region": "EU", "total": 500})
    q.send_many("q", ["x"] * 3_000, properties={"region": "US", "total": 2})
    read: list[int] = []
    messages = q.store._transaction.messages
    find_many, page = messages.find_many, messages.page

    def counted(keys: Any) -> Any:
        read.append(len(keys))
        return find_many(keys)

    def walked(*given: Any) -> Any:
        read.append(10**6)
        return page(*given)

    messages.find_many, messages.page = counted, walked  # type: ignore[method-assign, assignment]
    try:
        for where in ("region = 'EU'", "total > 100", "region = 'EU' and total > 0", "total = 3..900"):
            message = q.receive("q", lease=True, where=where).message
            assert message is not None
            assert message.body == "mine"
            message.release()
    finally:
        messages.find_many, messages.page = find_many, page  # type: ignore[method-assign]
    assert sum(read) < 100
