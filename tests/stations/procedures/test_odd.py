"""Odd things that must not end the engine, cost a message, or be taken for something else."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from time import process_time

import pytest

import postroom
from postroom.errors import FormInvalid
from postroom.room import Postroom
from postroom.stations.office import read
from postroom.stations.procedures import claiming
from postroom.stations.procedures.catalog import parsed
from postroom.stations.procedures.evaluation import evaluate_here

from .office import about, load, office, run, stored
from .test_interpreter import JOIN

LATER = """\
procedure later at ann
  precondition o : ORDER
  destination d on o copy 0 ship bob after 1 second
"""


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000_000_000

    def __call__(self) -> int:
        return self.seconds * 1_000_000


def damage(room: Postroom, statement: str) -> None:
    room.store.transact("send", lambda tx: tx.session.run(statement))


@postroom.function
def odd_answer(what: str) -> object:
    if what == "huge":
        return 10**5000
    if what == "mute":

        class MuteError(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        raise MuteError
    return {"no": "value"}


def test_the_type_of_errors_is_the_system_s_own(sqlite_url: str, tmp_path: Path) -> None:
    with office(sqlite_url, tmp_path, "") as room:
        file = tmp_path / "own.form"
        file.write_text("type PROCEDURE ERROR\n| Owner: ____ |\nfield Owner string required\n")
        with pytest.raises(FormInvalid, match="type-reserved"):
            room.load(file)


@pytest.mark.parametrize("what", ["properties", "body"])
def test_a_damaged_message_is_passed_over(sqlite_url: str, tmp_path: Path, what: str) -> None:
    both = JOIN + JOIN.replace("procedure join", "procedure again")
    with office(sqlite_url, tmp_path, both) as room:
        ann = room.stations._station("ann")
        ann.create("ORDER", No=1)
        damage(room, f"UPDATE messages SET {what} = substr({what}, 2)")
        run(room)
        ann.create("ORDER", No=2)
        run(room)
        damage(room, f"UPDATE messages SET {what} = substr({what}, 2) WHERE type = 'ORDER' AND {what} LIKE '{{%'")
        ann.create("BILL", No=2)
        late = ann.create("ORDER", No=3)
        ann.create("BILL", No=3)
        run(room)
        assert room.journal.locate(late) == "mailbox:bob", "others go on"


def test_what_is_shipped_later_and_damaged_stays(sqlite_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with office(sqlite_url, tmp_path, LATER) as first:
        first.close()
    with postroom.open(sqlite_url, clock=clock) as room:
        room._parts.interpreter.evaluate = evaluate_here
        ann = room.stations._station("ann")
        key = ann.create("ORDER", No=1)
        run(room)
        damage(room, "UPDATE messages SET body = replace(body, '1', '2') WHERE type = 'ORDER'")
        clock.seconds += 2
        run(room)
        assert room.journal.locate(key) == "ann"
        (told,) = ann.dossier("errors")
        assert (told.fields["Code"], told.fields["Messages"]) == ("PP0004", (key,))


def test_what_is_to_be_shipped_later_goes_though_another_procedure_has_left_it(sqlite_url: str, tmp_path: Path) -> None:
    clock = Clock()
    other = "procedure seen at ann\n  precondition o : ORDER\n  destination d on o copy 0 dossier seen\n"
    with office(sqlite_url, tmp_path, LATER + other) as first:
        first.close()
    with postroom.open(sqlite_url, clock=clock) as room:
        room._parts.interpreter.evaluate = evaluate_here
        key = room.stations._station("ann").create("ORDER", No=1)
        run(room)
        assert about(room, key).handled == ("later", "seen")
        clock.seconds += 2
        run(room)
        assert room.journal.locate(key) == "mailbox:bob"


def test_a_station_that_goes_during_a_step_gets_nothing(sqlite_url: str, tmp_path: Path) -> None:
    text = "procedure p at ann\n  precondition o : ORDER\n  destination d on o copy 0 ship bob\n"
    with office(sqlite_url, tmp_path, text) as room:

        def evaluate(bench: object, sets: object) -> object:
            if "bob" in room.stations.all():
                room.stations.remove("bob")
            return evaluate_here(bench, sets)  # type: ignore[arg-type]

        room._parts.interpreter.evaluate = evaluate  # type: ignore[assignment]
        ann = room.stations._station("ann")
        key = ann.create("ORDER", No=1)
        run(room)
        assert room.journal.locate(key) == "ann"
        assert [each.fields["Code"] for each in ann.dossier("errors")] == ["station-unknown"]


def test_a_chain_that_makes_two_of_one_ends(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "CHAIN_MAX", 30)
    text = """\
procedure double at ann
  precondition o : ORDER
  destination d on o copy 0 ship ann
  destination e on o copy 1 ship ann
"""
    with office(sqlite_url, tmp_path, text) as room:
        room.stations._station("ann").create("ORDER", No=1)
        run(room)
        assert len(room.stations._station("ann").mail()) == 2**5


def test_a_chain_that_is_too_long_is_told_once(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "CHAIN_MAX", 5)
    text = "".join(f"procedure p{number} at ann\n  precondition o : ORDER\n" for number in range(12))
    with office(sqlite_url, tmp_path, text) as room:
        room.stations._station("ann").create("ORDER", No=1)
        run(room)
        assert len(room.stations._station("ann").dossier("errors")) == 1


def test_enabling_offers_everything_again_also_when_no_engine_ran_between(sqlite_url: str, tmp_path: Path) -> None:
    text = "procedure p at ann\n  precondition o : ORDER\n  destination d on o copy 0 ship ?o.Status\n"
    with office(sqlite_url, tmp_path, text) as room:
        key = room.stations._station("ann").create("ORDER", No=1, Status="dan")
        run(room)
        room._parts.network.add_station("dan", "control", None)
        room.stations.disable_procedure("p")
        room.stations.enable_procedure("p")
        run(room)
        assert room.journal.locate(key) == "mailbox:dan"


def test_a_procedure_keeps_its_place_when_it_is_switched_or_written_anew(sqlite_url: str, tmp_path: Path) -> None:
    first = "procedure a at ann\n  precondition o : ORDER\n  destination d on o copy 0 dossier a\n"
    text = first + "procedure b at ann\n  precondition o : ORDER\n  destination d on o copy 0 ship bob\n"
    with office(sqlite_url, tmp_path, text) as room:
        room.stations.disable_procedure("a")
        room.stations.enable_procedure("a")
        load(room, tmp_path, first.replace("dossier a", "dossier anew"))
        assert [each.procedure.name for each in room.stations.procedures()] == ["a", "b"]


@pytest.mark.parametrize("what", ["huge", "mute", "no value"])
def test_an_odd_answer_of_a_function_is_told(sqlite_url: str, tmp_path: Path, what: str) -> None:
    text = "procedure p at ann\n  precondition o : ORDER\n  action a on o\n    Amount: odd_answer(?o.Item)\n"
    with office(sqlite_url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        key = ann.create("ORDER", No=1, Item=what)
        run(room)
        (told,) = ann.dossier("errors")
        assert told.fields["Messages"] == (key,)
        assert "Amount" not in stored(room, key).body


def test_texts_are_read_to_their_end() -> None:
    head = "procedure p at ann\nprecondition o : ORDER\naction a on o\n"
    (procedure,) = read(head + '  Item: 5" x 3\\" wood\n', "f").procedures
    assert procedure.actions[0].lines[0].value.value == '5" x 3\\" wood'  # type: ignore[union-attr]
    (procedure,) = read(head + "  Item: kind_of(0.0000001)\n", "f").procedures
    (again,) = parsed(str(procedure), "f")
    assert again == procedure
    assert again.actions[0].lines[0].value.arguments[0].value == Decimal("0.0000001")  # type: ignore[union-attr]


def test_a_line_is_read_in_a_time_that_grows_with_its_length() -> None:
    began = process_time()
    with pytest.raises(FormInvalid):
        read("procedure p at ann\nprecondition o : ORDER\naction a on o\n  Status: ?o.x" + " " * 5_000 + "!\n", "f")
    assert process_time() - began < 1


def test_many_messages_with_one_value_meet_in_a_time_that_grows_with_their_number(
    sqlite_url: str, tmp_path: Path
) -> None:
    with office(sqlite_url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        ann.create_many("ORDER", [{"No": 1}] * 4_000)
        ann.create_many("BILL", [{"No": 1}] * 4_000)
        compared: list[int] = []
        look = claiming.look

        def noted(*some: object, **more: object) -> object:
            found = look(*some, **more)  # type: ignore[arg-type]
            compared.append(found.memory.tries)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("postroom.stations.procedures.interpreter.look", noted)
            run(room, 10_000)
        assert len(room.stations._station("bob").mail()) == 4_000
        assert sum(compared) < 20_000
