"""Messages elsewhere: purge, move, redrive; some or all, edited or not, dry or not; on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure, error_body
from postroom.errors import (
    ArgumentInvalid,
    EntryRefused,
    EventInvalid,
    FormatUnclear,
    MessageNotWaiting,
    MessageUnknown,
    QueueFull,
    QueueUnknown,
)
from postroom.model.key import key_number
from postroom.model.message import Value
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom


def leased(room: Postroom, queue: str = "q") -> LeasedMessage:
    message = room.receive(queue, lease=60).message
    assert message is not None
    return message


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


@pytest.fixture
def q(room: Postroom) -> Postroom:
    room.queues.create("q")
    room.queues.create("other")
    room.send_many("q", ["1", "2", "3"], properties={"a": 1})
    room.send("q", "later", delay=600)
    return room


def test_a_purge_takes_what_nobody_has_received(q: Postroom) -> None:
    first = leased(q)
    assert q.consumers.purge("q", dry=True).count == 3
    assert bodies(q, "q") == ["2", "3"]
    gone = q.consumers.purge("q")
    assert (gone.count, gone.dry) == (3, False)
    assert [q.trace(key)[-1].verb for key, _ in gone.moves] == ["purge"] * 3
    count = q.count("q").queues[0]
    assert (count.unprocessed, count.delayed, count.leased) == (0, 0, 1)
    first.done()
    sound(q)


def test_a_target_that_is_not_there_is_refused_also_if_nothing_is_to_be_moved(q: Postroom) -> None:
    for dry in (False, True):
        with pytest.raises(QueueUnknown):
            q.consumers.move("q", to="nowhere", dry=dry)
        with pytest.raises(QueueUnknown):
            q.consumers.redrive("q", to="nowhere", dry=dry)


def test_messages_are_moved_oldest_first(q: Postroom) -> None:
    assert q.consumers.move("q", to="other", limit=2, dry=True).count == 2
    assert q.consumers.move("q", to="other", limit=2).count == 2
    assert (bodies(q, "q"), bodies(q, "other")) == (["3"], ["1", "2"])
    (third,) = q.peek("q").messages
    assert q.consumers.move("q", to="other", keys=[third.key]).count == 1
    event = q.trace(third.key)[-1]
    assert (event.verb, event.source, event.target) == ("move", "q", "other")
    assert q.consumers.move("q", to="other").count == 1, "the one that waits for its time"
    assert bodies(q, "other") == ["1", "2", "3"]
    assert q.count("other").queues[0].delayed == 1, "it waits there, too"
    with pytest.raises(MessageNotWaiting, match=f"{third.key} is not among those that wait in q; find where"):
        q.consumers.move("q", to="other", keys=[third.key])
    with pytest.raises(MessageUnknown, match=r"no message has ever had the key 00001\.00999 in"):
        q.consumers.move("q", to="other", keys=["00001.00999"])
    with pytest.raises(ArgumentInvalid, match="is the queue"):
        q.consumers.move("other", to="other")
    sound(q)


def test_dead_letters_go_back_to_where_they_failed(q: Postroom) -> None:
    for _ in range(3):
        leased(q).fail("no", final=True)
    assert q.consumers.redrive("q.dead", dry=True).count == 3
    first, second, third = q.peek("q.dead").messages
    assert q.consumers.redrive("q.dead", keys=[second.key]).moves == ((second.key, "q"),)
    message = leased(q)
    assert (message.key, message.attempts, message.properties) == (second.key, 1, {"a": 1})
    assert q.consumers.redrive("q.dead", limit=1, to="other").moves == ((first.key, "other"),)
    edited = q.consumers.redrive("q.dead", edit=lambda message: f"{message.body}, corrected")
    assert edited.moves == ((third.key, "q"),)
    assert bodies(q, "q") == ["3, corrected"]
    (new,) = q.peek("q").messages
    assert (new.cause, new.properties) == (third.key, {"a": 1})
    assert q.trace(third.key)[-1].detail == {"edited": new.key}
    assert bodies(q, "q.dead") == []
    sound(q)


def test_what_is_no_dead_letter_says_where_it_belongs_or_stays(q: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="name one"):
        q.consumers.redrive("q")
    assert bodies(q, "q") == ["1", "2", "3"]
    with pytest.raises(ArgumentInvalid, match="limit"):
        q.consumers.redrive("q", limit=0)


def failed(room: Postroom, body: str, queue: str = "q", **about: Any) -> tuple[str, str]:
    """A message that was processed with an error, as the engine leaves it: its key, and that of its error message."""
    sent = room.send(queue, body, **about)
    room.receive(queue)
    document = Document(key_number(sent.key), about.get("format", "text"), about.get("type"), body)
    error = error_body(Failure("application", "X", "no"), queue, key_number(sent.key), document)
    return sent.key, room.send("errors", error, format="xml").key


@pytest.fixture
def errors(room: Postroom) -> Postroom:
    for name in ("q", "secret", "errors"):
        room.queues.create(name)
    return room


def test_what_an_error_message_is_about_is_sent_again(errors: Postroom) -> None:
    failed(errors, "<order>1</order>", format="xml", properties={"customer": "Oscar"})
    _, error = failed(errors, '{"id": 2}', format="json")
    assert errors.consumers.redrive("errors", dry=True).moves[1] == (error, "q")
    assert errors.consumers.redrive("errors").count == 2
    first, second = errors.peek("q").messages
    assert (first.body, first.format, first.properties) == ("<order>1</order>", "xml", {"customer": "Oscar"})
    assert (second.value, second.cause) == ({"id": 2}, error)
    assert bodies(errors, "errors") == []
    sound(errors)


def test_what_is_not_kept_any_more_is_sent_from_its_copy(errors: Postroom) -> None:
    errors.queues.set_mode("q", keep_processed=False)
    _, error = failed(errors, "<order>1 &amp; 2</order>", format="xml")
    assert errors.consumers.redrive("errors", keys=[error]).moves == ((error, "q"),)
    assert bodies(errors, "q") == ["<order>1 &amp; 2</order>"]
    sound(errors)


def test_a_forged_error_message_brings_nothing_of_another_queue(errors: Postroom) -> None:
    secret = errors.send("secret", "nobody else reads this")
    body = f'<error><queue>q</queue><initialMessage key="{secret.key}">forged</initialMessage></error>'
    errors.send("errors", body, format="xml")
    omitted = f'<error><queue>q</queue><initialMessage key="{secret.key}" omitted="true"/></error>'
    key = errors.send("errors", omitted, format="xml").key
    with pytest.raises(ArgumentInvalid, match="has no copy"):
        errors.consumers.redrive("errors", keys=[key])
    assert errors.consumers.redrive("errors", limit=1).count == 1
    assert bodies(errors, "q") == ["forged"]


def test_a_dry_run_refuses_what_the_real_one_refuses(errors: Postroom) -> None:
    errors.send("q", "no dead letter")
    for dry in (True, False):
        with pytest.raises(ArgumentInvalid, match="name one"):
            errors.consumers.redrive("q", dry=dry)
        with pytest.raises(QueueUnknown):
            errors.consumers.move("q", to="nowhere", dry=dry)


def test_a_dry_run_counts_what_the_target_has_now(errors: Postroom) -> None:
    errors.queues.create("small")
    errors.consumers.set_policy("small", max_messages=1)
    errors.send("q", "x")
    errors.send("small", "y")
    for _ in range(2):
        with pytest.raises(QueueFull):
            errors.consumers.redrive("q", to="small", dry=True)
    errors.receive("small")
    assert errors.consumers.redrive("q", to="small", dry=True).count == 1


# --- into queues that rules and arcs read ---

RULES = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue aside kind basic mode persistent
create queue later kind echo mode persistent
create property id as xs:string fixed queue in value //id
create slicing orders on id
create rule count for orders if (qs:message()//n) then
    do enqueue <sum>{sum(qs:slice()//n)}</sum> into out
"""


@pytest.fixture
def ruled(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "p.demaq").write_text(RULES)
    room.load(tmp_path / "p.demaq")
    room.queues.create("q")
    return evaluate_here(room)


def number(value: int) -> str:
    return f"<m><id>7</id><n>{value}</n></m>"


def xml(room: Postroom, queue: str, body: str, **options: Any) -> str:
    return room.send(queue, body, format="xml", **options).key


def test_rules_over_slicings_see_what_was_moved_in(ruled: Postroom) -> None:
    xml(ruled, "in", number(1))
    key = xml(ruled, "q", number(2), properties={"note": "kept"})
    assert ruled.consumers.move("q", to="in").moves == ((key, "in"),)
    xml(ruled, "in", number(4))
    ruled.run_until_idle()
    assert bodies(ruled, "out") == ["<sum>7</sum>"] * 3, "each sees all that is in its slice"
    assert {"id": "7", "note": "kept"}.items() <= ruled.show(key).properties.items()
    sound(ruled)


def test_what_is_moved_out_leaves_its_slices(ruled: Postroom) -> None:
    key = xml(ruled, "in", number(1))
    ruled.consumers.move("in", to="q")
    xml(ruled, "in", number(2))
    ruled.run_until_idle()
    assert bodies(ruled, "out") == ["<sum>2</sum>"]
    ruled.consumers.move("q", to="in")
    ruled.run_until_idle()
    assert bodies(ruled, "out") == ["<sum>2</sum>", "<sum>3</sum>"]
    assert [event.verb for event in ruled.trace(key)] == ["put", "move", "move", "take"]
    sound(ruled)


def test_rules_over_slicings_see_what_was_redriven(ruled: Postroom) -> None:
    xml(ruled, "in", number(1))
    leased(ruled, "in").fail("no", final=True)
    (dead,) = ruled.peek("in.dead").messages
    assert dead.properties["dead.reason"] == "no"
    xml(ruled, "in", number(2))
    assert ruled.consumers.redrive("in.dead").moves == ((dead.key, "in"),)
    ruled.run_until_idle()
    assert bodies(ruled, "out") == ["<sum>3</sum>"] * 2
    assert "dead.reason" not in ruled.show(dead.key).properties
    sound(ruled)


def test_many_go_back_into_a_queue_of_rules_edited_or_not(ruled: Postroom) -> None:
    for n in range(12):
        xml(ruled, "in", number(n))
    for _ in range(12):
        leased(ruled, "in").fail("no", final=True)
    keys = [message.key for message in ruled.peek("in.dead")]
    edited = ruled.consumers.redrive("in.dead", edit={key: number(100) for key in keys[::2]})
    assert edited.count == 12
    ruled.run_until_idle()
    assert bodies(ruled, "out")[-1] == f"<sum>{600 + 36}</sum>"
    assert [message.body for message in ruled.queues.history("in")][:2] == [number(100), number(1)], "in their order"
    sound(ruled)


def test_what_a_queue_of_rules_would_refuse_is_not_moved_there(ruled: Postroom) -> None:
    ruled.send("q", "late", properties={"target": "nowhere", "timeout": 0})
    with pytest.raises(EntryRefused):
        ruled.consumers.move("q", to="later")
    assert bodies(ruled, "q") == ["late"]
    sound(ruled)


def test_a_message_that_is_moved_into_an_echo_queue_goes_on_and_out_of_it_does_not(ruled: Postroom) -> None:
    properties: dict[str, Value] = {"target": "aside", "timeout": 0}
    xml(ruled, "q", "<one/>", properties=properties)
    ruled.consumers.move("q", to="later")
    ruled.run_until_idle()
    assert bodies(ruled, "aside") == ["<one/>"]
    xml(ruled, "later", number(5), properties=properties)
    ruled.consumers.move("later", to="in")
    ruled.run_until_idle()
    assert bodies(ruled, "out") == ["<sum>5</sum>"], "once, as a message of its new queue"
    assert ruled.store.read(lambda tx: tx.timers.next_due()) is None
    sound(ruled)


def test_events_are_moved_as_they_fit_their_space(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(
        "domain d\nspace A : [n: int]\nspace B : [n: int]\narc ab : A -> B select [n: > 1]\n"
    )
    room.load(tmp_path / "g.flow")
    evaluate_here(room)
    room.queues.create("q")
    literal = room.send("q", "[2]").key
    ready = room.send("q", '{"n":3}', format="json").key
    room.consumers.move("q", to="A")
    room.run_until_idle()
    assert bodies(room, "B") == ['{"n":2}', '{"n":3}']
    assert room.trace(ready)[-1].verb == "take"
    assert room.trace(literal)[-1].verb == "move", "another body is another message"
    room.send("q", "no event")
    with pytest.raises(EventInvalid):
        room.consumers.move("q", to="A")
    assert bodies(room, "q") == ["no event"]
    sound(room)


# --- what is a message's own goes with it ---


@pytest.fixture
def turning(url: str) -> Iterator[tuple[Postroom, list[int]]]:
    """A room whose clock the test turns, with the queues q and other."""
    now = [1_700_000_000_000_000]
    with postroom.open(url, clock=lambda: now[0]) as room:
        for name in ("q", "other"):
            room.queues.create(name)
        yield room, now


def test_priority_delay_and_expiry_go_with_a_message_that_is_moved(turning: tuple[Postroom, list[int]]) -> None:
    room, now = turning
    room.send("other", "there")
    asked: dict[str, dict[str, Any]] = {"plain": {}, "urgent": {"priority": 7}, "brief": {"expires": 50}}
    for body, options in asked.items():
        room.send("q", body, **options)
    room.send("q", "later", delay=100, priority=9, expires=200)
    assert room.consumers.move("q", to="other").count == 4
    count = room.count("other").queues[0]
    assert (count.unprocessed, count.delayed) == (4, 1)
    sound(room)
    urgent = leased(room, "other")
    assert urgent.body == "urgent"
    urgent.done()
    now[0] += 60_000_000
    assert [leased(room, "other").body for _ in range(2)] == ["there", "plain"], "what was brief has expired"
    now[0] += 50_000_000
    assert leased(room, "other").body == "later"
    sound(room)


def test_a_message_that_has_expired_on_its_way_is_not_received(turning: tuple[Postroom, list[int]]) -> None:
    room, now = turning
    room.consumers.set_policy("other", expired="dead-letters")
    room.send("q", "late", delay=100, expires=50)
    now[0] += 51_000_000
    room.consumers.move("q", to="other")
    assert room.receive("other", lease=10).message is None
    assert bodies(room, "other.dead") == ["late"]
    sound(room)


def test_the_wait_for_an_attempt_ends_with_the_attempts(turning: tuple[Postroom, list[int]]) -> None:
    room, _ = turning
    room.consumers.set_policy("q", attempts=5, backoff=3_600)
    room.send("q", "again", priority=3)
    leased(room).fail("no")
    assert room.consumers.move("q", to="other").count == 1
    message = leased(room, "other")
    assert (message.body, message.attempts) == ("again", 1)
    sound(room)


def test_a_dead_letter_keeps_its_priority_and_does_not_expire(turning: tuple[Postroom, list[int]]) -> None:
    room, now = turning
    room.send("q", "plain", expires=50)
    room.send("q", "urgent", priority=9, expires=50)
    for _ in range(2):
        leased(room).fail("no", final=True)
    now[0] += 3_600_000_000
    assert sorted(bodies(room, "q.dead")) == ["plain", "urgent"]
    assert room.consumers.redrive("q.dead").count == 2
    room.send("q", "eight", priority=8)
    assert [leased(room).body for _ in range(3)] == ["urgent", "eight", "plain"]
    sound(room)


def test_an_edited_message_keeps_what_was_asked_for_it(turning: tuple[Postroom, list[int]]) -> None:
    room, _ = turning
    room.send("q", "wrong", priority=9)
    leased(room).fail("no", final=True)
    room.send("q", "plain")
    assert room.consumers.redrive("q.dead", edit=lambda message: "right").count == 1
    assert leased(room).body == "right"
    sound(room)


def test_what_a_queue_cannot_keep_is_not_moved_there(turning: tuple[Postroom, list[int]], tmp_path: Path) -> None:
    room, _ = turning
    room.consumers.set_policy("other", order="strict")
    (tmp_path / "p.demaq").write_text(RULES)
    room.load(tmp_path / "p.demaq")
    room.send("q", "later", delay=100)
    for dry in (True, False):
        with pytest.raises(ArgumentInvalid, match="strict"):
            room.consumers.move("q", to="other", dry=dry)
        with pytest.raises(ArgumentInvalid, match="waits for its time"):
            room.consumers.move("q", to="in", dry=dry)
    room.consumers.purge("q")
    room.send("q", number(1), format="xml", expires=100)
    with pytest.raises(ArgumentInvalid, match="expires"):
        room.consumers.move("q", to="in")
    room.consumers.purge("q")
    key = room.send("q", number(1), format="xml", priority=5).key
    assert room.consumers.move("q", to="in").moves == ((key, "in"),), "the engine has an order of its own"
    sound(room)


# --- formats ---


def test_a_text_becomes_what_the_other_queue_reads(ruled: Postroom) -> None:
    ruled.send("q", number(5))
    ruled.send("q", "no document")
    (document, text) = ruled.peek("q").messages
    assert document.format == "text"
    assert ruled.consumers.move("q", to="in").count == 2
    first, second = ruled.peek("in").messages
    assert (first.format, first.cause, first.body) == ("xml", document.key, number(5))
    assert (second.format, second.key) == ("text", text.key)
    ruled.run_until_idle()
    assert bodies(ruled, "out") == ["<sum>5</sum>"]
    sound(ruled)


def test_a_text_that_only_looks_like_a_document_is_not_moved(ruled: Postroom) -> None:
    ruled.send_many("q", ["fine", "<not closed"])
    for dry in (True, False):
        with pytest.raises(FormatUnclear):
            ruled.consumers.move("q", to="in", dry=dry)
    assert bodies(ruled, "q") == ["fine", "<not closed"]
    with pytest.raises(FormatUnclear):
        ruled.send("in", "<not closed")
    ruled.send("in", "<not closed", format="text")
    leased(ruled, "in").fail("no", final=True)
    assert ruled.consumers.redrive("in.dead").count == 1, "where it was, it is what it was"
    assert [message.format for message in ruled.peek("in")] == ["text"]
    sound(ruled)


# --- limits of the other queue ---


def test_a_move_is_refused_by_a_full_queue(q: Postroom) -> None:
    q.consumers.set_policy("other", max_messages=2)
    for dry in (True, False):
        with pytest.raises(QueueFull, match="2 messages"):
            q.consumers.move("q", to="other", dry=dry)
    assert bodies(q, "q") == ["1", "2", "3"]
    assert q.consumers.move("q", to="other", limit=2).count == 2
    with pytest.raises(QueueFull):
        q.consumers.move("q", to="other", limit=1)
    q.consumers.set_policy("other", max_messages=None, max_bytes=2)
    for dry in (True, False):
        with pytest.raises(QueueFull, match="2 bytes"):
            q.consumers.move("q", to="other", limit=1, dry=dry)
    sound(q)


def test_the_oldest_give_way_to_what_is_moved(q: Postroom) -> None:
    q.consumers.set_policy("other", max_messages=2, over="dead-letters")
    q.send("other", "old")
    assert q.consumers.move("q", to="other", limit=3).count == 3
    assert (bodies(q, "other"), bodies(q, "other.dead")) == (["2", "3"], ["old", "1"])
    sound(q)


@pytest.mark.parametrize("purges", [True, False], ids=["purge", "move"])
def test_messages_of_a_key_that_wait_for_each_other_leave_together(room: Postroom, purges: bool) -> None:
    """Each that leaves lets the next one come, which has a new line of the journal then."""
    for name in ("q", "z"):
        room.queues.create(name)
    room.consumers.set_policy("q", by="c")
    room.send_many("q", list("abcd"), properties={"c": "A"})
    first = leased(room)
    assert room.receive("q", lease=60).message is None
    first.release()
    if purges:
        assert room.consumers.purge("q").count == 4
    else:
        assert room.consumers.move("q", to="z").count == 4
        assert bodies(room, "z") == list("abcd")
    assert bodies(room, "q") == []
    sound(room)
