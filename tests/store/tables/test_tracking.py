"""Queries over many stores: in one order, and what they meet of messages that move meanwhile."""

from __future__ import annotations

import pytest
from tests.store.places import put, queue

from postroom.errors import QueryExpired, QueryOvertaken
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES, STATIONS

ELSEWHERE = "elsewhere/1/1"


def test_queries_are_opened_in_the_order_of_their_numbers(tx: Transaction) -> None:
    first, second = tx.tracking.number(ELSEWHERE, 60), tx.tracking.number(ELSEWHERE, 60)
    assert second == first + 1 == tx.tracking.latest()
    tx.tracking.check_numbered(first)
    opened = tx.tracking.open(second, STATIONS, ELSEWHERE, 60)
    assert tx.tracking.opened(second, STATIONS) == opened
    with pytest.raises(QueryOvertaken):
        tx.tracking.open(first, STATIONS, ELSEWHERE, 60)
    with pytest.raises(QueryExpired):
        tx.tracking.opened(first, STATIONS)
    assert not tx.tracking.calm()
    tx.tracking.close(first)
    tx.tracking.close(second)
    assert tx.tracking.running() == []


def test_what_left_while_a_query_is_read_stays_behind_as_an_image(tx: Transaction) -> None:
    desk = queue(tx, "desk")
    stored = put(tx, desk, "said", type="NOTE", properties={"a": 1})
    number = tx.tracking.number(ELSEWHERE, 60)
    opened = tx.tracking.open(number, STATIONS, ELSEWHERE, 60)
    gone = tx.messages.let_go(desk, stored, "ship")
    assert tx.tracking.leave(STATIONS, stored, desk.id, gone) == number
    (ghost,) = tx.tracking.ghosts(number, STATIONS, opened)
    assert ghost == stored._replace(position=0, number=0, last=0)
    assert ghost.sound
    tx.tracking.close(number)
    assert tx.tracking.ghosts(number, STATIONS, opened) == []


def test_what_a_query_has_met_is_hidden_from_it_and_shown_where_it_has_been(tx: Transaction) -> None:
    stored = put(tx, queue(tx, "desk"), "said")
    done = tx.tracking.come(STATIONS, stored.key, 5)
    assert tx.tracking.hidden_from(5, STATIONS) == {stored.key}
    assert tx.tracking.hidden_from(6, STATIONS) == set()
    assert tx.tracking.leave(STATIONS, stored, 1, 1) == max(done, 5)
    assert tx.tracking.hidden_from(5, STATIONS) == set()
    tx.tracking.show(stored, "ann", 3, 7, 10)
    (shown,) = tx.tracking.shown(5, 10)
    assert (shown.queue, shown.body, shown.sound) == ("ann", "said", True)
    assert tx.tracking.shown(8, 10) == tx.tracking.shown(3, 10) == []
    tx.tracking.begin_behind(9)
    tx.tracking.exclude()
    assert (tx.tracking.enter(STATIONS), tx.tracking.enter(MAILBOXES)) == (9, 0)
