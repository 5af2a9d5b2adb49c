"""Tokens of entities: in one state each, and who is told what comes into a state."""

from __future__ import annotations

import pytest
from tests.store.places import found, put, queue

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables import tokens
from postroom.store.tables.tokens import Come, Token, Watch


def test_an_entity_has_one_token_and_its_state_is_the_queue(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PAGE_ROWS", 2)
    new, done = queue(tx, "NEW"), queue(tx, "DONE")
    keys = {}
    for name in ("a", "b", "c"):
        keys[name] = put(tx, new, name).key
        assert tx.tokens.add("order", name, keys[name])
    assert not tx.tokens.add("order", "a", keys["b"])
    assert tx.tokens.locked("order", "a") == Token("a", keys["a"], "NEW")
    assert tx.tokens.locked("order", "z") is None
    assert (tx.tokens.state("order", "b"), tx.tokens.state("other", "b")) == ("NEW", None)
    moved = tx.messages.move(found(tx, keys["a"]), new, done, detail={"reason": "paid"})
    assert [entity.name for entity in tx.tokens.every("order", "NEW")] == ["b", "c"]
    assert [come.entity for come in tx.tokens.waiting("NEW")] == ["b", "c"]
    came = Come(moved.position, keys["a"], "a", "DONE", "NEW", "paid")
    assert tx.tokens.come("DONE", 0, 10) == list(tx.tokens.waiting("DONE")) == [came]


def test_watches_say_how_far_a_queue_was_told(tx: Transaction) -> None:
    tx.tokens.watch("NEW", "q", 3)
    tx.tokens.watch("NEW", "q", 9)
    (watch,) = tx.tokens.watches()
    assert watch == Watch("NEW", "q", 3)
    tx.tokens.see(watch, 5)
    assert tx.tokens.watches() == [Watch("NEW", "q", 5)]
    tx.tokens.unwatch("NEW", "q")
    assert tx.tokens.watches() == []
