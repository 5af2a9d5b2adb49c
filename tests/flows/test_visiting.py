"""Subscribers that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, DefinitionUnknown
from postroom.flows.graph.by import By
from postroom.flows.presence import LEASE
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction


@pytest.fixture
def trading(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "t.flow").write_text("domain trading\nspace Trades : [issue: string, price: int]\n")
    room.load(tmp_path / "t.flow")
    return room


def test_visitors_of_one_name_have_a_subscription_each(trading: Postroom) -> None:
    visits, ann = trading.flows._visits(), By("ann-1", "here")
    one, other = visits.begin(ann, "Trades", None), visits.begin(ann, "Trades", "[price: p > 5]")
    assert one.client != other.client
    visits.renew()
    assert len(trading.flows.subscriptions()) == 2
    visits.end(one.client, ann)
    visits.end(other.client, ann)
    visits.end(other.client, ann)  # it is gone already
    assert trading.flows.subscriptions() == []


def test_a_named_visitor_is_kept_and_nobody_else_gets_its_name(trading: Postroom) -> None:
    visits = trading.flows._visits()
    mine = visits.begin(By("a", "here"), "Trades", None, "b_c")
    theirs = visits.begin(By("a_b", "here"), "Trades", None, "c")
    assert mine.client != theirs.client
    with pytest.raises(ArgumentInvalid, match="in use"):
        visits.begin(By("a", "here"), "Trades", None, "b_c")
    visits.end(mine.client, By("a", "here"), forever=False)
    assert [each.connected for each in trading.flows.subscriptions() if each.client == mine.client] == [False]
    assert visits.begin(By("a", "here"), "Trades", None, "b_c").client == mine.client


def test_a_visitor_that_is_refused_leaves_nothing(trading: Postroom) -> None:
    visits = trading.flows._visits()
    with pytest.raises(DefinitionUnknown):
        visits.begin(By("ann", "here"), "Nowhere", None)
    held = trading.store.read(lambda tx: [each for each in tx.leases.all() if each.name.startswith(LEASE)])
    assert all(each.released for each in held)


def test_what_a_killed_process_left_is_removed_by_the_next(trading: Postroom, url: str) -> None:
    visits, ann = trading.flows._visits(), By("ann", "here")
    left = visits.begin(ann, "Trades", None)
    name = LEASE + left.client
    gone = "here/999999/1".replace("here", trading.store.read(lambda tx: tx.leases.all())[-1].owner.split("/")[0])

    def taken(tx: Transaction) -> int:
        tx.leases.release(name, 1)
        return tx.leases.acquire(name, gone, 100)

    trading.store.transact("connect", taken)
    with postroom.open(url) as other:
        assert other.flows._visits().tidy(other._parts.by) == [left.client]
        assert other.flows.subscriptions() == []
    visits.renew()  # it learns that it was lost
