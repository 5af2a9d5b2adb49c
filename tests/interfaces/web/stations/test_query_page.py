"""Query by example: how it reads, what is found, and files of it."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from urllib.parse import parse_qsl

import httpx
import pyarrow.parquet
import pytest
from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, finished, held

from postroom.interfaces.web.stations.query_page import inert

QUERY = "/desk/Ann/query/CLAIM"


def found(visitor: Browser, said: str, do: str = "find") -> httpx.Response:
    """The button is pressed."""
    return visitor.post(QUERY, do=do, **dict(parse_qsl(said)))


def test_conditions_are_read_back_and_their_errors_stand_at_their_fields(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    ann.create_many("CLAIM", [{"No": n, "Claimant": "x", "Amount": n * 100, "Loss": "storm"} for n in range(1, 6)])
    found = clerk.get(f"{QUERY}?find=1&field:Amount=%3E300&field:Loss=%3Dst*+%3Dfl*").text
    assert 'Found <span class="number">2</span>' in found
    assert "above" in found
    assert "like" in found
    counted = clerk.get(f"{QUERY}?find=count&field:Amount=%3E300").text
    assert 'Counted <span class="number">2</span>' in counted
    wrong = clerk.get(f"{QUERY}?find=1&field:Amount=%3E&field:Loss=x").text
    assert 'aria-invalid="true"' in wrong
    assert "nothing is asked yet" in wrong
    assert "Found <span" not in wrong
    assert "A condition cannot be read." in wrong
    assert "all of them" not in wrong
    assert clerk.get(f"{QUERY}?find=1&scope=elsewhere").status_code == 400


def test_what_was_not_asked_does_not_read_as_all(office: Served, clerk: Browser) -> None:
    unasked = clerk.get(QUERY).text
    assert "all of them" not in unasked
    assert "When you press Find" in unasked
    every = found(clerk, "scope=local").text
    assert "<h2>Last asked</h2>" in every
    assert "CLAIM, all of them." in every
    written = clerk.get(f"{QUERY}?field:No=1").text
    assert "<h2>Reads</h2>" in written
    assert "CLAIM with <strong>No</strong>" in written


def test_what_is_found_is_saved_as_a_table(office: Served, clerk: Browser) -> None:
    found = clerk.post(f"{QUERY}?find=1&field:No=1", do="keep", into="ones")
    assert "as the table ones" in found.text
    assert [table.name for table in office.room.stations.admitted("Ann").tables()] == ["ones"]
    assert clerk.post(f"{QUERY}?find=1", do="keep", into="no name").status_code == 400


def test_a_table_and_files_are_what_was_shown_and_not_another_answer(office: Served, clerk: Browser) -> None:
    """Someone changes the forms between the answer and the wish to keep it."""
    ann, ben = (office.room.stations.admitted(name) for name in ("Ann", "Ben"))
    key = ben.create("CLAIM", {"No": 558, "Claimant": "then"})
    shown = finished(clerk, found(clerk, "field:No=558&scope=global"))
    number = re.search("query ([0-9]+)</span>", shown)
    export = re.search(r'href="([^"]+export\.json[^"]+)"', shown)
    there = re.search(r'action="/web([^"]+asked=[^"]+)"', shown)
    assert number is not None
    assert export is not None
    assert there is not None
    ben.modify(key, Remarks="later")
    ben.create("CLAIM", {"No": 558, "Claimant": "later"})
    address = unescape(there[1])
    saved = clerk.post(address, do="keep", into="shown")
    assert "Saved 1 form as the table shown." in saved.text
    assert number[0] in saved.text  # the page has the same answer still
    (image,) = ann.table("shown")
    assert (image.key, image.fields["Remarks"]) == (key, None)
    assert ann.table("shown").seq == int(number[1])
    told = clerk.client.get(office.url + unescape(export[1])).json()
    assert (told["seq"], len(told["images"])) == (int(number[1]), 1)
    lost = clerk.post(address.replace("asked=", "asked=x"), do="keep", into="lost")
    assert lost.status_code == 400
    assert "no longer kept" in lost.text
    assert "lost" not in {table.name for table in ann.tables()}


def test_files_say_all_that_was_found_and_no_formula(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1"]
    ann.create_many("CLAIM", [{"No": 7_707, "Claimant": said, "Amount": "-5"} for said in formulas])
    asked = f"{QUERY}/export.csv?find=1&field:No=7707"
    answer = clerk.get(asked)
    assert answer.headers["content-disposition"] == 'attachment; filename="CLAIM.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["Claimant"] for row in rows] == [f"'{said}" for said in formulas]
    assert {row["Amount"] for row in rows} == {"-5"}
    images = clerk.get(asked.replace("csv", "json")).json()["images"]
    assert [image["fields"]["Claimant"] for image in images] == formulas
    table = pyarrow.parquet.read_table(io.BytesIO(clerk.get(asked.replace("csv", "parquet")).content))
    assert table.column("Claimant").to_pylist() == formulas
    assert clerk.get(asked.replace("csv", "exe")).status_code == 400


def test_a_cell_that_could_be_a_formula_is_text() -> None:
    assert inert("\n=1").startswith("'")
    assert inert(("=1", "2")) == "'=1; 2"
    assert inert("a=1") == "a=1"


def test_a_query_finds_forms_of_other_stations_and_in_mailboxes(office: Served, clerk: Browser) -> None:
    ben = office.room.stations.admitted("Ben")
    keys = ben.create_many("CLAIM", [{"No": 555, "Claimant": "x"}, {"No": 555, "Claimant": "y"}])
    ben.ship(keys[0], "Director")
    for scope, places in (
        ("global", ["mailbox:Director", "Ben"]),
        ("group", ["Ben"]),
        ("stations&some=Ben", ["Ben"]),
        ("stations&some=Ann,+Director", []),
    ):
        asked = f"field:No=555&scope={scope}"
        shown = finished(clerk, found(clerk, asked))
        (export,) = re.findall(r'href="([^"]+export\.json[^"]+)"', shown)
        told = clerk.client.get(office.url + unescape(export)).json()
        assert told["seq"] is not None
        assert [image["place"] for image in told["images"]] == places
        assert f'Found <span class="number">{len(places)}</span>' in shown
        assert shown.count("mailbox of </span>Director") == places.count("mailbox:Director")
        counted = finished(clerk, found(clerk, asked, "count"))
        assert f'Counted <span class="number">{len(places)}</span>' in counted
    for asked, status in (("stations&some=Nowhere", 404), ("stations&some=", 400), ("as-of&number=1e9", 400)):
        refused = found(clerk, f"field:No=555&scope={asked}")
        assert refused.status_code == status
        assert 'aria-invalid="true"' in refused.text  # at the field that it is about
        assert ">\n555</textarea>" in refused.text  # what was written stays
        assert "Found <span" not in refused.text


def test_a_query_as_of_a_number_finds_what_another_found_then(office: Served, clerk: Browser) -> None:
    ben = office.room.stations.admitted("Ben")
    key, other = ben.create_many("CLAIM", [{"No": 556, "Claimant": "then"}, {"No": 556, "Claimant": "too"}])
    clerk.post(f"{QUERY}?find=1&field:No=556&scope=global", do="keep", into="then")
    (table,) = [each for each in office.room.stations.admitted("Ann").tables() if each.name == "then"]
    ben.modify(key, Remarks="now")
    ben.ship(other, "Director")
    asked = f"field:No=556&scope=as-of&number={table.query}"
    found = clerk.get(f"{QUERY}/export.json?find=1&{asked}").json()
    assert found["seq"] == table.query
    assert [(each["place"], each["fields"]["Remarks"]) for each in found["images"]] == [("Ben", None), ("Ben", None)]
    assert 'Found <span class="number">1</span>' in clerk.get(f"{QUERY}?find=1&{asked}&field:Claimant=too").text
    assert 'Counted <span class="number">2</span>' in clerk.get(f"{QUERY}?find=count&{asked}").text
    assert f'<option value="{table.query}">then</option>' in clerk.get(QUERY).text


def test_a_long_query_is_followed(office: Served, clerk: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    office.room.stations.admitted("Ann").create("CLAIM", {"No": 557, "Claimant": "x"})
    with held(monkeypatch) as (half, go):
        asked = found(clerk, "field:No=557&scope=global")
        assert half.wait(30)
        there = str(asked.url).split("/web")[1]
        assert "asked=" in there
        assert "1 of 2 places have answered." in clerk.get(there).text
        assert "Found <span" not in asked.text
        go.set()
        while "Being asked" in (text := clerk.get(there).text):
            pass
        assert 'Found <span class="number">1</span>' in text
        number = re.search("query ([0-9]+)</span>", text)
        assert number is not None
        assert number[0] in clerk.get(f"{there}&open=x").text  # the same answer, not another query


def test_a_long_query_is_stopped_by_whoever_asked(
    office: Served, clerk: Browser, stranger: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.sign_in("Ann")
    with held(monkeypatch) as (half, _):
        asked = found(clerk, "field:No=557&scope=global")
        assert half.wait(30)
        there = str(asked.url).split("/web")[1]
        assert "It was over already." in stranger.post(there, do="stop").text
        assert "Being asked" in clerk.get(there).text
        stopped = clerk.post(there, do="stop")
        assert "Stopped." in stopped.text
        assert 'value="557"' in stopped.text or ">\n557</textarea>" in stopped.text  # what was written stays
        assert "Being asked" not in clerk.get(there, **{"Postroom-Live": "1"}).text  # the script does not ask anew
        assert "It was over already." in clerk.post(there, do="stop").text


def test_an_address_alone_begins_no_query_that_is_noted(office: Served, clerk: Browser) -> None:
    """What looks at other stations takes a number, in a commit: a link on any page could make someone do so."""
    office.room.stations.admitted("Ann").create("CLAIM", {"No": 559, "Claimant": "x"})
    newest = office.room.journal.last(1)[0].seq
    for scope in ("global", "group", "stations&some=Ben"):
        for what in ("1", "count"):
            page = clerk.get(f"{QUERY}?find={what}&field:No=559&scope={scope}")
            assert page.status_code == 200
            assert "Other places are asked when you press Find" in page.text
            assert ">\n559</textarea>" in page.text
            assert "Found <span" not in page.text
        assert clerk.get(f"{QUERY}/export.json?find=1&field:No=559&scope={scope}").status_code == 400
    assert office.room.journal.last(1)[0].seq == newest
    other = clerk.client.post(
        f"{office.url}/web{QUERY}", data={"do": "find", "scope": "global"}, headers={"origin": "https://other.example"}
    )
    assert other.status_code == 403
    assert office.room.journal.last(1)[0].seq == newest
    shown = found(clerk, "field:No=559&scope=global")
    assert 'Found <span class="number">1</span>' in finished(clerk, shown)
    assert "field%3ANo=559" in str(shown.url)  # it has an address, which asks for nothing more


def test_a_saved_table_is_opened_from_the_page_that_lists_it(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    key = ann.create("CLAIM", {"No": 560, "Claimant": "then"})
    clerk.post(f"{QUERY}?find=1&field:No=560", do="keep", into="local560")
    ann.modify(key, Remarks="now")
    listed = clerk.get("/desk/Ann/query").text
    (there,) = re.findall(r'href="(/web/[^"]*number=local560[^"]*)"', listed)
    opened = clerk.client.get(office.url + unescape(there)).text
    assert 'Found <span class="number">1</span>' in opened
    assert key in opened
    assert ">now<" not in opened
    assert '<option value="local560">local560</option>' in opened
    refused = clerk.get(f"{QUERY}?find=1&scope=as-of&number=nothing")
    assert refused.status_code == 400
    assert "local560" in refused.text


def test_a_box_of_stations_that_is_filled_is_meant_or_refused(office: Served, clerk: Browser) -> None:
    """It was left out without a word when another place was chosen."""
    refused = found(clerk, "field:No=555&scope=local&some=Ben")
    assert refused.status_code == 400
    assert "“Stations, with commas between” is filled in: choose “Some stations”, or empty it." in refused.text
    assert 'value="Ben" aria-invalid="true" aria-describedby="some-error"' in refused.text
    empty = found(clerk, "field:No=555&scope=stations&some=+,+")
    assert empty.status_code == 400
    assert "Say which stations, with commas between." in empty.text
    assert "is not local" not in empty.text


def test_the_name_of_a_table_is_refused_at_its_field(office: Served, clerk: Browser) -> None:
    refused = clerk.post(f"{QUERY}?find=1&scope=local", do="keep", into="my table 1")
    assert refused.status_code == 400
    assert 'value="my table 1" required autocomplete="off" aria-invalid="true"' in refused.text
    assert "A name has letters, digits and _, and no blanks.</span>" in refused.text
    assert "--help" not in refused.text


def test_all_that_cannot_be_read_is_told_at_once(clerk: Browser) -> None:
    fields = {"field:No": "o*", "field:Loss": '"off*', "field:Region": "north"}
    page = clerk.client.post(
        f"{clerk.url}/web/desk/Ann/query/CLAIM", data={"do": "find", **fields}, headers={"origin": clerk.url}
    )
    assert "2 fields do not fit, and nothing is asked yet:" in page.text
    assert "Character 1: this quote is not closed" in page.text


def test_a_text_that_is_cut_in_the_table_says_so(office: Served, clerk: Browser) -> None:
    office.room.stations.admitted("Director").create("CLAIM", {"No": 7321, "Claimant": "x", "Loss": "leaking " * 20})
    found = clerk.get("/desk/Director/query/CLAIM?find=1&scope=local&field:No=7321").text
    assert f"<td>{' '.join(['leaking'] * 10)}\N{HORIZONTAL ELLIPSIS}</td>" in found
