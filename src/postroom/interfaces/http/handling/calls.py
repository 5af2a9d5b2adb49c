"""Calls of a server: a method of the room, called as the user of the token, with arguments from the request."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

from postroom.errors import ArgumentInvalid
from postroom.interfaces.http.access import Caller
from postroom.interfaces.http.contract.operation import Operation
from postroom.interfaces.http.contract.operations import OPERATIONS, TAKING
from postroom.interfaces.http.handling import cloudevents, requests
from postroom.interfaces.http.handling.requests import JsonText
from postroom.interfaces.http.handling.responses import Header
from postroom.interfaces.http.waiting.handover import Deliver, leased
from postroom.interfaces.http.waiting.held import HeldSphere
from postroom.limits import CHECK_SECONDS_SERVED, LISTED_MAX, PAGE_ROWS, WAIT_SECONDS_MAX
from postroom.model.body import Format
from postroom.model.message import Draft, Message, cause_number, looks_like
from postroom.model.paths import reading_only
from postroom.queues.leases.leased import Leased, LeasedMessage
from postroom.queues.leases.tracing import TRACE
from postroom.queues.repeating import UsersKey
from postroom.queues.sending import Posting
from postroom.room import Postroom
from postroom.room.identity import acting_with

#: Of a send that goes the long way, alone in its commit.
WISHES = frozenset({"source", "priority", "delay", "at", "expires", "reply_to", "correlation", "wait"})
SEND_MANY = next(operation for operation in OPERATIONS if operation.name == "queues.send_many")
_LISTING = frozenset({"queues.peek", "queues.history", "station.messages", "journal.after", "consumers.leases"})
_OF_FILES = frozenset({"queues.sent_parts", "queues.send_part"})
_SENDING = frozenset({"queues.send", "queues.send_many", "queues.distribute"})


def read(
    operation: Operation, in_path: Mapping[str, str], query: bytes, headers: Mapping[str, str], body: bytes
) -> tuple[Operation, dict[str, Any]]:
    """The operation of a request and its arguments. A send of a batch of CloudEvents becomes ``send_many``."""
    if operation.name == "queues.send":
        if cloudevents.media_of(headers) == cloudevents.BATCH:
            named = requests.arguments(operation, in_path, query, headers, b'{"body": ""}')
            del named["body"]
            return SEND_MANY, {**named, "bodies": cloudevents.batch(body)}
        body = cloudevents.incoming(body, headers)
    return operation, requests.arguments(operation, in_path, query, headers, body)


def prepare(operation: Operation, arguments: dict[str, Any], caller: Caller, headers: Mapping[str, str]) -> None:
    """Complete the arguments from headers and the caller."""
    if arguments.get("idempotency_key"):  # each user has keys of their own
        arguments["idempotency_key"] = UsersKey.of(caller.name, arguments["idempotency_key"])
    if operation.name in _OF_FILES:  # and files of their own
        arguments["of_user"] = caller.name
    body = arguments.get("body")
    if isinstance(body, JsonText):
        arguments.setdefault("format", Format.JSON.value)
        arguments["body"] = str(body)
    trace = headers.get(TRACE)
    if trace is not None and operation.name in _SENDING and len(trace) <= 100 and trace.isascii():
        arguments["properties"] = {TRACE: trace} | (arguments.get("properties") or {})
    if operation.name in _LISTING:  # an answer is of bounded size; lines and pages have the rest
        limit = arguments.setdefault("limit", PAGE_ROWS)
        if limit > LISTED_MAX:
            raise ArgumentInvalid(argument="limit", why=f"1 to {LISTED_MAX} in one answer")


def posting(arguments: dict[str, Any], caller: Caller) -> Posting:
    """A send that shares its commit with others."""
    body, form = arguments["body"], arguments.get("format")
    draft = Draft.of(body, form, arguments.get("type"), arguments.get("properties"))
    cause = cause_number(None, arguments.get("cause"))
    unsaid = looks_like(body, form) is not Format.TEXT
    return Posting(arguments["queue"], draft, arguments.get("idempotency_key"), cause, caller.name, unsaid)


def called(operation: Operation, arguments: dict[str, Any], caller: Caller) -> Any:
    """Call the method as the caller."""
    room, arguments = caller.room, dict(arguments)
    with room.store.acting(caller.name), acting_with(caller.identity):
        if operation.name == "queues.send_many":
            return _send_many(room, **arguments)
        if operation.name == "spheres.compensate":  # an interval may be an hour, and a request is none
            return room._parts.monitor.compensator(arguments.get("check")).once(CHECK_SECONDS_SERVED)
        part = _part(room, operation, arguments)
        if "files" in arguments:
            return _with_files(operation, part, arguments)
        result = operation.call(part, arguments)
        return part if operation.name == "lease.extend" else result


def _part(room: Postroom, operation: Operation, arguments: dict[str, Any]) -> Any:
    if operation.part == "station":
        return room.stations.admitted(arguments.pop("station"))
    if operation.part == "client":
        return room.flows._user()
    if operation.part == "lease":
        return room.consumers.lease(arguments.pop("lease"))
    return getattr(room, operation.part)


def _send_many(
    room: Postroom,
    queue: tuple[str, ...],
    bodies: list[Any],
    format: str | None = None,
    type: str | None = None,
    properties: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Any:
    """Send bodies of a request, where texts and JSON may be mixed."""
    drafts = [
        body
        if isinstance(body, Draft)
        else Draft.of(str(body), format or ("json" if isinstance(body, JsonText) else None), type, properties)
        for body in bodies
    ]
    return room._parts.verbs.send_many(queue, drafts, idempotency_key, unsaid=format is None)


def _with_files(operation: Operation, part: Any, arguments: dict[str, Any]) -> Any:
    """Load definitions from uploaded texts only: no file of this machine is read."""
    texts, beside = arguments.pop("files"), arguments.pop("beside", {})
    with reading_only({**beside, **texts}):
        result = operation.call(part, {**arguments, "files": [Path(name) for name in texts]})
        return list(result) if operation.name == "definitions.try_out" else result


# --- what gives something out ---


def taking(operation: Operation, arguments: dict[str, Any], caller: Caller) -> Callable[[Deliver], Any]:
    """A function that tries the operation, called repeatedly while a client waits; it gets a function that delivers the
    result."""
    room = caller.room
    if operation.name == "consumers.receive_many":
        take = leased(room, arguments, lambda messages: messages)
    elif operation.name == "queues.receive" and arguments.get("lease") is not None:
        if arguments.keys() & {"segment", "area"}:
            raise ArgumentInvalid(argument="lease", why="a message that is leased is received whole; end it with done")
        take = leased(room, arguments, _one)
    elif operation.name in TAKING:

        def take(deliver: Deliver) -> Any:
            return operation.call(_part(room, operation, {}), {**arguments, "deliver": deliver})

    else:  # a send that waits for room

        def take(deliver: Deliver) -> Any:
            result = operation.call(_part(room, operation, {}), arguments)
            deliver(result)
            return result

    def acting(deliver: Deliver) -> Any:
        with room.store.acting(caller.name), acting_with(caller.identity):
            return take(deliver)

    return acting


def in_sphere(held: HeldSphere, operation: Operation, arguments: dict[str, Any]) -> Callable[[Deliver], Any]:
    """Like ``taking``, within a sphere, in the sphere's thread."""

    def take(deliver: Deliver) -> Any:
        message = held.do(lambda sphere: operation.call(sphere, arguments)).result()
        if message is not None:
            deliver(message)
        return message

    return take


def pause(room: Postroom, queue: tuple[str, ...] | None) -> float:
    """Seconds until something happens in a queue without notice: a lease ends, or a message is due."""
    return WAIT_SECONDS_MAX if queue is None else room._parts.leasing.pause(queue)


def question(operation: Operation, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Hashable:
    """A key that is equal for all who wait for the same with the same token, so that one call serves them all."""
    if operation.name not in TAKING or operation.part == "sphere":
        return None
    return headers.get("authorization", ""), operation.name, repr(sorted(arguments.items()))


def _one(messages: list[LeasedMessage]) -> Leased:
    return Leased(messages[0] if messages else None)


def trace(result: Any) -> list[Header]:
    """The trace header of a message."""
    message = result if isinstance(result, Message) else getattr(result, "message", None)
    header = message.properties.get(TRACE) if isinstance(message, Message) else None
    if not isinstance(header, str) or not header.isascii() or not header.isprintable():
        return []
    return [(TRACE.encode(), header.encode())]
