"""Lists are shown in parts with the way to the others; times say that they are UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import PASSWORD, Browser

from postroom.interfaces.web.rendering import time_element
from postroom.room import Postroom

SLIP = """type SLIP
| No: ________   KEY: ___________ |
field No  int required
field KEY key automatic
"""
TREE = """01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"
   02 SUB-QUEUE-1 (ONE)
   02 SUB-QUEUE-1 (TWO)
   02 SUB-QUEUE-1 (THREE)
99
"""
PAIR = """procedure pair at Ann
  precondition one : SLIP
    No: > 0
  precondition other : SLIP
    No: < ?one.No
    No: < 0
  destination done on one copy 0 dossier done
"""


def filled(room: Postroom, folder: Path) -> dict[str, tuple[str, str, list[str]]]:
    """More of everything than two rows: by list its page, the part of the page that has it, and what stands in rows."""
    for name in ("Ann", "Ben"):
        room.stations.add(name, PASSWORD)
    for name, text in (("slip.form", SLIP), ("tree.qdl", TREE), ("pair.form", PAIR)):
        (folder / name).write_text(text)
        room.load(folder / name)
    ann, ben = (room.stations.admitted(name) for name in ("Ann", "Ben"))
    mail = ben.create_many("SLIP", [{"No": 0}] * 3)
    ben.ship(mail, "Ann")
    keys = ann.create_many("SLIP", [{"No": number} for number in (1, 2, 3)])
    room.stations.enable_procedure("pair")
    room.run(until_idle=True)
    spheres = [room.spheres.open(f"sphere-{number}").id for number in range(3)]
    for number in range(3):
        ann.query("SLIP", into=f"table{number}")
    versions = [f"before={version.version}" for version in room.definitions.versions()]
    assert len(versions) > 2
    return {
        "mail": ("/desk/Ann", "mailbox", mail),
        "forms": ("/desk/Ann", "held", keys),
        "sets": ("/desk/Ann", "waiting", keys),
        "beside": (f"/desk/Ann/forms/{keys[0]}", "main", keys),
        "levels": ("/queues/CLAIMS", "state", ["ONE", "TWO", "THREE"]),
        "spheres": ("/spheres", "list", spheres),
        "versions": (f"/programs?file={next(iter(room.definitions.files()))}", "versions", versions),
        "definitions": ("/programs", "main", [entry.name for entry in room.definitions.catalog()]),
        "tables": ("/desk/Ann/query", "main", ["table0", "table1", "table2"]),
    }


def test_every_list_has_a_way_to_all_its_rows(
    shop: Served, operator: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.interfaces.web.visit.DESK_ROWS", 2)
    lists = filled(shop.room, tmp_path)
    for name, (address, part, rows) in lists.items():
        seen: set[str] = set()
        asked: list[str] = [address]
        for there in asked:
            page = operator.get(there)
            assert page.status_code == 200, there
            text = page.text.partition(f'id="{part}"')[2]
            text = text if part == "main" else text.partition("</section>")[0]
            seen |= {row for row in rows if row in text}
            links = [unescape(found) for found in re.findall(r'href="/web([^"]*)">(?:next|previous)<', text)]
            asked += [link for link in links if link not in asked]
        assert len(asked) > 1, name
        assert seen == set(rows), name
    for wrong in ("0", "x", "-1", "1e3"):
        assert operator.get(f"/desk/Ann?form={wrong}").status_code == 400
    assert operator.get("/desk/Ann?form=999999").status_code == 200  # the last ones


def test_each_time_says_that_it_is_utc(shop: Served, operator: Browser) -> None:
    then = datetime(2001, 2, 3, 4, 5, 6, 789, UTC)
    said = '<time datetime="2001-02-03T04:05:06+00:00" title="2001-02-03 04:05:06 UTC">3 Feb 2001 04:05</time>'
    assert str(time_element(then)) == said
    assert str(time_element(None)) == ""
    shop.room.send("answers", "<x/>")
    assert operator.get("/journal").text.count("<time datetime=") >= 1
