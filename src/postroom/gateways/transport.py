"""The protocol of transports: settings, sending a message, results.

Each transport is one file: ``check`` validates settings, ``outgoing`` sends one message, ``probe`` connects to the
partner. ``incoming.py`` stores what the server of a transport receives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple, Protocol

from postroom.errors import BodyError, GatewayInvalid, PostroomError
from postroom.faults import FaultInjected
from postroom.limits import (
    GATEWAY_ATTEMPTS_MAX,
    GATEWAY_SECONDS_MAX,
    GATEWAY_SETTING_CHARS_MAX,
    OUTBOX_BACKOFF_SECONDS_MAX,
)
from postroom.model.message import Value
from postroom.store.tables.endpoints import Endpoint


class Setting(NamedTuple):
    """A setting of an endpoint."""

    name: str
    about: str
    read: Callable[[str], Any] = str
    fits: Callable[[str], object] | None = None  # raises ``ValueError`` if a secret that is found cannot be used


@dataclass(frozen=True, slots=True)
class Letter:
    """A message to be sent to a partner."""

    number: str  # the same at every attempt, and given by no other room
    key: str
    queue: str
    body: str
    format: str
    type: str | None
    created: datetime
    properties: Mapping[str, Any]
    endpoint: Endpoint
    terms: str | None = None  # of the interface of a Web Service


@dataclass(frozen=True)
class Arrival:
    """Input that a partner sent to an endpoint."""

    endpoint: str
    body: bytes
    media_type: str
    sender: str
    properties: Mapping[str, Value] = field(default_factory=dict)
    number: str | None = None  # the sender's own: the same number is the same message
    flaw: PostroomError | None = None  # what its transport found wrong with it
    sequence: tuple[str, int] | None = None  # of reliable messaging, with its number; 0 ends the sequence
    connection: str | None = None  # that it shares with others; by default it has one of its own
    token: str | None = None  # that proves its sender, and is good once


class Reply(NamedTuple):
    """A partner's reply."""

    body: bytes
    media_type: str
    sender: str
    flaw: BodyError | None = None  # why it is none that the interface knows


class Delivered(NamedTuple):
    """The partner accepted the message, perhaps with a reply."""

    outcome: str  # for the journal
    reply: Reply | None = None


class Undelivered(Exception):
    """The partner did not accept the message, as far as is known."""

    def __init__(
        self,
        why: str,
        *,
        disconnected: str | None = None,
        final: bool = False,
        tried: bool = True,
        after_seconds: float = 0.0,
        kind: str = "network",
        code: str = "refused",
        kinds: tuple[tuple[str, str], ...] = (("refusedMessage", ""),),
    ) -> None:
        super().__init__(why)
        self.disconnected = disconnected  # the partner that could not be reached; None if it answered
        self.final = final
        self.tried = tried
        self.after_seconds = after_seconds
        self.kind = kind  # class and code of the error message, and more elements of it
        self.code = code
        self.kinds = kinds

    def change(self, told: Callable[[str], str]) -> None:
        """Rewrite all texts that go into the journal and into an error message."""
        self.args = (told(str(self)),)
        self.kinds = tuple((kind, told(text)) for kind, text in self.kinds)


@contextmanager
def guarded(endpoint: str) -> Iterator[None]:
    """Turn any exception of a transport into a failed attempt, so that it ends no engine.

    An unexpected one is reported by type and place only, because its text may quote a secret.
    """
    try:
        yield
    except (Undelivered, FaultInjected):
        raise
    except Exception as error:
        place = extract_tb(error.__traceback__)[-1]
        why = f"{endpoint}: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        raise Undelivered(why, disconnected=endpoint) from None


class Transport(Protocol):
    @property
    def name(self) -> str:
        """Its name in programs: ``interface NAME``."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that an operator may give."""

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        """The features of an endpoint with these settings; raises ``ValueError`` if they are wrong."""

    def outgoing(self, letter: Letter) -> Delivered:
        """Send one message; raises ``Undelivered``. Called from several threads at a time."""

    def probe(self, endpoint: Endpoint) -> str:
        """Connect to the partner without sending a message; returns what was found, or raises ``Undelivered``."""

    def close(self) -> None:
        """Close kept connections."""


# --- reading settings ---


def number(low: float, high: float, whole: bool = False) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = int(text) if whole else float(text)
        if not low <= value <= high:
            raise ValueError(f"from {low:g} to {high:g}")
        return value

    return read


def choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def truth(text: str) -> bool:
    return {"yes": True, "no": False}[choice("yes", "no")(text)]


def names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def reference(text: str) -> str:
    """Where a secret is: ``env:NAME`` or ``file:PATH``."""
    kind, _, where = text.partition(":")
    if kind not in ("env", "file") or not where:
        raise ValueError("a secret is not written here: give env:NAME or file:/PATH, where it is found")
    if kind == "file" and not Path(where).is_absolute():
        raise ValueError("a file of a secret has an absolute path")
    return text


#: Of every endpoint that sends.
SENDING_SETTINGS = (
    Setting("attempts", "how often a message is tried", number(1, GATEWAY_ATTEMPTS_MAX, whole=True)),
    Setting("backoff", "seconds to the second attempt; doubled each time", number(0, OUTBOX_BACKOFF_SECONDS_MAX)),
    Setting("seconds", "time limit of one attempt", number(0.1, GATEWAY_SECONDS_MAX)),
)


def read_settings(gateway: str, known: Iterable[Setting], given: Mapping[str, str]) -> dict[str, Any]:
    """Settings as they are stored; raises for an unknown name.

    The error does not show the value, which may be a secret.
    """
    by_name = {setting.name: setting for setting in known}
    settings: dict[str, Any] = {}
    for name, text in given.items():
        setting = by_name.get(name)
        if setting is None:
            raise GatewayInvalid(gateway=gateway, why=f"no setting {name}; there are {', '.join(by_name)}")
        if not text.isprintable() or not 0 < len(text) <= GATEWAY_SETTING_CHARS_MAX:
            why = f"{name}: printable text, at most {GATEWAY_SETTING_CHARS_MAX} characters"
            raise GatewayInvalid(gateway=gateway, why=why)
        try:
            settings[name] = setting.read(text)
        except (ValueError, OverflowError) as error:
            raise GatewayInvalid(gateway=gateway, why=f"{name}: {error}") from None
    return settings
