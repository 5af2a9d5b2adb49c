"""The search field: a key, a station or a queue, as far as the user may see it."""

from __future__ import annotations

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser

NOTHING = "Nothing was found."


def test_whoever_works_at_a_station_finds_its_forms_by_key(office: Served, stranger: Browser) -> None:
    """And learns nothing of what is elsewhere."""
    stranger.sign_in("Ann")
    ann, ben = (office.room.stations.admitted(name) for name in ("Ann", "Ben"))
    mine, theirs, mail = ann.create("APPROVAL", No=1), ben.create("APPROVAL", No=2), ben.create("APPROVAL", No=3)
    ben.ship(mail, "Ann")
    at_hand, waiting = stranger.get(f"/find?q={mine}"), stranger.get(f"/find?q=+{mail}+")
    assert (at_hand.status_code, at_hand.url.path) == (200, f"/web/desk/Ann/forms/{mine}")
    assert (waiting.status_code, str(waiting.url)) == (200, f"{office.url}/web/desk/Ann?mail={mail}")
    assert stranger.get("/find?q=ann").url.path == "/web/desk/Ann"
    for asked in (theirs, "00001.09999", "Ben", "Director", "orders", "nowhere", ""):
        found = stranger.get(f"/find?q={asked}")
        assert found.status_code == 404, asked
        assert NOTHING in found.text
        assert "no such grant" not in found.text
    ann.get(keys=[mail])


def test_whoever_may_look_finds_traces_and_queues(office: Served, clerk: Browser) -> None:
    key = office.room.stations.admitted("Ann").create("APPROVAL", No=4)
    assert clerk.get(f"/find?q={key}").url.path == f"/web/trace/{key}"
    assert clerk.get("/find?q=orders").url.path == "/web/queues/orders"
    assert "did you mean orders?" in clerk.get("/find?q=order").text
    assert NOTHING in clerk.get("/find?q=00001.09999").text
