"""Transactions: one commit for all that was sent and acknowledged, or nothing of it."""

from __future__ import annotations

import pytest

from postroom.errors import ArgumentInvalid
from postroom.interfaces.stomp import transactions
from postroom.interfaces.stomp.transactions import Transactions

from .conftest import Stomped


def test_sends_and_acknowledgements_of_a_transaction_are_one_commit(stomped: Stomped) -> None:
    stomped.room.send("orders", "17")
    with stomped.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        heard = wire.hear("MESSAGE")
        wire.done("BEGIN", transaction="t")
        wire.done("SEND", "a", destination="/queue/answers", transaction="t")
        wire.done("SEND", '{"b": 1}', destination="/queue/answers", transaction="t", content_type="application/json")
        wire.done("ACK", id=heard.headers["ack"], transaction="t")
        assert stomped.room.count("answers").queues[0].unprocessed == 0
        assert stomped.room.count("orders").queues[0].leased == 1
        wire.done("COMMIT", transaction="t")
    assert [message.body for message in stomped.room.peek("answers")] == ["a", '{"b": 1}']
    moments = {event.time for event in stomped.room.journal.last(3)}
    assert len(moments) == 1, "one commit has one time"
    assert stomped.room.count("orders").queues[0].processed == 1


def test_what_is_aborted_or_left_open_has_not_happened(here: Stomped) -> None:
    here.room.send("orders", "17")
    with here.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        heard = wire.hear("MESSAGE")
        for name in ("aborted", "open"):
            wire.done("BEGIN", transaction=name)
            wire.done("SEND", name, destination="/queue/answers", transaction=name)
            wire.done("ACK", id=heard.headers["ack"], transaction=name)
        wire.done("ABORT", transaction="aborted")
        wire.done("DISCONNECT")
    assert here.room.count("answers").queues[0].unprocessed == 0
    assert here.room.count("orders").queues[0].unprocessed == 1


def test_if_one_of_them_is_refused_nothing_has_happened(stomped: Stomped) -> None:
    stomped.room.send("orders", "17")
    with stomped.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        heard = wire.hear("MESSAGE")
        wire.say("BEGIN", transaction="t")
        wire.say("SEND", "a", destination="/queue/answers", transaction="t")
        wire.say("SEND", "b", destination="/queue/nowhere", transaction="t")
        wire.say("ACK", id=heard.headers["ack"], transaction="t")
        wire.say("COMMIT", transaction="t", receipt="c")
        refused = wire.hear("ERROR")
        assert (refused.headers["code"], refused.headers["receipt-id"]) == ("queue-unknown", "c")
        assert wire.hears_the_end()
    assert stomped.room.count("answers").queues[0].unprocessed == 0
    assert stomped.room.count("orders").queues[0].unprocessed == 1


def test_transactions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "STOMP_TRANSACTIONS_MAX", 2)
    monkeypatch.setattr(transactions, "STOMP_TRANSACTION_FRAMES_MAX", 2)
    monkeypatch.setattr(transactions, "STOMP_TRANSACTION_BYTES_MAX", 10)
    every = Transactions()
    every.begin("a")
    with pytest.raises(ArgumentInvalid, match="begun already"):
        every.begin("a")
    every.begin("b")
    with pytest.raises(ArgumentInvalid, match="at most 2 are open"):
        every.begin("c")
    from postroom.interfaces.stomp.frames import Frame
    from postroom.interfaces.stomp.messages import Destination, posting

    to = Destination.of("/queue/q")
    wanted = posting(Frame("SEND", {}, b"x"), to, "ann")
    with pytest.raises(ArgumentInvalid, match="10 bytes"):
        every.add_send("a", wanted, to, 11)
    every.add_send("a", wanted, to, 5)
    every.add_send("b", wanted, to, 5)
    with pytest.raises(ArgumentInvalid, match="2 frames"):
        every.add_send("b", wanted, to, 0)
    assert every.end("a").sends == [wanted]
    with pytest.raises(ArgumentInvalid, match="has not begun"):
        every.end("a")
