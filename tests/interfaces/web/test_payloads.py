"""A room that says the same wherever it takes free text: whatever that is, it changes no page's elements."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import CLAIM, SETTLE, SHOP, Browser, browser, served_office
from tests.interfaces.web.stations.test_desk import PAYLOADS, Shape

from postroom.interfaces.web.registry import PAGES

FLOW = """domain trading  # {said}
space Trades : [issue: string, price: int]
space Big : [issue: string, price: int]
arc big : Trades -> Big select [price: p > 100]
"""
PLAIN = "plain words"


def one_line(said: str) -> str:
    return " ".join(said.split())


def name_of(said: str) -> str:
    """As much of the text as a name may be."""
    return "".join(filter(str.isprintable, one_line(said)))[:100].strip()


def furnish(served: Served, folder: Path, said: str) -> list[str]:
    """The text in fields, bodies, properties, reasons, names and programs; the addresses of the pages that show it."""
    room, line, name = served.room, one_line(said), name_of(said)
    programs = {
        "shop.demaq": f"(: {line} :)\n{SHOP}",
        "claim.form": f"# {line}\n{CLAIM}",
        "settle.form": f"# {line}\n{SETTLE}",
        "trades.flow": FLOW.format(said=line),
    }
    for file, text in programs.items():
        (folder / file).write_text(text)
    room.load(*(folder / file for file in programs))
    room.queues.create("work")
    room.consumers.set_policy("work", attempts=1)
    for body, format in ((said, "text"), ({"a": said, "b": [said]}, "json"), (f"<a>{escape(line)}</a>", "xml")):
        room.send("work", body, format=format, properties={"p": said}, correlation=line)
    waiting = [message.key for message in room.queues.peek("work")]
    room.send("work", said, properties={"p": said}, priority=9)
    (leased,) = room.consumers.receive_many("work", count=1, lease=60)
    leased.fail(said)
    (dead,) = room.queues.peek("work.dead")
    room.consumers.schedule("daily", "0 7 * * *", "work", body=said, properties={"p": said})
    room.access.grant("clerk", "look", name)
    room.access.create_token("clerk", name)
    sphere = room.spheres.open(name)
    sphere.send("orders", said, compensation=said)
    sphere.abort(line)
    ann = room.stations.admitted("Ann")
    fields = {"No": 1, **dict.fromkeys(("Claimant", "Region", "Loss", "Remarks", "State"), said)}
    form, mail = ann.create_many("CLAIM", [fields, fields])
    ann.add_to_dossier(name, form)
    ann.ship(mail, "Ben")
    asked = quote(name, safe="")
    return [
        *(page.path for page in PAGES if "{" not in page.path),
        "/queues/work",
        f"/queues/work?property=p&value={quote(said, safe='')}",
        *(f"/messages/{key}" for key in (*waiting, dead.key, form)),
        *(f"/trace/{key}" for key in (*waiting, dead.key, form, mail)),
        f"/failures?key={dead.key}",
        "/programs?file=shop.demaq",
        "/templates?type=CLAIM",
        "/procedures?name=settle",
        f"/spheres?id={asked}",
        f"/journal?by={asked}",
        "/journal?after=1",
        f"/find?q={asked}",
        "/desk/Ann",
        f"/desk/Ann/forms/{form}",
        f"/desk/Ann/dossier?name={asked}",
        "/desk/Ann/new/CLAIM",
        f"/desk/Ann/query/CLAIM?find=1&field:No=1&open={form}",
        f"/desk/Ben?mail={mail}",
    ]


def shapes(folder: Path, said: str) -> dict[str, Shape]:
    """What every page has, by an address that does not depend on the text."""
    folder.mkdir()
    with served_office(folder) as served:
        addresses = furnish(served, folder, said)
        clerk: Browser = browser(served.url)
        clerk.sign_in("clerk")
        found = {}
        for number, address in enumerate(addresses):
            answer = clerk.get(address)
            assert answer.status_code == 200 or "/find" in address, (address, answer.status_code)
            found[f"{number} {address.split('?')[0]}"] = Shape(answer.text)
        clerk.client.close()
        return found


@pytest.mark.parametrize(
    "payload",
    [
        "".join(PAYLOADS),
        *(pytest.param(said, marks=pytest.mark.slow) for said in PAYLOADS),
    ],
    ids=["all", *map(str, range(len(PAYLOADS)))],
)
def test_what_a_room_says_changes_no_pages_structure(tmp_path: Path, payload: str) -> None:
    plain = shapes(tmp_path / "plain", PLAIN)
    found = shapes(tmp_path / "said", payload)
    assert found.keys() == plain.keys()
    assert [address for address, shape in found.items() if shape.elements != plain[address].elements] == []
    end = one_line(payload)[-20:]
    said = [address for address, shape in found.items() if end in one_line(shape.said)]
    assert len(said) >= 20, said
