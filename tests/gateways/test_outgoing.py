"""Messages of outgoing gateways: sent once they are committed, in order, or an error message says why not."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import certifi
import pytest
from tests.gateways.conftest import Partner, Program

import postroom
from postroom import faults
from postroom.engine.runner import Runner
from postroom.faults import FaultInjected
from postroom.gateways.http import HttpTransport
from postroom.room import Postroom
from postroom.store.kernel.queues import Queue, Queues
from postroom.store.kernel.transaction import Transaction

OUT = "create queue out kind outgoingGateway mode persistent interface http port partner errorqueue errs\n"
ERRS = "create queue errs kind basic mode persistent\n"


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def test_a_message_is_an_outbox_row_in_the_commit_that_puts_it_there(
    room: Postroom, partner: Partner, program: Program
) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    keys = [room.send("out", f"<n>{number}</n>", format="xml").key for number in range(3)]
    keys += room.send_many("out", ["a", "b"]).keys
    assert [effect.payload["message"] for effect in room.engine.outbox()] == keys
    assert partner.got == []
    room.run_until_idle()
    assert partner.bodies == ["<n>0</n>", "<n>1</n>", "<n>2</n>", "a", "b"]
    assert room.engine.outbox() == []
    assert bodies(room, "out") == []
    assert [event.verb for event in room.trace(keys[0])] == ["put", "sent", "take"]
    numbers = [headers["idempotency-key"] for _, headers, _ in partner.got]
    assert len(set(numbers)) == 5


def test_a_message_that_a_rule_watches_is_sent_too(room: Postroom, partner: Partner, program: Program) -> None:
    """D-9: it was marked processed, and nothing was sent."""
    room.gateways.add("partner", "http", address=partner.address)
    program(
        room,
        OUT + ERRS + "create queue seen kind basic mode persistent\n"
        "create rule look for out if (/n) then do enqueue <seen>{string(/n)}</seen> into seen",
    )
    room.send("out", "<n>1</n>", format="xml")
    room.run_until_idle()
    assert (partner.bodies, bodies(room, "seen")) == (["<n>1</n>"], ["<seen>1</seen>"])


@pytest.mark.parametrize("answers", [True, False])
def test_a_rule_sees_a_message_that_was_sent_before_it_looked(
    room: Postroom, partner: Partner, program: Program, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """The sender made it processed, and no rule had it."""
    room.gateways.add("partner", "http", address=partner.address if answers else "http://127.0.0.1:9/", attempts="1")
    program(
        room,
        OUT + ERRS + "create queue seen kind basic mode persistent\n"
        "create rule look for out if (/n) then do enqueue <seen>{string(/n)}</seen> into seen",
    )
    key = room.send("out", "<n>1</n>", format="xml").key
    work = Runner._work
    monkeypatch.setattr(Runner, "_work", lambda *given: not room.engine.outbox() and work(*given))
    room.run_until_idle()
    assert (partner.bodies, bodies(room, "seen")) == (["<n>1</n>"] * answers, ["<seen>1</seen>"])
    assert [event.verb for event in room.trace(key)] == ["put", "take"]
    assert bodies(room, "out") == []
    assert room.journal.verify().differences == ()


def test_a_processed_message_is_not_swept_before_it_is_sent(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address="http://127.0.0.1:9/", backoff="600")
    program(
        room,
        OUT + ERRS + "create queue seen kind basic mode persistent\n"
        "create rule look for out if (/n) then do enqueue <seen/> into seen",
    )
    key = room.send("out", "<n>1</n>", format="xml").key
    room.receive("out")
    assert room.engine.sweep() == 0
    assert room.show(key).body == "<n>1</n>"
    room.engine.drop_effect(room.engine.outbox()[0].id)
    assert room.engine.sweep() == 1


def test_a_rule_makes_a_message_for_a_partner(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(
        room,
        OUT + ERRS + "create queue orders kind basic mode persistent\n"
        "create rule ask for orders if (/order) then do enqueue <ask>{string(/order)}</ask> into out",
    )
    room.send_many("orders", [f"<order>{number}</order>" for number in range(50)], format="xml")
    room.run_until_idle()
    assert partner.bodies == [f"<ask>{number}</ask>" for number in range(50)], "in the order of the queue"


def test_attempts_have_one_number_and_keep_the_order(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address, backoff="0.01")
    program(room, OUT + ERRS)
    partner.answers += [(503, {}, b"busy"), (503, {}, b"busy")]
    room.send_many("out", ["a", "b", "c"])
    room.run_until_idle()
    assert partner.bodies == ["a", "a", "a", "b", "c"]
    assert len({headers["idempotency-key"] for _, headers, _ in partner.got}) == 3
    attempts = [event.detail or {} for event in room.journal.last(100) if event.verb == "attempt"]
    assert max(each["attempt"] for each in attempts) == 3
    assert bodies(room, "errs") == []


def test_two_queues_to_one_partner_keep_the_order_of_their_messages(
    room: Postroom, partner: Partner, program: Program
) -> None:
    """However they were put there, also if the first one has to be tried again; a queue on hold keeps none waiting."""
    room.gateways.add("partner", "http", address=partner.address, backoff="0.2")
    program(
        room,
        OUT + OUT.replace("queue out", "queue also") + ERRS + "create queue orders kind basic mode persistent\n"
        "create rule ask for orders if (/n) then (do enqueue <c>{string(/n)}</c> into out, "
        "do enqueue <d>{string(/n)}</d> into also, do enqueue <e>{string(/n)}</e> into out)",
    )
    partner.answers += [(503, {}, b"busy")]
    sent = []
    for number in range(12):
        sent.append(f"<a>{number}</a>")
        room.send("out" if number % 3 else "also", sent[-1], format="xml")
    room.run_until_idle()
    assert partner.bodies == [sent[0], *sent]
    room.send_many("orders", [f"<n>{number}</n>" for number in range(3)], format="xml")
    room.run_until_idle()
    assert partner.bodies[13:] == [f"<{name}>{number}</{name}>" for number in range(3) for name in "cde"]
    room.queues.set_password("also", password="p")
    room.queues.disable("also", password="p", output_only=True)
    room.send("also", "held")
    room.send("out", "goes")
    room.run_until_idle()
    assert partner.bodies[-1] == "goes"
    room.queues.enable("also", password="p")
    room.run_until_idle()
    assert partner.bodies[-1] == "held"
    assert room.journal.verify().differences == ()


def test_a_dead_partner_ends_as_the_error_of_the_text(room: Postroom, program: Program) -> None:
    """D-11, D-62 to D-66: by the ladder, with the message that was to be sent."""
    room.gateways.add("partner", "http", address="http://127.0.0.1:9/in", attempts="2", backoff="0.01")
    program(
        room,
        """
        create queue crm kind basic mode persistent
        create queue out kind outgoingGateway mode persistent port partner errorqueue errs
        create queue errs kind basic mode persistent
        create queue crmErrors kind basic mode persistent
        create queue mail kind basic mode persistent
        create rule confirm for crm errorqueue crmErrors if (/order) then do enqueue <c>{/order/id}</c> into out
        create rule deadLink for crmErrors if (/error/disconnectedTransport) then
          do enqueue <letter>{/error/initialMessage//id}</letter> into mail
        """,
    )
    room.send("crm", "<order><id>7</id></order>", format="xml")
    direct = room.send("out", "<c><id>8</id></c>", format="xml").key
    room.run_until_idle()
    assert bodies(room, "mail") == ["<letter><id>7</id></letter>"], "of the rule that made it"
    (error,) = bodies(room, "errs")
    assert re.fullmatch(
        r"<error><class>network</class><code>disconnected</code><description>.*Connection refused.*</description>"
        r"<queue>out</queue><disconnectedTransport>http://127\.0\.0\.1:9</disconnectedTransport>"
        rf'<initialMessage key="{direct}"><c><id>8</id></c></initialMessage></error>',
        error,
    ), "of the queue, for one that no rule made"
    assert room.engine.outbox() == []
    assert bodies(room, "out") == []


def tried(room: Postroom, key: str) -> list[tuple[str, object, object, object]]:
    """What the history of a message says of sending it."""
    told = [(event.verb, event.detail or {}) for event in room.trace(key) if event.verb in ("sent", "not-sent")]
    return [(verb, detail.get("attempt"), detail.get("retry"), detail["outcome"]) for verb, detail in told]


def test_the_history_of_a_message_has_each_failed_attempt_with_its_reason(
    room: Postroom, partner: Partner, program: Program
) -> None:
    """They were in the journal alone, under the number of the effect."""
    room.gateways.add("partner", "http", address=partner.address, attempts="2", backoff="0.01")
    program(room, OUT + ERRS)
    partner.answers += [(503, {}, b"busy"), (503, {}, b"busy"), (503, {}, b"busy"), (202, {}, b""), (422, {}, b"bad")]
    lost, late, refused = (room.send("out", body).key for body in "abc")
    room.run_until_idle()
    at = partner.address.removesuffix("/in")
    busy = f"{at} answered 503: busy"
    assert tried(room, lost) == [("not-sent", 1, True, busy), ("not-sent", 2, False, busy)]
    assert tried(room, late) == [("not-sent", 1, True, busy), ("sent", None, None, "HTTP 202")]
    assert tried(room, refused) == [("not-sent", 1, False, f"{at} answered 422: bad")]
    assert [event.verb for event in room.trace(late)] == ["put", "not-sent", "sent", "take"]


def test_a_message_that_was_processed_before_says_what_came_of_sending_it(
    room: Postroom, partner: Partner, program: Program
) -> None:
    room.gateways.add("partner", "http", address=partner.address, attempts="3", backoff="0.4")
    program(
        room,
        OUT + ERRS + "create queue seen kind basic mode persistent\n"
        "create rule look for out if (/n) then do enqueue <seen>{string(/n)}</seen> into seen",
    )
    partner.answers += [(503, {}, b"busy")]
    key = room.send("out", "<n>1</n>", format="xml").key
    room.receive("out")
    room.run_until_idle()
    assert [verb for verb, *_ in tried(room, key)] == ["not-sent", "sent"]
    assert bodies(room, "out") == []


def test_a_message_that_a_consumer_has_is_left_to_it(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    key = room.send("out", "x").key
    leased = room.receive("out", lease=60).message
    assert leased is not None
    room.run_until_idle()
    assert partner.bodies == ["x"]
    leased.done()
    assert [event.verb for event in room.trace(key)] == ["put", "lease", "take"]


def test_a_message_whose_effect_was_dropped_says_that_it_was_not_sent(
    room: Postroom, partner: Partner, program: Program
) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    key = room.send("out", "x").key
    room.engine.drop_effect(room.engine.outbox()[0].id)
    room.run_until_idle()
    assert partner.got == []
    assert tried(room, key) == [("not-sent", None, False, "dropped from the outbox")]


@pytest.mark.parametrize("answer", [202, 422, 503])
@pytest.mark.parametrize("moved", [False, True])
def test_a_message_that_goes_while_its_attempt_is_recorded_keeps_its_history(
    postgres_url: str,
    partner: Partner,
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    answer: int,
    moved: bool,
) -> None:
    """On SQLite nobody comes in between. Its line was numbered behind one that was no longer the last."""
    with postroom.open(postgres_url) as room, postroom.open(postgres_url) as other:
        room.gateways.add("partner", "http", address=partner.address, attempts="2", backoff="0.01")
        program(room, OUT + ERRS + "create queue aside kind basic mode persistent\n")
        key = room.send("out", "x").key
        partner.answers += [(answer, {}, b"")]
        named = Queues.named

        def late(queues: Queues, name: str) -> Queue | None:
            if name == "out" and partner.got and not gone:
                gone.append(name)
                assert other.consumers.move("out", to="aside") if moved else other.receive("out")
            return named(queues, name)

        gone: list[str] = []
        monkeypatch.setattr(Queues, "named", late)
        room.run_until_idle()
        assert gone
        assert room.journal.verify().differences == ()
        in_order = sorted(room.trace(key), key=lambda event: event.seq)  # commits begin before they have the queue
        assert [event.verb for event in in_order][:2] == ["put", "move" if moved else "take"]


def test_what_a_partner_refuses_is_not_tried_again(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    partner.answers += [(422, {}, b"no such item")]
    room.send_many("out", ["bad", "good"])
    room.run_until_idle()
    assert partner.bodies == ["bad", "good"], "those behind it go on"
    (error,) = bodies(room, "errs")
    assert "answered 422: no such item" in error
    assert "<refusedMessage></refusedMessage>" in error


def test_an_error_queue_may_be_a_gateway(room: Postroom, partner: Partner, program: Program) -> None:
    """D-64."""
    room.gateways.add("dead", "http", address="http://127.0.0.1:9/", attempts="1")
    room.gateways.add("operator", "http", address=partner.address)
    program(
        room,
        "create queue out kind outgoingGateway mode persistent port dead errorqueue operator\n"
        "create queue operator kind outgoingGateway mode persistent",
    )
    room.send("out", "x")
    room.run_until_idle()
    assert [body[:29] for body in partner.bodies] == ["<error><class>network</class>"]


def test_the_reply_of_a_call_is_a_message(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS + "create queue back kind incomingGateway mode persistent port partner errorqueue errs")
    partner.answers += [
        (200, {"content-type": "application/xml"}, b"<offer/>"),
        (200, {"content-type": "application/xml"}, b"<offer>"),
        (204, {}, b""),
    ]
    first, *_ = (room.send("out", f"<ask>{number}</ask>", format="xml").key for number in range(3))
    room.run_until_idle()
    (reply,) = room.queues.info("back")
    assert (reply.body, reply.format, reply.cause) == ("<offer/>", "xml", first)
    assert reply.properties == {
        "connection": first,
        "request": first,
        "sender": f"http://127.0.0.1:{partner.port}",
    }
    (error,) = bodies(room, "errs")
    assert "<class>message</class><code>xml-malformed</code>" in error
    assert "&lt;offer>" in error or "&lt;offer&gt;" in error


def test_a_queue_on_hold_sends_nothing(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    room.queues.set_password("out", password="secret")
    room.queues.disable("out", password="secret", output_only=True)
    room.send("out", "x")
    room.run_until_idle()
    assert partner.got == []
    room.queues.enable("out", password="secret")
    room.run_until_idle()
    assert partner.bodies == ["x"]


def test_messages_from_before_are_sent_when_a_queue_becomes_a_gateway(
    room: Postroom, partner: Partner, program: Program
) -> None:
    program(room, ERRS + "create queue out kind basic mode persistent")
    room.send_many("out", ["a", "b"])
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    room.run_until_idle()
    assert partner.bodies == ["a", "b"]


def test_a_message_that_is_gone_is_not_sent(room: Postroom, partner: Partner, program: Program) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    room.send("out", "x")

    def remove(tx: Transaction) -> None:
        queue = tx.queues.named("out")
        assert queue is not None
        stored = tx.messages.head(queue)
        assert stored is not None
        tx.messages.remove(queue, stored, "withdraw")

    room.store.transact("receive", remove)
    room.run_until_idle()
    assert (partner.got, bodies(room, "errs"), room.engine.outbox()) == ([], [], [])


@pytest.mark.parametrize("moment", ["gateway.ran", "outbox-result.committing"])
def test_an_engine_that_ends_half_way_sends_again_under_the_same_number(
    room: Postroom, partner: Partner, program: Program, moment: str
) -> None:
    room.gateways.add("partner", "http", address=partner.address)
    program(room, OUT + ERRS)
    room.send("out", "x")
    faults.arm(moment, "raise")
    with pytest.raises(FaultInjected):
        room.run_until_idle()
    faults.disarm()
    room.run_until_idle()
    assert len({headers["idempotency-key"] for _, headers, _ in partner.got}) == 1
    assert partner.bodies == ["x", "x"]
    assert room.engine.outbox() == []


@pytest.mark.parametrize("raised", [
    ValueError("hunter2"), OSError(2, "hunter2"), UnicodeError("hunter2"), MemoryError("hunter2"), KeyError("hunter2"),
])  # fmt: skip
def test_whatever_a_transport_raises_is_a_failed_attempt_of_its_message_alone(
    room: Postroom, partner: Partner, program: Program, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    """The engine ended, and every one after it."""
    room.gateways.add("partner", "http", address=partner.address, attempts="2", backoff="0.01")
    room.gateways.add("other", "command", command="true")
    program(
        room,
        OUT + ERRS + "create queue others kind outgoingGateway mode persistent port other errorqueue errs\n"
        "create queue orders kind basic mode persistent\n"
        "create queue seen kind basic mode persistent\n"
        "create rule look for orders if (/n) then do enqueue <seen/> into seen",
    )

    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(HttpTransport, "outgoing", fail)
    room.send("out", "x")
    room.send("others", "y")
    room.send("orders", "<n/>", format="xml")
    room.run_until_idle()
    assert (bodies(room, "seen"), bodies(room, "others"), room.engine.outbox()) == (["<seen/>"], [], [])
    (error,) = bodies(room, "errs")
    assert "<class>network</class><code>disconnected</code>" in error
    assert f"partner: {type(raised).__name__} at test_outgoing.py:" in error
    assert "hunter2" not in error, "what it says may quote what was sent"
    attempts = [event for event in room.journal.last(100) if event.verb == "attempt"]
    assert len(attempts) == 3, "two of them with the transport that fails"


def test_files_that_are_gone_are_failed_attempts(
    room: Postroom, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(Path(ssl.get_default_verify_paths().cafile or certifi.where()).read_bytes())
    monkeypatch.setenv("KEY", "good")
    room.gateways.add("partner", "http", address="https://127.0.0.1:9/", ca=str(ca), attempts="1", secret="env:KEY")
    room.gateways.add(
        "mail", "smtp", address="smtps://127.0.0.1:9", ca=str(ca), attempts="1", sender="a@b.example", to="c@d.example"
    )
    program(room, OUT + ERRS + "create queue mail kind outgoingGateway mode persistent errorqueue errs")
    ca.unlink()
    room.send("out", "x")
    room.send("mail", "y")
    room.run_until_idle()
    errors = bodies(room, "errs")
    assert len(errors) == 2
    assert all(f"ca: {ca} cannot be read: No such file or directory" in error for error in errors)
    assert all("<disconnectedTransport>" in error for error in errors)
    monkeypatch.setenv("KEY", "whsec_%")
    room.send("out", "z")
    room.run_until_idle()
    assert "secret=env:KEY: a key that begins with whsec_" in bodies(room, "errs")[-1]
