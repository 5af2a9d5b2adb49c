"""Who was refused what is in the journal, in a bounded number of lines."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, sleep

from tests.interfaces.http.conftest import Served

from postroom.limits import AUDIT_LINES_MAX
from postroom.store.kernel.journal import Event


def denied(here: Served) -> list[Event]:
    return [event for event in here.room.journal.after(0) if event.verb == "denied"]


def soon(here: Served, count: int) -> Iterator[list[Event]]:
    end = monotonic() + 30
    while len(denied(here)) < count and monotonic() < end:
        sleep(0.05)
    yield denied(here)


def test_a_refusal_is_in_the_journal_with_who_wanted_what(here: Served) -> None:
    here.room.queues.create("orders")
    token = here.user("ann")
    with here.client(token) as client:
        assert client.post("/queues/orders/messages", json={"body": "a secret"}).status_code == 403
    (found,) = next(soon(here, 1))
    assert found.detail == {
        "principal": "ann",
        "code": "right-missing",
        "verb": "send",
        "object": "orders",
        "count": 1,
    }
    assert not here.room.journal.verify().differences


def test_an_attacker_cannot_fill_the_journal(here: Served) -> None:
    token = here.user("ann")
    with here.client(token) as client, here.client("") as stranger:
        for number in range(60):
            assert client.get(f"/queues/q{number}/count").status_code == 403
            assert stranger.get("/queues").status_code in (401, 429)
    next(soon(here, 1))
    assert len(denied(here)) <= AUDIT_LINES_MAX
    here.stop()
    lines = denied(here)
    assert len(lines) <= 2 * AUDIT_LINES_MAX, "one commit at once, and one at the end"
    assert sum(event.detail["count"] for event in lines if event.detail) == 120, "and none is forgotten"
    assert any(event.detail and event.detail["principal"].startswith("address ") for event in lines)
    assert any(event.detail and event.detail["code"] == "several" for event in lines)
