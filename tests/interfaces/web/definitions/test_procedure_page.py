"""Procedures are filled in on templates, tried beside them, and loaded by whoever may."""

from __future__ import annotations

from tests.interfaces.http.conftest import Served
from tests.interfaces.web.conftest import Browser, finished, taken_back, way_back

SKETCH = {
    "procedure": "praise",
    "station": "Director",
    "s0.kind": "precondition",
    "s0.name": "claim",
    "s0.of": "CLAIM",
    "s0.field:No": ">= 9000",
    "s1.kind": "action",
    "s1.name": "said",
    "s1.of": "claim",
    "s1.field:State": "well done",
    "s2.kind": "destination",
    "s2.name": "stays",
    "s2.of": "claim",
    "s2.operation": "dossier",
    "s2.where": "praised",
}


def test_a_procedure_is_shown_on_its_templates(office: Served, clerk: Browser) -> None:
    text = clerk.get("/procedures?name=settle").text
    assert text.count('role="group" aria-label="Form CLAIM"') == 2  # collected, and written on
    assert text.count('role="group" aria-label="Form APPROVAL"') == 1
    assert 'name="s1.field:Cover"' in text
    assert "&gt;= ?claim.Amount</textarea>" in text
    assert "approved&#34;</textarea>" in text
    assert clerk.get("/procedures?name=nothing").status_code == 404
    assert "Choose a procedure" in clerk.get("/procedures").text


def test_a_procedure_is_filled_in_checked_tried_loaded_and_switched(office: Served, clerk: Browser) -> None:
    room = office.room
    known = [each.procedure.name for each in room.stations.procedures()]
    begun = clerk.post("/procedures?new=1", do="add", **{"add.kind": "precondition", "add.of": "CLAIM"}).text
    assert 'aria-label="Form CLAIM"' in begun
    wrong = clerk.post("/procedures", do="check", **{**SKETCH, "s0.field:No": "> many", "s1.field:No": "1"})
    assert wrong.status_code == 422
    assert 'id="s0-0-5-error"' in wrong.text  # at its field
    assert 'id="s1-0-5-error"' in wrong.text  # what a claim says of it is fixed
    assert "well done</textarea>" in wrong.text  # nothing of what was written is lost
    assert "It can be loaded." in clerk.post("/procedures", do="check", **SKETCH).text
    director = room.stations.admitted("Director")
    key = director.create("CLAIM", {"No": 9001, "Claimant": "x"})
    tried = finished(clerk, clerk.post("/procedures", do="try", **SKETCH))
    assert "1 set of forms would be complete." in tried
    assert "well done" in tried
    assert director.show(key).fields["State"] is None
    assert [each.procedure.name for each in room.stations.procedures()] == known
    assert "the procedure praise was loaded." in clerk.post("/procedures", do="load", **SKETCH).text
    (kept,) = [each for each in room.stations.procedures() if each.procedure.name == "praise"]
    assert kept.enabled
    disabled = clerk.post("/procedures", do="disable", procedure="praise")
    assert "praise was disabled." in disabled.text
    assert way_back(disabled) == "Enable it again"
    again = clerk.post("/procedures", do="disable", procedure="praise")
    assert "was so already" in again.text
    assert way_back(again) is None
    enabled = taken_back(clerk, disabled)
    assert "praise was enabled." in enabled.text
    assert way_back(enabled) == "Disable it again"
    (kept,) = [each for each in room.stations.procedures() if each.procedure.name == "praise"]
    assert kept.enabled
    gone = clerk.post("/procedures", do="draw", **SKETCH, **{"s2.gone": "yes"}).text
    assert "destination" not in gone.split("Its text")[1]
    room.stations.remove_procedure("praise")


def test_one_procedure_is_written_and_nothing_else(office: Served, clerk: Browser) -> None:
    for odd in (
        {"procedure": "", "station": ""},
        {"procedure": "x at Ann", "station": "Ann"},
        {"procedure": "praise", "station": "Nowhere"},
        {**SKETCH, "s0.of": "NOTHING"},
        {**SKETCH, "s1.of": "nothing"},
        {**SKETCH, "s0.field:Odd": "1"},
        {**SKETCH, "s2.copy": "many"},
    ):
        for action in ("check", "try", "load"):
            assert clerk.post("/procedures", do=action, **odd).status_code in (400, 404, 422), (action, odd)
    assert "praise" not in [each.procedure.name for each in office.room.stations.procedures()]


def test_only_who_may_load_sees_it(office: Served, stranger: Browser) -> None:
    stranger.sign_in("Ann")  # may work there
    for path in ("/procedures", "/templates"):
        assert path not in stranger.get("/desk/Ann").text
        assert stranger.get(path).status_code == 403
        assert stranger.post(path, do="load", **SKETCH).status_code == 403
