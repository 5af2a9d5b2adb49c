"""Receives mail: the recipient's address determines the endpoint, and each part of a mail is a message.

The text of a mail is one message, each attachment another, all in one commit before the mail is acknowledged.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import socket
from collections.abc import Mapping, Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from postroom.errors import ArgumentInvalid, ArrivalRefused, BodyError, PostroomError, ServerFailed
from postroom.gateways.incoming import Entered, Incoming
from postroom.gateways.smtp import listed
from postroom.gateways.transport import Arrival
from postroom.limits import BODY_BYTES_MAX, MAIL_PARTS_MAX, MAIL_RECIPIENTS_MAX
from postroom.model.message import Value
from postroom.store.kernel.base import Store
from postroom.store.tables.endpoints import IN, Endpoint

_TEXTS = ("text/plain", "text/html")
log = logging.getLogger("postroom.gateways")


class MailReceived:
    """The handler that aiosmtpd calls at each step of a mail."""

    def __init__(self, store: Store, incoming: Incoming) -> None:
        self._store = store
        self._incoming = incoming

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Sequence[str]
    ) -> str:
        endpoint = (await asyncio.to_thread(self._endpoints)).get(address.lower())
        if endpoint is None:
            return "550 no such recipient here"
        allowed = endpoint.settings.get("senders")
        if allowed is not None and not listed(envelope.mail_from or "", allowed):
            return "550 this recipient does not take mail from you"
        if len(envelope.rcpt_tos) >= MAIL_RECIPIENTS_MAX:
            return "452 too many recipients"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        try:
            endpoints = await asyncio.to_thread(self._endpoints)
            names = [endpoints[rcpt_to.lower()].name for rcpt_to in envelope.rcpt_tos if rcpt_to.lower() in endpoints]
            arrivals = _arrivals(content, envelope.mail_from or "", names)
            outcomes = await asyncio.to_thread(self._incoming.accept_many, arrivals)
        except PostroomError as error:
            return f"451 {error.code}: try again later"
        refused = [outcome for outcome in outcomes if isinstance(outcome, PostroomError)]
        if refused:  # what could be taken in is there, and the rest is in an error message
            status = 554 if isinstance(refused[0], (BodyError, ArrivalRefused, ArgumentInvalid)) else 451
            return f"{status} {refused[0].code}"
        return f"250 taken in as {' '.join(outcome.key for outcome in outcomes if isinstance(outcome, Entered))}"

    async def handle_exception(self, error: Exception) -> str:
        """Log an unexpected error for the operator and answer that the sender may retry; aiosmtpd would refuse the mail
        and show the error."""
        incident = secrets.token_hex(4)
        log.error("incident %s in a mail", incident, exc_info=error)
        return f"451 {ServerFailed.code}: try again later; incident {incident}"

    def _endpoints(self) -> dict[str, Endpoint]:
        every = self._store.read(lambda tx: tx.endpoints.all())
        return {
            endpoint.settings["recipient"].lower(): endpoint
            for endpoint in every.values()
            if endpoint.transport == "smtp" and IN in endpoint.does
        }


def _arrivals(content: bytes, sender: str, endpoints: Sequence[str]) -> list[Arrival]:
    """The messages of a mail, or one error message."""
    try:
        return arrivals_of(content, sender, endpoints)
    except ValueError as error:
        flaws = [ArrivalRefused(gateway=endpoint, why=str(error)) for endpoint in endpoints]
        return [Arrival(flaw.facts["gateway"], content, "text/plain", sender, flaw=flaw) for flaw in flaws]


def arrivals_of(content: bytes, sender: str, endpoints: Sequence[str]) -> list[Arrival]:
    """The messages of a mail: its text, then its attachments, for each endpoint; raises ``ValueError`` if there are
    none.

    They share a connection number, so a slice by it has the whole mail.
    """
    mail = message_from_bytes(content, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    about: dict[str, Value] = {
        f"mail-{name.lower()}": str(mail[name])[:1000] for name in ("Subject", "From", "Message-ID") if mail[name]
    }
    parts = [part for part in mail.walk() if not part.is_multipart()]
    if not parts or len(parts) > MAIL_PARTS_MAX:
        raise ValueError(f"a mail has 1 to {MAIL_PARTS_MAX} parts")
    text = mail.get_body(preferencelist=("plain", "html")) if mail.is_multipart() else mail
    parts = [part for part in parts if part is text or not _is_other_text(part, mail)]
    parts.sort(key=lambda part: part is not text)
    known, connection = about.get("mail-message-id"), secrets.token_hex(16)
    return [
        Arrival(
            endpoint,
            *_body(part),
            sender,
            {**about, **_facts(part, at)},
            f"{known} {at}" if known else None,
            connection=connection,
        )
        for endpoint in endpoints
        for at, part in enumerate(parts)
    ]


def _is_other_text(part: Any, mail: EmailMessage) -> bool:
    """Whether a part is an alternative form of the text."""
    return mail.is_multipart() and part.get_content_type() in _TEXTS and not part.is_attachment()


def _body(part: Any) -> tuple[bytes, str]:
    raw = part.get_payload(decode=True) or b""
    kind = part.get_content_type()
    if part.get_content_maintype() == "text" or kind.endswith(("xml", "json")):
        charset = part.get_content_charset()
        if charset is None and kind.endswith("xml"):  # it says itself how it is written
            return raw, kind
        charset = charset or "utf-8"
        try:
            text = raw.decode(charset).replace("\r\n", "\n")
        except (LookupError, UnicodeDecodeError):
            return raw, kind
        return (text.rstrip("\n") if kind != "text/plain" else text).encode(), f"{kind}; charset=utf-8"
    return base64.b64encode(raw), "text/plain"


def _facts(part: Any, at: int) -> Mapping[str, Value]:
    facts: dict[str, Value] = {"mail-part": at, "mail-content-type": part.get_content_type()}
    if part.get_filename():
        facts["mail-filename"] = str(part.get_filename())[:1000]
    return facts


class MailServer:
    """A mail server in a thread, during the ``with`` block."""

    def __init__(self, store: Store, incoming: Incoming, host: str, port: int, tls: Any = None) -> None:
        self._controller = Controller(
            MailReceived(store, incoming),
            hostname=host,
            port=port or free_port(host),
            data_size_limit=2 * BODY_BYTES_MAX,
            tls_context=tls,
            require_starttls=tls is not None,
            ident="postroom",
        )

    def __enter__(self) -> MailServer:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    @property
    def port(self) -> int:
        return int(self._controller.port)


def free_port(host: str) -> int:
    """A free port: aiosmtpd has to know the number before it starts."""
    with socket.create_server((host, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
