"""Procedures at work: who is collected, what is written, where it goes; on both stores."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import postroom
from postroom.errors import DefinitionUnknown, FormInvalid, FunctionUnknown
from postroom.stations.procedures import claiming
from postroom.stations.procedures.evaluation import evaluate_here

from .office import about, load, office, run, stored

JOIN = """\
procedure join at ann
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
  action done on order
    Status: paid
    Amount: ?bill.Amount
  destination d on order copy 0 ship bob
"""


@postroom.function
def total_of(first: object, second: object) -> str:
    return f"{first} and {second}"


@postroom.function
def added(first: Decimal, second: Decimal) -> Decimal:
    return first + second


@postroom.function
def broken_by(value: object) -> str:
    raise ValueError(f"not {value}")


def test_a_set_waits_until_it_is_complete(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        order = ann.create("ORDER", No=7)
        other = ann.create("BILL", No=8, Amount="3.50")
        run(room)
        assert room.journal.locate(order) == "ann"
        assert [(each.procedure, each.station, each.has, each.wants) for each in room.stations.waiting()] == [
            ("join", "ann", {"order": order}, {"bill": "BILL with No = 7"}),
            ("join", "ann", {"bill": other}, {"order": "ORDER with No = 8"}),
        ]
        bill = ann.create("BILL", No=7, Amount="2.50")
        run(room)
        assert room.journal.locate(order) == "mailbox:bob"
        assert room.journal.locate(bill) == "ann"
        assert [each.has for each in room.stations.waiting()] == [{"bill": other}]
        room.stations._station("bob").get()
        assert room.stations._station("bob").show(order).fields["Amount"] == 2.5
        assert about(room, order).sender == "ann"
        assert about(room, bill).handled == ("join",)
        events = room.trace(order)
        assert [(event.verb, event.by) for event in events] == [
            ("create", "ann"),
            ("ship", "procedure join"),
            ("get", "bob"),
        ]
        assert events[1].detail == {
            "from": "ann",
            "to": "bob",
            "procedure": "join",
            "with": [bill],
            "fields": ["Amount", "Status"],
        }


def test_who_came_first_is_taken_first(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        orders = [ann.create("ORDER", No=1) for _ in range(3)]
        run(room)
        ann.modify(orders[0], Team="late")  # what is modified has come anew
        run(room)
        for wanted in (orders[1], orders[2], orders[0]):
            ann.create("BILL", No=1)
            run(room)
            assert room.journal.locate(wanted) == "mailbox:bob"


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_messages_of_one_step_see_what_those_before_them_did(url: str, tmp_path: Path, size: int) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        orders = ann.create_many("ORDER", [{"No": n % 3} for n in range(9)])
        ann.create_many("BILL", [{"No": n % 2} for n in range(5)])
        run(room, size)
        gone = [key for key in orders if room.journal.locate(key) == "mailbox:bob"]
        assert gone == [orders[0], orders[1], orders[3], orders[4], orders[6]]
        assert len(room.stations.waiting()) == 4


def test_one_message_does_not_match_two_sketches_of_a_set(url: str, tmp_path: Path) -> None:
    pair = """\
procedure pair at ann
  precondition first : ORDER
  precondition second : ORDER
    No: ?first.No
  destination d on first copy 0 ship bob
  destination e on second copy 0 ship cid
"""
    with office(url, tmp_path, pair) as room:
        ann = room.stations._station("ann")
        one = ann.create("ORDER", No=1)
        run(room)
        assert room.journal.locate(one) == "ann"
        two = ann.create("ORDER", No=1)
        run(room)
        assert (room.journal.locate(two), room.journal.locate(one)) == ("mailbox:bob", "mailbox:cid")


def test_inequalities_and_relations_inside_of_a_message(url: str, tmp_path: Path) -> None:
    text = """\
procedure rising at ann
  precondition low : ORDER
    Item: <> ?low.Team
  precondition high : BILL
    Amount: > ?low.Amount
    No: <> ?low.No
  destination d on low copy 0 dossier low
  destination e on high copy 0 dossier high
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        ann.create("ORDER", No=1, Amount="5", Item="x", Team="x")
        ann.create("ORDER", No=1, Amount="5")  # a field that is empty agrees with nothing
        order = ann.create("ORDER", No=1, Amount="5", Item="x", Team="y")
        ann.create("BILL", No=1, Amount="9")
        ann.create("BILL", No=2, Amount="5")
        bill = ann.create("BILL", No=2, Amount="5.01")
        run(room)
        assert {name: [each.key for each in ann.dossier(name)] for name in ann.dossiers()} == {
            "low": [order],
            "high": [bill],
        }


def test_an_origin_lets_in_or_keeps_out(url: str, tmp_path: Path) -> None:
    text = """\
procedure mine at ann
  precondition a : ORDER
  origin o on a from me, bob
  destination d on a copy 0 dossier mine
procedure theirs at ann
  precondition a : ORDER
  origin o on a not from me, bob
  destination d on a copy 0 dossier theirs
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        ours = ann.create("ORDER", No=1)
        keys = {}
        for name in ("bob", "cid"):
            station = room.stations._station(name)
            keys[name] = station.create("ORDER", No=2)
            station.ship(keys[name], "ann")
        ann.get(1)  # who has got it before does not matter
        run(room)
        assert sorted(each.key for each in ann.dossier("mine")) == sorted([ours, keys["bob"]])
        assert [each.key for each in ann.dossier("theirs")] == [keys["cid"]]


def test_mail_is_only_looked_at_until_the_set_is_complete(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann, bob = room.stations._station("ann"), room.stations._station("bob")
        order, bill = bob.create("ORDER", No=1), bob.create("BILL", No=1)
        bob.ship(order, "ann")
        run(room)
        assert room.journal.locate(order) == "mailbox:ann"
        assert [each.has for each in room.stations.waiting("join")] == [{"order": order}]
        bob.ship(bill, "ann")
        run(room)
        assert (room.journal.locate(order), room.journal.locate(bill)) == ("mailbox:bob", "ann")
        assert [event.verb for event in room.trace(bill)] == ["create", "ship", "get"]
        assert ann.mail() == []


def test_what_has_gone_meanwhile_is_not_waited_for(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        gone, stays = ann.create("ORDER", No=1), ann.create("ORDER", No=1)
        run(room)
        ann.ship(gone, "cid")
        assert [each.has for each in room.stations.waiting()] == [{"order": stays}]
        ann.create("BILL", No=1)
        run(room)
        assert (room.journal.locate(gone), room.journal.locate(stays)) == ("mailbox:cid", "mailbox:bob")


def test_values_are_the_original_ones_or_the_updated_ones(url: str, tmp_path: Path) -> None:
    text = """\
procedure values at ann
  precondition a : ORDER
  precondition b : BILL
    No: ?a.No
  action on_b on b
    Note: total_of(?a.Status, ?a.Status')
    Amount: ?a.Amount
  action on_a on a
    Status: ?a.Team'
    Team: total_of(?a.Team, 3)
    Amount: 7.50
  create c : BILL
    No: ?a.No
    Note: ?a.Amount'
    Tags: ?b.Tags
  destination d on b copy 1 ship bob
  destination e on c copy 1 ship ?a.Status
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        a = ann.create("ORDER", No=1, Status="cid", Team="old", Amount="1")
        b = ann.create("BILL", No=1, Tags="x, y")
        run(room)
        said = {key: stored(room, key).body for key in (a, b)}
        assert '"Amount":"7.50","Status":"old and 3","Team":"old and 3"' in said[a]
        assert '"Amount":"1","Note":"cid and old and 3","Tags":["x","y"]' in said[b]
        (copy,) = room.stations._station("bob").mail()
        assert stored(room, copy.key).body == said[b].replace(b, copy.key)
        (new,) = room.stations._station("cid").mail()
        assert f'{{"No":1,"Note":"7.50","Tags":["x","y"],"KEY":"{new.key}"}}' == stored(room, new.key).body
        assert stored(room, new.key).cause == stored(room, b).key
        assert sorted(each.key for each in ann.messages()) == sorted([a, b, *_made(room, new.key, copy.key)])


def _made(room: postroom.Postroom, *known: str) -> list[str]:
    """New messages that stayed at ann."""
    keys = [each.key for each in room.stations._station("ann").messages("BILL")]
    return [key for key in keys if about(room, key).handled and stored(room, key).cause and key not in known]


def test_what_cannot_be_done_changes_nothing_and_is_told(url: str, tmp_path: Path) -> None:
    text = """\
procedure broken at ann
  precondition a : ORDER
    Team: broken
  action b on a
    Status: broken_by(?a.No)
procedure lost at ann
  precondition a : ORDER
    Team: lost
  destination d on a copy 0 ship ?a.Item
procedure empty at ann
  precondition a : ORDER
    Team: empty
  destination d on a copy 0 dossier ?a.Item
procedure twice at ann
  precondition a : ORDER
    Team: twice
  action b on a
    Item: new
procedure after at ann
  precondition a : ORDER
    Team: broken lost
    Team: broken "lost" "empty" "twice"
"""
    with office(url, tmp_path, text.replace("    Team: broken lost\n", "")) as room:
        ann = room.stations._station("ann")
        keys = {name: ann.create("ORDER", No=1, Team=name, Item=item) for name, item in
                (("broken", "x"), ("lost", "nobody"), ("empty", None), ("twice", "old"))}  # fmt: skip
        run(room)
        told = {each.fields["Procedure"]: each.fields for each in ann.dossier("errors")}
        assert set(told) == {"broken", "lost", "empty", "twice"}
        assert all(told[name]["Messages"] == (key,) for name, key in keys.items())
        assert told["broken"]["Code"] == "PP0001"
        assert told["broken"]["Description"] == "the function broken_by failed: ValueError: not 1"
        assert told["lost"]["Code"] == "station-unknown"
        assert told["empty"]["Description"] == "dossier ?a.Item: there is no value"
        assert told["twice"]["Code"] == "field-refused"
        for key in keys.values():
            assert room.journal.locate(key) == "ann"
            assert "refused" in [event.verb for event in room.trace(key)]
            assert about(room, key).handled == ("after",), "others have had their turn"
        run(room)
        assert len(ann.dossier("errors")) == 4, "it is not tried again"
        ann.modify(keys["lost"], Status="again")
        run(room)
        assert len(ann.dossier("errors")) == 5, "but when it has changed"


def test_a_message_that_goes_in_circles_is_stopped(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "CHAIN_MAX", 7)
    text = """\
procedure around at ann
  precondition a : ORDER
  destination d on a copy 0 ship ann
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        key = ann.create("ORDER", No=1)
        run(room)
        (told,) = ann.dossier("errors")
        assert told.fields["Code"] == "PP0002"
        assert "7 procedures have handled it one after another" in str(told.fields["Description"])
        assert room.journal.locate(key) == "mailbox:ann"
        assert [event.verb for event in room.trace(key)] == ["create", *["ship"] * 7, "refused"]
        ann.get()
        ann.ship(key, "ann")  # a person has had it in hand: it may go on
        run(room)
        assert len(ann.dossier("errors")) == 2


def test_a_chain_leads_across_stations(url: str, tmp_path: Path) -> None:
    text = "".join(
        f"procedure at_{a} at {a}\n  precondition x : ORDER\n    Status: {a}\n"
        f"  action y on x\n    Status: {b}\n  destination z on x copy 0 ship {b}\n"
        for a, b in (("ann", "bob"), ("bob", "cid"), ("cid", "nobody"))
    ).replace("ship nobody", "dossier end")
    with office(url, tmp_path, text) as room:
        key = room.stations._station("ann").create("ORDER", No=1, Status="ann")
        run(room)
        assert room.journal.locate(key) == "cid"
        assert room.stations._station("cid").dossiers() == {"end": 1}
        assert (about(room, key).depth, about(room, key).handled) == (3, ("at_cid",))


def test_what_is_left_is_offered_to_others_and_not_to_the_same_again(url: str, tmp_path: Path) -> None:
    text = """\
procedure one at ann
  precondition a : ORDER
  action b on a
    Status: one
procedure two at ann
  precondition a : ORDER
    Status: one
  destination d on a copy 0 dossier both
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        key = ann.create("ORDER", No=1)
        run(room)
        assert ann.dossiers() == {"both": 1}
        assert (about(room, key).depth, about(room, key).handled) == (2, ("one", "two"))
        ann.modify(key, Team="new")
        run(room)
        assert (about(room, key).depth, about(room, key).handled) == (2, ("one", "two"))


def test_what_is_shipped_to_oneself_is_collected_again(url: str, tmp_path: Path) -> None:
    text = """\
procedure add at ann
  precondition total : ORDER
  precondition bill : BILL
    No: ?total.No
  action sum on total
    Amount: added(?total.Amount, ?bill.Amount)
  destination back on total copy 0 ship ann
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        total = ann.create("ORDER", No=1, Amount="0")
        ann.create_many("BILL", [{"No": 1, "Amount": "1.50"}] * 150)
        run(room)
        ann.get()
        assert ann.show(total).fields["Amount"] == 225
        assert (about(room, total).depth, ann.dossiers()) == (1, {})


def test_definitions_may_change_while_sets_wait(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        order, bill = ann.create("ORDER", No=1), ann.create("BILL", No=2)
        run(room)
        assert len(room.stations.waiting()) == 2
        load(room, tmp_path, JOIN.replace("No: ?order.No", "No: > ?order.No"))
        run(room)
        assert room.journal.locate(order) == "mailbox:bob"
        assert room.stations.disable_procedure("join") is True
        assert room.stations.disable_procedure("join") is False
        ann.create_many("ORDER", [{"No": 1}, {"No": 1}])
        ann.create("BILL", No=5)
        run(room)
        assert (room.stations.waiting(), len(room.stations._station("bob").mail())) == ([], 1)
        assert [each.as_dict()["state"] for each in room.stations.procedures()] == ["disabled"]
        room.stations.enable_procedure("join")
        run(room)
        assert len(room.stations._station("bob").mail()) == 2
        assert about(room, bill).handled == ("join",), "what it has left is not offered to it again"
        room.stations.remove_procedure("join")
        run(room)
        assert room.stations.procedures() == []
        with pytest.raises(DefinitionUnknown):
            room.stations.waiting("join")


def test_waiting_survives_a_restart(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        order = room.stations._station("ann").create("ORDER", No=1)
        run(room)
        before = room.stations.waiting()
    with postroom.open(url) as again:
        again._parts.interpreter.evaluate = evaluate_here
        assert again.stations.waiting() == before
        again.stations._station("ann").create("BILL", No=1)
        assert again.operations.lag() == 1
        run(again)
        assert again.journal.locate(order) == "mailbox:bob"
        assert again.operations.lag() == 0


def test_what_is_shipped_later_waits_at_the_station_until_someone_moves_it(url: str, tmp_path: Path) -> None:
    text = """\
procedure later at ann
  precondition a : ORDER
  destination d on a copy 0 ship bob after 0 seconds
  destination e on a copy 1 ship bob after 9 days
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        key = ann.create("ORDER", No=1)
        run(room)
        assert room.journal.locate(key) == "mailbox:bob"
        (copy,) = ann.messages()
        assert [event.verb for event in room.trace(key)] == ["create", "leave", "ship"]
        assert room.trace(key)[-1].by == "procedure later"
        assert about(room, key).depth == 6, "who makes two of one counts for six"
        room.store.transact("send", lambda tx: tx.session.run("UPDATE timers SET due = 0"))
        ann.modify(copy.key, Status="mine now")
        room.stations.disable_procedure("later")
        run(room)
        assert room.journal.locate(copy.key) == "ann"


def test_a_search_that_would_never_end_is_told(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.stations.procedures.search.SEARCH_TRIES_MAX", 50)
    text = """\
procedure cross at ann
  precondition a : ORDER
  precondition b : ORDER
    Amount: > ?a.Amount
  precondition c : BILL
    Amount: > ?b.Amount
"""
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        ann.create_many("ORDER", [{"No": n, "Amount": "1"} for n in range(60)])
        ann.create("BILL", No=1, Amount="0.50")
        run(room)
        assert {each.fields["Code"] for each in ann.dossier("errors")} == {"PP0003"}


def test_a_load_that_would_break_procedures_is_refused(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        for text, rule in (
            ("type BILL\n| Number: ___ |\nfield Number int required\n", "sketch-fields"),
            (JOIN.replace("at ann", "at bob"), "procedure-station"),
            (JOIN.replace("Status: paid", "KEY: 00001.00001"), "field-fixed"),
        ):
            file = tmp_path / "other.form"
            file.write_text(text)
            before = room.definitions.catalog()
            for act in (room.load, room.definitions.check):
                with pytest.raises(FormInvalid, match=rule):
                    act(file)
            assert room.definitions.catalog() == before
        file.write_text(JOIN.replace("Status: paid", "Status: nobody_knows(1)"))
        with pytest.raises(FunctionUnknown, match="nobody_knows"):
            room.load(file)


def test_a_procedure_explains_itself(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        told = room.definitions.explain_procedure("join")
        assert told.joins == ("bill.No = order.No",)
        assert told.searches == ("when order comes: bill by No", "when bill comes: order by No")
        assert told.order == ('?order.Status\' is "paid"', "?order.Amount' is ?bill.Amount")
        with pytest.raises(DefinitionUnknown, match="did you mean join"):
            room.definitions.explain_procedure("joni")


def test_a_dry_run_tells_what_would_happen_and_changes_nothing(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, "") as room:
        ann = room.stations._station("ann")
        order, bill = ann.create("ORDER", No=1), ann.create("BILL", No=1, Amount="3")
        ann.create("ORDER", No=2)
        file = tmp_path / "proposed.form"
        file.write_text(JOIN)
        journal = room.journal.last(1)
        (tried,) = room.definitions.try_out(file)
        assert (tried.key, tried.queue) == (bill, "ann")
        assert [(each["action"], each["queue"], each["acts_on"]) for each in tried.as_dict()["actions"]] == [
            ("ship", "bob", order),
            ("leave", "ann", bill),
        ]
        assert room.journal.last(1) == journal
        assert room.stations.procedures() == []


def test_candidates_of_messages_that_have_gone_are_forgotten_when_the_engine_tidies(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        keys = ann.create_many("ORDER", [{"No": n} for n in range(5)])
        run(room)
        ann.ship(keys[:3], "cid")
        kept = room.store.read(lambda tx: tx.working_sets.all()[0])
        assert len(room.store.read(lambda tx: tx.working_sets.candidates(kept.id, (0, 0), 100))) == 5
        room.engine.sweep()
        assert len(room.store.read(lambda tx: tx.working_sets.candidates(kept.id, (0, 0), 100))) == 2
        assert len(room.stations.waiting()) == 2


def test_a_slot_with_more_candidates_than_a_page_is_searched_to_its_end(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN.replace("No: ?order.No", "Amount: < ?order.Amount")) as room:
        ann = room.stations._station("ann")
        orders = ann.create_many("ORDER", [{"No": n, "Amount": str(n)} for n in range(450)])
        run(room)
        ann.ship(orders[100:420], "cid")  # most of a page is stale
        ann.create("BILL", No=1, Amount="448")
        run(room)
        assert room.journal.locate(orders[449]) == "mailbox:bob"


@pytest.mark.parametrize("size", [1, 100])
def test_what_was_refused_is_no_partner_any_more(url: str, tmp_path: Path, size: int) -> None:
    text = JOIN.replace("Status: paid", "Status: broken_by(?order.No)")
    with office(url, tmp_path, text) as room:
        ann = room.stations._station("ann")
        ann.create("ORDER", No=1)
        ann.create("BILL", No=1)
        run(room, size)
        assert (len(ann.dossier("errors")), room.stations.waiting()) == (1, [])
        bill = ann.create("BILL", No=1)
        run(room, size)
        assert [each.has for each in room.stations.waiting()] == [{"bill": bill}]
        assert len(ann.dossier("errors")) == 1
