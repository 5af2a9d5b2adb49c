"""The desk: mail, forms at hand, dossiers, what waits; and what stands in their fields stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, browser, served_office, taken_back, way_back

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "</textarea><svg onload=alert(1)>",
    "{{ 7*7 }}{% include 'x' %}",
    "javascript:alert(1)",
    "<!--",
    "-->",
    "]]>",
    "&lt;b&gt;&#60;i&#62;",
    "\u202eevil\u2066",
    "\n\n<h1>x",
    "</title><base href=//evil>",
]


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, and all its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.said = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attributes)))
        self.said += " ".join(value or "" for _, value in attributes)

    def handle_data(self, data: str) -> None:
        self.said += data


def addresses(office: Served, said: str) -> list[str]:
    """A form that says the same in every field, and every page that shows it."""
    ann = office.room.stations.admitted("Ann")
    fields = {"No": 1, **dict.fromkeys(("Claimant", "Region", "Loss", "Remarks", "State"), said)}
    key, mail = ann.create_many("CLAIM", [fields, fields])
    ann.ship(mail, "Director")
    ann.add_to_dossier("d", key)
    return [
        f"/desk/Director?mail={mail}",
        f"/desk/Ann/forms/{key}",
        "/desk/Ann/dossier?name=d",
        f"/desk/Ann/query/CLAIM?find=1&open={key}",
        f"/trace/{key}",
    ]


def shapes(office: Served, clerk: Browser, said: str) -> list[Shape]:
    pages = [clerk.get(address) for address in addresses(office, said)]
    assert [page.status_code for page in pages] == [200] * len(pages)
    director, ann = (office.room.stations.admitted(name) for name in ("Director", "Ann"))
    office_keys = [item.image.key for item in ann.inventory()]
    ann.remove_from_dossier("d", *office_keys)
    ann.ship(office_keys, "Ben")
    director.get()
    director.ship([item.image.key for item in director.inventory()], "Ben")
    return [Shape(page.text) for page in pages]


def test_what_is_stored_in_a_field_changes_no_pages_structure(tmp_path: Path) -> None:
    """In an office of its own: forms that other tests have left would be on the same pages."""
    with served_office(tmp_path) as office:
        clerk = browser(office.url)
        clerk.sign_in("clerk")
        plain = [shape.elements for shape in shapes(office, clerk, "plain")]
        for payload in PAYLOADS:
            found = shapes(office, clerk, payload)
            assert [shape.elements for shape in found] == plain, payload
            assert all(payload.strip().split("\n")[-1][:20] in shape.said for shape in found), payload
        clerk.client.close()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_asked_for_changes_no_pages_structure(office: Served, clerk: Browser, payload: str) -> None:
    for path, name in (("/desk/Ann/new/CLAIM", "field:Claimant"), ("/desk/Ann", "type"), ("/find", "q")):
        shown = [clerk.client.get(f"{office.url}/web{path}", params={name: said}) for said in ("plain words", payload)]
        assert Shape(shown[0].text).elements == Shape(shown[1].text).elements


def test_mail_is_got_one_at_a_time_or_all(office: Served, clerk: Browser) -> None:
    ben, ann = (office.room.stations.admitted(name) for name in ("Ben", "Ann"))
    keys = ben.create_many("APPROVAL", [{"No": number} for number in range(4)])
    ben.ship(keys, "Ann")
    assert f"Got {keys[2]}." in clerk.post("/desk/Ann", do="get", key=keys[2]).text
    assert [each.key for each in ann.mail()] == [keys[0], keys[1], keys[3]]
    again = clerk.post("/desk/Ann", do="get", key=keys[2])
    assert again.status_code == 409
    assert "Nothing was changed" in again.text
    assert "Got 3 forms." in clerk.post("/desk/Ann", do="all").text
    assert ann.mail() == []
    found = clerk.post("/desk/Ann", do="open", key="nonsense")
    assert found.status_code == 400


def test_chosen_forms_are_shipped_and_put_into_dossiers(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("APPROVAL", {"No": 1})
    assert "Put 1 form into a &amp; b." in clerk.post("/desk/Ann", do="dossier", dossier="a & b", key=key).text
    assert "a &amp; b" in clerk.get("/desk/Ann").text
    assert key.split(".")[1] in clerk.get("/desk/Ann/dossier?name=a+%26+b").text
    assert clerk.post("/desk/Ann/dossier?name=a+%26+b", do="remove", key=key).url.path == "/web/desk/Ann"
    refused = clerk.post("/desk/Ann", do="ship", key=key, to="Nowhere")
    assert refused.status_code == 404
    assert "There is no station Nowhere. Nothing was shipped." in refused.text
    assert f'value="{key}" aria-label="Choose {key}" checked' in refused.text  # nothing is to be chosen or typed again
    assert 'value="Nowhere" aria-invalid="true"' in refused.text
    assert "Shipped 1 form to Director." in clerk.post("/desk/Ann", do="ship", key=key, to="Director").text


def test_what_was_left_out_is_said_in_words_of_the_page(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("APPROVAL", {"No": 2})
    ann.add_to_dossier("kept", key)
    none = "Tick the forms in the table first. Nothing was changed."
    for path, fields, said in (
        ("/desk/Ann", {"do": "ship", "to": "Director"}, none),
        ("/desk/Ann", {"do": "dossier", "dossier": "kept"}, none),
        ("/desk/Ann/dossier?name=kept", {"do": "remove"}, none),
        ("/desk/Ann", {"do": "ship", "key": key, "to": " "}, "Choose a station. Nothing was shipped."),
        ("/desk/Ann", {"do": "dossier", "key": key}, "Name a dossier; a new name begins one. Nothing was changed."),
        (f"/desk/Ann/forms/{key}", {"do": "ship", "to": " "}, "Choose a station."),
        (f"/desk/Ann/forms/{key}", {"do": "dossier", "dossier": " "}, "Dossier: it is missing"),
        (f"/desk/Ann/forms/{key}", {"do": "copy", "count": "1e3"}, "Copies: a whole number from 1 to "),
    ):
        refused = clerk.post(path, **fields)
        assert refused.status_code == 400, fields
        assert said in refused.text, fields
        assert "openapi" not in refused.text
    assert ann.dossiers()["kept"] == 1
    assert office.room.journal.locate(key) == "Ann"
    ann.remove_from_dossier("kept", key)


def test_whoever_works_at_one_station_sees_no_other(office: Served) -> None:
    ann = browser(office.url)
    ann.sign_in("Ann")
    assert ann.get("/desk/Ann").status_code == 200
    assert ann.get("/desk/Ben").status_code == 403
    assert ann.post("/desk/Ben", do="all").status_code == 403
    key = office.room.stations.admitted("Ann").create("APPROVAL", {"No": 1})
    assert ann.get(f"/trace/{key}").status_code == 403  # as a program: look is a right of its own
    assert "Its way" not in ann.get(f"/desk/Ann/forms/{key}").text
    office.room.access.grant("Ann", "look", "station:Ann")
    assert ann.get(f"/trace/{key}").status_code == 200
    office.room.access.withdraw("Ann", "look", "station:Ann")
    assert ann.get(f"/trace/{key}").status_code == 403
    ann.client.close()


def test_whoever_works_at_a_station_chooses_where_to_ship(office: Served, stranger: Browser) -> None:
    """No right to look around is needed for it, neither by a page nor by a program."""
    stranger.sign_in("Ann")
    key = office.room.stations.admitted("Ann").create("APPROVAL", {"No": 1})
    for page in ("/desk/Ann", f"/desk/Ann/forms/{key}"):
        text = stranger.get(page).text
        assert '<option value="Ben">' in text
        assert '<option value="Ann">' not in text
    with office.client(office.room.access.create_token("Ann", "others")) as program:
        others = program.get("/stations/Ann/others").json()["stations"]
        assert [other["name"] for other in others] == ["Ben", "Director"]
        assert program.get("/stations/Ben/others").status_code == 403
        assert program.get("/stations").status_code == 403


def test_a_page_and_a_program_need_the_same_right_for_what_waits(office: Served, stranger: Browser) -> None:
    """The right to work at a station shows the sets that wait there, and no others, to both."""
    key = office.room.stations.admitted("Ann").create("CLAIM", {"No": 4242, "Claimant": "x", "Amount": "7"})
    office.room.run(until_idle=True)
    stranger.sign_in("Ann")
    assert f'data-row="settle {key}"' in stranger.get("/desk/Ann").text
    with office.client(office.room.access.create_token("Ann", "waits")) as program:
        sets = program.get("/stations/Ann/working-sets").json()["waiting"]
        assert key in [each["has"].get("claim") for each in sets]
        assert program.get("/stations/Ben/working-sets").status_code == 403
        assert program.get("/working-sets").status_code == 403
    with office.client() as operator:
        assert operator.get("/stations/Ben/working-sets").json()["waiting"] == []
        assert operator.get("/stations/Nowhere/working-sets").status_code == 404


def test_a_form_that_waits_in_the_mailbox_is_shown_there(office: Served, clerk: Browser) -> None:
    ben = office.room.stations.admitted("Ben")
    key = ben.create("CLAIM", {"No": 77, "Claimant": "Ida", "Amount": 5})
    ben.ship(key, "Ann")
    office.room.run(until_idle=True)  # a procedure acts on mail, too: it lacks an approval
    waiting = clerk.get("/desk/Ann").text.partition('id="waiting"')[2]
    (link,) = {each for each in re.findall(r'href="([^"]*)"', waiting) if key in each}
    shown = clerk.client.get(office.url + link.replace("&amp;", "&"))
    assert shown.status_code == 200
    assert "Get and open" in shown.text


def test_people_are_not_offered_what_procedures_fill_in(clerk: Browser) -> None:
    page = clerk.get("/desk/Ann/new").text
    assert "Fill in CLAIM" in page
    assert "PROCEDURE ERROR" not in page


def test_what_does_not_fit_is_said_once(clerk: Browser) -> None:
    page = clerk.post(
        "/desk/Ann/new/CLAIM", do="create", **{"field:No": "1", "field:Claimant": "x", "field:Amount": "3,5"}
    )
    assert "takes a number such as 12.50" in page.text
    assert "CLAIM, field Amount" not in page.text


# --- taking back ---


def test_what_was_shipped_comes_back_by_the_button_beside_the_notice(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("APPROVAL", {"No": 31})
    shipped = clerk.post(f"/desk/Ann/forms/{key}", do="ship", to="Ben")
    assert f"Shipped {key} to Ben." in shipped.text
    assert way_back(shipped) == "Take it back"
    assert way_back(clerk.get("/you")) == "Take it back", "it stays on every page until something else is done"
    assert way_back(clerk.get("/desk/Director")) == "Take it back"
    back = taken_back(clerk, shipped)
    assert back.url.path == f"/web/desk/Ann/forms/{key}"
    assert f"Took back {key}." in back.text
    assert way_back(back) is None
    assert office.room.journal.locate(key) == "Ann"
    two = [key, ann.create("APPROVAL", {"No": 32})]
    shipped = many(clerk, "/desk/Ann", two, do="ship", to="Ben")
    assert "Shipped 2 forms to Ben." in shipped.text
    assert way_back(shipped) == "Take them back"
    back = taken_back(clerk, shipped)
    assert f"Took back {two[0]}, {two[1]}." in back.text
    assert back.url.path == "/web/desk/Ann"
    assert [office.room.journal.locate(key) for key in two] == ["Ann", "Ann"]


def many(clerk: Browser, path: str, keys: list[str], **fields: str) -> httpx.Response:
    """A form of a page with several rows chosen."""
    return clerk.client.post(f"{clerk.url}/web{path}", data={"key": keys, **fields}, headers={"origin": clerk.url})


def test_there_is_no_way_back_once_somebody_has_got_it(office: Served, clerk: Browser) -> None:
    ann, ben = (office.room.stations.admitted(name) for name in ("Ann", "Ben"))
    key, other = ann.create_many("APPROVAL", [{"No": 33}, {"No": 34}])
    shipped = clerk.post("/desk/Ann", do="ship", key=key, to="Ben")
    assert way_back(clerk.get("/you")) == "Take it back"
    ben.get()
    after = clerk.get("/you")
    assert way_back(after) is None
    assert "Shipped" not in after.text, "it was told once"
    late = taken_back(clerk, shipped)  # a page that was still open
    assert late.status_code == 409
    assert f"{key} is no longer in the mailbox: somebody has got it.</strong> Nothing was changed." in late.text
    assert office.room.journal.locate(key) == "Ben"
    ben.ship(key, "Ann")
    ann.get()
    shipped = many(clerk, "/desk/Ann", [key, other], do="ship", to="Ben")
    assert ben.get(keys=[key]) == [key]
    part = taken_back(clerk, shipped)
    assert part.status_code == 200
    assert f"Took back {other}. {key} is no longer in the mailbox: somebody has got it." in part.text
    assert [office.room.journal.locate(each) for each in (key, other)] == ["Ben", "Ann"]
    again = taken_back(clerk, shipped)
    assert again.status_code == 409
    assert f"{key}, {other} are no longer in the mailbox: somebody has got them." in again.text


def test_there_is_no_way_back_once_a_program_has_taken_it(tmp_path: Path) -> None:
    """What a counter has taken is kept in the mailbox, but it is not there any more; and the page says who has it."""
    with served_office(tmp_path) as served:
        room, clerk, ann = served.room, browser(served.url), browser(served.url)
        (tmp_path / "out.form").write_text("counter out at Director gives to orders\n")
        room.load(tmp_path / "out.form")
        (tmp_path / "file.form").write_text(
            "procedure filing at Ben\n  precondition a : APPROVAL\n  destination d on a copy 0 dossier done\n"
        )
        room.load(tmp_path / "file.form")
        room.stations.enable_procedure("filing")
        clerk.sign_in("clerk")
        ann.sign_in("Ann")
        for to, name, kind in (("Director", "counter out", "a counter"), ("Ben", "procedure filing", "a procedure")):
            (key,) = room.stations.admitted("Ann").create_many("APPROVAL", [{"No": 33}])
            shipped, other = clerk.post("/desk/Ann", do="ship", key=key, to=to), clerk.get("/desk/Ann")
            assert way_back(other) == "Take it back"
            room.run(until_idle=True)
            assert way_back(clerk.get("/desk/Ann", **{"postroom-live": "1"})) is None
            assert 'id="way-back"' in clerk.get("/desk/Ann", **{"postroom-live": "1"}).text
            assert way_back(clerk.get("/you")) is None
            late = taken_back(clerk, shipped)
            assert f"{key} is no longer in the mailbox: {name} has got it." in late.text
            told = ann.post("/desk/Ann", do="take-back", key=key)  # may not look where it is now
            assert f"{key} is no longer in the mailbox: {kind} has got it." in told.text
        for each in (clerk, ann):
            each.client.close()


def test_what_is_taken_back_is_in_its_dossiers_again(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key, other = ann.create_many("APPROVAL", [{"No": 43}, {"No": 44}])
    for name in ("open & late", "big"):
        ann.add_to_dossier(name, key)
    form = clerk.get(f"/desk/Ann/forms/{key}").text
    assert ">big</a>, <a" in form
    assert "?name=open+%26+late" in form
    assert "It is in" not in clerk.get(f"/desk/Ann/forms/{other}").text
    for is_alone in (True, False):
        if is_alone:
            shipped = clerk.post(f"/desk/Ann/forms/{key}", do="ship", to="Ben")
        else:
            shipped = many(clerk, "/desk/Ann", [key, other], do="ship", to="Ben")
        assert not {"open & late", "big"} & ann.dossiers().keys()
        back = taken_back(clerk, shipped)
        assert ", into the dossiers big, open &amp; late again." in back.text
        assert [image.key for name in ("open & late", "big") for image in ann.dossier(name)] == [key, key]
    for name in ("open & late", "big"):
        ann.remove_from_dossier(name, key)


def test_nobody_takes_back_what_another_station_has_shipped(office: Served, clerk: Browser, stranger: Browser) -> None:
    ben = office.room.stations.admitted("Ben")
    key = ben.create("APPROVAL", {"No": 35})
    ben.ship(key, "Director")
    stranger.sign_in("Ann")
    assert stranger.post("/desk/Ben", do="take-back", key=key).status_code == 403
    assert stranger.post("/desk/Ann", do="take-back", key=key).status_code == 409
    assert clerk.post("/desk/Director", do="take-back", key=key).status_code == 409
    for odd in ("", "nonsense"):
        assert clerk.post("/desk/Ben", do="take-back", key=odd).status_code == 400
    assert clerk.post("/desk/Ben", do="take-back").status_code == 400
    assert office.room.journal.locate(key) == "mailbox:Director"
    twice = many(clerk, "/desk/Ben", [key, key], do="take-back")
    assert f"Took back {key}." in twice.text
    assert office.room.journal.locate(key) == "Ben"


def test_what_was_put_into_a_dossier_is_taken_out_again_and_back(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    one, two = ann.create_many("APPROVAL", [{"No": 36}, {"No": 37}])
    put = many(clerk, "/desk/Ann", [one, two], do="dossier", dossier="a & b")
    assert "Put 2 forms into a &amp; b." in put.text
    assert way_back(put) == "Take out again"
    out = taken_back(clerk, put)
    assert "Took 2 forms out of a &amp; b." in out.text
    assert "a & b" not in ann.dossiers()
    assert way_back(out) == "Put back"
    taken_back(clerk, out)
    assert [image.key for image in ann.dossier("a & b")] == [one, two]
    partly = many(clerk, "/desk/Ann", [one, two], do="dossier", dossier="a & b")
    assert "Put 0 forms into" in partly.text
    assert way_back(partly) is None, "they were in it before"
    nothing = clerk.post("/desk/Ann", do="dossier", dossier="a & b")
    assert nothing.status_code == 400
    assert way_back(nothing) is None
    none = clerk.post("/desk/Ann/dossier?name=a+%26+b", do="remove")
    assert none.status_code == 400
    assert way_back(none) is None
    from_form = clerk.post(f"/desk/Ann/forms/{one}", do="dossier", dossier="late", key=two)
    assert way_back(from_form) == "Take out again"
    ann.ship(one, "Director")
    assert way_back(clerk.get("/you")) is None, "it is no longer at hand"
    ann.take_back(one)
    taken_back(clerk, clerk.post(f"/desk/Ann/forms/{one}", do="dossier", dossier="late", key=two))
    assert "late" not in ann.dossiers()
    ann.remove_from_dossier("a & b", two)
