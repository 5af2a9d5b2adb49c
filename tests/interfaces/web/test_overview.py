"""The overview: what waits for a person, every queue with its counts, on both stores."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser, fail

from postroom.interfaces.web.history import counts, history_of
from postroom.interfaces.web.overview import picture

TREE = """01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"
   02 SUB-QUEUE-1 (NORTH)
   02 SUB-QUEUE-1 (SOUTH)
99
"""


def test_the_overview_shows_what_waits_and_where(shop: Served, operator: Browser, tmp_path: Path) -> None:
    room = shop.room
    assert "Nothing waits for a person." in operator.get("/overview").text
    fail(room, "many")
    (tmp_path / "tree.qdl").write_text(TREE)
    room.load(tmp_path / "tree.qdl")
    room.send(("CLAIMS", "NORTH"), "one")
    room.queues.disable("CLAIMS", password="CLAIMS")
    text = operator.get("/overview").text
    for said in ("errors has 1 error message.", "is on hold (full)", "NORTH", "2 of 2 held", "postroom-errors"):
        assert said in text
    held = operator.get("/overview?show=held").text
    assert "NORTH" in held
    assert 'data-row="answers"' not in held
    found = operator.get("/overview?find=answ").text
    assert 'data-row="answers"' in found
    assert 'data-row="stock"' not in found
    assert "No queue is like this." in operator.get("/overview?find=nothing+like+it").text


def test_the_first_look_shows_rates_and_bars_of_what_was_counted_before(shop: Served, operator: Browser) -> None:
    """The server counts by itself; here two minutes ago."""
    history, now = history_of(shop.room.store), counts(shop.room.store)
    history.take(now._replace(at=now.at - timedelta(seconds=120)))
    shop.room.send_many("stock", ["a", "b"])
    text = operator.get("/overview").text
    assert '<span class="soft">\u2013</span>' not in text  # every rate is known
    assert 'aria-label="in 2, out 0 in ' in text
    rates = {queue.name: queue.rate_in for queue in picture(shop.room).queues}
    assert 0 < (rates["stock"] or 0) <= 2 / 120
    assert rates["answers"] == 0


def test_the_doctor_is_for_operators(shop: Served, operator: Browser) -> None:
    looker = browser(shop.url)
    looker.sign_in("looker")
    assert looker.get("/overview").status_code == 200
    assert "Ask the doctor" not in looker.get("/overview").text
    assert looker.get("/overview?doctor=1").status_code == 403
    assert "The doctor says" in operator.get("/overview?doctor=1").text
    nobody = browser(shop.url)
    nobody.sign_in("nobody")
    assert nobody.get("/overview").status_code == 403
    for visitor in (looker, nobody):
        visitor.client.close()
