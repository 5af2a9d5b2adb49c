"""Results of operations as documents, with the names of the command line's JSON.

The client of this package asks for encoded objects instead (``objects``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from postroom.interfaces.http.contract.kinds import EndedLease
from postroom.model.body import Format
from postroom.model.key import KeyTexts
from postroom.model.message import Message
from postroom.model.moment import to_iso, to_span
from postroom.model.rights import EVERYTHING
from postroom.queues.leases.leased import Leased
from postroom.queues.results import Listing, Received
from postroom.queues.sources import SourceShown
from postroom.room.journal import Entries
from postroom.room.queues import QueueHandle
from postroom.spheres.sending import SphereSent
from postroom.stations.places.network import CONTROL
from postroom.stations.queries.images import Answer as Images
from postroom.stations.station import Station
from postroom.store.kernel.policies import Policy
from postroom.store.tables.sources import Source


class Raw:
    """JSON text that is sent unchanged, so that numbers keep their digits."""

    def __init__(self, text: str) -> None:
        self.text = text


@dataclass(frozen=True)
class Answer:
    """``names`` are the members of the document; a result that is not a document itself gets one name.

    ``inside``, for a mapping, names the key and the value of each item. ``said`` are members that repeat an argument,
    or a function of it and the result.
    """

    names: tuple[str, ...] = ()
    inside: tuple[str, str] | None = None
    listed: bool = False  # one or none, as a list
    said: tuple[tuple[str, str], ...] = ()

    @property
    def every(self) -> tuple[str, ...]:
        """All names that the document always has."""
        return tuple(name for name, _ in self.said) + self.names

    def document(self, result: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The document of a result, without the status."""
        repeated = {name: _said(of, result, arguments) for name, of in self.said}
        return {**repeated, **self._told(result)} if self.names or not repeated else repeated

    def _told(self, result: Any) -> dict[str, Any]:
        if result is None and not self.names:
            return {}
        if self.inside is not None:
            key, value = self.inside
            return {self.names[0]: [{key: name, value: document_of(item)} for name, item in result.items()]}
        if type(result) is tuple and len(result) == len(self.names):
            return {name: document_of(item) for name, item in zip(self.names, result, strict=True)}
        if self.listed:
            return {self.names[0]: [] if result is None else [document_of(result)]}
        if isinstance(result, Images) and self.names == ("messages",):
            return result.as_messages()
        written = document_of(result)
        if isinstance(written, dict) and len(self.names) != 1:
            return written
        return written if isinstance(written, dict) and self.names[0] in written else {self.names[0]: written}


def answer(kind: str) -> Answer:
    """Read how an answer is written down.

    ``one two`` are the names of its members, ``name: key value`` is a mapping, ``name?`` may be missing, and
    ``name=of`` repeats another member.
    """
    names, _, inside = kind.removesuffix("?").partition(":")
    key_and_value = inside.split()
    pair = (key_and_value[0], key_and_value[1]) if key_and_value else None
    said = tuple((name, of) for name, is_said, of in (word.partition("=") for word in names.split()) if is_said)
    return Answer(tuple(word for word in names.split() if "=" not in word), pair, kind.endswith("?"), said)


#: What follows from a result or from what was asked for.
_FOLLOWS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "sum()": lambda result, _: sum(result.values()),
    "none()": lambda result, _: result is None,
    "until()": lambda result, _: to_iso(result.until),
    "files()": lambda _, arguments: len(arguments["files"]),
    "node()": lambda _, arguments: arguments.get("node", CONTROL),
    "object()": lambda _, arguments: arguments.get("object", EVERYTHING),
    "said()": lambda _, arguments: "processed" if arguments.get("processed") else "received",
}


def _said(of: str, result: Any, arguments: Mapping[str, Any]) -> Any:
    if of in _FOLLOWS:
        return _FOLLOWS[of](result, arguments)
    value = arguments.get(of)
    return "/".join(value) if isinstance(value, tuple) else document_of(value)


def document_of(value: Any) -> Any:
    """The JSON of some part of a result."""
    if isinstance(value, Message):
        return _message(value)
    if isinstance(value, (Received, Leased)):
        return {**value.as_dict(), "message": None if value.message is None else _message(value.message)}
    if isinstance(value, Listing):
        return {"messages": [_message(message) for message in value], "next": value.next}
    if isinstance(value, Entries):
        return {"events": [event.as_dict() for event in value], "next": value.next}
    known = next((kind for kind in _KNOWN if isinstance(value, kind)), None)
    if known is not None:
        return _KNOWN[known](value)
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return _plain(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "_asdict"):
        return {name: document_of(item) for name, item in value._asdict().items()}
    if is_dataclass(value):
        return {field.name: document_of(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): document_of(item) for name, item in value.items()}
    if isinstance(value, (Sequence, Iterator, frozenset)):
        return [document_of(item) for item in value]
    return str(value)


def _message(message: Message) -> dict[str, Any]:
    shape = message.as_dict()
    if message.format is Format.JSON and not isinstance(shape["body"], str):
        shape["body"] = Raw(message.body)
    return shape


_KNOWN: dict[type, Any] = {
    QueueHandle: lambda handle: "/".join(handle.names),
    Station: lambda station: station.name,
    Policy: lambda policy: policy._asdict(),
    EndedLease: lambda lease: lease.lease,
    Source: lambda source: SourceShown(source.name, not source.disabled, source.input, source.output).as_dict(),
    KeyTexts: list,
    SphereSent: lambda sent: {"key": sent.key, "compensation": sent.remembered},
    Enum: lambda member: member.value,
    datetime: to_iso,
    timedelta: lambda span: to_span(span // timedelta(microseconds=1)),
    bytes: lambda text: text.decode(errors="replace"),
}
