"""The journal with filters."""

from __future__ import annotations

import re
from html import unescape

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser


def test_entries_are_found_by_verb_place_user_and_message(shop: Served, operator: Browser) -> None:
    room = shop.room
    keys = [room.send("answers", str(number)).key for number in range(3)]
    room.receive("answers")
    rows = 'data-row="'
    assert operator.get(f"/journal?key={keys[1]}").text.count(rows) == 1
    assert operator.get("/journal?verb=put&place=answers").text.count(rows) == 3
    assert operator.get("/journal?verb=put&place=answers&by=nobody+like+it").text.count(rows) == 0
    newest = room.journal.last(1)[0].seq
    assert operator.get(f"/journal?after={newest}").text.count(rows) == 1
    first = operator.get("/journal?after=1").text
    assert f'{rows}1"' in first
    assert operator.get("/journal?after=x").status_code == 400
    nobody = browser(shop.url)
    nobody.sign_in("nobody")
    assert nobody.get("/journal").status_code == 403
    nobody.client.close()


def test_older_and_newer_entries_are_reached_with_what_is_asked_for(shop: Served, operator: Browser) -> None:
    """There and back again, also where a page of entries has none that fits."""
    room = shop.room
    first = room.send("answers", "first").key
    for _ in range(4):
        room.send_many("stock", ["<other/>"] * 300, format="xml")
    last = room.send("answers", "last").key

    def followed(label: str, text: str, wanted: str) -> str:
        for _ in range(50):
            if wanted in text:
                return text
            link = re.search(f'href="/web([^"]+)">{label}</a>', text)
            assert link is not None, text[-500:]
            text = operator.get(unescape(link[1])).text
            assert 'value="answers"' in text
        raise AssertionError(f"{wanted} was not reached")

    start = operator.get("/journal?verb=put&place=answers&after=1200").text
    back = followed("Older", start, first)
    assert last not in back
    assert last in followed("Newer", back, last)
