"""A form that is no longer at its station: the page says where it went, and keeps what was typed."""

from __future__ import annotations

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser
from tests.interfaces.web.stations.test_form_page import make, shown


def test_a_form_that_has_left_says_where_it_has_gone_and_keeps_what_was_typed(office: Served, clerk: Browser) -> None:
    key = make(office, State="S0", Remarks="R0")
    path = f"/desk/Ann/forms/{key}"
    text = clerk.get(path).text
    office.room.stations.admitted("Ann").ship(key, "Ben")
    for found in (
        clerk.post(path, do="save", **{"field:State": "typed", "field:Remarks": "R0"}, **shown(text)),
        clerk.post(path, do="ship", to="Ben"),
        clerk.post(path, do="ship", to="Bem"),
        clerk.post(path, do="copy", count=1),
        clerk.get(path),
    ):
        assert found.status_code == 409
        assert "This form has left Ann." in found.text
        assert "Ann shipped it to Ben" in found.text
        assert "It is in the mailbox of Ben now." in found.text
        assert f'/trace/{key}">Trace</a>' in found.text
        assert "postroom locate" not in found.text
        assert ("typed</dd>" in found.text) == (found.request.method == "POST" and b"typed" in found.request.content)
        assert "R0</dd>" not in found.text
    office.room.stations.admitted("Ben").get(keys=[key])
    assert "It is at Ben now." in clerk.get(path).text


def test_who_works_at_one_station_learns_where_a_form_was_shipped_from_it_and_no_more(
    office: Served, stranger: Browser
) -> None:
    key = make(office)
    office.room.stations.admitted("Ann").ship(key, "Ben")
    office.room.stations.admitted("Ben").get(keys=[key])
    office.room.stations.admitted("Ben").ship(key, "Director")
    assert stranger.sign_in("Ann").status_code == 200
    found = stranger.get(f"/desk/Ann/forms/{key}")
    assert found.status_code == 409
    assert "Ann shipped it to Ben" in found.text
    assert "Director" not in found.text
    assert "/trace/" not in found.text
