"""The transport SMTP: a mail for each message. Its Message-ID is the number of the message at every attempt.

Retries are decided for all transports in ``outgoing.py`` and ``engine/dispatch.py``.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from string import Template
from typing import Any

from postroom.gateways.circuits import Circuits
from postroom.gateways.credentials import ascii_line, credential, told
from postroom.gateways.origins import origin_of, pinned
from postroom.gateways.tls import context_of
from postroom.gateways.transport import (
    SENDING_SETTINGS,
    Delivered,
    Letter,
    Setting,
    Undelivered,
    choice,
    names,
    reference,
    truth,
)
from postroom.limits import GATEWAY_SECONDS
from postroom.store.tables.endpoints import IN, OUT, Endpoint


def mail_address(text: str) -> str:
    address = parseaddr(text)[1]
    if address != text or text.count("@") != 1 or not text.isascii() or not all(text.split("@")):
        raise ValueError("a mail address such as orders@partner.example")
    return text


class SmtpTransport:
    name = "smtp"
    settings = (
        Setting("address", "the mail server: smtp://HOST:PORT or smtps://HOST:PORT"),
        Setting("tls", "starttls (required; the default of smtp://) or none", choice("starttls", "none")),
        Setting("private", "whether the server's name may lead into a private network: yes or no", truth),
        Setting("ca", "a file with the certificates that are trusted, instead of the system's"),
        Setting("username", "for the mail server"),
        Setting("password", "where its password is: env:NAME or file:PATH", reference, ascii_line),
        Setting("sender", "who the mail is from", mail_address),
        Setting("to", "who gets it, unless the property recipient says so", mail_address),
        Setting("recipients", "whom the property recipient may name: addresses or @domains, with commas", names),
        Setting("subject", "a template: $key, $queue, $type and properties"),
        Setting("text", "a template for the text, with $body as well; by default the body itself"),
        Setting("recipient", "the address whose mail is taken in", mail_address),
        Setting("senders", "from whom: addresses or @domains, with commas; by default from all", names),
        *SENDING_SETTINGS,
    )

    def __init__(self) -> None:
        self._circuits = Circuits()

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        does = set()
        if "address" in settings:
            if origin_of(settings["address"]).scheme not in ("smtp", "smtps"):
                raise ValueError("an address of this transport begins with smtp or smtps")
            if "sender" not in settings or not ("to" in settings or "recipients" in settings):
                raise ValueError("sender, and to or recipients, are missing")
            does.add(OUT)
        if "recipient" in settings:
            does.add(IN)
        if not does:
            raise ValueError("address=smtp://HOST (to send) or recipient=ADDRESS (to take in) is missing")
        if ("username" in settings) != ("password" in settings) or not settings.get("username", "").isascii():
            raise ValueError("username, in ASCII, and password belong together")
        if "ca" in settings:
            context_of(settings)
        return frozenset(does)

    def outgoing(self, letter: Letter) -> Delivered:
        mail = mail_of(letter)
        settings = letter.endpoint.settings
        host = str(origin_of(settings["address"]))
        wait = self._circuits.wait_seconds(host)
        if wait:
            raise Undelivered(f"{host} does not answer", disconnected=host, tried=False, after_seconds=wait)
        answered = False
        try:
            with self._connected(letter.endpoint) as server:
                answered = True
                server.send_message(mail)
        except smtplib.SMTPRecipientsRefused as error:
            code, reply = next(iter(error.recipients.values()))
            raise Undelivered(f"{host} answered {code} {told(reply, settings)}", final=code >= 500) from None
        except smtplib.SMTPResponseException as error:
            why = f"{host} answered {error.smtp_code} {told(error.smtp_error, settings)}"
            raise Undelivered(why, final=error.smtp_code >= 500) from None
        except (OSError, smtplib.SMTPException) as error:
            raise Undelivered(f"{host}: {_described(error, settings)}", disconnected=host) from None
        finally:
            self._circuits.note(host, answered)
        return Delivered(f"mailed to {mail['To']}")

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def probe(self, endpoint: Endpoint) -> str:
        if "address" not in endpoint.settings:
            return f"mail to {endpoint.settings['recipient']} is taken in"
        host = str(origin_of(endpoint.settings["address"]))
        try:
            with self._connected(endpoint) as server:
                code, reply = server.noop()
        except (OSError, smtplib.SMTPException) as error:
            raise Undelivered(f"{host}: {_described(error, endpoint.settings)}", disconnected=host) from None
        return f"{host} answered {code} {told(reply, endpoint.settings)}"

    def _connected(self, endpoint: Endpoint) -> smtplib.SMTP:
        settings = endpoint.settings
        origin = origin_of(settings["address"])
        try:
            context = context_of(settings)
        except ValueError as error:
            raise Undelivered(str(error), disconnected=str(origin)) from None
        server = _PinnedServer(bool(settings.get("private")), context if origin.scheme == "smtps" else None)
        server.timeout = float(settings.get("seconds", GATEWAY_SECONDS))
        server.connect_to(origin.host, origin.port)
        try:
            if origin.scheme == "smtp" and settings.get("tls", "starttls") == "starttls":
                server.starttls(context=context)
            if "username" in settings:
                server.login(settings["username"], credential(settings, "password", ascii_line))
        except BaseException:
            server.close()
            raise
        return server


def mail_of(letter: Letter) -> EmailMessage:
    """The mail for a message; raises ``Undelivered`` if its recipient is not on the operator's list."""
    settings = letter.endpoint.settings
    values = {name: str(value) for name, value in letter.properties.items()}
    values |= {"key": letter.key, "queue": letter.queue, "type": letter.type or "", "body": letter.body}
    mail = EmailMessage()
    try:
        mail["From"] = settings["sender"]
        mail["To"] = _recipient(settings, letter.properties.get("recipient"))
        mail["Subject"] = Template(settings.get("subject", "$queue $key")).safe_substitute(values)
        mail["Date"] = format_datetime(letter.created)
        mail["Message-ID"] = f"<{letter.number}@{settings['sender'].partition('@')[2]}>"
        if "text" in settings:
            mail.set_content(Template(settings["text"]).safe_substitute(values))
        else:
            mail.set_content(letter.body, subtype={"xml": "xml", "json": "json"}.get(letter.format, "plain"))
    except ValueError as error:  # a header of several lines
        raise Undelivered(f"the mail cannot be written: {error}", final=True) from None
    return mail


def _recipient(settings: Mapping[str, Any], named: object) -> str:
    if named is None:
        if "to" not in settings:
            raise Undelivered("the message has no property recipient, and the gateway no default", final=True)
        return str(settings["to"])
    try:
        address = mail_address(named) if isinstance(named, str) else ""
    except ValueError as error:
        raise Undelivered(f"the property recipient is not {error}", final=True) from None
    if not listed(address, settings.get("recipients", [])):
        raise Undelivered(f"{address!r} is not on the gateway's list of recipients", final=True)
    return address


def listed(address: str, allowed: list[str]) -> bool:
    """Whether an address is on a list of addresses and @domains."""
    lowered = address.lower()
    return any(lowered == entry.lower() or (entry[:1] == "@" and lowered.endswith(entry.lower())) for entry in allowed)


def _described(error: Exception, settings: Mapping[str, Any]) -> str:
    return f"{type(error).__name__}: {told(str(error), settings)}"


class _PinnedServer(smtplib.SMTP):
    """A connection to the checked address; with ``tls`` encrypted from the first byte."""

    def __init__(self, private: bool, tls: ssl.SSLContext | None) -> None:
        self._private = private
        self._tls = tls
        super().__init__()

    def connect_to(self, host: str, port: int) -> None:
        self._host = host  # the name that a certificate must have
        code, reply = self.connect(host, port)
        if code != 220:
            self.close()
            raise smtplib.SMTPConnectError(code, reply)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        address = pinned(host, port, private=self._private)
        connection = socket.create_connection((address, port), timeout)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=host)
