"""Spheres: by state, with what an abort would do; aborted by whoever may."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser
from tests.spheres.bank import paid, prepared
from tests.spheres.conftest import payments, two_phase_server
from tests.spheres.payer import killed_at

from postroom.interfaces.web.operating.sphere_page import if_aborted, would
from postroom.spheres.monitor import SendShown

__all__ = ["payments", "two_phase_server"]  # fixtures


def test_a_sphere_is_shown_with_its_sends_and_aborted(shop: Served, operator: Browser) -> None:
    room = shop.room
    looker = browser(shop.url)
    looker.sign_in("looker")
    sphere = room.spheres.open("pay-1042")
    sphere.send("answers", "<pay/>", compensation="<pay-back/>")
    sphere.send("answers", "<letter/>", when="commit")
    listed = operator.get("/spheres").text
    assert "pay-1042" in listed
    assert "No sphere is like this." in operator.get("/spheres?state=ABORTED").text
    text = operator.get("/spheres?id=pay-1042").text
    for said in ("ACTIVE", "withdrawn", "never sent", "Abort pay-1042"):
        assert said in text
    assert "Of its 2 sends, 1 is withdrawn, 1 is never sent. Its owner cannot commit afterwards." in text
    assert "This needs the right sphere." in looker.get("/spheres?id=pay-1042").text
    for action in ("abort", "settle"):
        assert looker.post("/spheres", do=action, id="pay-1042", url="postgresql:///x").status_code == 403
    done = operator.post("/spheres?id=pay-1042", do="abort", id="pay-1042", reason="the account is blocked")
    assert "pay-1042 is ABORTED." in done.text
    assert "the account is blocked" in done.text
    assert room.spheres.show("pay-1042").sphere.state == "ABORTED"
    assert operator.post("/spheres", do="abort", id="pay-1042").status_code == 409
    assert operator.get("/spheres?id=nothing").status_code == 404
    assert operator.get("/spheres?state=odd").status_code == 400
    looker.client.close()


@pytest.mark.parametrize(
    ("when", "key", "remembered", "received", "words"),
    [
        ("commit", None, None, False, "never sent"),
        ("abort", None, None, False, "sent then"),
        ("return", "1", None, False, "comes back to q"),
        ("now", "1", None, False, "withdrawn"),
        ("now", "1", "2", True, "compensated in undo"),
        ("now", "1", None, True, "stays: nothing undoes it"),
    ],
)
def test_what_an_abort_would_do(when: str, key: str | None, remembered: str | None, received: bool, words: str) -> None:
    send = shown(when, key, remembered, received)
    assert if_aborted(send, False)[1] == words
    assert if_aborted(send, True) == ("done", "nothing")
    assert if_aborted(replace(send, outcome="withdrawn"), False) == ("done", "withdrawn")
    parked = replace(send, outcome="parked", why="no node")
    assert [if_aborted(parked, is_over) for is_over in (False, True)] == [("parked", "parked: no node")] * 2


def shown(
    when: str, key: str | None = None, remembered: str | None = None, received: bool = False, outcome: str = "open"
) -> SendShown:
    at = datetime(2026, 11, 17, tzinfo=UTC) if received else None
    return SendShown(when, "q", key, remembered, "undo", at, None, outcome, None)


def test_what_an_abort_would_do_is_said_of_all_sends_at_once() -> None:
    kinds = [
        (shown("commit"), "is never sent", "are never sent"),
        (shown("abort"), "is sent then", "are sent then"),
        (shown("return", "1"), "comes back", "come back"),
        (shown("now", "1"), "is withdrawn", "are withdrawn"),
        (shown("now", "1", "2", received=True), "gets its compensation", "get their compensation"),
        (shown("now", "1", received=True), "stays as it is", "stay as they are"),
        (shown("now", "1", outcome="parked"), "stays parked", "stay parked"),
    ]
    for send, one, several in kinds:
        assert would([send]) == f"Its one send {one}."
        assert would([send, send]) == f"Of its 2 sends, 2 {several}."
        assert would([send, shown("commit", outcome="withdrawn")]) == f"Of its 2 sends, 1 {one}."
    assert would([kinds[0][0], kinds[3][0], kinds[3][0]]) == "Of its 3 sends, 1 is never sent, 2 are withdrawn."
    for done in ([], [shown("now", "1", outcome="withdrawn")]):
        assert would(done) == "An abort changes nothing that it has sent."


@pytest.mark.slow
def test_what_is_in_doubt_is_named_and_settled(shop: Served, operator: Browser, payments: str) -> None:
    """The owner of a sphere was killed between the decision and its telling."""
    shop.room.queues.create("travel")
    killed_at("sphere-committed.committed", "connection", shop.room.url, payments)
    assert "In doubt: postgres at" in operator.get("/overview").text
    text = operator.get("/spheres?id=booking").text
    assert "in doubt" in text
    assert "Database to settle" in text
    assert operator.post("/spheres?id=booking", do="settle", url="").status_code == 400
    done = operator.post("/spheres?id=booking", do="settle", url=payments).text
    assert "Settled 1 transaction of spheres there." in done
    assert (paid(payments), prepared(payments)) == ({"booking"}, [])
    assert "Database to settle" not in done
