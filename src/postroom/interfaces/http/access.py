"""Authentication and rights: the identity of a token, cached until a right changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from postroom.errors import ArgumentInvalid, TokenRefused
from postroom.interfaces.http.contract.operation import ANY, Need, Operation
from postroom.limits import IDENTITIES_KNOWN_MAX
from postroom.model.place import place_of
from postroom.model.rights import EVERYTHING, VERBS
from postroom.queues import redriving
from postroom.queues.tree.addressing import said
from postroom.room import Postroom
from postroom.room.identity import Identity
from postroom.spheres.sending import Compensation
from postroom.store.kernel.owner import process_token
from postroom.store.tables.schedules import Schedule


class Caller(NamedTuple):
    """A user with a valid token, and the room as that user sees it."""

    identity: Identity
    expires: datetime | None
    room: Postroom

    @property
    def name(self) -> str:
        return self.identity.principal


class Callers:
    """Cached callers by token. When any right changes, only the fact that a token was valid is kept."""

    def __init__(self, room: Postroom) -> None:
        self._room = room
        self._version = room.access.version()
        self._changing = Lock()
        self._known: dict[str, Caller] = {}
        self._earlier: set[str] = set()  # tokens that were known before a right has changed
        self._rooms: dict[str, Postroom] = {}
        self._allowed: set[tuple[str, str, str]] = set()  # token, verb, object

    def refresh(self) -> None:
        """Check whether a right has changed; called at every change of the room, and after a local change of rights."""
        version = self._room.access.version()
        with self._changing:
            if version > self._version:  # of two who look at a time, one may have looked before the other
                self._forget()  # first: whoever sees the new version finds nothing that is older
                self._version = version

    @property
    def version(self) -> int:
        """The version of the cached rights; read it before checking a right, and pass it to ``confirm``."""
        return self._version

    def holds(self, authorization: str, version: int) -> bool:
        """Whether rights of a version are unchanged as far as is known here; does not read the store."""
        return version == self._version and self.known(authorization) is not None

    def confirm(self, authorization: str, version: int, allow: Callable[[Caller], None]) -> int:
        """Raise unless what was allowed in a version still is; returns the current version."""
        self.refresh()
        if self.holds(authorization, version):
            return version
        now = self._version
        allow(self.find(authorization))
        return now

    def _forget(self) -> None:
        known = self._known.keys()
        self._earlier = {*known, *self._earlier} if len(self._earlier) < IDENTITIES_KNOWN_MAX else set(known)
        self._known, self._allowed = {}, set()

    def is_stranger(self, authorization: str) -> bool:
        """Whether a token was never valid here. A change of rights makes no stranger of its user."""
        return authorization not in self._earlier

    def known(self, authorization: str) -> Caller | None:
        """The cached caller of a header, if still valid; does not read the store."""
        caller = self._known.get(authorization)
        if caller is not None and caller.expires is not None and caller.expires <= datetime.now(UTC):
            return None
        return caller

    def find(self, authorization: str) -> Caller:
        """The caller of a header; raises if the token is invalid."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise TokenRefused(why="none was given; set POSTROOM_TOKEN, or send the header Authorization: Bearer TOKEN")
        version = self._version
        try:
            identity, expires = self._room.access.identify(token.strip())
        except TokenRefused:  # revoked, perhaps: from now on it is one of those that are tried
            self._earlier.discard(authorization)
            raise
        caller = Caller(identity, expires, self._seen_by(identity.principal))
        with self._changing:
            if version == self._version:
                if len(self._known) >= IDENTITIES_KNOWN_MAX:
                    self._forget()
                self._known[authorization] = caller
        return caller

    def named(self, name: str) -> Caller:
        """The caller with a name that was authenticated without a token."""
        return Caller(self._room.access.identity(name), None, self._seen_by(name))

    def _seen_by(self, name: str) -> Postroom:
        if name not in self._rooms:
            self._rooms[name] = self._room.seen_by(name, f"{process_token()}/{name}")
        return self._rooms[name]

    def is_allowed(self, authorization: str, operation: Operation, object: str) -> bool:
        """Whether exactly this was allowed before, and no right has changed since."""
        return _is_plain(operation) and (authorization, operation.right, object) in self._allowed

    def was_allowed(self, authorization: str, verb: str, queue: Sequence[str]) -> bool:
        """Whether an operation with one right for one queue was allowed before, and no right has changed since."""
        return (authorization, verb, "/".join(queue)) in self._allowed

    def allow(self, caller: Caller, authorization: str, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Raise unless the caller may call an operation."""
        version = self._version
        for need in operation.needs:
            if operation.name == "consumers.schedules":
                self._require_schedules(caller.identity)
            elif operation.name == "consumers.unschedule":
                self._require_schedule(caller.identity, str(arguments["name"]))
            else:
                self._require(caller.identity, need, arguments)
        if operation.name == "consumers.redrive" and arguments.get("to") is None:
            self._require_origins(caller.identity, arguments)
        if operation.name == "journal.trace" and arguments.get("causes"):  # anyone may name a cause
            caller.identity.require("look", EVERYTHING)
        if _is_plain(operation):
            self._note(version, authorization, operation.right, arguments["queue"])

    def require(
        self, caller: Caller, need: Need, arguments: Mapping[str, Any], authorization: str | None = None
    ) -> None:
        """Raise unless the caller has a right; caches the result by token."""
        version = self._version
        self._require(caller.identity, need, arguments)
        if authorization is not None and need.of == "queue":
            self._note(version, authorization, need.verb, arguments["queue"])

    def had(self, authorization: str, need: Need, arguments: Mapping[str, Any]) -> bool:
        """Whether a right for a queue was found before, and no right has changed since."""
        return need.of == "queue" and self.was_allowed(authorization, need.verb, arguments["queue"])

    def _note(self, version: int, authorization: str, verb: str, queue: Sequence[str]) -> None:
        with self._changing:
            if version == self._version and len(self._allowed) < IDENTITIES_KNOWN_MAX:
                self._allowed.add((authorization, verb, "/".join(queue)))

    def _require(self, identity: Identity, need: Need, arguments: Mapping[str, Any]) -> None:
        verb, of = need
        if of is None:
            identity.require(verb, EVERYTHING)
        elif of == ANY:
            identity.require_any(verb)
        elif of in ("lease", "number", "messages"):
            self._require_leases(identity, verb, arguments[of])
        elif of == "key":
            for names in self._places(str(arguments["key"])):
                identity.require(verb, *names)
        elif arguments.get(of) is not None:
            for names in self._named(verb, arguments[of]):
                identity.require(verb, *names)

    def _require_leases(self, identity: Identity, verb: str, leases: Any) -> None:
        """Raise unless the user may receive from the queues of these leases.

        Only such users learn that a lease is over.
        """
        identity.require_any(verb)
        for lease in leases if isinstance(leases, list) else [leases]:
            number = lease if isinstance(lease, int) else lease.lease
            queue = self._room.consumers.lease(number).queue
            for names in self._room.access.names(queue):
                identity.require(verb, *names)

    def _require_origins(self, identity: Identity, arguments: Mapping[str, Any]) -> None:
        """Raise unless the user may send to the queues where redriven messages failed."""
        names, keys = tuple(arguments["queue"]), arguments.get("keys")
        for queue in sorted(self._room.store.read(partial(redriving.origins, names, keys))):
            for aliases in self._queues(queue):
                identity.require("send", *aliases)

    def _require_schedules(self, identity: Identity) -> None:
        """Raise unless the user may see schedules: for queues that he may look into or manage."""
        if not identity.has_any("manage"):
            identity.require_any("look")

    def _require_schedule(self, identity: Identity, name: str) -> None:
        """Raise unless the user may manage the queue of a schedule."""
        queue = next((schedule.queue for schedule in self._room.consumers.schedules() if schedule.name == name), None)
        if queue is None:  # whoever may do it with everything learns that there is none
            identity.require("manage", EVERYTHING)
        else:
            self._require(identity, Need("manage", "queue"), {"queue": tuple(queue.split("/"))})

    def seen(self, identity: Identity, schedules: Sequence[Schedule]) -> list[Schedule]:
        """The schedules that a user may see."""
        return [schedule for schedule in schedules if self._sees(identity, schedule.queue)]

    def _sees(self, identity: Identity, queue: str) -> bool:
        objects = self._queues(tuple(queue.split("/")))
        return any(all(identity.why_not(verb, *names) is None for names in objects) for verb in ("look", "manage"))

    def _named(self, verb: str, value: Any) -> list[tuple[str, ...]]:
        """The objects of an argument, each with all its names."""
        if VERBS[verb] != "queue":
            return [(str(value),)]
        if isinstance(value, Compensation):
            return [] if value.queue is None else self._queues(value.queue)
        several = value if isinstance(value, list) else [value]
        return [names for queue in several for names in self._queues(queue)]

    def _queues(self, queue: str | Sequence[str]) -> list[tuple[str, ...]]:
        names = said(queue)
        try:
            return self._room.access.names(*names)
        except ArgumentInvalid:  # what is no name has no owner; the verb says what is wrong with it
            return [("/".join(names),)]

    def _places(self, key: str) -> list[tuple[str, ...]]:
        """Every queue that a message has been in: to see the message, a user needs the right to look into all of
        them."""
        events = self._room.journal.trace(key)
        queues = {place for event in events for place in (event.source, event.target) if place is not None}
        places: list[tuple[str, ...]] = [(EVERYTHING,)] if not queues else []
        for queue in sorted(queues):
            places += self._room.access.names(queue) if place_of(queue) == queue else [(queue,)]
        return places


def _is_plain(operation: Operation) -> bool:
    return operation.rights in ("look", "send", "receive", "manage") and operation.of == "queue"
