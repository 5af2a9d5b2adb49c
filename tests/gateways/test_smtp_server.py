"""Mail coming in: the recipient leads to a queue, every part is a message, all durable before the mail is taken."""

from __future__ import annotations

import smtplib
import ssl
import subprocess
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here
from tests.gateways.conftest import Program
from tests.programs import installed

import postroom
from postroom.limits import MAIL_PARTS_MAX
from postroom.room import Postroom


@pytest.fixture
def port(room: Postroom, program: Program) -> Iterator[int]:
    room.gateways.add("orders", "smtp", recipient="orders@room.example", senders="@b.example")
    room.gateways.add("open", "smtp", recipient="open@room.example")
    program(
        room,
        "create queue orders kind incomingGateway mode persistent interface smtp port orders errorqueue errs\n"
        "create queue anything kind incomingGateway mode persistent interface smtp port open\n"
        "create queue errs kind basic mode persistent",
    )
    with room.gateways.mail_server("127.0.0.1", 0) as server:
        yield server.port


def waiting(room: Postroom, queue: str) -> int:
    return len(list(room.queues.info(queue)))


def mail(text: str, subtype: str = "plain", to: str = "orders@room.example") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"], made["Message-ID"] = "ann@b.example", to, "an order", "<1@b.example>"
    made.set_content(text, subtype=subtype)
    return made


def send(port: int, made: EmailMessage) -> None:
    with smtplib.SMTP("127.0.0.1", port) as server:
        server.send_message(made)


def test_a_mail_is_a_message_with_its_sender(room: Postroom, port: int) -> None:
    send(port, mail("<order>é</order>", "xml"))
    (message,) = room.queues.info("orders")
    assert (message.body, message.format) == ("<order>é</order>", "xml")
    assert message.properties["sender"] == "ann@b.example"
    assert message.properties["mail-subject"] == "an order"
    send(port, mail("<order>é</order>", "xml"))
    assert waiting(room, "orders") == 1, "the same mail again is the same message"


def test_each_attachment_is_a_message_of_its_own(room: Postroom, port: int) -> None:
    made = mail("see below")
    made.add_alternative("<p>see below</p>", subtype="html")
    made.add_attachment("<order/>", subtype="xml", filename="order.xml")
    made.add_attachment(b"\x00\xff", maintype="image", subtype="png", filename="../x.png")
    send(port, made)
    text, order, image = room.queues.info("orders")
    assert (text.body, text.format) == ("see below\n", "text")
    assert (order.body, order.format, order.properties["mail-filename"]) == ("<order/>", "xml", "order.xml")
    assert (image.body, image.properties["mail-content-type"]) == ("AP8=", "image/png")
    assert len({message.properties["connection"] for message in (text, order, image)}) == 1, "D-26: one conversation"
    send(port, mail("another", to="open@room.example"))
    (other,) = room.queues.info("anything")
    assert other.properties["connection"] != text.properties["connection"]


@pytest.mark.parametrize("step", ["read", "transact"])
def test_a_mail_is_asked_to_come_again_when_the_store_fails(
    room: Postroom, port: int, step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was refused for good, with what went wrong inside of the room."""

    def fail(*_: object) -> None:
        raise RuntimeError("hunter2")

    with monkeypatch.context() as broken:
        broken.setattr(type(room._parts.store), step, fail)
        with smtplib.SMTP("127.0.0.1", port, timeout=20) as server:
            server.ehlo()
            said = [server.docmd(word) for word in ("MAIL FROM:<ann@b.example>", "RCPT TO:<orders@room.example>")]
            if said[-1][0] == 250:
                said.append(server.data(b"Message-ID: <1@b.example>\r\n\r\nx"))
    code, text = said[-1]
    assert (code, b"hunter2" in text) == (451, False)
    assert "hunter2" in caplog.text, "the operator sees it"
    send(port, mail("x"))
    assert waiting(room, "orders") == 1


def test_a_mail_whose_id_is_that_of_another_is_refused_for_good(room: Postroom, port: int) -> None:
    send(port, mail("one"))
    with pytest.raises(smtplib.SMTPDataError) as caught:
        send(port, mail("another"))
    assert caught.value.smtp_code == 554
    assert waiting(room, "orders") == 1


def test_who_may_not_send_and_who_is_not_there_is_refused(room: Postroom, port: int) -> None:
    stranger = mail("x")
    del stranger["From"]
    stranger["From"] = "eve@xb.example"
    for made in (stranger, mail("x", to="nobody@room.example")):
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            send(port, made)
    assert waiting(room, "orders") == 0


def test_a_mail_that_is_no_message_is_refused_and_told(room: Postroom, port: int) -> None:
    with pytest.raises(smtplib.SMTPDataError, match="xml-malformed"):
        send(port, mail("<order>", "xml"))
    (error,) = room.queues.info("errs")
    assert "<code>xml-malformed</code>" in error.body


def test_a_mail_with_too_many_parts_is_refused_and_told(room: Postroom, port: int) -> None:
    """It was refused, and nobody inside heard of it."""
    made = mail("see below")
    for _ in range(MAIL_PARTS_MAX):
        made.add_attachment("x")
    with pytest.raises(smtplib.SMTPDataError, match="arrival-refused"):
        send(port, made)
    (error,) = room.queues.info("errs")
    assert "a mail has 1 to" in error.body


def test_a_document_that_is_attached_says_how_it_is_written(room: Postroom, port: int) -> None:
    made = mail("see below")
    latin = "<?xml version='1.0' encoding='ISO-8859-1'?><order>é</order>".encode("latin-1")
    made.add_attachment(latin, maintype="application", subtype="xml", filename="order.xml")
    send(port, made)
    assert [message.body for message in room.queues.info("orders")][1:] == ["<?xml version='1.0'?><order>é</order>"]


def test_a_mail_to_two_recipients_is_in_both_queues(room: Postroom, port: int) -> None:
    send(port, mail("x", to="orders@room.example, open@room.example"))
    assert (waiting(room, "orders"), waiting(room, "anything")) == (1, 1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    files = str(folder / "room.pem"), str(folder / "room.key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=localhost"]
    more = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", files[0], "-keyout", files[1]]
    subprocess.run([*command, *more], check=True, capture_output=True)
    return files


@pytest.fixture
def protected(room: Postroom, program: Program, certificate: tuple[str, str]) -> Iterator[int]:
    room.gateways.add("orders", "smtp", recipient="orders@room.example")
    program(room, "create queue orders kind incomingGateway mode persistent interface smtp port orders")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    with room.gateways.mail_server("127.0.0.1", 0, context) as server:
        yield server.port


def test_mail_goes_from_room_to_room_by_tls(
    room: Postroom, protected: int, certificate: tuple[str, str], tmp_path: Path
) -> None:
    with pytest.raises(smtplib.SMTPException):
        send(protected, mail("in the clear"))
    with postroom.open(tmp_path / "out.db") as other:
        evaluate_here(other)
        for name, ca in (("post", {"ca": certificate[0]}), ("wary", {})):
            other.gateways.add(
                name, "smtp", address=f"smtp://127.0.0.1:{protected}", sender="a@b.example", to="orders@room.example",
                attempts="1", **ca,
            )  # fmt: skip
        file = tmp_path / "out.demaq"
        file.write_text(
            "".join(f"create queue {name} kind outgoingGateway mode persistent\n" for name in ("post", "wary"))
        )
        other.load(file)
        other.send("post", "sealed")
        other.send("wary", "to whom?")
        other.run_until_idle()
        (error,) = other.queues.info("postroom-errors")
        assert "certificate" in error.body.lower(), "a server that nobody vouches for gets nothing"
    assert [message.body.strip() for message in room.queues.info("orders")] == ["sealed"]


@pytest.mark.slow
def test_swaks_brings_mail_by_tls(room: Postroom, protected: int) -> None:
    """A client of others, from Debian: installed where that may be done."""
    swaks = installed("swaks", "swaks", "libnet-ssleay-perl")
    words = [swaks, "--server", f"127.0.0.1:{protected}", "--from", "a@b.example", "--body", "from swaks", "--to"]
    assert subprocess.run([*words, "orders@room.example", "--tls"], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*words, "orders@room.example"], capture_output=True, check=False).returncode != 0
    assert subprocess.run([*words, "no@room.example", "--tls"], capture_output=True, check=False).returncode != 0
    assert [message.body.strip() for message in room.queues.info("orders")] == ["from swaks"]
