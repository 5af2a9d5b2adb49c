"""Subscriptions: queues that many clients share, queues on hold, and spaces as topics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import postroom
from postroom.room import Postroom

from .conftest import Stomped, eventually, stomping

TRADING = "domain trading\nspace Trades : [issue: string, price: int]\n"


@contextmanager
def engine(url: str) -> Iterator[None]:
    """An engine in a thread, on a connection of its own."""
    with postroom.open(url) as room:
        thread = threading.Thread(target=room.run)
        thread.start()
        try:
            yield
        finally:
            room.stop()
            thread.join(60)
            assert not thread.is_alive()


def trading(room: Postroom, folder: Path) -> None:
    (folder / "trading.flow").write_text(TRADING)
    room.load(folder / "trading.flow")


def test_clients_of_one_queue_share_its_messages(here: Stomped) -> None:
    with here.wire() as one, here.wire() as other:
        for wire in (one, other):
            wire.done("SUBSCRIBE", id="1", destination="/queue/orders", ack="client-individual", prefetch_count="1")
        for number in range(2):
            here.room.send("orders", str(number))
        bodies = [wire.hear("MESSAGE").body for wire in (one, other)]
        assert sorted(bodies) == ["0", "1"]


def test_a_queue_on_hold_gives_out_when_it_is_enabled(here: Stomped) -> None:
    here.room.queues.create("held", password="secret")
    here.room.send("held", "x")
    here.room.queues.disable("held", password="secret")
    with here.wire() as wire:
        wire.done("SUBSCRIBE", id="1", destination="/queue/held")
        wire.done("SEND", "still here", destination="/queue/orders")
        here.room.queues.enable("held", password="secret")
        assert wire.hear("MESSAGE").body == "x"


def test_a_queue_that_is_removed_ends_its_subscription(here: Stomped) -> None:
    here.room.queues.create("short")
    with here.wire() as wire:
        wire.done("SUBSCRIBE", id="1", destination="/queue/short")
        here.room.queues.remove("short")
        assert wire.hear("ERROR").headers["code"] == "queue-unknown"


def test_a_space_is_a_topic_and_a_pattern_its_selector(sqlite_url: str, tmp_path: Path) -> None:
    with postroom.open(sqlite_url) as room, stomping(room) as here, engine(sqlite_url):
        trading(room, tmp_path)
        with here.wire() as all_of_it, here.wire() as high, here.wire() as publisher:
            all_of_it.done("SUBSCRIBE", id="a", destination="/topic/Trades")
            selector = "[price: p > 75]"
            high.done("SUBSCRIBE", id="b", destination="/topic/Trades", selector=selector, ack="client")
            for price in (70, 80):
                publisher.done("SEND", f'{{"issue": "IBM", "price": {price}}}', destination="/topic/Trades")
            first, second = all_of_it.hear("MESSAGE"), all_of_it.hear("MESSAGE")
            assert ["70" in first.body, "80" in second.body] == [True, True]
            heard = high.hear("MESSAGE")
            assert "80" in heard.body
            assert heard.headers["destination"] == "/topic/Trades"
            high.done("ACK", id=heard.headers["ack"])
            assert len(room.flows.subscriptions()) == 2
            high.done("DISCONNECT")
        eventually(lambda: not room.flows.subscriptions())  # they go with their clients


@pytest.mark.parametrize(
    ("headers", "code"),
    [({"selector": "[price: p >"}, "flow-invalid"), ({"selector": "[colour: c > 1]"}, "flow-invalid")],
)
def test_a_selector_that_does_not_fit_is_refused(
    here: Stomped, tmp_path: Path, headers: dict[str, str], code: str
) -> None:
    trading(here.room, tmp_path)
    with here.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/topic/Trades", **headers)
        assert wire.hear("ERROR").headers["code"] == code
    assert not here.room.flows.subscriptions()


def test_an_event_that_does_not_fit_is_refused(here: Stomped, tmp_path: Path) -> None:
    trading(here.room, tmp_path)
    with here.wire() as wire:
        wire.say("SEND", '{"issue": 5}', destination="/topic/Trades", receipt="r")
        assert wire.hear("ERROR").headers["code"] == "event-invalid"


def test_a_durable_subscription_stays_until_it_is_ended(here: Stomped, tmp_path: Path) -> None:
    trading(here.room, tmp_path)
    asked = {"id": "mine", "destination": "/topic/Trades", "durable": "true"}
    with here.wire() as wire, here.wire() as other:
        wire.done("SUBSCRIBE", **asked)
        other.say("SUBSCRIBE", **asked)
        assert "in use" in other.hear("ERROR").headers["message"]
        wire.done("DISCONNECT")
    (left,) = here.room.flows.subscriptions()
    assert (left.durable, left.connected) == (True, False)
    with here.wire() as wire:
        wire.done("SUBSCRIBE", **asked)
        (again,) = here.room.flows.subscriptions()
        assert (again.client, again.connected) == (left.client, True)
        wire.done("UNSUBSCRIBE", id="mine", durable="true")
    assert not here.room.flows.subscriptions()
