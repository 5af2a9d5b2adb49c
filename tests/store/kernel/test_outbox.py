"""Effects on the outside: noted, tried one after another for each destination, done, failed, revived or dropped."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction


def test_of_each_destination_the_oldest_is_due(tx: Transaction) -> None:
    first = tx.outbox.add("command", {"n": 1, "queue": "a"}, "a")
    tx.outbox.add("command", {"n": 2, "queue": "a"}, "a")
    tx.outbox.add("command", {"n": 3, "queue": "b"}, "b")
    assert [effect.payload["n"] for effect in tx.outbox.heads()] == [1, 3]
    assert tx.outbox.next_due() == tx.now
    effect = tx.outbox.find(first)
    assert effect is not None
    tx.outbox.attempt(effect)
    assert tx.outbox.ran_since(0) >= {(tx.now, "a")}
    tx.outbox.failed(effect, {"outcome": "exit 1"}, tx.now + 50)
    later = tx.outbox.find(first)
    assert later is not None
    assert (later.attempts, later.state, later.note, later.due) == (1, "pending", "exit 1", tx.now + 50)
    tx.outbox.failed(later, {"outcome": "exit 2"}, None)
    assert [effect.payload["n"] for effect in tx.outbox.heads()] == [2, 3], "one that has failed holds up no other"
    tx.outbox.revive(later, {"n": 9, "queue": "a"})
    revived = tx.outbox.find(first)
    assert revived is not None
    assert (revived.attempts, revived.state, revived.payload["n"]) == (0, "pending", 9)
    tx.outbox.done(revived, {})
    tx.outbox.drop(tx.outbox.all()[0])
    assert [effect.payload["n"] for effect in tx.outbox.all()] == [3]
    verbs = [event.verb for event in tx.journal.tail(8)]
    assert verbs[-4:] == ["failed", "retry", "done", "drop"]
