"""Receives messages over HTTP: an ASGI application with the paths of the room's endpoints, alone or mounted in a
server.

A request is answered when its message is on disk. If the endpoint has a queue for answers, the response is the answer
that rules give, or 202 and a URL to poll if that takes too long.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from time import monotonic, time
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from postroom.errors import (
    ArgumentInvalid,
    ArrivalRefused,
    BodyError,
    BodyTooLarge,
    GatewayUnknown,
    MessageGone,
    MethodUnknown,
    PostroomError,
    ServerFailed,
    advice_of,
)
from postroom.gateways import cloudevents
from postroom.gateways.credentials import ascii_line, credential, webhook_key
from postroom.gateways.http import signature
from postroom.gateways.incoming import Answers, Entered, Incoming
from postroom.gateways.media import MEDIA_TYPES
from postroom.gateways.soap.terms import terms_of
from postroom.gateways.soap_server import SoapServer
from postroom.gateways.transport import Arrival, Undelivered
from postroom.limits import ARRIVALS_AT_ONCE, BODY_BYTES_MAX, REQUEST_SECONDS, WEBHOOK_AGE_SECONDS
from postroom.model.message import Message, Value
from postroom.store.kernel.base import Store
from postroom.store.tables.endpoints import IN, Endpoint

_KNOWN_SECONDS = 1.0  # what an operator changes is noticed after so long
_ANSWERS = "/answers/"
_PROBLEM = "application/problem+json"
log = logging.getLogger("postroom.gateways")


#: Raises unless whoever shows a header may send to a queue: the queue, and the header.
Allow = Callable[[str, str], Awaitable[None]]


class Refused(Exception):
    """A request that is refused without a message."""

    def __init__(self, status: int, code: str, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.code = code


class Collected:
    """Batches arrivals: those that come during a commit share the next one."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._pending: list[tuple[Arrival, asyncio.Future[Entered | PostroomError]]] = []
        self._task: asyncio.Task[None] | None = None

    async def accept(self, arrival: Arrival) -> Entered | PostroomError:
        future: asyncio.Future[Entered | PostroomError] = asyncio.get_running_loop().create_future()
        self._pending.append((arrival, future))
        if self._task is None:
            self._task = asyncio.create_task(self._commit())
        return await future

    async def _commit(self) -> None:
        try:
            while self._pending:
                some, self._pending = self._pending[:ARRIVALS_AT_ONCE], self._pending[ARRIVALS_AT_ONCE:]
                try:
                    arrivals = [arrival for arrival, _ in some]
                    outcomes: list[Any] = list(await asyncio.to_thread(self._incoming.accept_many, arrivals))
                except Exception as error:
                    outcomes = [error] * len(some)
                for (_, future), outcome in zip(some, outcomes, strict=True):
                    if future.cancelled():
                        continue
                    if isinstance(outcome, Exception) and not isinstance(outcome, PostroomError):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)
        finally:
            self._task = None


class HttpServer:
    """The paths of a room's endpoints as an ASGI application, ``app``."""

    def __init__(self, store: Store, incoming: Incoming, allow: Allow | None = None) -> None:
        self._store = store
        self._incoming = incoming
        self._allow = allow
        self._collected = Collected(incoming)
        self._answers = Answers(store, incoming)
        self._soap = SoapServer(store, self._collected.accept)
        self._known: dict[str, Endpoint] = {}
        self._looked = float("-inf")
        routes = [Route("/{path:path}", self._handle, methods=["GET", "POST", "PUT"])]
        self.app = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers={HTTPException: _unrouted})

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        with self._answers:
            yield

    def start(self) -> None:
        """Start waiting for answers; needed when mounted, because then there is no lifespan."""
        self._answers.__enter__()

    def stop(self) -> None:
        self._answers.__exit__()

    async def _handle(self, request: Request) -> Response:
        try:
            path = "/" + request.path_params["path"].rstrip("/")
            place, asked, connection = path.rpartition(_ANSWERS)
            endpoint = (await self._endpoints()).get(place if asked else path)
            if endpoint is None:
                raise Refused(404, GatewayUnknown.code, "no gateway has this path")
            if request.method in ("GET", "HEAD"):
                await self._permit(endpoint, request.headers)
                _check_token(endpoint.settings, request.headers)
                if endpoint.transport == "soap" and not asked:
                    return await self._soap.described(request, endpoint)
                if not asked:
                    raise MethodUnknown(method=request.method, path=path, allowed="POST, PUT")
                return await self._asked(endpoint, connection)
            return await self._posted(request, endpoint)
        except Refused as refusal:
            return _refusal(refusal.status, refusal.code, str(refusal))
        except PostroomError as error:
            return _refused(error)
        except Exception:
            incident = secrets.token_hex(4)
            log.exception("incident %s at a gateway", incident)
            return _refused(ServerFailed(incident=incident))

    async def _endpoints(self) -> dict[str, Endpoint]:
        if monotonic() - self._looked > _KNOWN_SECONDS:
            every = await asyncio.to_thread(self._store.read, lambda tx: tx.endpoints.all())
            self._known = {endpoint.settings["path"]: endpoint for endpoint in every.values() if IN in endpoint.does}
            self._looked = monotonic()
            await asyncio.to_thread(self._incoming.forget)
        return self._known

    async def _posted(self, request: Request, endpoint: Endpoint) -> Response:
        body, oversize = await _body(request)
        settings = endpoint.settings
        await self._permit(endpoint, request.headers)
        _check_token(settings, request.headers)
        if oversize is not None:
            if "in-secret" not in settings:  # else nobody knows who sent it: a signature is over all of it
                await self._collected.accept(_flawed(endpoint, request, b"", oversize))
            raise oversize
        _check_signature(settings, request.headers, body)
        root = request.scope.get("root_path", "")
        place = f"{root}{settings['path']}{_ANSWERS}"
        if endpoint.transport == "soap":
            patience = _patience(settings, request.headers)
            wait = partial(self._answer, seconds=patience)
            return await self._soap.posted(request, endpoint, body, wait, place)
        entered = await self._collected.accept(_arrival(endpoint, request, body))
        if isinstance(entered, PostroomError):
            raise entered
        if entered.connection is None:
            return JSONResponse({"key": entered.key}, 202)
        message = await self._answer(entered.connection, _patience(settings, request.headers))
        if message is not None:
            return _answered(message)
        place += entered.connection
        return JSONResponse({"key": entered.key, "answer": place}, 202, {"Location": place, "Retry-After": "1"})

    async def _permit(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        """In a server with users: an endpoint without authentication of its own needs the right to send to its
        queue."""
        if self._allow is None or "in-token" in endpoint.settings or "in-secret" in endpoint.settings:
            return
        name = endpoint.name
        queue, terms = await asyncio.to_thread(
            self._store.read, lambda tx: (tx.endpoints.queue_at(name, IN), tx.endpoints.terms_of(name))
        )
        policy = None if terms is None else terms_of(terms).security
        if policy is not None and (policy.sign or policy.username):
            return
        if queue is None:
            raise GatewayUnknown(gateway=endpoint.name, nearest=" that takes messages in")
        await self._allow(queue, headers.get("authorization", ""))

    async def _answer(self, connection: str, seconds: float) -> Message | None:
        if seconds <= 0:
            return None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()

        def told(outcome: Message | PostroomError) -> None:
            if future.done():
                return
            if isinstance(outcome, PostroomError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._answers.wait_for(connection, lambda outcome: loop.call_soon_threadsafe(told, outcome))
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return None
        finally:
            self._answers.leave(connection)

    async def _asked(self, endpoint: Endpoint, connection: str) -> Response:
        known, message = await asyncio.to_thread(self._incoming.answer_of, connection, endpoint.name)
        if not known:
            raise Refused(404, "message-unknown", "no request is known by this name")
        if message is None:
            return JSONResponse({}, 202, {"Retry-After": "1"})
        return await self._soap.answer(None, endpoint, message) if endpoint.transport == "soap" else _answered(message)


async def _body(request: Request) -> tuple[bytes, BodyTooLarge | None]:
    """The body, up to the limit; of a longer one only the beginning is read and kept."""
    kept = bytearray()
    async for chunk in request.stream():
        kept += chunk
        if len(kept) > BODY_BYTES_MAX:
            length = request.headers.get("content-length", "")
            size = max(len(kept), int(length) if length.isdecimal() and len(length) < 16 else 0)
            return b"", BodyTooLarge(size=size, limit=BODY_BYTES_MAX)
    return bytes(kept), None


def _sender(request: Request) -> str:
    client = request.client
    return f"{client.host}:{client.port}" if client else "unknown"


def _flawed(endpoint: Endpoint, request: Request, body: bytes, flaw: PostroomError) -> Arrival:
    """An invalid request, which becomes an error message."""
    return Arrival(endpoint.name, body, "text/plain", _sender(request), flaw=flaw)


def _arrival(endpoint: Endpoint, request: Request, body: bytes) -> Arrival:
    try:
        return _message(endpoint, request, body)
    except ValueError as error:
        return _flawed(endpoint, request, body, ArrivalRefused(gateway=endpoint.name, why=str(error)))


def _message(endpoint: Endpoint, request: Request, body: bytes) -> Arrival:
    """The message of a request, with the attributes of its CloudEvent if it is one; raises ``ValueError`` if these are
    invalid."""
    headers = request.headers
    media_type = headers.get("content-type", "text/plain")
    sender = _sender(request)
    properties: dict[str, Value] = {
        name.lower(): headers[name] for name in endpoint.settings.get("headers", []) if name in headers
    }
    number = headers.get("webhook-id")
    if "in-secret" not in endpoint.settings:  # else only that is signed
        number = headers.get("idempotency-key") or number
    if media_type.partition(";")[0].strip().lower() == "application/cloudevents+json":
        body, media_type, event = _structured(body)
    else:
        event = {name[3:]: cloudevents.decoded(name, text) for name, text in headers.items() if name.startswith("ce-")}
    if event:
        cloudevents.check(event)
        properties |= {f"ce-{name}": text for name, text in event.items() if isinstance(text, str)}
        number = number or f"{event['source']} {event['id']}"
        sender = str(event["source"])
    return Arrival(endpoint.name, body, media_type, sender, properties, number)


def _decoded(text: Any) -> bytes:
    """Event data that the sender encoded as Base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise ValueError("data_base64 is not Base64") from None


def _structured(body: bytes) -> tuple[bytes, str, dict[str, Any]]:
    """A CloudEvent whose attributes and data are one JSON object."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no CloudEvent: {error}") from None
    if not isinstance(event, dict):
        raise ValueError("this is no CloudEvent: it is no object")
    data, encoded = event.pop("data", None), event.pop("data_base64", None)
    event = {name: value for name, value in event.items() if value is not None}  # null is no value
    cloudevents.check(event)
    media_type = event.pop("datacontenttype", "application/json")
    if encoded is not None:
        return _decoded(encoded), media_type, event
    text = data if isinstance(data, str) and "json" not in media_type else json.dumps(data, ensure_ascii=False)
    return text.encode(errors="surrogatepass"), media_type, event


def _check_token(settings: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    if "in-token" not in settings:
        return
    given = headers.get("authorization", "")
    wanted = f"Bearer {_secret(settings, 'in-token', ascii_line)}"
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Refused(401, "principal-refused", "the bearer token is missing or wrong")


def _check_signature(settings: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> None:
    if "in-secret" not in settings:
        return
    id, stamp, given = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    fresh = stamp.isdecimal() and len(stamp) < 12 and abs(time() - int(stamp)) <= WEBHOOK_AGE_SECONDS
    wanted = signature(_secret(settings, "in-secret", webhook_key), id, stamp, body).encode()
    matches = [hmac.compare_digest(candidate.encode(), wanted) for candidate in given.split(" ")]
    if not (any(matches) and fresh and id):
        raise Refused(401, "principal-refused", "the signature is missing, wrong or too old")


def _secret(settings: Mapping[str, Any], name: str, fits: Callable[[str], object]) -> str:
    try:
        return credential(settings, name, fits)
    except Undelivered:
        raise Refused(503, "gateway-invalid", "the gateway cannot check who sends") from None


def _patience(settings: Mapping[str, Any], headers: Mapping[str, str]) -> float:
    """How long a request waits: the endpoint's setting, or less by the Prefer header (RFC 7240)."""
    most = float(settings.get("wait", REQUEST_SECONDS))
    for word in headers.get("prefer", "").split(","):
        name, _, value = word.strip().partition("=")
        if name == "respond-async":
            return 0.0
        if name == "wait" and value.isdecimal() and len(value) < 6:
            return min(most, float(value))
    return most


def _answered(message: Message) -> Response:
    return Response(message.body, 200, {"Content-Type": MEDIA_TYPES[message.format], "Postroom-Key": message.key})


#: The first that fits; of any other error, 503.
_STATUS: tuple[tuple[tuple[type[PostroomError], ...], int], ...] = (
    ((BodyTooLarge,), 413),
    ((ArgumentInvalid,), 409),
    ((GatewayUnknown,), 404),
    ((MessageGone,), 410),
    ((BodyError, ArrivalRefused), 400),
    ((MethodUnknown,), 405),
    ((ServerFailed,), 500),
)


def _status(error: PostroomError) -> int:
    return next((status for kinds, status in _STATUS if isinstance(error, kinds)), 503)


async def _unrouted(request: Request, error: Exception) -> Response:
    """The response to a method that gateways do not have."""
    return _refused(
        MethodUnknown(method=request.method[:20], path=request.url.path[:200], allowed="GET, HEAD, POST, PUT")
    )


def _refused(error: PostroomError) -> Response:
    answer = _refusal(_status(error), error.code, str(error), error.happened)
    if isinstance(error, MethodUnknown):
        answer.headers["Allow"] = str(error.facts["allowed"])
    return answer


def _refusal(status: int, code: str, why: str, happened: str = "no") -> Response:
    """A refusal as the room's server writes it: RFC 9457, with our code and advice."""
    headers = {"Retry-After": "5"} if status in (429, 503) else {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    document = {
        "type": f"urn:postroom:error:{code}",
        "title": code.replace("-", " "),
        "status": status,
        "detail": why,
        "code": code,
        "happened": happened,
        "advice": advice_of(code),
    }
    return JSONResponse(document, status, headers, _PROBLEM)
