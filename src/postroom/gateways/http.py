"""The transport HTTP(S): one request for each message, to an origin on the operator's list.

No redirect is followed, no proxy or netrc of the environment is used, the connection goes to the checked address, and
replies have limits of time and size. Every attempt of a message has the same number, so that a partner can recognise a
repetition.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import httpcore

from postroom.gateways import cloudevents
from postroom.gateways.circuits import Circuits
from postroom.gateways.connections import Connections
from postroom.gateways.credentials import ascii_line, credential, line, told, webhook_key
from postroom.gateways.media import MEDIA_TYPES
from postroom.gateways.origins import Origin, Resolver, origin_of, target_of
from postroom.gateways.tls import context_of
from postroom.gateways.transport import (
    SENDING_SETTINGS,
    Delivered,
    Letter,
    Reply,
    Setting,
    Undelivered,
    choice,
    names,
    number,
    reference,
    truth,
)
from postroom.limits import GATEWAY_SECONDS, REPLY_BYTES_MAX, RETRY_AFTER_SECONDS_MAX
from postroom.model.moment import to_iso
from postroom.store.tables.endpoints import ANSWER, IN, OUT, REPLY, Endpoint

LATER = (408, 421, 425, 429, 500, 502, 503, 504)  # the same request may be taken another time
#: What httpcore raises if the partner cannot be reached, is too slow, or does not speak HTTP.
_NETWORK = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.UnsupportedProtocol)
_SECRET_HEADERS = {"authorization", "cookie", "proxy-authorization"}
_OF_EVERY_REQUEST = {"User-Agent": "postroom", "Accept-Encoding": "identity"}


def origins(text: str) -> list[str]:
    return [str(origin_of(name)) for name in names(text)]


def path(text: str) -> str:
    if not text.startswith("/") or "//" in text or "?" in text or "#" in text or " " in text:
        raise ValueError("a path such as /orders")
    return text.rstrip("/") or "/"


def headers(text: str) -> list[str]:
    if _SECRET_HEADERS & {name.lower() for name in names(text)}:
        raise ValueError(f"{', '.join(sorted(_SECRET_HEADERS))} have secrets, which are no properties")
    return names(text)


class HttpTransport:
    name = "http"
    settings = (
        Setting("address", "where messages are sent: a URL"),
        Setting("method", "POST or PUT", choice("POST", "PUT")),
        Setting("origins", "more origins that the property recipient may name, with commas", origins),
        Setting("private", "whether names may lead into a private network: yes or no", truth),
        Setting("ca", "a file with the certificates that are trusted, instead of the system's"),
        Setting("certificate", "a file with our certificate"),
        Setting("key", "a file with the key of our certificate"),
        Setting("token", "where the bearer token is: env:NAME or file:PATH", reference, ascii_line),
        Setting("username", "for basic authentication"),
        Setting("password", "where its password is", reference, line),
        Setting("secret", "where the key is that signs what is sent (Standard Webhooks)", reference, webhook_key),
        Setting("cloudevents", "whether messages are sent as CloudEvents: yes or no", truth),
        Setting("path", "where messages are taken in: a path of our server", path),
        Setting("in-token", "where the bearer token is that a sender must show", reference, ascii_line),
        Setting("in-secret", "where the key is that what comes in must be signed with", reference, webhook_key),
        Setting("headers", "headers that become properties, with commas", headers),
        Setting("wait", "seconds that a request waits for its answer", number(0, 600)),
        *SENDING_SETTINGS,
    )

    def __init__(self, resolver: Resolver | None = None) -> None:
        self._resolver = resolver
        self._circuits = Circuits()
        self._connections: dict[str, Connections] = {}  # by the marks of endpoints
        self._lock = threading.Lock()

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        does = set()
        if "address" in settings:
            if origin_of(settings["address"]).scheme not in ("http", "https"):
                raise ValueError("an address of this transport begins with http or https")
            does |= {OUT, REPLY}
        if "path" in settings:
            does |= {IN, ANSWER} if "address" not in settings else {IN}
        if not does:
            raise ValueError("address=URL (to send) or path=/PATH (to take in) is missing")
        if ("username" in settings) != ("password" in settings) or (
            "key" in settings and "certificate" not in settings
        ):
            raise ValueError("username and password belong together, and key needs certificate")
        if ":" in settings.get("username", ""):
            raise ValueError("username: a name for basic authentication has no colon")
        if any(name in settings for name in ("ca", "certificate")):
            context_of(settings)
        return frozenset(does)

    def outgoing(self, letter: Letter) -> Delivered:
        method = letter.endpoint.settings.get("method", "POST")
        recipient = letter.properties.get("recipient")
        status, after, reply = self.exchange(letter.endpoint, recipient, method, _headers(letter), letter.body.encode())
        if 200 <= status < 300:
            # 202 says that the answer is not there yet: what it has is not the partner's reply.
            return Delivered(f"HTTP {status}", reply if reply.body and status != 202 else None)
        why = f"{reply.sender} answered {status}: {told(reply.body, letter.endpoint.settings)}"
        if status not in LATER:
            raise Undelivered(why, final=True)
        raise Undelivered(why, after_seconds=after)

    def exchange(
        self,
        endpoint: Endpoint,
        recipient: object,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        patient: bool = False,
    ) -> tuple[int, float, Reply]:
        """One request: returns status, seconds to wait before the next attempt, and reply.

        A ``patient`` request ignores the circuit breaker, because its protocol handles losses itself.
        """
        settings = endpoint.settings
        url = target_of(settings["address"], recipient, settings.get("origins", []))
        origin = origin_of(url)
        sent_headers = {**_OF_EVERY_REQUEST, **_credentials(settings), **headers}  # who has none tries no host
        wait = 0.0 if patient else self._circuits.wait_seconds(str(origin))
        if wait:
            why = f"{origin} does not answer and is left alone for {wait:.0f} s"
            raise Undelivered(why, disconnected=str(origin), tried=False, after_seconds=wait)
        status, replied, reply = self._request(endpoint, origin, method, url, sent_headers, body)
        return status, _retry_after(replied.get("retry-after")), reply

    def probe(self, endpoint: Endpoint) -> str:
        if "address" not in endpoint.settings:
            return f"messages are taken in at {endpoint.settings['path']}"
        url = endpoint.settings["address"]
        status, _, _ = self._request(endpoint, origin_of(url), "OPTIONS", url, _credentials(endpoint.settings), b"")
        return f"{origin_of(url)} answered {status}"

    def _request(
        self, endpoint: Endpoint, origin: Origin, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], Reply]:
        seconds = float(endpoint.settings.get("seconds", GATEWAY_SECONDS))
        answered = False
        try:
            named = [(name.encode(), text.encode()) for name, text in headers.items()]
            with self._connections_of(endpoint).exchange(seconds, method, url, named, body) as response:
                answered = True
                content = _bounded(response)
                replied = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in response.headers}
                reply = Reply(content, replied.get("content-type", "text/plain"), str(origin))
                return response.status, replied, reply
        except (*_NETWORK, ssl.SSLError) as error:
            why = f"{origin}: {_described(error, endpoint.settings)}"
            raise Undelivered(why, disconnected=str(origin)) from None
        finally:
            self._circuits.note(str(origin), answered)

    def _connections_of(self, endpoint: Endpoint) -> Connections:
        with self._lock:
            connections = self._connections.get(endpoint.mark)
            if connections is None:
                settings = endpoint.settings
                try:
                    context = context_of(settings)
                except ValueError as error:
                    raise Undelivered(str(error), disconnected=str(origin_of(settings["address"]))) from None
                connections = Connections(context, bool(settings.get("private")), self._resolver)
                self._connections[endpoint.mark] = connections
            return connections

    def close(self) -> None:
        with self._lock:
            for connections in self._connections.values():
                connections.close()
            self._connections.clear()


def _headers(letter: Letter) -> dict[str, str]:
    headers = {
        "Content-Type": MEDIA_TYPES[letter.format],
        "Idempotency-Key": f'"{letter.number}"',
    }
    settings = letter.endpoint.settings
    if settings.get("cloudevents"):
        event = {
            "specversion": "1.0",
            "id": letter.number,
            "source": f"/postroom/{letter.endpoint.mark}/{letter.queue}",
            "type": letter.type or f"postroom.{letter.queue}",
            "time": to_iso(letter.created),
        }
        headers |= {f"ce-{name}": cloudevents.encoded(text) for name, text in event.items()}
    if "secret" in settings:
        stamp = str(int(time()))
        headers["webhook-id"], headers["webhook-timestamp"] = letter.number, stamp
        key = credential(settings, "secret", webhook_key)
        headers["webhook-signature"] = signature(key, letter.number, stamp, letter.body.encode())
    return headers


def _credentials(settings: Mapping[str, Any]) -> dict[str, str]:
    if "token" in settings:
        return {"Authorization": f"Bearer {credential(settings, 'token', ascii_line)}"}
    if "username" in settings:
        both = f"{settings['username']}:{credential(settings, 'password', line)}"
        return {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
    return {}


def signature(key: str, id: str, stamp: str, body: bytes) -> str:
    """A signature as Standard Webhooks writes it; a key that begins with whsec_ is in base64."""
    raw = base64.b64decode(key.removeprefix("whsec_")) if key.startswith("whsec_") else key.encode()
    signed = hmac.new(raw, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _described(error: Exception, settings: Mapping[str, Any]) -> str:
    """What went wrong with a request. Why it could not be written is left out, because that text quotes headers."""
    if isinstance(error, httpcore.LocalProtocolError):
        return "the request cannot be written as HTTP"
    return f"{type(error).__name__} {told(str(error), settings)}"


def _retry_after(text: str | None) -> float:
    """The seconds of a Retry-After header, which is a number or a date."""
    if text is None:
        return 0.0
    try:
        seconds = float(text) if text.isdecimal() else (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


def _bounded(response: httpcore.Response) -> bytes:
    """The body of a reply, still compressed: a small response may unpack to a very large one."""
    kept = bytearray()
    for chunk in response.iter_stream():
        kept += chunk
        if len(kept) > REPLY_BYTES_MAX:
            raise Undelivered(f"the reply is larger than {REPLY_BYTES_MAX} bytes", final=True)
    return bytes(kept)
