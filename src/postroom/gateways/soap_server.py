"""Receives messages over SOAP by the interface of their port, and serves that interface.

A wrong envelope becomes an error message in the room and a fault for the sender. Missing protection always gets the
same fault, whatever the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import ArgumentInvalid, ArrivalRefused, BodyError, GatewayUnknown, PostroomError, SchemaInvalid
from postroom.gateways.incoming import Entered
from postroom.gateways.reliable.destination import Destination, Refusal
from postroom.gateways.soap import security
from postroom.gateways.soap.terms import Terms, terms_of
from postroom.gateways.soap.transport import action_of
from postroom.gateways.transport import Arrival, Undelivered
from postroom.model.encodings import charset_of
from postroom.model.message import Message, Value
from postroom.model.soap import (
    ADDRESSING,
    MEDIA_TYPES,
    RELIABLE,
    SECURITY,
    Envelope,
    EnvelopeInvalid,
    addressed,
    fault_body,
    read_envelope,
    written,
)
from postroom.model.wsdl import Operation, published
from postroom.store.kernel.base import Store
from postroom.store.tables.endpoints import Endpoint

_ANONYMOUS = (f"{ADDRESSING}/anonymous", f"{ADDRESSING}/none")
_UNSAFE = "the message is not protected as the policy of this port says"

Accept = Callable[[Arrival], Awaitable[Entered | PostroomError]]
Wait = Callable[[str], Awaitable[Message | None]]


class Faulty(Exception):
    """An envelope that is answered with a fault; ``status`` and ``subcode`` if they differ from the usual ones."""

    def __init__(
        self, code: str, why: str, *, subcode: tuple[str, str] | None = None, status: int | None = None
    ) -> None:
        super().__init__(why)
        self.code = code
        self.subcode = subcode
        self.status = status


@dataclass(frozen=True)
class Posted:
    """A request for one port, as far as it was parsed."""

    endpoint: Endpoint
    terms: Terms
    sender: str
    body: bytes
    properties: Mapping[str, Value]
    number: str | None
    token: str | None = None

    def flawed(self, error: PostroomError) -> Arrival:
        return replace(self.arrival(self.body, "application/xml"), flaw=error, number=None)

    def arrival(self, body: bytes, media_type: str) -> Arrival:
        sender, number, token = self.sender, self.number, self.token
        return Arrival(self.endpoint.name, body, media_type, sender, self.properties, number, token=token)


class SoapServer:
    def __init__(self, store: Store, accept: Accept) -> None:
        self._store = store
        self._accept = accept
        self._destination = Destination(store)

    async def described(self, request: Request, endpoint: Endpoint) -> Response:
        """The WSDL of a port, with our address in it."""
        terms = await self._terms(endpoint)
        named = {name.lower(): value for name, value in request.query_params.items()}
        if terms is None or "wsdl" not in named:
            return Response(status_code=404 if terms is None else 405, headers={"Allow": "POST"})
        address = str(request.url.replace(query=""))
        text = published(terms.wsdl, terms.contract.port, address, named["wsdl"] or None)
        return Response(status_code=404) if text is None else Response(text, media_type="text/xml")

    async def posted(self, request: Request, endpoint: Endpoint, body: bytes, wait: Wait, place: str) -> Response:
        terms = await self._terms(endpoint)
        if terms is None:
            raise GatewayUnknown(gateway=endpoint.name, nearest=" that takes messages in")
        posted = _posted(request, endpoint, terms, body)
        try:
            envelope = await self._opened(request, posted)
        except Faulty as fault:
            return _faulty(terms, fault)
        related = envelope.addressing("MessageID")
        try:
            return await self._done(posted, envelope, wait, place)
        except Faulty as fault:
            return _faulty(terms, fault, related)

    async def _terms(self, endpoint: Endpoint) -> Terms | None:
        text = await asyncio.to_thread(self._store.read, lambda tx: tx.endpoints.terms_of(endpoint.name))
        return None if text is None else terms_of(text)

    async def _opened(self, request: Request, posted: Posted) -> Envelope:
        """The verified envelope of a request; errors are reported."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        terms = posted.terms
        if media_type not in MEDIA_TYPES.values():
            why = f"{media_type or 'no media type'} is not taken; an envelope is {MEDIA_TYPES[terms.contract.version]}"
            await self._accept(posted.flawed(ArrivalRefused(gateway=posted.endpoint.name, why=why)))
            raise Faulty("sender", why, status=415)
        try:
            envelope = read_envelope(posted.body, charset_of(request.headers.get("content-type", "")))
            if envelope.version != terms.contract.version:
                raise EnvelopeInvalid(f"this port takes SOAP {terms.contract.version}", "VersionMismatch")
            return envelope
        except EnvelopeInvalid as error:
            await self._accept(posted.flawed(ArrivalRefused(gateway=posted.endpoint.name, why=str(error))))
            raise Faulty(error.code, str(error)) from None

    async def _done(self, posted: Posted, envelope: Envelope, wait: Wait, place: str) -> Response:
        posted = await self._verified(posted, envelope)
        terms = posted.terms
        understood = [ADDRESSING, *([SECURITY] if terms.security else []), *([RELIABLE] if terms.reliable else [])]
        unknown = envelope.must_understand(understood)
        if unknown is not None:
            why = f"the header {unknown} is not understood"
            await self._accept(posted.flawed(ArrivalRefused(gateway=posted.endpoint.name, why=why)))
            raise Faulty("MustUnderstand", why)
        reply_to = envelope.addressing("ReplyTo")
        if reply_to is not None and reply_to not in _ANONYMOUS:
            why = "answers go back by the connection of the request"
            await self._accept(posted.flawed(ArrivalRefused(gateway=posted.endpoint.name, why=why)))
            raise Faulty("sender", why, subcode=(ADDRESSING, "OnlyAnonymousAddressSupported"))
        if terms.reliable:
            return await self._reliably(posted, envelope, wait, place)
        operation, entered = await self._entered(posted, envelope, None)
        return await self._answered(posted, envelope, operation, entered, wait, place, [])

    async def _verified(self, posted: Posted, envelope: Envelope) -> Posted:
        """Verify an envelope. A protected request gets a number that nobody else can use."""
        policy = posted.terms.security
        if policy is None:
            return replace(posted, number=posted.number or envelope.addressing("MessageID"))
        settings = posted.endpoint.settings
        try:
            once = await asyncio.to_thread(security.verify, envelope, policy, settings, request=True)
        except security.Unsafe as error:
            why = f"it is not as the policy says: {error}"
            await self._accept(posted.flawed(ArrivalRefused(gateway=posted.endpoint.name, why=why)))
            raise Faulty("sender", _UNSAFE, subcode=(SECURITY, "InvalidSecurity")) from None
        number, token = once or posted.number or envelope.addressing("MessageID"), security.token_of(envelope, policy)
        return replace(posted, number=number, token=token)

    async def _entered(
        self, posted: Posted, envelope: Envelope, sequence: tuple[str, int] | None
    ) -> tuple[Operation, Entered]:
        """Store the message; one that the interface does not have becomes an error message."""
        operation = None
        try:
            message = envelope.message()
            if message is None:
                raise SchemaInvalid(why="the body of the envelope is empty")
            operation = posted.terms.operation(message)
            arrival = posted.arrival(message.encode(), "application/xml")
        except SchemaInvalid as error:
            arrival = posted.flawed(error)
        outcome = await self._accept(replace(arrival, sequence=sequence))
        if isinstance(outcome, PostroomError):
            raise _as_fault(outcome)
        if operation is None:  # it is kept for its turn, or was refused before
            raise Faulty("sender", str(arrival.flaw))
        return operation, outcome

    async def _answered(
        self, posted: Posted, envelope: Envelope, operation: Operation, entered: Entered, wait: Wait, place: str,
        headers: list[str],
    ) -> Response:  # fmt: skip
        """The response to a request: its answer if it waits for one, and headers of reliable messaging."""
        terms = posted.terms
        message = None
        awaited = None if operation.output is None else entered.connection
        if awaited is not None:
            try:
                message = await wait(awaited)
            except PostroomError as error:  # nothing will answer it
                raise _as_fault(error) from None
        if message is not None:
            return await self.answer(terms, posted.endpoint, message, operation, envelope, headers)
        more = {} if awaited is None else {"Location": f"{place}{awaited}"}
        if not headers:
            return Response(status_code=202, headers=more)
        text = await asyncio.to_thread(_protected, terms, posted.endpoint, written(terms.contract.version, headers, ""))
        return _response(terms, text, 202 if more else 200, more)

    async def answer(
        self,
        terms: Terms | None,
        endpoint: Endpoint,
        message: Message,
        operation: Operation | None = None,
        envelope: Envelope | None = None,
        headers: list[str] | None = None,
    ) -> Response:
        """The response made of a message."""
        terms = terms or await self._terms(endpoint)
        assert terms is not None
        version = terms.contract.version
        fault = terms.is_fault(message.body)
        body = fault_body(version, "receiver", "the request was refused", message.body) if fault else message.body
        heads = list(headers or ())
        if envelope is not None and operation is not None and envelope.addressing("Action") is not None:
            action = f"{ADDRESSING}/soap/fault" if fault else action_of(terms, operation, answer=True)
            heads += addressed(action, relates_to=envelope.addressing("MessageID") or "")
        text = await asyncio.to_thread(_protected, terms, endpoint, written(version, heads, body))
        return _response(terms, text, 500 if fault else 200, {"Postroom-Key": message.key})

    # --- reliable messaging ---

    async def _reliably(self, posted: Posted, envelope: Envelope, wait: Wait, place: str) -> Response:
        endpoint, version = posted.endpoint, posted.terms.contract.version
        try:
            made = await asyncio.to_thread(self._destination.control, endpoint.name, envelope)
            if made is not None:
                if made.terminated is not None:
                    last = Arrival(endpoint.name, b"", "", posted.sender, sequence=(made.terminated, 0))
                    outcome = await self._accept(last)
                    if isinstance(outcome, PostroomError):
                        raise _as_fault(outcome)
                heads = [*addressed(made.action, relates_to=envelope.addressing("MessageID") or ""), *made.headers]
                text = await asyncio.to_thread(_protected, posted.terms, endpoint, written(version, heads, made.body))
                return _response(posted.terms, text, 200, {})
            sequence = self._destination.numbered(envelope)
            faulty = None
            try:
                operation, entered = await self._entered(posted, envelope, sequence)
            except Faulty as fault:
                faulty = fault
            heads = await asyncio.to_thread(self._destination.acknowledged, sequence[0])
            if faulty is not None:
                return _faulty(posted.terms, faulty, envelope.addressing("MessageID"), heads)
            return await self._answered(posted, envelope, operation, entered, wait, place, heads)
        except Refusal as error:
            raise Faulty("sender", str(error), subcode=(RELIABLE, error.code)) from None


def _posted(request: Request, endpoint: Endpoint, terms: Terms, body: bytes) -> Posted:
    headers, client = request.headers, request.client
    properties: dict[str, Value] = {
        name.lower(): headers[name] for name in endpoint.settings.get("headers", []) if name in headers
    }
    sender = f"{client.host}:{client.port}" if client else "unknown"
    return Posted(endpoint, terms, sender, body, properties, headers.get("idempotency-key"))


def _protected(terms: Terms, endpoint: Endpoint, text: str) -> str:
    if terms.security is None:
        return text
    try:
        return security.protected(text, terms.security, endpoint.settings, request=False)
    except Undelivered:
        raise GatewayUnknown(gateway=endpoint.name, nearest=" that can protect its answers") from None


def _as_fault(error: PostroomError) -> Faulty:
    if isinstance(error, (BodyError, ArrivalRefused)):
        return Faulty("sender", str(error))
    if isinstance(error, ArgumentInvalid):
        return Faulty("sender", str(error), status=409)
    return Faulty("receiver", str(error), status=503)


def _faulty(terms: Terms, fault: Faulty, related: str | None = None, headers: list[str] | None = None) -> Response:
    version = terms.contract.version
    heads = list(headers or ())
    if related:
        heads += addressed(f"{ADDRESSING}/fault", relates_to=related)
    body = fault_body(version, fault.code, str(fault), subcode=fault.subcode)
    status = fault.status or (400 if version == "1.2" and fault.code == "sender" else 500)
    return _response(terms, written(version, heads, body), status, {"Retry-After": "5"} if status == 503 else {})


def _response(terms: Terms, text: str, status: int, headers: Mapping[str, str]) -> Response:
    return Response(text, status, dict(headers), f"{MEDIA_TYPES[terms.contract.version]}; charset=utf-8")
