"""An office in which something stands in every part of every page, and the sights that its pages offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import PASSWORD, SHOP, fail, served_office

from postroom.room import Postroom
from postroom.spheres.sphere import Sphere

TREE = """01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"
   02 SUB-QUEUE-1 (NORTH)
   02 SUB-QUEUE-1 (SOUTH)
99
"""
FERRY = """domain ferry
space Crossings : [boat: string, cars: int]
space Full : [boat: string, cars: int]
space Late : [boat: string, cars: int]
arc full : Crossings -> Full select [cars: c > 100]
arc late : Crossings -> Late select [boat: "Ida"]
allow clerk : disableArc, enableArc, addArc, deleteArc, addSpace, deleteSpace
"""
TROUBLE = "a word that is wider than what a telephone has room for: " + "w" * 120


@contextmanager
def filled_office(folder: Path) -> Iterator[Served]:
    with served_office(folder) as served:
        spheres = fill(served.room, folder)
        yield served
        for sphere in spheres:
            sphere.abort()


def fill(room: Postroom, folder: Path) -> list[Sphere]:
    """Forms and a set that waits; a tree with a hold; leases, failures, a graph, spheres, schedules, tokens.

    Answers with the spheres that are open: one that nobody has any more is aborted.
    """
    ben, ann, director = (room.stations.admitted(name) for name in ("Ben", "Ann", "Director"))
    key = director.create("CLAIM", {"No": 9, "Claimant": "Tower Inn", "Remarks": "x " * 200})
    director.ship(director.copy(key), "Ben")
    director.add_to_dossier("storm of Friday", key)
    claim = ben.create("CLAIM", {"No": 10, "Claimant": "Oak Bakery", "Amount": "1200.50"})
    ben.ship(claim, "Ann")
    ann.get()
    ann.modify(claim, {"Remarks": "tiles of the west side only"})
    settled = ann.create("CLAIM", {"No": 11, "Claimant": "Mill Garage", "Amount": "5"})
    ann.create("APPROVAL", {"No": 11, "Cover": "6"})
    for name, text in (("tree.qdl", TREE), ("ferry.flow", FERRY)):
        (folder / name).write_text(text)
    (folder / "shop.demaq").write_text(SHOP.replace("+ 1", "+ 2"))
    room.load(folder / "tree.qdl", folder / "ferry.flow", folder / "shop.demaq")
    room.send(("CLAIMS", "NORTH"), "one")
    room.queues.disable("CLAIMS", password="CLAIMS")
    spheres = fill_operators(room)
    fail(room, "many", TROUBLE)
    room.send("stock", "<ask><count>4</count></ask>", format="xml")
    room.run(until_idle=True)
    assert ann.show(settled).fields["State"] == "approved"
    return spheres


def fill_operators(room: Postroom) -> list[Sphere]:
    room.consumers.schedule("nightly", "0 3 * * *", "orders", body="count")
    room.access.create_token("clerk", "cash desk")
    room.queues.create("pumps")
    room.consumers.set_policy("pumps", attempts=1)
    room.queues.set_password("pumps", password="key")
    for number in range(6):
        room.send("pumps", f"pump {number}", properties={"colour": "red"})
    room.receive_many("pumps", count=1, lease=3600)[0].fail("no such pump")
    room.receive_many("pumps", count=1, lease=3600, detached=True)
    room.access.grant("clerk", "publish", "meta:ferry")
    room.flows.add_principal("ferryman", PASSWORD)
    room.flows.client("ferryman", PASSWORD).subscribe("Full")
    room.flows.publish_many("Crossings", [{"boat": "Ida", "cars": 3}, {"boat": "Ann", "cars": 200}])
    spheres = [room.spheres.open(id) for id in ("pay-1029", "pay-1030")]
    for sphere in spheres:
        sphere.send("orders", "<pay/>", compensation="<pay-back/>")
        sphere.send("orders", "<letter/>", when="commit")
    room.spheres.open("pay-1031").abort(reason="the account is blocked")
    return spheres


# --- sights ---


@dataclass(frozen=True)
class Sight:
    """What someone sees at an address, or after something was written there and a button was pressed."""

    name: str
    address: str
    shows: str  # else it would be a sight of something else
    write: Mapping[str, str] = field(default_factory=dict)  # by label, or by #id where several have the same
    press: str | None = None
    meanwhile: Callable[[], Any] | None = None  # what happens before it is pressed
    user: str = "clerk"

    def look(self, url: str, page: Page) -> None:
        page.goto(f"{url}/web{self.address}")
        for label, text in self.write.items():
            labelled = page.get_by_label(label, exact=True).and_(page.locator("input, textarea"))
            (page.locator(label) if label.startswith("#") else labelled).first.fill(text)
        if self.meanwhile is not None:
            self.meanwhile()
        if self.press is not None:
            page.get_by_role("button", name=self.press, exact=True).first.click()
        expect(page.locator("body")).to_contain_text(self.shows)


def sights(served: Served) -> list[Sight]:
    """Every page, in all its states."""
    return [*office_sights(served.room), *operators_sights(served.room), *anyones_sights()]


def office_sights(room: Postroom) -> list[Sight]:
    ben, ann, director = (room.stations.admitted(name) for name in ("Ben", "Ann", "Director"))
    mail, desk = ben.mail()[0].key, "/desk/Director"
    key = director.dossier("storm of Friday")[0].key
    claim, settled = (found.key for found in ann.query("CLAIM"))

    def overtake() -> None:
        before = director.show(key).fields["Loss"]
        director.modify(key, {"Loss": f"{before or ''} written by another one".strip()})

    new = f"{desk}/new/CLAIM"
    wrong = {"No:": "nine", "Amount:": "1,5", "Loss Date:": "Friday"}
    find = f"{desk}/query/CLAIM?find=1&field:No=%3E8"
    return [
        Sight("mail", f"/desk/Ben?mail={mail}", "read-only until you get it"),
        Sight("waiting", "/desk/Ann", "Create the missing one"),
        Sight("desk-wrong", "/desk/Ann", "Tick the forms in the table first.", {"Ship the chosen to": "Anne"}, "Ship"),
        Sight("desk-empty", "/desk/Ben?type=CLAIM", "No forms at hand."),
        Sight("new", f"{desk}/new", "Fill in APPROVAL"),
        Sight("new-claim", new, "on creation"),
        Sight("new-wrong", new, "4 fields do not fit", wrong, "Create"),
        Sight("form", f"/desk/Ann/forms/{claim}", "has it in a set that lacks"),
        Sight("form-wrong", f"{desk}/forms/{key}", "1 field does not fit", {"Amount:": "much"}, "Save"),
        Sight("form-overtaken", f"{desk}/forms/{key}", "Someone has written", {"State:": "mine"}, "Save", overtake),
        Sight("form-elsewhere", f"{desk}/forms/{key}", "There is no station", {"To station": "Anne"}, "Ship"),
        Sight("dossier", f"{desk}/dossier?name=storm%20of%20Friday", "Take out"),
        Sight("query-choose", f"{desk}/query", "For which forms"),
        Sight("query-found", f"{find}&open={key}", "Image"),
        Sight("query-none", f"{desk}/query/CLAIM?find=1&field:No=1", "Nothing was found."),
        Sight("query-counted", f"{desk}/query/CLAIM?find=count", "Counted"),
        Sight("query-wrong", f"{desk}/query/CLAIM?find=1&field:No=%3E", "nothing is asked yet"),
        Sight("query-saved", find, "as the table found", {"Save as table": "found"}, "Save"),
        Sight("trace", f"/trace/{settled}", "procedure settle"),
        Sight("templates", "/templates?type=CLAIM", "Template and fields"),
        Sight("templates-wrong", "/templates?new=1", "problem", {"Template and fields": "type X\n| A: __ |"}, "Check"),
        Sight("procedures", "/procedures?name=settle", "One sketch more"),
        Sight("procedures-tried", "/procedures?name=settle", "No set of forms would be complete.", {}, "Try"),
    ]


def operators_sights(room: Postroom) -> list[Sight]:
    failed, long = (message for message in room.queues.peek("errors"))
    (answer,) = room.queues.peek("answers")
    (order, *_) = room.queues.peek("orders")
    failure, shop = f"/failures?key={failed.key}", "/programs?file=shop.demaq"
    text, less = SHOP.replace("+ 1", "* 2"), "\n".join(SHOP.splitlines()[:4])
    works = {"What is sent instead, xml": "<ask><count>4</count></ask>"}
    arc = {"New arc": "few", "from": "Crossings", "to": "Full", "Pattern": "[cars"}
    return [
        Sight("overview", "/overview", "is on hold, and"),
        Sight("overview-doctor", "/overview?doctor=1", "The doctor says"),
        Sight("queue", "/queues/pumps", "pump 5"),
        Sight("queue-held", "/queues/CLAIMS/NORTH", "on hold"),
        Sight("queue-searched", "/queues/orders?text=order", "messages were looked at"),
        Sight("message", f"/messages/{order.key}", "Properties"),
        Sight("message-error", f"/messages/{failed.key}", "description"),
        Sight("causes", f"/trace/{answer.key}", "led to 1"),
        Sight("failures", failure, "Edit and retry"),
        Sight("failures-long", f"/failures?key={long.key}", "wwww"),
        Sight("failures-dry", failure, "works", works, "Dry run"),
        Sight("failures-again", failure, "fails again", {}, "Dry run"),
        Sight("failures-all", failure, "2 do not", {}, "Dry run all"),
        Sight("failures-gone", "/failures?key=99999.99999", "This failure is no longer here."),
        Sight("programs", "/programs", "shop.demaq"),
        Sight("programs-compared", f"{shop}&before=1", "Versions"),
        Sight("programs-wrong", shop, "Nothing was changed.", {"Text": f"{SHOP}create rule"}, "Load"),
        Sight("programs-removes", shop, "This load removes 1 definition", {"Text": less}, "Load"),
        Sight("programs-tried", shop, "would have another outcome", {"Text": text}, "Try on stored messages"),
        Sight("flows", "/flows", "Disable full"),
        Sight("flows-wrong", "/flows", "Nothing was changed.", arc, "Add the arc"),
        Sight("spheres", "/spheres", "pay-1030"),
        Sight("sphere", "/spheres?id=pay-1029", "Abort pay-1029"),
        Sight("sphere-aborted", "/spheres?id=pay-1031", "the account is blocked"),
        Sight("journal", "/journal", "create"),
        Sight("journal-none", "/journal?verb=nothing", "No"),
        Sight("access", "/access", "nightly"),
        Sight("access-wrong", "/access", "Nothing was changed.", SCHEDULE, "Add the schedule"),
        Sight("access-token", "/access", "only now", TOKEN, "Create a token"),
    ]


TOKEN = {"#token-user": "clerk", "Name of the token": "till"}
SCHEDULE = {"Name of the schedule": "x", "When": "often", "To the queue": "orders"}


def anyones_sights() -> list[Sight]:
    wrong = {"Name": "clerk", "Password": "wrong"}
    return [
        Sight("you", "/you", "Sign out everywhere"),
        Sight("nowhere", "/nowhere", "Refused"),
        Sight("unknown", "/trace/99999.99999", "Refused"),
        Sight("refused", "/overview", "nobody may not", user="nobody"),
        Sight("nothing", "/", "There is nothing here that you may see.", user="nobody"),
        Sight("sign-in", "/sign-in", "Password"),
        Sight("sign-in-wrong", "/sign-in", "Sign in", wrong, "Sign in"),
    ]
