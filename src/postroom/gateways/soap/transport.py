"""The transport SOAP 1.1 and 1.2: a message in an envelope, sent to the operation that it is an input of.

It uses the HTTP transport with all its limits. Messages and replies that the interface does not have are refused; after
a fault there is no retry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from postroom.errors import SchemaInvalid
from postroom.gateways.credentials import line
from postroom.gateways.http import LATER, HttpTransport
from postroom.gateways.soap import security
from postroom.gateways.soap.terms import Terms, terms_of
from postroom.gateways.tls import check_files
from postroom.gateways.transport import Delivered, Letter, Reply, Setting, Undelivered, reference
from postroom.model.encodings import charset_of
from postroom.model.soap import MEDIA_TYPES, Envelope, EnvelopeInvalid, Fault, addressed, read_envelope, written
from postroom.model.wsdl import Operation
from postroom.model.xml import is_harmless
from postroom.store.tables.endpoints import Endpoint

_OF_HTTP = (
    "address origins private ca certificate key token username password path in-token headers wait attempts backoff "
    "seconds"
).split()


class Answered(NamedTuple):
    """The response: an envelope, or nothing."""

    status: int
    envelope: Envelope | None
    sender: str
    retry_after: float


class SoapTransport:
    name = "soap"
    settings = (
        *(setting for setting in HttpTransport.settings if setting.name in _OF_HTTP),
        Setting("wss-username", "the name in the token of WS-Security"),
        Setting("wss-password", "where the password of the token is", reference, line),
        Setting("wss-certificate", "a file with the certificate that we sign by"),
        Setting("wss-key", "a file with its key, which also decrypts"),
        Setting("wss-partner", "a file with the partner's certificate, which verifies and encrypts"),
    )

    def __init__(self, http: HttpTransport) -> None:
        self._http = http

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        check_files(settings, ("wss-certificate", "wss-key", "wss-partner"))
        return self._http.check(settings)

    def outgoing(self, letter: Letter) -> Delivered:
        terms = terms_of(letter.terms or "{}")
        operation = self.operation(terms, letter)
        signed = terms.security is not None and terms.security.sign
        headers = addressed(action_of(terms, operation), f"urn:postroom:{letter.number}") if signed else []
        answered = self.exchange(terms, letter, operation.action, headers, letter.body)
        return Delivered(f"HTTP {answered.status}", self.reply(terms, operation, answered))

    @staticmethod
    def operation(terms: Terms, letter: Letter) -> Operation:
        """The operation of a message; raises if it does not fit the interface."""
        try:
            if letter.format != "xml":
                raise SchemaInvalid(why="only XML messages go by SOAP")
            return terms.operation(letter.body)
        except SchemaInvalid as error:
            raise Undelivered(str(error), final=True, code=error.code, kind="message") from None

    def exchange(
        self, terms: Terms, letter: Letter, action: str, headers: list[str], body: str, *, patient: bool = False
    ) -> Answered:
        """Send an envelope and read the response; raises ``Undelivered``, also for a fault."""
        version = terms.contract.version
        envelope = written(version, headers, body)
        if terms.security is not None:
            envelope = security.protected(envelope, terms.security, letter.endpoint.settings, request=True)
        fields = {"Content-Type": f"{MEDIA_TYPES[version]}; charset=utf-8", "Idempotency-Key": f'"{letter.number}"'}
        if version == "1.1":
            fields["SOAPAction"] = f'"{action}"'
        elif action:
            fields["Content-Type"] += f'; action="{action}"'
        exchanged = self._http.exchange(
            letter.endpoint, letter.properties.get("recipient"), "POST", fields, envelope.encode(), patient=patient
        )
        answered = self._answered(terms, letter.endpoint, *exchanged)
        fault = None if answered.envelope is None else answered.envelope.fault()
        later = answered.status in LATER and not (fault is not None and answered.status == 500)
        if fault is not None and not later:
            # Nothing that a fault brings along counts where messages are signed: it need not be.
            raise FaultReceived(fault, answered if terms.security is None else answered._replace(envelope=None))
        if not 200 <= answered.status < 300:
            why = f"{answered.sender} answered {answered.status}{'' if fault is None else f': {fault}'}"
            raise Undelivered(why, final=not later, after_seconds=answered.retry_after)
        return answered

    @staticmethod
    def _answered(terms: Terms, endpoint: Endpoint, status: int, after: float, reply: Reply) -> Answered:
        if not reply.body.strip() or "xml" not in reply.media_type.lower() or "multipart" in reply.media_type.lower():
            if reply.body.strip() and 200 <= status < 300 and status != 202:
                raise Undelivered(f"{reply.sender} answered {status} with {reply.media_type}, not SOAP", final=True)
            return Answered(status, None, reply.sender, after)
        try:
            envelope = read_envelope(reply.body, charset_of(reply.media_type))
        except EnvelopeInvalid as error:
            raise Undelivered(f"{reply.sender} answered {status} with no envelope: {error}", final=True) from None
        if terms.security is not None and envelope.fault() is None:  # who cannot read a request cannot sign the answer
            try:
                security.verify(envelope, terms.security, endpoint.settings, request=False)
            except security.Unsafe as error:
                why = f"what {reply.sender} answered is not as the policy says: {error}"
                raise Undelivered(why, final=True, code="unsafe") from None
        return Answered(status, envelope, reply.sender, after)

    @staticmethod
    def reply(terms: Terms, operation: Operation, answered: Answered) -> Reply | None:
        """The reply as a message; None if there is none."""
        message = None if answered.envelope is None else answered.envelope.message()
        if message is None or operation.output is None:
            return None
        flaw = terms.check_reply(operation, message)
        return Reply(message.encode(), "application/xml", answered.sender, flaw)

    def probe(self, endpoint: Endpoint) -> str:
        return self._http.probe(endpoint)

    def close(self) -> None:
        """Does nothing: connections belong to the HTTP transport."""


class FaultReceived(Undelivered):
    """The partner answered with a fault."""

    def __init__(self, fault: Fault, answered: Answered) -> None:
        kinds = (("soapFault", fault.detail if is_harmless(f"<d>{fault.detail}</d>") else str(fault)),)
        super().__init__(f"{answered.sender} answered with a fault: {fault}", final=True, code="fault", kinds=kinds)
        self.fault = fault
        self.answered = answered


def action_of(terms: Terms, operation: Operation, answer: bool = False) -> str:
    """The default action of WS-Addressing, derived as its WSDL binding defines."""
    if operation.action and not answer:
        return operation.action
    name = f"{operation.name}{'Response' if answer else 'Request'}"
    sign = ":" if terms.contract.namespace.startswith("urn:") else "/"
    return f"{terms.contract.namespace.rstrip('/')}{sign}{terms.contract.port}{sign}{name}"
