"""How fast someone may ask."""

from __future__ import annotations

import pytest
from tests.interfaces.http.conftest import Served

from postroom.errors import TooManyRequests
from postroom.interfaces.http import pace
from postroom.interfaces.http.pace import Pace
from postroom.limits import ADDRESS_REFUSALS_AT_ONCE


def test_a_bucket_empties_and_fills_with_time_and_nobody_else_waits() -> None:
    now = [100.0]
    paces = Pace(10, 20, lambda: now[0])
    for _ in range(20):
        paces.take("ann")
    with pytest.raises(TooManyRequests) as refused:
        paces.take("ann")
    assert refused.value.facts["seconds"] == 1
    paces.take("bob")
    now[0] += 0.5
    for _ in range(5):
        paces.take("ann")
    with pytest.raises(TooManyRequests):
        paces.check("ann")
    now[0] += 1_000
    for _ in range(20):
        paces.take("ann")
    with pytest.raises(TooManyRequests):
        paces.take("ann")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PACES_KNOWN_MAX", 10)
    now = [0.0]
    paces = Pace(1, 2, lambda: now[0])
    for number in range(1_000):
        paces.take(f"address {number}")
        assert len(paces._left) <= 10


def test_a_user_that_asks_too_often_waits_and_another_does_not(here: Served) -> None:
    ann, bob = here.user("ann", ("look", "*")), here.user("bob", ("look", "*"))
    with here.client(ann) as hasty, here.client(bob) as calm:
        assert hasty.get("/queues").status_code == 200
        here.interface._pace._left["ann"] = (-1_000_000.0, 10.0**12)  # as if it had asked a million times
        refused = hasty.get("/queues")
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["happened"] == "no"
        assert calm.get("/queues").status_code == 200


def test_whoever_guesses_tokens_has_to_wait_and_known_users_do_not(here: Served) -> None:
    with here.client() as boss, here.client("postroom_000000000000_guess") as guesser:
        assert boss.get("/queues").status_code == 200
        answers = [guesser.get("/queues").status_code for _ in range(ADDRESS_REFUSALS_AT_ONCE + 40)]
        assert answers[:100] == [401] * 100
        assert 429 in answers[100:]
        assert boss.get("/queues").status_code == 200


def test_a_known_user_is_no_stranger_because_a_right_has_changed(here: Served) -> None:
    bob = here.user("bob", ("look", "*"))
    callers = here.interface._callers
    with here.client() as boss, here.client(bob) as second, here.client("postroom_000000000000_guess") as guesser:
        assert [client.get("/queues").status_code for client in (boss, second)] == [200, 200]
        while guesser.get("/queues").status_code != 429:
            pass
        for verb in ("send", "receive"):
            here.room.access.grant("bob", verb, "*")
            callers.refresh()
            assert [client.get("/queues").status_code for client in (boss, second)] == [200, 200]
        (token,) = [one.id for one in here.room.access.tokens() if one.principal == "bob"]
        here.room.access.revoke_token(token)
        callers.refresh()
        assert second.get("/queues").status_code == 429
        assert callers.is_stranger(f"Bearer {bob}"), "from now on it is a guess"
