"""Policies as values: what they store, what they add to a time, and the queues that have none."""

from __future__ import annotations

import json

from postroom.room import Postroom
from postroom.store.kernel.policies import NO_POLICY, Policy


def test_only_what_differs_is_stored(room: Postroom) -> None:
    room.queues.create("q")
    room.consumers.set_policy("q", attempts=3)
    stored = room.store.read(lambda tx: tx.session.rows("SELECT policy, ordered, limited FROM policies"))
    assert [(json.loads(text), *flags) for text, *flags in stored] == [({"attempts": 3}, 0, 0)]
    assert room.store.read(lambda tx: tx.policies.all()) == {"q": Policy(attempts=3)}
    room.consumers.reset_policy("q")
    assert room.store.read(lambda tx: tx.policies.all()) == {}


def test_what_a_policy_asks_of_the_shortest_ways() -> None:
    assert (NO_POLICY.ordered, NO_POLICY.limited) == (False, False)
    assert Policy(by="k").ordered
    assert Policy(order="strict").ordered
    assert Policy(max_messages=1).limited
    assert Policy(max_age=1.0).limited


def test_the_last_attempt_is_the_one_that_is_named() -> None:
    assert [Policy(attempts=2).is_last(attempts) for attempts in (1, 2, 3)] == [False, True, True]
    assert not NO_POLICY.is_last(10_000)


def test_delays_differ() -> None:
    assert len({Policy(backoff=10).delay(3) for _ in range(20)}) > 1
    assert Policy().delay(7) == 0
    assert 0 < Policy(backoff=1, backoff_max=5).delay(10_000) <= 5_000_000
