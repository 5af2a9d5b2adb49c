"""What a client says and hears, on the wire."""

from __future__ import annotations

import pytest

from postroom.errors import ClientSlow
from postroom.interfaces.stomp import session as module
from postroom.limits import STOMP_SUBSCRIPTIONS_MAX

from .conftest import Stomped, Wire, eventually


def waiting(stomped: Stomped, queue: str) -> int:
    return stomped.room.count(queue).queues[0].unprocessed


# --- the first frame ---


def test_who_connects_is_told_the_version_and_who_it_is(shared: Stomped) -> None:
    with Wire(shared.port) as wire:
        wire.say("STOMP", accept_version="1.0,1.1,1.2,2.0", host="x", login="boss", passcode=shared.token)
        heard = wire.hear("CONNECTED")
        assert heard.headers["version"] == "1.2"
        assert heard.headers["user-name"] == "boss"
        assert heard.headers["heart-beat"] == "1000,1000"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"accept_version": "1.2"}, "token-refused"),
        ({"accept_version": "1.2", "passcode": "postroom_x_y"}, "token-refused"),
        ({"accept_version": "1.2", "passcode": "TOKEN", "login": "ann"}, "token-refused"),
        ({"accept_version": "1.2", "passcode": "TOKEN", "heart_beat": "soon"}, "request-invalid"),
        ({"accept_version": "2.0", "passcode": "TOKEN"}, "request-invalid"),
        ({"passcode": "TOKEN"}, "request-invalid"),
    ],
)
def test_who_is_refused_is_told_why_and_the_connection_ends(
    shared: Stomped, headers: dict[str, str], code: str
) -> None:
    with Wire(shared.port) as wire:
        wire.say("CONNECT", **{name: value.replace("TOKEN", shared.token) for name, value in headers.items()})
        heard = wire.hear("ERROR")
        assert heard.headers["code"] == code
        assert wire.hears_the_end()


@pytest.mark.parametrize("command", ["SEND", "ACK", "SUBSCRIBE", "COMMIT"])
def test_nothing_comes_before_connect(shared: Stomped, command: str) -> None:
    with Wire(shared.port) as wire:
        wire.say(command, id="1", destination="/queue/orders")
        assert "first frame" in wire.hear("ERROR").headers["message"]
    assert waiting(shared, "orders") == 0


# --- sending ---


def test_a_receipt_is_written_after_the_commit_and_headers_are_properties(stomped: Stomped) -> None:
    with stomped.wire() as wire:
        wire.done("SEND", "ünïcode", destination="/queue/orders", colour="a:b\nc\\d", content_type="text/plain")
        (message,) = stomped.room.peek("orders")
        assert (message.body, dict(message.properties)) == ("ünïcode", {"colour": "a:b\nc\\d"})
        assert stomped.room.trace(message.key)[0].as_dict()["by"] == "boss"
        wire.say("SUBSCRIBE", id="s", destination="/queue/orders")
        heard = wire.hear("MESSAGE")
        assert heard.body == "ünïcode"
        assert heard.headers["colour"] == "a:b\nc\\d"
        assert heard.headers["subscription"] == "s"
        assert heard.headers["destination"] == "/queue/orders"
        assert heard.headers["redelivered"] == "false"
    eventually(lambda: stomped.room.count("orders").queues[0].processed == 1)


def test_sends_keep_their_order_whatever_they_look_like(stomped: Stomped) -> None:
    bodies = [f"{number}" if number % 3 else f'{{"n": {number}}}' for number in range(60)]
    with stomped.wire() as wire:
        for body in bodies[:-1]:
            wire.say("SEND", body, destination="/queue/orders")
        wire.done("SEND", bodies[-1], destination="/queue/orders")
    assert [message.body for message in stomped.room.peek("orders")] == bodies


def test_a_repeated_idempotency_key_makes_no_second_message(here: Stomped) -> None:
    with here.wire() as wire:
        for _ in range(3):
            wire.done("SEND", "once", destination="/queue/orders", idempotency_key="17")
    assert waiting(here, "orders") == 1


def test_levels_of_a_description_are_destinations(here: Stomped, tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "tree.qdl"
    file.write_text('01 INPUT-QUEUE (CLAIMS) PASSWORD IS "C"\n 02 SUB-QUEUE-1 (SOUTH)\n 02 SUB-QUEUE-1 (NORTH)\n99\n')
    here.room.load(file)
    with here.wire() as wire:
        wire.done("SEND", "n", destination="/queue/CLAIMS/NORTH")
        wire.say("SUBSCRIBE", id="1", destination="/queue/CLAIMS")
        assert wire.hear("MESSAGE").body == "n"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"destination": "/queue/nowhere"}, "queue-unknown"),
        ({"destination": "orders"}, "argument-invalid"),
        ({}, "request-invalid"),
        ({"destination": "/topic/orders"}, "definition-unknown"),
        ({"destination": "/queue/orders", "transaction": "none"}, "argument-invalid"),
        ({"destination": "/queue/orders", "content_type": "application/json"}, "json-malformed"),
        ({"destination": "/queue/orders", "message_type": "NONE"}, "type-unknown"),
        ({"destination": "/queue/orders", "cause": "00099.00099"}, "message-unknown"),
        ({"destination": "/queue/orders", "receipt": "x" * 300}, "request-invalid"),
    ],
)
def test_a_refusal_has_code_advice_and_receipt_and_changes_nothing(
    shared: Stomped, frame: dict[str, str], code: str
) -> None:
    with shared.wire() as wire:
        wire.say("SEND", "{", **{"receipt": "17", **frame})
        heard = wire.hear("ERROR")
        assert heard.headers["code"] == code
        assert heard.headers["advice"]
        assert heard.headers["receipt-id"] == frame.get("receipt", "17")
        assert wire.hears_the_end()
    assert waiting(shared, "orders") == 0


# --- receiving ---


def test_what_is_not_acknowledged_comes_again_and_is_marked(stomped: Stomped) -> None:
    for number in range(3):
        stomped.room.send("orders", str(number))
    with stomped.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client-individual")
        heard = [wire.hear("MESSAGE") for _ in range(3)]
        wire.done("ACK", id=heard[1].headers["ack"])
    with stomped.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        again = [wire.hear("MESSAGE") for _ in range(2)]
        assert [each.body for each in again] == ["0", "2"]
        assert {(each.headers["redelivered"], each.headers["attempts"]) for each in again} == {("true", "2")}
        wire.done("ACK", id=again[1].headers["ack"])  # and all before it
    assert stomped.room.count("orders").queues[0].processed == 3
    assert not stomped.room.journal.verify().differences


def test_a_refused_message_comes_again_or_goes_to_the_dead_letters(here: Stomped) -> None:
    here.room.send("orders", "bad")
    with here.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client-individual")
        wire.done("NACK", id=wire.hear("MESSAGE").headers["ack"], reason="not today")
        again = wire.hear("MESSAGE")
        assert again.headers["redelivered"] == "true"
        wire.done("NACK", id=again.headers["ack"], requeue="false", reason="never")
    (dead,) = here.room.peek("orders.dead")
    assert dead.properties["dead.reason"] == "never"


def test_no_more_than_was_asked_for_is_given_out_before_it_is_acknowledged(here: Stomped) -> None:
    for number in range(5):
        here.room.send("orders", str(number))
    with here.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client", prefetch_count="2")
        first = [wire.hear("MESSAGE") for _ in range(2)]
        wire.done("SEND", "x", destination="/queue/answers")  # a round trip: nothing else came
        assert here.room.count("orders").queues[0].leased == 2
        wire.say("ACK", id=first[1].headers["ack"])
        assert [wire.hear("MESSAGE").body for _ in range(2)] == ["2", "3"]


def test_a_lease_of_the_clients_choice_ends_and_its_late_acknowledgement_is_refused(here: Stomped) -> None:
    here.room.send("orders", "slow")
    with here.wire() as slow, here.wire() as other:
        slow.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client", lease="0.2", prefetch_count="1")
        first = slow.hear("MESSAGE")
        other.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        second = other.hear("MESSAGE")
        assert second.headers["redelivered"] == "true"
        slow.say("ACK", id=first.headers["ack"], receipt="late")
        assert slow.hear("ERROR").headers["code"] == "lease-over"
        other.done("ACK", id=second.headers["ack"])


def test_a_client_that_works_long_keeps_what_it_has(here: Stomped) -> None:
    here.room.consumers.set_policy("orders", lease=0.6)
    here.room.send("orders", "long")
    with here.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        heard = wire.hear("MESSAGE")
        before = [each.lease for each in [here.room.consumers.lease(int(heard.headers["ack"]))]]
        first = here.room.consumers.lease(before[0]).until
        eventually(lambda: here.room.consumers.lease(before[0]).until > first)
        wire.done("ACK", id=heard.headers["ack"])


@pytest.mark.parametrize(
    ("command", "headers", "code"),
    [
        ("SUBSCRIBE", {"destination": "/queue/orders"}, "request-invalid"),
        ("SUBSCRIBE", {"id": "1"}, "request-invalid"),
        ("SUBSCRIBE", {"id": "1", "destination": "/queue/none"}, "queue-unknown"),
        ("SUBSCRIBE", {"id": "1", "destination": "/queue/orders", "ack": "perhaps"}, "request-invalid"),
        ("SUBSCRIBE", {"id": "1", "destination": "/queue/orders", "prefetch_count": "0"}, "request-invalid"),
        ("SUBSCRIBE", {"id": "1", "destination": "/queue/orders", "lease": "nan"}, "request-invalid"),
        ("SUBSCRIBE", {"id": "1", "destination": "/queue/orders", "selector": "x"}, "argument-invalid"),
        ("UNSUBSCRIBE", {"id": "1"}, "argument-invalid"),
        ("ACK", {"id": "99"}, "lease-over"),
        ("NACK", {}, "request-invalid"),
        ("COMMIT", {"transaction": "t"}, "argument-invalid"),
        ("CONNECT", {}, "request-invalid"),
    ],
)
def test_what_makes_no_sense_is_refused(shared: Stomped, command: str, headers: dict[str, str], code: str) -> None:
    with shared.wire() as wire:
        wire.say(command, **headers)
        assert wire.hear("ERROR").headers["code"] == code
        assert wire.hears_the_end()


def test_subscriptions_are_bounded(here: Stomped) -> None:
    with here.wire() as wire:
        for number in range(STOMP_SUBSCRIPTIONS_MAX):
            wire.done("SUBSCRIBE", id=str(number), destination="/queue/orders")
        wire.say("SUBSCRIBE", id="more", destination="/queue/orders")
        assert "at most" in wire.hear("ERROR").headers["message"]


def test_a_client_of_version_1_1_acknowledges_by_message(here: Stomped) -> None:
    here.room.send("orders", "x")
    with Wire(here.port) as wire:
        wire.say("CONNECT", accept_version="1.1", host="x", passcode=here.token)
        assert wire.hear("CONNECTED").headers["version"] == "1.1"
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        heard = wire.hear("MESSAGE")
        wire.done("ACK", message_id=heard.headers["message-id"], subscription="1")
    assert here.room.count("orders").queues[0].processed == 1


# --- signs of life, and the end ---


def test_signs_of_life_go_both_ways(here: Stomped) -> None:
    with Wire(here.port) as wire:
        wire.connect(here.token, heart_beat="0,1000")
        assert wire.socket.recv(10).strip(b"\n") == b""  # nothing else is to be said


def test_a_client_that_promised_a_sign_of_life_and_gives_none_is_cut_off(
    here: Stomped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOMP_BEAT_SECONDS", 0.05)
    here.room.send("orders", "x")
    with Wire(here.port) as wire:
        wire.connect(here.token, heart_beat="50,0")
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        assert wire.hear("MESSAGE").body == "x"
        assert wire.hear("ERROR").headers["code"] == ClientSlow.code
    assert waiting(here, "orders") == 1


def test_a_frame_that_is_never_finished_is_cut_off(here: Stomped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_HEAD_SECONDS", 0.2)
    with Wire(here.port) as wire:
        wire.socket.sendall(b"CONN")
        assert wire.hear("ERROR").headers["code"] == ClientSlow.code


def test_disconnect_is_confirmed_and_gives_back_what_was_not_acknowledged(here: Stomped) -> None:
    here.room.send("orders", "x")
    with here.wire() as wire:
        wire.say("SUBSCRIBE", id="1", destination="/queue/orders", ack="client")
        wire.hear("MESSAGE")
        wire.done("DISCONNECT")
        assert waiting(here, "orders") == 1
        assert wire.hears_the_end()


def test_unsubscribe_gives_out_nothing_more(here: Stomped) -> None:
    with here.wire() as wire:
        wire.done("SUBSCRIBE", id="1", destination="/queue/orders")
        wire.done("UNSUBSCRIBE", id="1")
        wire.done("SEND", "x", destination="/queue/orders")
        wire.done("SEND", "y", destination="/queue/answers")
        assert waiting(here, "orders") == 1
