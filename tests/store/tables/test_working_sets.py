"""How far a station was looked at, its candidates, and what was withdrawn from a procedure."""

from __future__ import annotations

from tests.store.places import put, queue

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.working_sets import Candidate


def test_a_desk_with_messages_behind_what_was_looked_at_has_news(tx: Transaction) -> None:
    desk = tx.working_sets.open("ann", "edition")
    assert tx.working_sets.named("ann") == desk
    assert tx.working_sets.all() == [desk]
    station, box = queue(tx, "station ann"), queue(tx, "mail ann")
    assert (tx.working_sets.with_news("station "), tx.working_sets.with_mail("mail ")) == (set(), set())
    stored, mail = put(tx, station), put(tx, box)
    assert (tx.working_sets.with_news("station "), tx.working_sets.with_mail("mail ")) == ({desk.id}, {desk.id})
    assert tx.working_sets.count_news("station ann", 0) == 1
    assert tx.working_sets.advance(desk._replace(turn=1, own=stored.position, mail=mail.position))
    assert (tx.working_sets.with_news("station "), tx.working_sets.with_mail("mail ")) == (set(), set())
    assert not tx.working_sets.advance(desk._replace(edition="other"))
    again = tx.working_sets.begin(desk, "other")
    assert (again.edition, again.turn, again.own) == ("other", 0, 0)
    tx.working_sets.close(again)
    assert tx.working_sets.named("ann") is None


def test_candidates_are_looked_up_by_slot_and_value(tx: Transaction) -> None:
    desk = tx.working_sets.open("ann", "edition")
    some = [put(tx, queue(tx, "station ann"), str(number)) for number in range(4)]
    made = [
        Candidate("slot", value, turn, stored.key, stored.position, 0, 0, ("v", "w"))
        for stored, (value, turn) in zip(some, (("a", 1), ("a", 2), ("b", 2), ("é", 3)), strict=True)
    ]
    tx.working_sets.add(desk.id, made)
    assert tx.working_sets.look_up(desk.id, [("slot", "a", 0), ("slot", "a", 1), ("slot", "z", 0)]) == [
        made[:2],
        made[1:2],
        [],
    ]
    assert tx.working_sets.look_up_all(desk.id, "slot", ["a", "é"], 9) == {"a": made[:2], "é": made[3:]}
    assert tx.working_sets.look_up_all(desk.id, "slot", ["a", "é"], 2) is None
    assert tx.working_sets.candidates(desk.id, (1, made[0].message), 2) == made[1:3]
    tx.messages.remove(queue(tx, "station ann"), some[0], "withdraw")
    assert tx.working_sets.candidates(desk.id, (0, 0), 1) == [made[0]._replace(is_there=False)]
    assert tx.working_sets.tidy(desk) == 1
    assert tx.working_sets.candidates(desk.id, (0, 0), 9) == made[1:]


def test_what_was_withdrawn_stays_so_while_it_stays_as_it_is(tx: Transaction) -> None:
    desk = tx.working_sets.open("ann", "edition")
    assert tx.working_sets.withdrawn(desk.id, [1]) == {}
    tx.working_sets.withdraw(desk.id, "p", [(1, 10), (2, 20)])
    assert tx.working_sets.any_withdrawn(desk.id)
    assert tx.working_sets.withdrawn(desk.id, [1, 2, 3]) == {("p", 1): 10, ("p", 2): 20}
    tx.working_sets.keep_withdrawn(desk.id, [(1, 10, 11), (2, 99, 21)])
    assert tx.working_sets.withdrawn(desk.id, [1, 2]) == {("p", 1): 11, ("p", 2): 20}
