"""The check of spheres' invariants accepts what rooms do, and finds what they must not do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import postroom
from postroom.room import Postroom
from postroom.store.kernel.journal import Event

from .invariants import Broken, check, journal, read


def told(room: Postroom) -> list[Event]:
    """A journal with everything: one sphere aborted, one committed, two primaries taken, one withdrawn."""
    for queue in ("flight", "hotel", "kept"):
        room.queues.create(queue)
    with room.sphere("good") as good:
        good.send("flight", "book", compensation="cancel", on_commit="kept")
        good.send("hotel", "book", compensation="cancel")
        good.send("hotel", "bill", when="commit")
        good.send("hotel", "sorry", when="abort")
    bad = room.sphere("bad")
    bad.send("flight", "book", compensation="cancel 1")
    bad.send("flight", "book", compensation="cancel 2")
    bad.send("flight", "never", compensation="cancel 3")
    bad.send("hotel", "sorry", when="abort")
    for _ in range(3):
        room.receive("flight")
    bad.abort("as planned")
    return list(journal(room))


def test_what_a_room_does_passes(room: Postroom) -> None:
    events = told(room)
    found = check(room, over=True)
    assert found.spheres == {"good": "COMMITTED", "bad": "ABORTED"}
    assert (len(found.compensated), len(found.withdrawn), found.waiting) == (2, 1, 0)
    assert [message.body for message in room.queues.info("flight")] == ["cancel 2", "cancel 1"]
    assert read(events) == found


def test_what_is_not_over_is_said(room: Postroom) -> None:
    open = room.sphere("open")
    assert check(room).spheres == {"open": "ACTIVE"}
    with pytest.raises(Broken, match="not at its end"):
        check(room, over=True)
    open.abort()


def _first(events: list[Event], **wanted: object) -> int:
    return next(at for at, event in enumerate(events) if all(getattr(event, k) == v for k, v in wanted.items()))


def _last(events: list[Event], **wanted: object) -> int:
    return len(events) - 1 - _first(events[::-1], **wanted)


def token_in_two_queues(events: list[Event]) -> None:
    at = _last(events, verb="move", target="ABORTED")
    events[at] = replace(events[at], source="ACTIVE")


def illegal_transition(events: list[Event]) -> None:
    at = _first(events, verb="move", target="COMMITTED")
    events.append(replace(events[at], source="COMMITTED", target="ABORTING"))


def token_vanishes(events: list[Event]) -> None:
    at = _first(events, verb="move", target="COMMITTED")
    events.append(replace(events[at], source="COMMITTED", target=None, verb="take"))


def two_tokens(events: list[Event]) -> None:
    at = _first(events, verb="put", target="ACTIVE")
    events.append(replace(events[at], key="00099.00001"))


def compensated_twice(events: list[Event]) -> None:
    at = _first(events, verb="move", source="COMP.Q", target="flight")
    events.insert(at, events[at])


def compensated_though_committed(events: list[Event]) -> None:
    at = _first(events, verb="discard", source="COMP.Q")
    events[at] = replace(events[at], verb="move", target="hotel")


def not_compensated(events: list[Event]) -> None:
    del events[_first(events, verb="move", source="COMP.Q", target="flight")]


def dropped_instead(events: list[Event]) -> None:
    at = _first(events, verb="move", source="COMP.Q", target="flight")
    events[at] = replace(events[at], verb="withdraw", target=None)


def compensated_without_primary(events: list[Event]) -> None:
    at = _last(events, verb="withdraw", source="COMP.Q")
    events[at] = replace(events[at], verb="move", target="flight")


def to_another_queue(events: list[Event]) -> None:
    at = _first(events, verb="move", source="COMP.Q", target="flight")
    events[at] = replace(events[at], target="hotel")


def withdrawn_though_taken(events: list[Event]) -> None:
    at = _first(events, verb="withdraw", source="flight")
    events.insert(at, replace(events[at], verb="take"))


def taken_though_withdrawn(events: list[Event]) -> None:
    at = _first(events, verb="withdraw", source="flight")
    events.append(replace(events[at], verb="take"))


def in_the_order_of_sends(events: list[Event]) -> None:
    first = _first(events, verb="move", source="COMP.Q", target="flight")
    last = _last(events, verb="move", source="COMP.Q", target="flight")
    events[first], events[last] = events[last], events[first]


def remembered_too_late(events: list[Event]) -> None:
    at = _last(events, verb="put", target="COMP.Q")
    events.append(replace(events[at], key="00099.00002"))


@pytest.mark.parametrize(
    ("doctor", "why"),
    [
        (token_in_two_queues, "the token was in ABORTING"),
        (illegal_transition, "no transition"),
        (token_vanishes, "not moved but"),
        (two_tokens, "a second token"),
        (compensated_twice, "left twice"),
        (compensated_though_committed, "must not be"),
        (not_compensated, r"in COMP\.Q is"),
        (dropped_instead, "must be"),
        (compensated_without_primary, "must not be"),
        (to_another_queue, "not to flight"),
        (withdrawn_though_taken, "what was taken is withdrawn"),
        (taken_though_withdrawn, "is there again"),
        (in_the_order_of_sends, "not in order"),
        (remembered_too_late, "remembered while ABORTED"),
    ],
)
def test_a_doctored_journal_is_found(doctor: Callable[[list[Event]], None], why: str, sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        events = told(room)
    doctor(events)
    with pytest.raises(Broken, match=why):
        read(events)
