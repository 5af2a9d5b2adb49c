"""Stations and spheres: a form that is mailed in a sphere is processed by a procedure, withdrawn, or compensated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom import Compensation
from postroom.errors import ArgumentInvalid, FieldRefused, StationUnknown, TypeUnknown
from postroom.room import Postroom
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.station import Station

FORMS = """\
type BOOKING
| Trip: ____________________ |
| Answer: __________________ |
field Trip string required
field Answer string free
type NOTE
| Text: ____________________ |
field Text string free
"""
PROCEDURE = """\
procedure confirm at Hotel
  precondition asked : BOOKING
    Trip: Rome
  action said on asked
    Answer: "confirmed"
  create note : NOTE
    Text: ?asked.Trip
  destination kept on asked copy 0 leave
  destination sent on note copy 0 ship Agency
"""


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    file = tmp_path / "travel.form"
    file.write_text(FORMS)
    with postroom.open(url) as opened:
        opened.load(file)
        opened.stations.add("Hotel", "hotel")
        opened.stations.add("Agency", "agency")
        opened.queues.create("undo")
        file.write_text(PROCEDURE)
        opened.load(file)
        opened._parts.interpreter.evaluate = evaluate_here
        yield opened


@pytest.fixture
def agency(room: Postroom) -> Station:
    return room.station("Agency", "agency")


def mail(room: Postroom, station: str) -> list[str]:
    return [f"{each.type} {each.key}" for each in room.station(station, station.lower()).mail()]


def test_a_procedure_that_handles_a_message_has_processed_it(room: Postroom, agency: Station) -> None:
    with room.sphere("rome") as sphere:
        sent = sphere.mail(agency, "Hotel", "BOOKING", {"Trip": "Rome"}, compensation={"Trip": "not Rome"})
        sphere.require("Hotel", processing_within=60)
        room.run_until_idle()
    shown, note_made = room.spheres.show("rome").sends
    assert str(note_made.maker).startswith("procedure ")
    assert shown.processed is not None
    assert sent.key is not None
    assert room.show(sent.key).properties["sphere"] == "rome"
    (note,) = agency.mail()
    assert room.show(note.key).properties["sphere"] == "rome", "what a procedure makes of it belongs to the sphere"
    assert mail(room, "Hotel") == []


def test_mail_that_nobody_has_fetched_disappears(room: Postroom, agency: Station) -> None:
    with pytest.raises(RuntimeError), room.sphere("oslo") as sphere:
        sphere.mail(agency, "Hotel", "BOOKING", {"Trip": "Oslo"}, compensation={"Trip": "not Oslo"})
        assert len(mail(room, "Hotel")) == 1
        raise RuntimeError
    assert mail(room, "Hotel") == []
    hotel = room.station("Hotel", "hotel")
    assert hotel.get() == []
    assert list(hotel.query("BOOKING")) == []


def test_mail_that_was_fetched_is_compensated_by_mail(room: Postroom, agency: Station) -> None:
    hotel = room.station("Hotel", "hotel")
    with pytest.raises(RuntimeError), room.sphere("oslo") as sphere:
        sent = sphere.mail(agency, "Hotel", "BOOKING", {"Trip": "Oslo"}, compensation={"Trip": "not Oslo"})
        second = sphere.mail(agency, "Hotel", "BOOKING", {"Trip": "Bergen"}, compensation=Compensation("x", "undo"))
        assert hotel.get() == [sent.key, second.key]
        raise RuntimeError
    (key,) = hotel.get()
    assert hotel.show(key).fields["Trip"] == "not Oslo"
    assert [message.body for message in room.queues.info("undo")] == ["x"]
    assert [each.outcome for each in room.spheres.show("oslo").sends] == ["compensated", "compensated"]


def test_mail_on_commit_and_on_abort(room: Postroom, agency: Station) -> None:
    with room.sphere("one") as sphere:
        sphere.mail(agency, "Hotel", "NOTE", {"Text": "yes"}, when="commit")
        sphere.mail(agency, "Hotel", "NOTE", {"Text": "no"}, when="abort")
        assert mail(room, "Hotel") == []
    hotel = room.station("Hotel", "hotel")
    assert [hotel.show(key).fields["Text"] for key in hotel.get()] == ["yes"]


def test_what_cannot_be_mailed_is_refused_and_changes_nothing(room: Postroom, agency: Station) -> None:
    with room.sphere("one") as sphere:
        with pytest.raises(StationUnknown):
            sphere.mail(agency, "Nobody", "NOTE", {"Text": "x"})
        with pytest.raises(TypeUnknown):
            sphere.mail(agency, "Hotel", "NOTHING", {"Text": "x"})
        with pytest.raises(FieldRefused):
            sphere.mail(agency, "Hotel", "BOOKING", {"Answer": "x"})
        with pytest.raises(FieldRefused):
            sphere.mail(agency, "Hotel", "BOOKING", {"Trip": "x"}, compensation={"Answer": "x"})
        with pytest.raises(ArgumentInvalid):
            sphere.mail(agency, "Hotel", "NOTE", {"Text": "x"}, compensation="a text")
    assert mail(room, "Hotel") == []
    assert room.spheres.show("one").sends == ()
