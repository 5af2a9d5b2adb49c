"""A station's own messages: created, copied, modified, filed, found; on the control node and on a satellite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stations.world import desk, network

import postroom
from postroom.errors import (
    ArgumentInvalid,
    DossierUnknown,
    FieldRefused,
    FormInvalid,
    FunctionFailed,
    FunctionUnknown,
    MessageElsewhere,
    QueueOwned,
    StoreCorrupt,
    TypeUnknown,
)
from postroom.room import Postroom

MEETING = """\
type MEETING ANNOUNCEMENT
| To: ______________  KEY: __________ |
| From: ____________  DATE: _________ |
| Subject: __________________________ |
| Remarks: __________________________ |
| Meeting Date: _____________________ |
| Response: _________________________ |
| Seats: ____  Fee: ______ Time: ____ |
| Guests: ___________________________ |
field To           string required
field From         string automatic signature
field KEY          key    automatic
field DATE         date   automatic
field Time         time   automatic
field Subject      string required
field Remarks      string once
field Meeting Date date   once
field Response     string free
field Seats        int    free
field Fee          decimal free
field Guests       list of string free
index Subject
index Seats
index Guests
"""
TYPE = "MEETING ANNOUNCEMENT"


@pytest.fixture(params=["sqlite-control", "sqlite-north", "postgres-control"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Postroom]:
    """John is on the control node, of either store, or on a satellite."""
    kind, _, node = str(request.param).partition("-")
    nodes = {} if node == "control" else {node: str(tmp_path / "north.db")}
    where = str(request.getfixturevalue(f"{kind}_url"))
    with network(where, tmp_path, nodes, {"John": node, "Simon": "control"}, MEETING) as opened:
        yield opened


def test_creation_fills_what_is_automatic(room: Postroom) -> None:
    john = desk(room, "John")
    key = john.create(TYPE, To="Simon", Subject="office automation")
    fields = john.show(key).fields
    assert (fields["From"], fields["KEY"], fields["Remarks"]) == ("John", key, None)
    assert fields["DATE"] == john.show(key).fields["DATE"] is not None
    assert fields["Time"] is not None
    assert room.journal.locate(key) == "John"
    assert [event.verb for event in room.trace(key)] == ["create"]
    assert room.trace(key)[0].by == "John"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"To": "Simon"}, "field Subject: it is required"),
        ({"To": "Simon", "Subject": ""}, "field Subject: it is required"),
        ({"To": "Simon", "Subject": "x", "KEY": "00009.00001"}, "field KEY: it is automatic"),
        ({"To": "Simon", "Subject": "x", "From": "Fausto"}, "field From: it is automatic"),
        ({"To": "Simon", "Subject": "x", "Seats": "many"}, "field Seats: .*a whole number"),
        ({"To": "Simon", "Subject": {"a": 1}}, "field Subject: .*takes text"),
        ({"To": "Simon", "Subject": "x", "Meeting Date": "Aug. 21"}, "field Meeting Date: .*a date such as"),
        (
            {"To": "Simon", "Subject": "x", "Subjekt": "y"},
            "field Subjekt: there is no such field; did you mean Subject",
        ),
        ({"To": "Simon", "Subject": "a\x00b"}, "field Subject"),
    ],
)
def test_a_violation_names_its_field_and_changes_nothing(room: Postroom, fields: dict[str, str], said: str) -> None:
    john = desk(room, "John")
    with pytest.raises(FieldRefused, match=said):
        john.create(TYPE, fields)
    assert not john.messages()


def test_kinds_of_fields_when_modified(room: Postroom) -> None:
    john = desk(room, "John")
    key = john.create(TYPE, To="Simon", Subject="x")
    for name, value, why in (
        ("To", "Fausto", "cannot be modified"),
        ("DATE", "1981-08-19", "it is automatic"),
        ("KEY", "00009.00001", "it is automatic"),
    ):
        with pytest.raises(FieldRefused, match=why):
            john.modify(key, {name: value})
    john.modify(key, {"To": "Simon", "Remarks": "once"})  # the same is no change
    with pytest.raises(FieldRefused, match="once it is"):
        john.modify(key, Remarks="twice")
    for text in ("yes", "no", ""):
        john.modify(key, Response=text)
    assert john.show(key).fields["Response"] is None
    assert [event.verb for event in room.trace(key)] == ["create", "modify", "modify", "modify", "modify"]
    store = room._parts.network.store(john.node)
    assert len(store.read(lambda tx: tx.messages.editions(int(key.replace(".", ""))))) == 4


def test_copies_are_alike_but_for_their_keys(room: Postroom) -> None:
    john = desk(room, "John")
    key = john.create(TYPE, {"To": "Simon", "Subject": "x", "Guests": "Oscar, Dennis", "Fee": "12.50"})
    copies = john.copy(key, 3)
    every = [john.show(each).fields for each in (key, *copies)]
    assert [each["KEY"] for each in every] == [key, *copies]
    assert len({str({**each, "KEY": None}) for each in every}) == 1
    assert every[0]["Guests"] == ("Oscar", "Dennis")
    assert len(set(copies) | {key}) == 4
    for wrong in (0, 10_001):
        with pytest.raises(ArgumentInvalid, match="copies"):
            john.copy(key, wrong)


def test_a_station_reaches_only_its_own(room: Postroom) -> None:
    john, simon = desk(room, "John"), desk(room, "Simon")
    key = simon.create(TYPE, To="John", Subject="x")
    for attempt in (
        lambda: john.modify(key, Response="mine"),
        lambda: john.copy(key),
        lambda: john.ship(key, "John"),
        lambda: john.show(key),
        lambda: john.add_to_dossier("d", key),
    ):
        with pytest.raises(MessageElsewhere, match="not in the database of John"):
            attempt()
    assert simon.show(key).fields["Response"] is None
    assert room.journal.locate(key) == "Simon"


def test_nobody_else_reaches_a_stations_queues(room: Postroom) -> None:
    simon = desk(room, "Simon")
    simon.ship(simon.create(TYPE, To="x", Subject="x"), "Simon")
    for name in ("station:Simon", "mailbox:Simon"):
        for attempt in (lambda name=name: room.send(name, "x"), lambda name=name: room.receive(name)):
            with pytest.raises(QueueOwned, match="belongs to a station"):
                attempt()


def test_messages_come_by_key_one_after_another(room: Postroom) -> None:
    john = desk(room, "John")
    keys = john.create_many(TYPE, [{"To": "Simon", "Subject": str(n)} for n in range(5)])
    assert [image.key for image in john.messages()] == keys
    assert [image.key for image in john.messages(after=keys[1], limit=2)] == keys[2:4]
    found, after = [], None
    while (image := john.next(after)) is not None:
        found.append(image.key)
        after = image.key
    assert found == keys
    assert john.messages(TYPE)[0].key == keys[0]
    with pytest.raises(TypeUnknown):
        john.messages("MEMO")
    with pytest.raises(ArgumentInvalid):
        john.messages(limit=0)


def test_many_at_once_or_none(room: Postroom) -> None:
    john = desk(room, "John")
    with pytest.raises(FieldRefused):
        john.create_many(TYPE, [{"To": "Simon", "Subject": "x"}, {"To": "Simon"}])
    assert not john.messages()
    assert john.create_many(TYPE, []) == []


def test_dossiers_hold_messages_until_they_leave(room: Postroom) -> None:
    john = desk(room, "John")
    one, two = john.create_many(TYPE, [{"To": "Simon", "Subject": str(n)} for n in range(2)])
    assert john.dossiers() == {}
    assert john.add_to_dossier("missed", one, two) == 2
    assert john.add_to_dossier("missed", one) == 0
    john.add_to_dossier("other", two)
    assert john.dossiers() == {"missed": 2, "other": 1}
    assert [image.key for image in john.dossier("missed")] == [one, two]
    john.ship(two, "Simon")
    assert john.dossiers() == {"missed": 1}
    assert john.remove_from_dossier("missed", one) == 1
    with pytest.raises(DossierUnknown, match="dossier add"):
        john.dossier("missed")
    with pytest.raises(ArgumentInvalid):
        john.add_to_dossier("", one)


@pytest.mark.parametrize(
    ("field", "condition", "found"),
    [
        ("Subject", '"office automation" "distributed database"', [0, 1]),
        ("Subject", "dist*", [1]),
        ("Subject", "*data*", [1]),
        ("Subject", "<> office automation", [1, 2]),
        ("Seats", ">9", [1, 2]),
        ("Seats", "9..10", [0, 1]),
        ("Seats", "<9 >10", [2]),
        ("Seats", "9", [0]),
        ("Fee", ">= 12.5", [0, 2]),
        ("Fee", "12.5", [0]),
        ("Guests", "Oscar", [0, 1]),
        ("Guests", "=O* =S*", [0, 1]),
        ("Guests", "A..Z", [0, 1]),
        ("Seats", "1" + "0" * 400, []),
        ("Seats", "<1" + "0" * 400, [0, 1, 2]),
        ("Meeting Date", "1981-08-01..1981-08-31", [0]),
        ("Remarks", "<> nothing", []),
        ("From", "John", [0, 1, 2]),
        ("Response", "ja", []),
    ],
)
def test_local_queries_by_example(room: Postroom, field: str, condition: str, found: list[int]) -> None:
    john = desk(room, "John")
    keys = john.create_many(
        TYPE,
        [
            {"To": "a", "Subject": "office automation", "Seats": 9, "Fee": "12.50", "Guests": ["Oscar"],
             "Meeting Date": "1981-08-21"},
            {"To": "b", "Subject": "distributed database", "Seats": 10, "Guests": ["Oscar", "Simon"]},
            {"To": "c", "Subject": "mail", "Seats": 100, "Fee": 100, "Meeting Date": "1981-09-01"},
        ],
    )  # fmt: skip
    answer = john.query(TYPE, {field: condition})
    assert [image.key for image in answer] == [keys[n] for n in found]
    assert answer.seq is None
    assert {image.place for image in answer} <= {"John"}
    assert john.count(TYPE, {field: condition}) == len(found)


def test_a_condition_that_does_not_fit_is_refused_with_its_place(room: Postroom) -> None:
    with pytest.raises(FormInvalid, match=r"field Seats, character 2: .*a whole number"):
        desk(room, "John").query(TYPE, Seats=">many")
    with pytest.raises(FormInvalid, match="no field 'Seat'"):
        desk(room, "John").query(TYPE, Seat="1")


def test_a_type_evolves_and_old_messages_stay_readable(room: Postroom, tmp_path: Path) -> None:
    john = desk(room, "John")
    old = john.create(TYPE, To="Simon", Subject="x", Seats=12)
    file = tmp_path / "note.form"
    text = MEETING.replace("Seats        int    free", "Seats string free").replace("index Seats\n", "")
    file.write_text(text.replace("| Guests: ___________________________ |", "| Guests: ____________ Room: _______ |")
                    + "field Room string free\nindex Room\nindex Remarks\n")  # fmt: skip
    room.load(file)
    new = john.create(TYPE, To="Simon", Subject="x", Room="rm 211", Seats="12", Remarks="r")
    assert "Room" not in john.show(old).fields
    assert "Room" in john.show(new).fields
    assert "Room:" not in john.show(old).shown()
    assert [image.key for image in john.query(TYPE, Room="rm*")] == [new]
    assert [image.key for image in john.query(TYPE, Seats="12")] == [old, new]
    assert [image.key for image in john.query(TYPE, Remarks="r")] == [new]
    john.modify(old, Response="yes")
    assert john.show(old).fields["Seats"] == 12
    assert john.show(john.copy(old)[0]).fields["Seats"] == 12


def test_an_index_is_made_for_messages_that_are_there(room: Postroom, tmp_path: Path) -> None:
    john = desk(room, "John")
    keys = john.create_many(TYPE, [{"To": f"p{n % 7}", "Subject": "x"} for n in range(50)])
    shipped = john.ship(keys[:3], "Simon")
    before = [image.key for image in john.query(TYPE, To="p3")]
    file = tmp_path / "note.form"
    file.write_text(MEETING + "index To\n")
    room.load(file)
    assert [image.key for image in john.query(TYPE, To="p3")] == before
    store = room._parts.network.store(john.node)
    indexed_fields = store.read(lambda tx: {each.field: each.ready for each in tx.field_index.of_type(TYPE)})
    assert indexed_fields["To"] == 1
    file.write_text(MEETING)
    room.load(file)
    assert [image.key for image in john.query(TYPE, To="p3")] == before
    assert "To" not in store.read(lambda tx: [each.field for each in tx.field_index.of_type(TYPE)])
    assert all(each.delivered for each in shipped)


def test_functions_of_other_fields(room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = """\
type BILL
| Price: ____ Pieces: ____ Total: ______ |
field Price decimal required
field Pieces int free
field Total decimal automatic total
"""
    monkeypatch.setattr("postroom.stations.forms.functions._registered", {})
    file = tmp_path / "bill.form"
    file.write_text(form)
    with pytest.raises(FunctionUnknown, match=r"bill.form:5:1: no function is registered as total"):
        room.load(file)
    name = f"functions_{tmp_path.name}"
    module = tmp_path / f"{name}.py"
    module.write_text(
        "import postroom\n@postroom.function\ndef total(fields):\n    return fields['Price'] * fields['Pieces']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("POSTROOM_FUNCTIONS", "no_such_module_at_all")
    with pytest.raises(ArgumentInvalid, match="no_such_module_at_all"):
        room.load(file)
    monkeypatch.setenv("POSTROOM_FUNCTIONS", name)
    room.load(file)
    john = desk(room, "John")
    key = john.create("BILL", Price="2.50", Pieces=4)
    assert str(john.show(key).fields["Total"]) == "10.00"
    assert str(john.modify(key, Pieces=6).fields["Total"]) == "15.00"
    with pytest.raises(FunctionFailed, match="field Total: the function total failed: TypeError"):
        john.create("BILL", Price="2.50")
    monkeypatch.setattr("postroom.stations.forms.functions._registered", {})
    with pytest.raises(FunctionFailed, match="not registered"):
        john.create("BILL", Price="2.50", Pieces=1)


def test_a_damaged_message_is_told_and_never_shown(room: Postroom) -> None:
    john = desk(room, "John")
    good, bad = john.create_many(TYPE, [{"To": "Simon", "Subject": "x"}] * 2)
    store = room._parts.network.store(john.node)
    number = int(bad.replace(".", ""))
    store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = '{}' WHERE key = ?", (number,)))
    for answer in (john.query(TYPE), john.messages()):
        assert [image.key for image in answer] == [good]
        assert answer.damaged == (bad,)
    store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = '{' WHERE key = ?", (number,)))
    if john.node == "north":  # PostgreSQL has checksums of its own, and refuses to read what is no JSON
        for answer in (john.query(TYPE, To="Simon"), john.query(TYPE, Subject="x")):
            assert [image.key for image in answer] == [good]
            assert answer.damaged == (bad,)
    assert john.next(good) is None
    assert answer.as_dict()["damaged"] == [bad]
    with pytest.raises(StoreCorrupt, match=bad):
        john.modify(bad, Response="x")


def test_images_are_as_the_issue_wants_them(room: Postroom) -> None:
    john = desk(room, "John")
    key = john.create(TYPE, To="Simon", Subject="x")
    shape = john.query(TYPE).as_dict()
    assert shape["seq"] is None
    (image,) = shape["images"]
    assert set(image) == {"key", "type", "place", "fields"}
    assert (image["key"], image["type"], image["place"]) == (key, TYPE, "John")
    assert isinstance(postroom.Answer.__len__(john.query(TYPE)), int)
    assert john.query(TYPE)[:1][0].key == key


def test_mail_is_got_by_its_keys_all_or_none(room: Postroom) -> None:
    john, simon = room.stations.admitted("John"), room.stations.admitted("Simon")
    keys = simon.create_many(TYPE, [{"To": "John", "Subject": str(number)} for number in range(3)])
    simon.ship(keys, "John")
    with pytest.raises(MessageElsewhere):
        john.get(keys=[keys[1], simon.create(TYPE, {"To": "x", "Subject": "y"})])
    assert [each.key for each in john.mail()] == keys
    assert john.get(keys=[keys[1], keys[1]]) == [keys[1]]
    assert [each.key for each in john.mail()] == [keys[0], keys[2]]
    assert john.show(keys[1]).key == keys[1]
    with pytest.raises(MessageElsewhere):
        john.get(keys=[keys[1]])
    assert john.get(keys=[]) == []


def test_an_inventory_says_who_shipped_and_since_when(room: Postroom) -> None:
    john, simon = room.stations.admitted("John"), room.stations.admitted("Simon")
    keys = simon.create_many(TYPE, [{"To": "John", "Subject": str(number)} for number in range(3)])
    simon.ship(keys, "John")
    mail = john.inventory(mail=True)
    assert [item.image.key for item in mail] == keys[::-1]
    assert {item.sender for item in mail} == {"Simon"}
    assert all(item.image.place == "mailbox:John" for item in mail)
    shipped = [event.time for event in room.journal.trace(keys[0]) if event.verb == "ship"]
    assert mail[-1].since == shipped[-1]
    assert john.inventory() == []
    john.get()
    assert [item.image.place for item in john.inventory(limit=2)] == ["John", "John"]
    assert simon.inventory() == simon.inventory(mail=True) == []
    with pytest.raises(ArgumentInvalid):
        john.inventory(limit=0)


def test_a_query_as_of_a_number_looks_through_what_another_found(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "then.form").write_text(
        "type THEN\n| No: ______ Said: __________ |\nfield No int required\nfield Said string free\n"
    )
    room.load(tmp_path / "then.form")
    jane = room.stations.add("Jane", "secret")
    keys = jane.create_many("THEN", [{"No": number, "Said": "then"} for number in range(1, 5)])
    seq = jane.query("THEN", scope="global", into="kept").seq
    jane.modify(keys[3], Said="now")
    found = jane.query("THEN", {"No": ">2", "Said": "then"}, scope=f"as-of={seq}")
    assert (found.seq, [image.key for image in found]) == (seq, keys[2:])
    assert jane.numbered_count("THEN", {"No": ">2"}, scope=f"as-of={seq}") == (seq, 2)
    jane.query("THEN", into="here")  # a local query has no number
    jane.query("THEN", {"No": "1"}, scope=f"as-of={seq}", into="part")  # nor has a part of what was found
    assert {table.name: table.query for table in jane.tables()} == {"kept": seq, "here": 0, "part": 0}
    assert len(jane.query("THEN", scope=f"as-of={seq}")) == 4
    for scope in ("as-of=", "as-of=0", "as-of=99", "as-of=x"):
        with pytest.raises(ArgumentInvalid, match="no table of what query"):
            jane.query("THEN", scope=scope)


def test_what_was_found_is_saved_as_it_was_found(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "then.form").write_text(
        "type THEN\n| No: ______ Said: __________ |\nfield No int required\nfield Said string free\n"
    )
    room.load(tmp_path / "then.form")
    jane = room.stations.add("Jane", "secret")
    (key,) = jane.create_many("THEN", [{"No": 1, "Said": "then"}])
    answer = jane.query("THEN", scope="global")
    jane.modify(key, Said="now")
    with pytest.raises(ArgumentInvalid, match="letters, digits and _"):
        jane.save_table("no name", "THEN", answer)
    assert jane.tables() == []
    jane.save_table("kept", "THEN", answer)
    kept = jane.table("kept")
    assert (kept.seq, [image.fields["Said"] for image in kept]) == (answer.seq, ["then"])
