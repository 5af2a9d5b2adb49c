"""The journal with filters."""

from __future__ import annotations

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
