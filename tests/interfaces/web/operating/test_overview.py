"""The overview: what waits for a person, every queue with its counts, on both stores."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from tests.faults.upkeep_workload import write_here
from tests.interfaces.http.conftest import Served, serving
from tests.interfaces.web.conftest import PASSWORD, Browser, browser, fail
from tests.interfaces.web.operating.test_failures import fail_at_ann

import postroom
from postroom.engine import archiving
from postroom.interfaces.web.operating.failures import failures
from postroom.interfaces.web.operating.history import counts, history_of
from postroom.interfaces.web.operating.overview import picture
from postroom.store.kernel import deliveries

TREE = """01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"
   02 SUB-QUEUE-1 (NORTH)
   02 SUB-QUEUE-1 (SOUTH)
99
"""


def test_a_room_without_queues_has_an_overview(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room, serving(room) as served:
        room.flows.add_principal("operator", PASSWORD)
        room.access.grant("operator", "operate")
        first = browser(served.url)
        first.sign_in("operator")
        assert first.get("/overview").status_code == 200
        first.client.close()


def test_dead_letters_wait_for_a_person(shop: Served, operator: Browser) -> None:
    shop.room.queues.create("work")
    shop.room.consumers.set_policy("work", attempts=1)
    shop.room.send("work", "x")
    (leased,) = shop.room.consumers.receive_many("work", count=1, lease=60)
    dead = leased.fail("no paper")
    assert f"{dead} has 1 dead letter." in operator.get("/overview").text


def test_whatever_the_page_of_failures_lists_is_counted(shop: Served, operator: Browser, tmp_path: Path) -> None:
    room = shop.room
    assert 'Errors <span class="number">0</span>' in operator.get("/overview").text
    fail(room, "many")
    fail_at_ann(room, tmp_path)
    room.queues.create("work")
    room.consumers.set_policy("work", attempts=1, dead_letters="morgue")
    room.send("work", "x")
    room.consumers.receive_many("work", count=1, lease=60)[0].fail("no paper")
    room.consumers.set_policy("work", dead_letters="elsewhere")  # what came before is a dead letter still
    text = operator.get("/overview").text
    assert len(failures(room)) == 3
    assert 'Errors <span class="number">3</span>' in text
    assert 'Waits for a person <span class="number">3</span>' in text
    for said in ("errors has 1 error message.", "morgue has 1 dead letter.", "Ann has 1 error of procedures."):
        assert said in text


def test_the_overview_shows_what_waits_and_where(shop: Served, operator: Browser, tmp_path: Path) -> None:
    room = shop.room
    assert "Nothing waits for a person." in operator.get("/overview").text
    fail(room, "many")
    (tmp_path / "tree.qdl").write_text(TREE)
    room.load(tmp_path / "tree.qdl")
    room.send(("CLAIMS", "NORTH"), "one")
    room.queues.disable("CLAIMS", password="CLAIMS")
    text = operator.get("/overview").text
    for said in ("errors has 1 error message.", "is on hold, and", "NORTH", "2 of 2 held", "postroom-errors"):
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


def test_leases_are_listed_with_their_holder_and_the_time_left(
    shop: Served, operator: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("postroom.interfaces.web.operating.overview.DESK_ROWS", 2)
    room = shop.room
    assert "Nothing is leased." in operator.get("/overview").text
    room.queues.create("work")
    keys = [room.send("work", f"{number}").key for number in range(3)]
    with room.store.acting("worker-7"):
        leased = room.consumers.receive_many("work", count=3, lease=3599)
    page = operator.get("/overview").text
    assert all(f"/web/messages/{key}" in page for key in keys[:2])
    assert f"/web/messages/{keys[2]}" not in page
    for said in ("worker-7", "59 min left", "attempt 1", "3 leased, 0 delayed, 0 blocked"):
        assert said in page
    (there,) = re.findall(r'href="/web(/overview\?lease=\d+)#leases"', page)
    rest = operator.get(there).text
    assert [f"/web/messages/{key}" in rest for key in keys] == [False, False, True]
    archiving.archive(room.store, 2**62, tmp_path / "old", write_here)
    page = operator.get("/overview").text
    assert "59 min left" in page
    assert "worker-7" not in page, "that is in the archive"
    assert ">None" not in page
    assert "lost</" not in page
    monkeypatch.setattr(deliveries, "is_alive", lambda owner: False)
    assert "lost</" in operator.get("/overview").text
    monkeypatch.undo()
    for message in leased:
        message.done()
    assert "Nothing is leased." in operator.get("/overview").text


def test_what_is_delayed_or_blocked_and_who_sends_is_shown(shop: Served, operator: Browser) -> None:
    room = shop.room
    room.queues.create("work")
    room.consumers.set_policy("work", by="customer")
    room.queues.send("work", "later", delay=3600)
    for _ in range(2):
        room.queues.send("work", "x", properties={"customer": "7"})
    room.consumers.receive_many("work", count=2, lease=60)
    page = operator.get("/overview").text
    row = page.partition('data-row="work"')[2].partition("</tr>")[0]
    for said in ("1 leased", "1 delayed", "1 blocked"):
        assert said in row
    assert "1 leased, 1 delayed, 1 blocked" in page
    assert "the engine sends" in page


def test_a_level_is_as_old_as_the_oldest_below_it(shop: Served, operator: Browser, tmp_path: Path) -> None:
    (tmp_path / "tree.qdl").write_text(TREE)
    shop.room.load(tmp_path / "tree.qdl")
    empty = operator.get("/overview").text.partition('data-row="CLAIMS"')[2].partition("</tr>")[0]
    assert "age step" not in empty
    shop.room.send(("CLAIMS", "SOUTH"), "one")
    level = operator.get("/overview").text.partition('data-row="CLAIMS"')[2].partition("</tr>")[0]
    assert "age step" in level


def test_mail_is_as_old_as_its_time_in_the_mailbox(
    shop: Served, operator: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = shop.room
    (tmp_path / "note.form").write_text("type NOTE\n| Subject: ____ |\nfield Subject string free\n")
    room.load(tmp_path / "note.form")
    for name in ("Ann", "Ben"):
        room.stations.add(name, "its own")
    ann, session = room.stations.admitted("Ann"), room.store.session
    now = session.clock
    with monkeypatch.context() as patch:
        patch.setattr(session, "clock", lambda: now() - 3 * 86_400 * 1_000_000)
        key = ann.create("NOTE", Subject="old")
    ann.ship(key, "Ben")
    page = operator.get("/overview").text
    row = page.partition('data-row="mailbox:Ben"')[2].partition("</tr>")[0]
    assert "age step" in row
    assert "3 d" not in row


def test_who_finds_nothing_wrong_shows_no_empty_table(shop: Served, operator: Browser) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postroom.interfaces.web.operating.overview._findings", lambda visit: [])
        page = operator.get("/overview?doctor=1").text
    assert "Nothing is wrong." in page
    assert 'aria-label="What the doctor says"' not in page


def test_what_the_doctor_says_changes_as_the_room_does(
    shop: Served, operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script asks for live parts again; of many such questions few reach the doctor."""
    monkeypatch.setattr("postroom.interfaces.web.operating.overview.FINDINGS_KEPT_SECONDS", 3600)
    page = operator.get("/overview?doctor=1").text
    assert 'id="doctor" data-live' in page
    shop.room.queues.set_password("stock", password="key")
    shop.room.queues.disable("stock", password="key")
    assert any("stock" in f"{finding.what} {finding.where}" for finding in shop.room.operations.diagnose())
    live = {"postroom-live": "1"}

    def doctor() -> str:
        return operator.get("/overview?doctor=1", **live).text.partition('id="doctor"')[2].partition("</section>")[0]

    assert "stock" not in doctor()
    monkeypatch.setattr("postroom.interfaces.web.operating.overview.FINDINGS_KEPT_SECONDS", 0)
    assert "stock" in doctor()
