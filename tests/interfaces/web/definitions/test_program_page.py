"""Programs: an error is marked where it is, a change is compared and tried, and loaded by whoever may."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import httpx
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import APPROVAL, CLAIM, SETTLE, SHOP, STATIONS, Browser, ask, browser, finished

from postroom.interfaces.web.definitions.program_page import changes

TWICE = SHOP.replace("+ 1", "* 2")


def test_a_program_is_checked_marked_tried_compared_and_loaded(shop: Served, operator: Browser) -> None:
    room = shop.room
    assert "create rule look for stock" in operator.get("/programs?file=shop.demaq").text
    assert operator.get("/programs?file=nothing.demaq").status_code == 404
    version = room.definitions.catalog()[0].version
    for action in ("check", "load", "try"):
        wrong = operator.post("/programs", do=action, name="shop.demaq", text=SHOP + "create rule for\n")
        assert wrong.status_code == 422, action
        assert "line 7, column" in wrong.text
        assert '<li class="guilty"><span class="no">7' in wrong.text
        assert "postroom-" not in wrong.text.split('role="alert"')[1][:2000]  # no folder of the server
    room.send("stock", ask("4"), format="xml")
    tried = finished(operator, operator.post("/programs", do="try", name="shop.demaq", text=TWICE))
    assert "&lt;answer&gt;8&lt;/answer&gt;" in tried
    assert "&lt;answer&gt;5&lt;/answer&gt;" in tried  # what the rule in force makes of it
    assert "1 of 1 would have another outcome than now." in tried
    assert 'class="compare"' in tried
    assert "It can be loaded." in operator.post("/programs", do="check", name="shop.demaq", text=TWICE).text
    assert room.definitions.catalog()[0].version == version
    assert "* 2" not in room.definitions.files()["shop.demaq"].decode()
    assert "Version" in operator.post("/programs", do="load", name="shop.demaq", text=TWICE).text
    assert "* 2" in room.definitions.files()["shop.demaq"].decode()
    compared = operator.get(f"/programs?file=shop.demaq&before={version}").text
    assert f"Version {version}</th>" in compared
    assert compared.count('<tr class="replace">') == 1
    same = operator.get(f"/programs?file=shop.demaq&before={version}&after={version}").text
    assert "They are the same." in same
    for odd in ("before=0", "before=9999", "before=x", f"before={version}&after=9999"):
        assert operator.get(f"/programs?file=shop.demaq&{odd}").status_code == 400, odd


def test_what_differs_is_told_and_what_does_not_is_not(shop: Served, operator: Browser) -> None:
    for count in ("2", "3"):
        shop.room.send("stock", ask(count), format="xml")
    tried = finished(operator, operator.post("/programs", do="try", name="shop.demaq", text=TWICE))
    assert "1 of 2 would have another outcome than now." not in tried  # 2 + 1 and 2 * 2 differ, 3 + 1 and 3 * 2, too
    assert "2 of 2 would have another outcome than now." in tried
    same = finished(
        operator, operator.post("/programs", do="try", name="shop.demaq", text=SHOP.replace("look", "look"))
    )
    assert "0 of 2 would have another outcome than now." in same
    new = "create queue more kind basic mode persistent create rule m for more if (/x) then do enqueue <y/> into more"
    nothing = finished(operator, operator.post("/programs", do="try", name="more.demaq", text=new))
    assert "No stored message is looked at by this." in nothing
    assert "more.demaq" not in shop.room.definitions.files()


def test_a_procedure_is_tried_too(shop: Served, operator: Browser, tmp_path: Path) -> None:
    room = shop.room
    for name in STATIONS:
        room.stations.add(name, "secret")
    (tmp_path / "forms.form").write_text(CLAIM + APPROVAL)
    room.load(tmp_path / "forms.form")
    ann = room.stations.admitted("Ann")
    ann.create("CLAIM", {"No": 7, "Claimant": "x", "Amount": "10"})
    ann.create("APPROVAL", {"No": 7, "Cover": "20"})
    tried = finished(operator, operator.post("/programs", do="try", name="settle.form", text=SETTLE))
    assert "1 of 1 would have another outcome than now." in tried
    assert "approved" in tried
    assert room.stations.procedures() == []


def test_a_program_reads_no_file_of_the_server(shop: Served, operator: Browser, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\nsecret,1\n")
    (tmp_path / "secret.xsd").write_text("<secret")
    flow = f'domain d\nspace S : [a: string]\ntable t : [a: string, b: int] from "{secret}"\n'
    rules = f"create queue q kind basic mode persistent schema {tmp_path}/secret.xsd\n"
    for name, text in (("d.flow", flow), ("q.demaq", rules), ("q.demaq", rules.replace("schema ", 'schema "') + '"')):
        for action in ("check", "try", "load"):
            refused = operator.post("/programs", do=action, name=name, text=text)
            assert refused.status_code in (400, 404, 422), (name, action)
            assert "secret,1" not in refused.text
            assert "&lt;secret" not in refused.text
    assert "it was not sent along" in operator.post("/programs", do="check", name="d.flow", text=flow).text


def test_names_that_are_no_files_are_refused(shop: Served, operator: Browser) -> None:
    for name in ("../x.demaq", "a/b.demaq", "..", "x.unknown", "\x00.demaq"):
        for action in ("check", "load", "try"):
            assert operator.post("/programs", do=action, name=name, text=SHOP).status_code in (400, 422), name


def test_whoever_may_only_look_loads_nothing(shop: Served) -> None:
    looker = browser(shop.url)
    looker.sign_in("looker")
    assert "This needs the right load." in looker.get("/programs?file=shop.demaq").text
    for action in ("check", "load", "try"):
        assert looker.post("/programs", do=action, name="shop.demaq", text=TWICE).status_code == 403
    looker.client.close()


def test_a_program_does_nothing_that_its_loader_may_not(shop: Served) -> None:
    """The right to load is no way to send, nor to replace what others have loaded."""
    shop.room.access.grant("looker", "load")
    looker = browser(shop.url)
    looker.sign_in("looker")
    mine = (
        "create queue mine kind basic mode persistent create rule r for mine if (/x) then do enqueue <y/> into answers"
    )
    for name, text in (("mine.demaq", mine), ("shop.demaq", TWICE)):
        refused = looker.post("/programs", do="load", name=name, text=text)
        assert refused.status_code == 403, name
    assert "mine.demaq" not in shop.room.definitions.files()
    assert "* 2" not in shop.room.definitions.files()["shop.demaq"].decode()
    looker.client.close()


def test_texts_that_are_very_long_are_not_compared() -> None:
    rows = list(changes("a\n" * 6_000, "b\n" * 6_000))
    assert rows == [("replace", "6000 lines", "6000 lines: too many to compare")]
    blank = list(changes("\n" * 4_000, "\n" * 4_001))
    assert len(blank) >= 4_000


SECOND = """create rule also for stock
  if (/ask) then do enqueue <more/> into answers
"""
BUTTON = 'name="do" value="load-and-remove">'


def removals(page: httpx.Response) -> list[str]:
    """What the page asks for before it is removed."""
    return [unescape(name) for name in re.findall(r'name="removes" value="([^"]*)"', page.text)]


def load(there: Browser, text: str, do: str = "load", **more: Any) -> httpx.Response:
    said = {"do": do, "name": "shop.demaq", "text": text, **more}
    return there.client.post(f"{there.url}/web/programs", data=said, headers={"origin": there.url})


def test_what_a_load_would_remove_is_asked_for_where_its_button_is(shop: Served, operator: Browser) -> None:
    room = shop.room
    added = load(operator, SHOP + SECOND)
    assert removals(added) == []
    assert "0 removed." in added.text
    version = room.definitions.versions(1)[0].version
    lone = load(operator, SHOP)
    assert lone.status_code == 409
    assert removals(lone) == ["rule also"]
    assert "This load removes 1 definition, and nothing was changed yet:" in lone.text
    assert f"{BUTTON}Load, and remove rule also</button>" in lone.text
    none = "\n".join(line for line in SHOP.splitlines() if "rule" not in line and "if (" not in line)
    asked = load(operator, none)
    assert sorted(removals(asked)) == ["rule also", "rule look"]
    assert "This load removes 2 definitions" in asked.text
    assert f"{BUTTON}Load, and remove 2 definitions</button>" in asked.text
    assert load(operator, none, removes=removals(asked)).status_code == 409, "the plain button agrees to nothing"
    for agreed in ([], ["rule also"], ["rule also\nrule look"]):
        again = load(operator, none, "load-and-remove", removes=agreed)
        assert (again.status_code, sorted(removals(again))) == (409, ["rule also", "rule look"])
    assert room.definitions.versions(1)[0].version == version
    more = none.replace("create queue answers kind basic mode persistent", "")
    changed = load(operator, more, "load-and-remove", removes=removals(asked))
    assert changed.status_code == 409, "it was agreed to, but to another text"
    assert "queue answers" in removals(changed)
    assert room.definitions.versions(1)[0].version == version
    done = load(operator, none, "load-and-remove", removes=removals(asked))
    assert "2 removed." in done.text
    assert "create rule" not in room.definitions.files()["shop.demaq"].decode()


def test_what_was_chosen_beside_a_load_is_kept_while_it_is_asked(shop: Served, operator: Browser) -> None:
    """A slicing with messages goes only with the box ticked, and that is not to be ticked twice."""
    sliced = SHOP + "create property n as xs:string queue stock value /ask/count\ncreate slicing s on n\n"
    assert "0 removed." in load(operator, sliced).text
    shop.room.send("stock", ask("4"), format="xml")
    shop.room.run(until_idle=True)
    asked = load(operator, SHOP, drop="yes")
    assert asked.status_code == 409
    assert 'name="drop" value="yes" checked>' in asked.text
    assert 'name="drop" value="yes">' in load(operator, sliced.replace("slicing s", "slicing t")).text
    refused = load(operator, SHOP, "load-and-remove", removes=removals(asked))
    assert refused.status_code >= 400
    assert "create slicing" in shop.room.definitions.files()["shop.demaq"].decode()
    done = load(operator, SHOP, "load-and-remove", removes=removals(asked), drop="yes")
    assert "removed." in done.text
    assert "create slicing" not in shop.room.definitions.files()["shop.demaq"].decode()


def test_a_load_of_forms_says_that_it_removes_nothing(shop: Served, operator: Browser) -> None:
    """A procedure was deleted from the text and loaded, and stayed without a word."""
    shop.room.stations.add("Ann", "its own")
    form = "type NOTE\n| Subject: ____ |\nfield Subject string free\n"
    counter = "counter out at Ann gives to answers\n"
    operator.post("/programs", do="load", name="office.form", text=form + counter)
    edit = operator.get("/programs?file=office.form").text
    assert "removes nothing that the text leaves out" in edit
    assert "you are asked first" not in edit
    left = operator.post("/programs", do="load", name="office.form", text=form)
    assert "0 removed. What the text leaves out stays." in left.text
    assert [shown.name for shown in shop.room.stations.counters()] == ["out"]
    assert "you are asked first" in operator.get("/programs?file=shop.demaq").text
    asked = operator.post("/programs", do="load", name="shop.demaq", text=SHOP.partition("create rule")[0])
    assert asked.status_code == 409
    assert "What the text leaves out stays." not in asked.text
    assert "in office.form all forms, procedures and counters" in operator.get("/programs").text
