"""Rights: those of the HTTP operations, asked of every frame, and at once when they change."""

from __future__ import annotations

import pytest

from .conftest import Stomped, Wire


@pytest.mark.parametrize(
    ("grant", "command", "headers"),
    [
        (("receive", "orders"), "SEND", {"destination": "/queue/orders"}),
        (("send", "orders"), "SUBSCRIBE", {"destination": "/queue/orders", "id": "1"}),
        (("send", "orders"), "SEND", {"destination": "/queue/answers"}),
        (("send", "Trades"), "SEND", {"destination": "/topic/Trades"}),
        (("publish", "Trades"), "SUBSCRIBE", {"destination": "/topic/Trades", "id": "1"}),
    ],
)
def test_what_no_grant_allows_is_refused(
    here: Stomped, grant: tuple[str, str], command: str, headers: dict[str, str]
) -> None:
    token = here.user("ann", grant)
    with here.wire(token) as wire:
        wire.say(command, "x", **headers)
        assert wire.hear("ERROR").headers["code"] == "right-missing"
        assert wire.hears_the_end()


def test_a_right_that_is_taken_back_is_gone_at_once(here: Stomped) -> None:
    token = here.user("ann", ("send", "orders"), ("receive", "answers"))
    with here.wire(token) as wire, here.wire(token) as reader:
        wire.done("SEND", "x", destination="/queue/orders")
        reader.done("SUBSCRIBE", id="1", destination="/queue/answers")
        here.room.access.withdraw("ann", "send", "orders")
        here.room.access.withdraw("ann", "receive", "answers")
        assert reader.hear("ERROR").headers["code"] == "right-missing"  # while it waits for messages
        wire.say("SEND", "y", destination="/queue/orders")
        assert wire.hear("ERROR").headers["code"] == "right-missing"
    assert here.room.count("orders").queues[0].unprocessed == 1


def test_a_token_that_is_revoked_ends_the_connection(here: Stomped) -> None:
    token = here.user("ann", ("send", "orders"), ("receive", "orders"))
    with here.wire(token) as wire:
        wire.done("SUBSCRIBE", id="1", destination="/queue/orders")
        here.room.access.revoke_token(token.split("_")[1])
        assert wire.hear("ERROR").headers["code"] == "token-refused"
    with Wire(here.port) as wire:
        wire.say("CONNECT", accept_version="1.2", host="x", passcode=token)
        assert wire.hear("ERROR").headers["code"] == "token-refused"


def test_a_transaction_has_the_rights_of_its_commit(here: Stomped) -> None:
    token = here.user("ann", ("send", "orders"), ("send", "answers"))
    with here.wire(token) as wire:
        wire.done("BEGIN", transaction="t")
        wire.done("SEND", "x", destination="/queue/orders", transaction="t")
        here.room.access.withdraw("ann", "send", "orders")
        wire.say("COMMIT", transaction="t")
        assert wire.hear("ERROR").headers["code"] == "right-missing"
    assert here.room.count("orders").queues[0].unprocessed == 0
