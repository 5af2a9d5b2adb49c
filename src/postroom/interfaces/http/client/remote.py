"""A room behind a server, with the parts of an open room: every verb of the table of operations is a request.

A method that is not in the table raises ``NotRemote``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from sys import maxsize
from threading import RLock
from typing import Any, Literal, NoReturn
from urllib.parse import urlencode

from postroom.errors import (
    ArgumentInvalid,
    FileUnreadable,
    LeaseOver,
    NotRemote,
    OutputFailed,
    PostroomError,
    PrincipalRefused,
    QueueFull,
)
from postroom.exchange.bulk import Intake
from postroom.interfaces.http.client.bodies import all_sent, as_published, as_sent, checked_properties, traced
from postroom.interfaces.http.client.files import RemoteIntake
from postroom.interfaces.http.client.leasing import RemoteLeasing, portions
from postroom.interfaces.http.client.link import Link, in_path
from postroom.interfaces.http.client.spheres import RemoteSphere, as_mailed_within, as_sent_within, bind
from postroom.interfaces.http.contract.objects import Objects
from postroom.interfaces.http.contract.operation import LOCAL, UNSENT, Operation
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.limits import (
    COLLECTION_BYTES_MAX,
    COMMIT_SECONDS,
    FLOW_BYTES_MAX,
    HEARTBEAT_SECONDS,
    LEASE_SECONDS,
    LISTED_MAX,
)
from postroom.model.arguments import check_call, check_methods
from postroom.model.definitions import Loaded
from postroom.model.message import Message
from postroom.model.paths import text_of
from postroom.model.types import FieldValue
from postroom.model.views import record
from postroom.queues.leases.keeping import Keeper
from postroom.queues.leases.leased import Leased, plain
from postroom.queues.leases.working import Workers
from postroom.queues.relocating import Relocated
from postroom.queues.results import Listing, Received
from postroom.queues.selectors import Selector
from postroom.queues.tree.addressing import names_of, said
from postroom.room import Postroom
from postroom.room.access import RoomAccess
from postroom.room.consumers import RoomConsumers
from postroom.room.definitions import RoomDefinitions
from postroom.room.engine import RoomEngine
from postroom.room.flows import RoomFlows
from postroom.room.gateways import RoomGateways
from postroom.room.journal import RoomJournal
from postroom.room.operations import RoomOperations
from postroom.room.paths import File
from postroom.room.queues import QueueHandle, RoomQueues
from postroom.room.spheres import RoomSpheres
from postroom.room.stations import RoomStations
from postroom.spheres.sphere import Sphere
from postroom.stations.queries.timeouts import check_timeout
from postroom.stations.station import Station
from postroom.store.upkeep import backup

_BY_NAME: dict[str, list[Operation]] = {}
for _operation in OPERATIONS:
    _BY_NAME.setdefault(_operation.name, []).append(_operation)
#: What is done to what a call says before it is sent.
_PREPARED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "queues.send": lambda arguments: as_sent(traced(arguments)),
    "queues.send_many": all_sent,
    "queues.distribute": as_sent,
    "sphere.send": as_sent_within,
    "sphere.mail": as_mailed_within,
    "queues.send_segments": checked_properties,
    "flows.publish": as_published,
    "consumers.schedule": as_sent,
    "definitions.try_message": as_sent,
}


def _has_queue(operation: Operation) -> bool:
    return any(parameter.name == "queue" and parameter.required for parameter in operation.parameters)


def _check_names(arguments: Mapping[str, Any]) -> None:
    """Raise, as the methods of a room do, for what cannot be in the path of a request."""
    if "queue" in arguments:
        names_of(said(arguments["queue"]))


class RemoteParts:
    """What the parts of a local room need; raises ``NotRemote`` for what a remote room lacks."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.leasing = RemoteLeasing(self)
        self.keeper = Keeper(self.leasing)
        self.workers = Workers()
        self.scheduling = _Scheduling()
        link.objects = Objects(self.leasing, partial(bind, self))

    def __getattr__(self, name: str) -> NoReturn:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        raise NotRemote(what=caller.f_code.co_name if caller is not None else name)

    def call(self, name: str, here: Any, given: tuple[Any, ...], named: Mapping[str, Any], **more: Any) -> Any:
        """Call a method of a part with its arguments, as an operation."""
        operation, arguments = operation_of(name, here, given, named, more)
        if "wait" in arguments:
            return self._until_room(operation, arguments)
        seconds = arguments.get("timeout")
        if seconds is not None:
            check_timeout(seconds)
        return self.link.call(operation, arguments, seconds or 0.0)

    def _until_room(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        """Call an operation that waits while a queue is full, repeatedly, because one request waits only so long."""
        for left in portions(arguments["wait"]):
            try:
                return self.link.call(operation, {**arguments, "wait": left}, left)
            except QueueFull as full:
                refusal = full
        raise refusal

    async def ask(self, name: str, arguments: Mapping[str, Any], wait: float = 0.0) -> Any:
        """Call an operation with named arguments, for asyncio."""
        return await self.link.ask(_BY_NAME[name][0], arguments, wait)

    async def ask_call(self, name: str, here: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Like ``call``, for asyncio."""
        operation, arguments = operation_of(name, here, given, named, {})
        return await self.link.ask(operation, arguments, arguments.get("wait") or 0.0)

    def verb(self, name: str, _wait: float = 0.0, /, **given: Any) -> Any:
        """Call an operation with named arguments."""
        arguments = {key: value for key, value in given.items() if value is not None}
        _check_names(arguments)
        return self.link.call(_BY_NAME[name][0], arguments, _wait)

    def waiting(self, name: str, arguments: Mapping[str, Any], wait: float | None) -> Any:
        """Call an operation repeatedly until the wait is over, because one request waits only so long."""
        result = None
        _check_names(arguments)
        for left in portions(wait):
            result = self.link.call(_BY_NAME[name][0], {**arguments, "wait": left}, left)
            if result:
                break
        return result


class _Scheduling:
    """Does nothing: the server's engine sends what is due."""

    def fire(self) -> int:
        return 0


def operation_of(
    name: str, here: Any, given: tuple[Any, ...], named: Mapping[str, Any], more: Mapping[str, Any]
) -> tuple[Operation, dict[str, Any]]:
    """The operation of a call and its arguments; ``more`` are those in the path."""
    known = _BY_NAME[name]
    check_call(known[0].function, given, named)
    arguments = _PREPARED.get(name, dict)(_given(known[0], known[0].signature.bind(here, *given, **named))) | dict(more)
    if all(_has_queue(operation) for operation in known):
        arguments.setdefault("queue", ())
    _check_names(arguments)
    operation = _fitting(known, arguments)
    strange = set(arguments) - {parameter.name for parameter in operation.parameters}
    if strange:
        raise NotRemote(what=f"{operation.verb} with {', '.join(sorted(strange))}")
    return operation, arguments


def _given(operation: Operation, bound: inspect.BoundArguments) -> dict[str, Any]:
    """The arguments of a call without defaults."""
    values: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        parameter = operation.signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values |= _by_any_name(operation, name, value, values)
        elif value is not parameter.default and name in UNSENT:
            raise NotRemote(what=f"{operation.verb} with {name}")
        elif value is parameter.default or value == () or name in LOCAL:
            continue
        elif callable(value):
            if not inspect.signature(value).parameters:  # a password that someone is asked for
                values[name] = value()
        else:
            values[name] = value
    for sent in operation.parameters:
        several = operation.signature.parameters.get(sent.name)
        if several is not None and several.kind is several.VAR_POSITIONAL and sent.where == "body":
            values.setdefault(sent.name, ())  # none of them: the method says whether that is enough
    return values


def _by_any_name(operation: Operation, name: str, value: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    known = {parameter.name for parameter in operation.parameters}
    if "fields" in known:
        return {"fields": {**values.get("fields", {}), **value}}
    return {name: value} if name in known else value


def _fitting(known: Sequence[Operation], arguments: Mapping[str, Any]) -> Operation:
    """The operation of a method whose path uses most of the given arguments."""
    fitting = [
        operation
        for operation in known
        if all(parameter.name in arguments for parameter in operation.parameters if parameter.where == "path")
    ]
    if not fitting:
        names = ", ".join(parameter.name for parameter in known[0].parameters if parameter.where == "path")
        raise ArgumentInvalid(argument=names, why="it is missing")
    return max(fitting, key=lambda operation: operation.path.count("{"))


def _verbs(part: str, keeps: str = "") -> Callable[[type], type]:
    """Give a class a method for each operation of its part that it does not define itself.

    Methods in ``keeps`` are inherited, because they use other methods. All others raise ``NotRemote``.
    """

    def decorate(kind: type) -> type:
        own = {*vars(kind), *keeps.split()}
        for verb in {verb for base in kind.__mro__[1:-1] for verb, it in vars(base).items() if callable(it)}:
            if not verb.startswith("_") and verb not in own:
                name = f"{part}.{verb}"
                setattr(kind, verb, _method(name, verb) if name in _BY_NAME else _impossible(verb))
        for name in _BY_NAME:
            verb = name.partition(".")[2]
            if name.startswith(f"{part}.") and verb not in own:
                setattr(kind, verb, _method(name, verb))
        return kind

    return decorate


def _impossible(verb: str) -> Callable[..., NoReturn]:
    def method(self: Any, *given: Any, **named: Any) -> NoReturn:
        raise NotRemote(what=verb)

    method.__name__ = verb
    return method


def _method(name: str, verb: str) -> Callable[..., Any]:
    def method(self: Any, *given: Any, **named: Any) -> Any:
        return self._parts.call(name, self, given, named, **self._place)

    method.__name__ = verb
    return method


class _Remote:
    """A remote part. Some belong to a place, which is in the path of their operations and not a parameter."""

    _parts: Any
    _place: dict[str, Any] = {}  # noqa: RUF012  # never changed


@_verbs("queues", keeps="handle accept info export frame send_file")
@check_methods
class RemoteQueues(_Remote, RoomQueues):
    def create(
        self, name: str, *, keep_processed: bool = True, password: str | None = None, exist_ok: bool = False
    ) -> QueueHandle:
        given = {"name": name, "keep_processed": keep_processed, "exist_ok": exist_ok, "password": password}
        self._parts.verb("queues.create", **given)
        return QueueHandle(self, (name,))

    def receive(  # type: ignore[override]  # one body for both of its results
        self,
        *queue: str,
        segment: bool = False,
        wait: float | None = None,
        deliver: Callable[[Received], None] | None = None,
        area: int | None = None,
        lease: float | Literal[True] | None = None,
        where: str | None = None,
    ) -> Received | Leased:
        """Like the local method; without ``deliver`` it is final when the response arrives.

        With ``deliver`` the message is leased, and received when that function has returned. If the process ends
        before, it goes back when the lease is over. A segment or portion cannot be leased, so it cannot be delivered.
        """
        if not queue:
            raise ArgumentInvalid(argument="queue", why="say which queue to receive from")
        if deliver is not None and (segment or area is not None):
            raise NotRemote(what="receiving segments or portions with deliver")
        wishes = {"queue": queue, "segment": segment or None, "area": area, "lease": lease, "where": where}
        if lease is not None and (segment or deliver is not None or area is not None):
            raise ArgumentInvalid(
                argument="lease", why="a message that is leased is received whole; end it with done()"
            )
        if deliver is not None:
            return self._delivered(queue, wait, where, deliver)
        arguments = {name: value for name, value in wishes.items() if value is not None}
        received: Received | Leased = self._parts.waiting("queues.receive", arguments, wait)
        return received

    def _delivered(
        self, queue: tuple[str, ...], wait: float | None, where: str | None, deliver: Callable[[Received], None]
    ) -> Received:
        """Lease the next message while ``deliver`` has it, then end the lease: done, or given back."""
        chosen = Selector.of(where)
        leased = self._parts.leasing.receive(queue, seconds=LEASE_SECONDS, wait=wait, where=chosen)
        if not leased:
            return Received(None, passed=("/".join(queue),))
        (message,) = leased
        received = Received(plain(message), end_of_message=True)
        try:
            with self._parts.keeper.keeping(message):
                deliver(received)
        except BaseException as error:
            try:
                message.release()
            except PostroomError as failure:  # its time gives it back
                error.add_note(f"message {message.key} is not yet back in its place ({failure})")
            raise
        try:
            message.done()
        except LeaseOver:
            why = "this took so long that others can receive it again"
            raise OutputFailed(key=message.key, queue=message.queue, why=why) from None
        return received

    def _intake(self, queue: Sequence[str]) -> Intake:
        return RemoteIntake(self._parts, queue)

    def peek(
        self, *queue: str, limit: int | None = None, where: str | None = None, after: str | None = None
    ) -> Listing:
        return self._listing("peek", queue, limit, after, {} if where is None else {"where": where})

    def history(self, *queue: str, limit: int | None = None, after: str | None = None) -> Listing:
        return self._listing("history", queue, limit, after, {}, processed="true")

    def _listing(
        self,
        verb: str,
        queue: Sequence[str],
        limit: int | None,
        after: str | None,
        chosen: Mapping[str, str],
        **lines: str,
    ) -> Listing:
        first = 1 if limit is None or limit > LISTED_MAX else limit
        given = {"queue": queue, "limit": first, "after": after, **chosen}
        listing: Listing = self._parts.verb(f"queues.{verb}", **given)  # what is wrong is told now
        if first == limit:
            return listing
        if after is not None:
            raise ArgumentInvalid(argument="limit", why=f"a page has 1 to {LISTED_MAX} messages")
        query = urlencode({**chosen, **lines}, errors="surrogatepass")
        path = f"/queues/{in_path('/'.join(queue))}/lines{'?' if query else ''}{query}"
        return Listing(lambda: _first(self._parts.link.lines(path), limit))


def _first(lines: Iterator[Message], limit: int | None) -> Iterator[Message]:
    """The first so many; the connection is released with the last one."""
    try:
        yield from islice(lines, None if limit is None else min(limit, maxsize))
    finally:
        lines.close()  # type: ignore[attr-defined]  # it is a generator


@_verbs("consumers", keeps="receive_many done_many lease each work worker run drain stop")
class RemoteConsumers(_Remote, RoomConsumers):
    def redrive(self, *queue: str, edit: Any = None, **options: Any) -> Relocated:
        """Like the local method; an ``edit`` function is called here, with each message."""
        check_call(RoomConsumers.redrive, queue, {**options, "edit": edit})
        if callable(edit):
            chosen, limit = options.get("keys"), options.get("limit")
            waiting = (
                message for message in RemoteQueues(self._parts).peek(*queue) if chosen is None or message.key in chosen
            )
            bodies = {message.key: edit(message) for message in islice(waiting, limit)}
            edit = {key: body for key, body in bodies.items() if body is not None}
        done: Relocated = self._parts.call("consumers.redrive", self, queue, {**options, "edit": edit or None})
        return done


@_verbs("journal")
class RemoteJournal(_Remote, RoomJournal):
    def fields(self, message: Message) -> dict[str, FieldValue]:
        name = message.type
        if name is None:
            raise ArgumentInvalid(argument="message", why=f"{message.key} has no type")
        types = {type_version.name: type_version.type for type_version in self._parts.verb("definitions.types")}
        return record(message.body, message.format, types[name])


@_verbs("definitions")
class RemoteDefinitions(_Remote, RoomDefinitions):
    def load(self, *files: File, **options: Any) -> Loaded:
        loaded: Loaded = self._with_beside("load", files, options)
        return loaded

    def check(self, *files: File) -> int:
        count: int = self._with_beside("check", files, {})
        return count

    def try_out(self, *files: File, **options: Any) -> Iterator[Any]:
        return iter(self._with_beside("try_out", files, options))

    def _with_beside(self, verb: str, files: Sequence[File], options: Mapping[str, Any]) -> Any:
        """Send the files that definitions refer to, when the server asks for them and they really are referred to."""
        beside: dict[str, str] = {}
        check_call(getattr(RoomDefinitions, verb), tuple(files), options)
        texts = [text_of(Path(file), FLOW_BYTES_MAX) for file in files]
        while True:
            try:
                return self._parts.call(f"definitions.{verb}", self, tuple(files), options, beside=beside)
            except FileUnreadable as error:
                name = str(error.facts["file"])
                folders = [Path(file).parent for file, text in zip(files, texts, strict=True) if name in text]
                if name in beside or not folders:
                    raise
                beside[name] = text_of(folders[0] / name, COLLECTION_BYTES_MAX)


@_verbs("operations")
class RemoteOperations(_Remote, RoomOperations):
    def lag(self) -> int:
        return sum(self.lags().values())

    def backup(self, file: Any, *, replace: bool = False, check: bool = True, progress: Any = None) -> Any:
        """Like the local method: the server makes the copy, and it is verified again here."""

        def copy(making: Path) -> None:
            with making.open("wb") as out:
                for piece in self._parts.link.pieces("/backup"):
                    out.write(piece)

        return backup.kept(Path(file).absolute(), copy, replace=replace, check=check)


@_verbs("client")
class RemoteClient(_Remote):
    """The user of the token as a client."""

    def __init__(self, parts: RemoteParts, name: str) -> None:
        self._parts = parts
        self.name = name

    def publish(self, space: str, event: Any, *, idempotency_key: str | None = None) -> Any:
        """Publish one event."""
        return self._parts.verb("flows.publish", space=space, event=event, idempotency_key=idempotency_key)

    def publish_many(self, space: str, events: Any, *, idempotency_key: str | None = None) -> Any:
        """Publish many events in one commit: all of them, in their order, or none."""
        arguments = {"space": space, "events": events, "idempotency_key": idempotency_key}
        return self._parts.verb("flows.publish_many", **arguments)

    def receive(self, wait: float | None = None, *, deliver: Callable[[Received], None] | None = None) -> Received:
        """The next event that an arc has delivered. It is final when the response arrives."""
        if deliver is not None:  # the space of a client cannot be leased from
            raise NotRemote(what="receiving events with deliver")
        received: Received = self._parts.waiting("client.receive", {}, wait)
        return received

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRemote(what=f"{name} of a client")


@_verbs("flows")
class RemoteFlows(_Remote, RoomFlows):
    def client(self, name: str, password: str | None = None, *, broker: str | None = None) -> Any:
        """The user of the token, by its name: a server knows who calls, and asks for no password."""
        if broker is not None:
            raise NotRemote(what="a client at another broker")
        if password is not None:
            why = "through a server no password is asked for: open the room with a token of this user"
            raise PrincipalRefused(principal=name, why=why)
        user = self._parts.link.user()
        if name != user:
            why = f"the token is that of {user}: open the room with a token of {name}"
            raise PrincipalRefused(principal=name, why=why)
        return RemoteClient(self._parts, name)


@_verbs("gateways")
class RemoteGateways(_Remote, RoomGateways):
    pass


@_verbs("station")
class RemoteStation(_Remote, Station):
    def __init__(self, parts: Any, name: str) -> None:
        self._parts = parts
        self.name = name
        self.node = "server"
        self._place = {"station": name}

    def count(self, type: str, fields: Mapping[str, str] | None = None, **options: Any) -> int:
        return self.numbered_count(type, fields, **options)[1]

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRemote(what=f"this of station {self.name}")


@_verbs("stations", keeps="form_of")
class RemoteStations(_Remote, RoomStations):
    def at(
        self,
        name: str,
        password: str | None = None,
        *,
        token: str | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
    ) -> Station:
        """A station that the user of the token may work at; it needs no password of its own."""
        return RemoteStation(self._parts, name)

    def admitted(self, name: str) -> Station:
        return RemoteStation(self._parts, name)

    def add(self, name: str, password: str, node: str = "control") -> Station:
        self._parts.verb("stations.add", name=name, password=password, node=node)
        return RemoteStation(self._parts, name)


@_verbs("spheres")
class RemoteSpheres(_Remote, RoomSpheres):
    def open(
        self, id: str | None = None, *, heartbeat: float = HEARTBEAT_SECONDS, commit_within: float = COMMIT_SECONDS
    ) -> Sphere:
        given = {"id": id, "heartbeat": heartbeat, "commit_within": commit_within}
        opened: str = self._parts.verb("spheres.open", **given)
        return RemoteSphere(self._parts, opened, heartbeat, commit_within)

    def is_state(self, queue: Sequence[str]) -> bool:
        return False


@_verbs("engine")
class RemoteEngine(_Remote, RoomEngine):
    pass


@_verbs("access")
class RemoteAccess(_Remote, RoomAccess):
    pass


class RemoteRoom(Postroom):
    """A room behind a server. It has the parts of a room; what cannot be done from afar raises ``NotRemote``."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._link = Link(url, token)
        parts: Any = RemoteParts(self._link)
        self._parts = parts
        self.lock = RLock()
        self.url = self._link.url
        self.queues = RemoteQueues(parts)
        self.consumers = RemoteConsumers(parts, self)
        self.journal = RemoteJournal(parts)
        self.definitions = RemoteDefinitions(parts)
        self.operations = RemoteOperations(parts)
        self.flows = RemoteFlows(parts)
        self.gateways = RemoteGateways(parts)
        self.stations = RemoteStations(parts)
        self.spheres = RemoteSpheres(parts)
        self.engine = RemoteEngine(parts)
        self.access = RemoteAccess(parts)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRemote(what=f"the attribute {name} of a room")

    def close(self) -> None:
        """Close the connections; closing again does nothing."""
        self._link.close()
