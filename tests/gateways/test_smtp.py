"""Mail going out: to a real server on loopback; one Message-ID for all attempts; only to whom the operator allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from tests.gateways.conftest import Program

from postroom.gateways.smtp import SmtpTransport
from postroom.gateways.smtp_server import free_port
from postroom.gateways.transport import Letter, Undelivered, read_settings
from postroom.room import Postroom
from postroom.store.tables.endpoints import Endpoint


class Mailbox:
    def __init__(self) -> None:
        self.mails: list[tuple[list[str], bytes]] = []
        self.refusals: list[str] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        self.mails.append((envelope.rcpt_tos, envelope.content))
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=free_port("127.0.0.1"))
    controller.start()
    yield box, controller.port
    controller.stop()


def letter(port: int, properties: dict[str, Any] | None = None, **settings: str) -> Letter:
    given = {
        "address": f"smtp://127.0.0.1:{port}", "tls": "none", "sender": "room@a.example", "to": "ann@b.example",
        **settings,
    }  # fmt: skip
    read = read_settings("g", SmtpTransport.settings, given)
    endpoint = Endpoint("g", "smtp", SmtpTransport().check(read), read, "mark")
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    return Letter("m-1", "00001.00001", "mail", "<é/>", "xml", None, moment, properties or {}, endpoint)


def test_a_mail_has_the_number_of_its_message(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    assert SmtpTransport().outgoing(letter(port, {"id": 7}, subject="order $id of $queue")).outcome == (
        "mailed to ann@b.example"
    )
    recipients, content = box.mails[0]
    mail = message_from_bytes(content, policy=policy.default)
    assert recipients == ["ann@b.example"]
    assert (mail["Message-ID"], mail["Subject"]) == ("<m-1@a.example>", "order 7 of mail")
    assert mail["From"] == "room@a.example"
    assert mail.get_content_type() == "text/xml"
    assert mail.get_content() == "<é/>\r\n"


def test_a_recipient_must_be_on_the_list(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    transport = SmtpTransport()
    transport.outgoing(letter(port, {"recipient": "Bob@b.example"}, recipients="@b.example, eve@c.example"))
    transport.outgoing(letter(port, {"recipient": "eve@c.example"}, recipients="@b.example, eve@c.example"))
    assert [to for to, _ in box.mails] == [["Bob@b.example"], ["eve@c.example"]]
    for bad in ("eve@d.example", "a@xb.example", "a@b.example, x@y.example", "a@b.example\nBcc: x@y", 7, ""):
        with pytest.raises(Undelivered) as caught:
            transport.outgoing(letter(port, {"recipient": bad}, recipients="@b.example"))
        assert caught.value.final
    with pytest.raises(Undelivered, match="cannot be written"):
        transport.outgoing(letter(port, {"id": "1\nBcc: x@y.example"}, subject="$id"))
    assert len(box.mails) == 2


@pytest.mark.parametrize(("said", "final"), [("451 later", False), ("554 never", True)])
def test_a_server_says_whether_to_try_again(mailbox: tuple[Mailbox, int], said: str, final: bool) -> None:
    box, port = mailbox
    box.refusals.append(said)
    with pytest.raises(Undelivered, match=said) as caught:
        SmtpTransport().outgoing(letter(port))
    assert (caught.value.final, caught.value.disconnected) == (final, None)


def test_without_tls_nothing_is_sent_unless_the_operator_says_so(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    given = letter(port)
    settings = {name: value for name, value in given.endpoint.settings.items() if name != "tls"}
    with pytest.raises(Undelivered, match="STARTTLS"):
        SmtpTransport().outgoing(replace(given, endpoint=given.endpoint._replace(settings=settings)))
    assert box.mails == []


def test_a_dead_server_is_a_disconnected_transport() -> None:
    with pytest.raises(Undelivered) as caught:
        SmtpTransport().outgoing(letter(9))
    assert caught.value.disconnected == "smtp://127.0.0.1:9"


def test_a_retry_is_no_second_mail(room: Postroom, program: Program, mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    room.gateways.add(
        "post", "smtp", address=f"smtp://127.0.0.1:{port}", tls="none", sender="r@a.example", to="a@b.example",
        backoff="0.01",
    )  # fmt: skip
    program(room, "create queue mail kind outgoingGateway mode persistent interface smtp port post")
    box.refusals.append("451 later")
    key = room.send("mail", "hello").key
    room.run_until_idle()
    (mail,) = [message_from_bytes(content) for _, content in box.mails]
    assert mail["Message-ID"].strip("<>").partition("@")[0].endswith(key)
    assert "220" in room.gateways.test("post") or "250" in room.gateways.test("post")
