"""Forms that are created and modified: what does not fit is said, and nobody overwrites what they have not seen."""

from __future__ import annotations

import re

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser

from postroom.errors import EntryInvalid
from postroom.limits import COPIES_MAX


def seen(text: str) -> str:
    found = re.search(r'name="seen" value="(\w+)"', text)
    assert found is not None
    return found[1]


def make(office: Served, **fields: object) -> str:
    return office.room.stations.admitted("Ann").create("CLAIM", {"No": 1, "Claimant": "x", **fields})


def test_all_that_does_not_fit_is_said_at_once_and_nothing_is_made(office: Served, clerk: Browser) -> None:
    ann = office.room.stations.admitted("Ann")
    before = len(ann.inventory())
    fields = {"field:No": "a", "field:Amount": "1,1", "field:Loss Date": "never", "field:KEY": "00001.00001"}
    found = clerk.post("/desk/Ann/new/CLAIM", do="create", **fields)
    assert found.status_code == 422
    assert "4 fields do not fit, and nothing is created yet" in found.text
    assert found.text.count('aria-invalid="true"') == 4
    assert 'value="1,1"' in found.text
    assert len(ann.inventory()) == before


def test_only_what_was_changed_is_written(office: Served, clerk: Browser) -> None:
    key = make(office, Remarks="a\nb  c", Region="north")
    path = f"/desk/Ann/forms/{key}"
    text = clerk.get(path).text
    assert "Region" in text
    assert 'name="field:Region"' not in text  # it was entered for good
    assert 'name="field:KEY"' not in text
    fields = {"field:Remarks": "a\r\nb  c", "field:State": "new", "field:Amount": ""}
    assert "Saved 1 field." in clerk.post(path, do="save", seen=seen(text), **fields).text
    image = office.room.stations.admitted("Ann").show(key)
    assert image.fields["Remarks"] == "a\nb  c"
    assert image.fields["State"] == "new"
    assert len(office.room.journal.trace(key)) == 2
    text = clerk.get(path).text
    assert "Saved 1 field." in clerk.post(path, do="save", seen=seen(text), **{"field:State": ""}).text
    assert office.room.stations.admitted("Ann").show(key).fields["State"] is None


def test_what_someone_else_has_written_meanwhile_is_not_overwritten(office: Served, clerk: Browser) -> None:
    key = make(office)
    path = f"/desk/Ann/forms/{key}"
    text = clerk.get(path).text
    office.room.stations.admitted("Ann").modify(key, {"State": "theirs"})
    found = clerk.post(path, do="save", seen=seen(text), **{"field:State": "mine"})
    assert found.status_code == 409
    assert "Someone has written on this form" in found.text
    assert office.room.stations.admitted("Ann").show(key).fields["State"] == "theirs"
    assert "Saved 1 field." in clerk.post(path, do="save", seen=seen(found.text), **{"field:State": "mine"}).text


def shown(text: str) -> dict[str, str]:
    """What a browser sends back of a page, but for the texts in its blanks."""
    return dict(re.findall(r'type="hidden" name="((?:was:[^"]*)|seen)" value="(\w+)"', text))


def test_a_field_that_only_another_has_written_is_not_written_back(office: Served, clerk: Browser) -> None:
    """It was once: who saved again after the warning wrote the old text of every field."""
    key = make(office, Loss="L0", State="S0")
    path = f"/desk/Ann/forms/{key}"
    text = clerk.get(path).text
    ann = office.room.stations.admitted("Ann")
    ann.modify(key, {"Loss": "L1"})
    mine = {"field:Loss": "L0", "field:State": "S1", "field:Amount": "", "field:Remarks": ""}
    found = clerk.post(path, do="save", **mine, **shown(text))
    assert found.status_code == 409
    assert "L0" not in found.text
    assert "\nL1</textarea>" in found.text
    assert "\nS1</textarea>" in found.text
    assert 'class="now"' not in found.text  # nobody else has written there
    again = clerk.post(path, do="save", **{**mine, "field:Loss": "L1"}, **shown(found.text))
    assert "Saved 1 field." in again.text
    assert {"Loss": "L1", "State": "S1"}.items() <= ann.show(key).fields.items()


def test_what_another_wrote_in_the_same_field_stands_below_ones_own(office: Served, clerk: Browser) -> None:
    key = make(office, State="S0")
    path = f"/desk/Ann/forms/{key}"
    text = clerk.get(path).text
    ann = office.room.stations.admitted("Ann")
    ann.modify(key, {"State": "theirs", "Region": "north"})
    mine = {"field:State": "mine", "field:Region": "south"}
    found = clerk.post(path, do="save", **mine, **shown(text))
    assert found.status_code == 409
    assert "\nmine</textarea>" in found.text
    assert "It says now: <span>theirs</span>" in found.text
    assert re.search(r'data-was="theirs" aria-describedby="[^"]+-now"', found.text)
    assert "Region was entered meanwhile, and is fixed. You wrote: <span>south</span>" in found.text
    assert ann.show(key).fields["State"] == "theirs"


def test_fixed_and_automatic_fields_cannot_be_written_past_the_page(office: Served, clerk: Browser) -> None:
    key = make(office, Region="north")
    path = f"/desk/Ann/forms/{key}"
    for name, value in (("No", "2"), ("Region", "south"), ("From", "Ben"), ("DATE", "1999-01-01"), ("Odd", "x")):
        found = clerk.post(path, do="save", seen=seen(clerk.get(path).text), **{f"field:{name}": value})
        assert found.status_code == 422
    assert office.room.stations.admitted("Ann").show(key).fields["Region"] == "north"
    assert len(office.room.journal.trace(key)) == 1


def test_copies_shipping_and_dossiers(office: Served, clerk: Browser) -> None:
    key = make(office)
    path = f"/desk/Ann/forms/{key}"
    for count, said in ((3, "3 copies"), (1, "1 copy")):
        made = re.search(rf"Made {said}: ([0-9., ]+)\.<", clerk.post(path, do="copy", count=count).text)
        assert made is not None
        assert len(made[1].split(", ")) == count
    for wrong in ("0", "-1", "x", "1000000000", "1e3"):
        refused = clerk.post(path, do="copy", count=wrong)
        assert refused.status_code == 400
        told = EntryInvalid(where="Copies", why=f"a whole number from 1 to {COPIES_MAX} is expected")
        assert str(told) in refused.text
        assert told.advice in refused.text
        field = f'value="{wrong}" required autocomplete="off" min=1 max={COPIES_MAX} aria-invalid="true"'
        assert f'<input id="count" name="count" type="number" {field} aria-describedby="count-error">' in refused.text
        assert f"A whole number from 1 to {COPIES_MAX} is expected.</span>" in refused.text
    assert 'aria-describedby="dossier-error"' in clerk.post(path, do="dossier", dossier=" ").text
    assert "Put into urgent." in clerk.post(path, do="dossier", dossier="urgent").text
    assert "It is in urgent already." in clerk.post(path, do="dossier", dossier="urgent").text
    refused = clerk.post(path, do="ship", to="Bem")
    assert refused.status_code == 404
    assert "There is no station Bem; did you mean Ben?" in refused.text
    assert 'value="Bem" required aria-invalid="true" aria-describedby="to-error"' in refused.text
    assert clerk.post(path, do="ship", to="").status_code == 400
    assert f"Shipped {key} to Ben." in clerk.post(path, do="ship", to="Ben").text
    assert clerk.get(path).status_code == 409  # it has left


def test_a_key_that_is_none_and_one_that_never_was(clerk: Browser) -> None:
    assert clerk.get("/desk/Ann/forms/nonsense").status_code == 400
    assert clerk.get("/desk/Ann/forms/99999.99999").status_code in (404, 409)
    assert clerk.get("/trace/99999.99999").status_code == 404
    assert clerk.get("/desk/Ann/new/NOTHING").status_code == 404
