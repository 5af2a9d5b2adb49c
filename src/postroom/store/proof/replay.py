"""Replays the journal from its beginning: where every message must be now, in which state, and more.

It reads no other table, so the result can be compared with them (``verification.py``), which finds missing and
duplicate lines. Bodies are only in message rows, under a hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from postroom.model.key import key_text
from postroom.store.kernel.journal import FORGET, NOTES, RETURN, STAYS, Line
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.policies import Policy
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transfers import HANDED_OVER

T = TypeVar("T")
#: States in which a message is not among those that can be received, and the lines that may follow.
_ENDS: Mapping[int, tuple[str, ...]] = {
    State.PROCESSED: ("sent", "not-sent"),
    State.RESERVED: ("take", "give-back"),
    State.LEASED: ("take", "release", "lapse", "fail", "dead-letter"),
    State.DELAYED: ("due", "dead-letter", "expire", "move", "purge", "redrive"),
    State.BLOCKED: ("unblock", "dead-letter", "expire", "move", "purge", "redrive"),
}

#: Lines by which a message comes to a queue with what was asked for it.
_ASKED = ("put", "move", "redrive", "dead-letter")


class Place(NamedTuple):
    """Where a message is."""

    queue: int
    state: int
    position: int
    number: int  # among the arrivals of its queue
    last: int  # its newest line
    processed: int | None  # when
    attempts: int = 0  # how often it was leased and not given back unworked
    priority: int = 0
    due: int | None = None
    expires: int | None = None
    lane: str | None = None  # the key whose order it keeps, while it is leased or waits


class Settings(NamedTuple):
    """The settings of a queue."""

    name: str
    kind: str
    path: str
    ordinal: int
    keep: int
    command: str | None
    command_seconds: int | None = None
    hold: int = Hold.NONE
    retired: int = 0
    door: int = 0


class Counts(NamedTuple):
    arrivals: int = 0
    departed: int = 0
    processed: int = 0


class Broken(NamedTuple):
    """A line that contradicts those before it."""

    line: int
    why: str


@dataclass
class Told:
    """The result of a replay. Queues are identified by number, messages by key number."""

    lines: int = 0
    messages: dict[int, Place] = field(default_factory=dict)
    departed: dict[int, int] = field(default_factory=dict)  # the last line of each
    came: dict[int, int] = field(default_factory=dict)  # by which line each message came to where it is
    queues: dict[int, Settings] = field(default_factory=dict)
    counts: dict[int, Counts] = field(default_factory=dict)
    locks: dict[int, tuple[int, int]] = field(default_factory=dict)  # by queue: message and segment
    tokens: dict[tuple[str, str], int] = field(default_factory=dict)  # by machine and entity: message
    dossiers: dict[int, set[tuple[int, str]]] = field(default_factory=dict)  # by message: station and name
    timers: dict[int, tuple[str, int]] = field(default_factory=dict)  # kind, due
    outbox: dict[int, tuple[str, int]] = field(default_factory=dict)  # state, attempts
    nodes: set[str] = field(default_factory=set)
    gateways: dict[str, str] = field(default_factory=dict)  # and their transports
    stations: dict[str, str] = field(default_factory=dict)
    principals: set[tuple[str, str]] = field(default_factory=set)
    version: int = 0
    handed: set[int] = field(default_factory=set)  # of the departed, those that went to another store
    archives: dict[int, str] = field(default_factory=dict)  # by the number of their last line: digest
    retentions: dict[str, int] = field(default_factory=dict)
    leases: dict[int, int] = field(default_factory=dict)  # by number: message
    policies: dict[int, str] = field(default_factory=dict)  # by queue
    schedules: dict[str, int] = field(default_factory=dict)  # when each is due next
    older: list[int] = field(default_factory=list)  # lines of earlier versions that did not say all; tables filled in
    unknown: int | None = None  # the first of these that no table could help
    broken: list[Broken] = field(default_factory=list)


class Tables(NamedTuple):
    """Stored data for lines of earlier versions that did not record it: new queues, and what a sweep deleted."""

    queues: Mapping[int, Settings]
    departed: Callable[[], Mapping[int, int]]  # key and last line
    tokens: Mapping[int, tuple[str, str]]  # by message


def told(lines: Iterable[Line], begin: Told | None = None, tables: Tables | None = None) -> Told:
    """Replay a whole journal, or one with a known beginning."""
    replay = Replay(begin, tables)
    for line in lines:
        replay.hear(line)
    return replay.told


class Replay:
    """Replays lines one after another."""

    def __init__(self, begin: Told | None = None, tables: Tables | None = None) -> None:
        self.told = Told() if begin is None else begin
        self.left: dict[int, int] = {}  # the numbers of messages that were taken and are gone
        self._tables = tables
        self._of_message: dict[str, Callable[[Line, Place], None]] = {
            "take": self._take,
            "reserve": self._reserve,
            "give-back": self._give_back,
            "set-aside": self._set_aside,
            **dict.fromkeys(NOTES, self._note),
            **dict.fromkeys(STAYS, self._deliver),
        }
        self._of_room: dict[str, Callable[[Line, dict[str, Any]], None]] = {
            "create-queue": self._create_queue,
            "change-queue": self._change_queue,
            "retire-queue": self._retire_queue,
            "hold": self._hold,
            "release": self._hold,
            "mode": self._mode,
            "door": self._door,
            "unlock": self._unlock,
            "purge": self._purge,
            "sweep": self._sweep,
            "timer": self._timer,
            "timer-done": self._timer_done,
            "effect": self._effect,
            "attempt": self._attempt,
            "failed": self._failed,
            "retry": self._effect,
            "done": self._effect_gone,
            "drop": self._effect_gone,
            "add-node": self._add_node,
            "remove-node": self._remove_node,
            "add-gateway": self._add_gateway,
            "remove-gateway": self._remove_gateway,
            "add-station": self._add_station,
            "remove-station": self._remove_station,
            "password": self._password,
            "remove-password": self._remove_password,
            "load": self._load,
            "beats": self._beats,
            "archive": self._archive,
            "retention": self._retention,
            "policy": self._policy,
            "schedule": self._schedule,
            "remove-schedule": self._remove_schedule,
        }

    def hear(self, line: Line) -> None:
        self.told.lines += 1
        try:
            if line.message is not None:
                self._message(line, line.message)
                return
            heard = self._of_room.get(line.verb)
            if heard is not None:
                heard(line, _detail(line))
        except KeyError as missing:  # it speaks of what is not there, or does not say what it must
            self._break(line, f"{line.verb!a} without {missing}")
        except (ValueError, TypeError, AssertionError, StopIteration) as nonsense:
            self._break(line, f"{line.verb!a} makes no sense ({type(nonsense).__name__})")

    def _break(self, line: Line, why: str) -> None:
        self.told.broken.append(Broken(line.seq, why))

    # --- messages ---

    def _message(self, line: Line, key: int) -> None:
        told = self.told
        place = told.messages.get(key)
        known = told.departed.get(key) if place is None else place.last
        if line.prior != known:
            self._break(line, f"{line.verb} of {key_text(key)} follows line {line.prior}, and its last was {known}")
        if line.verb == RETURN:
            self._return(line, key, place)
            return
        if place is None:
            if line.source is not None or line.target is None:
                self._break(line, f"{line.verb} of {key_text(key)}, which is nowhere")
            told.departed.pop(key, None)  # it has come back
            told.handed.discard(key)
            if line.target is not None:
                self._arrive(line, key, line.target)
            return
        ended = line.verb in _ENDS.get(place.state, ())
        if line.source != place.queue or not (ended or place.state == State.UNPROCESSED):
            self._break(line, f"{line.verb} of {key_text(key)} in queue {line.source}, and it was in {place.queue}")
        if line.target is None:
            self._leave(line, key, place)
            del told.messages[key]
            told.came.pop(key, None)
            told.departed[key] = line.seq
            self._gone(line, key, place)
            return
        heard = self._of_message.get(line.verb)
        if heard is None:
            self._move(line, place)
        else:
            if line.target != place.queue:
                self._break(line, f"{line.verb} of {key_text(key)} brings it to queue {line.target}")
            heard(line, place)

    def _gone(self, line: Line, key: int, place: Place) -> None:
        if line.verb == "take":
            self.left[key] = place.number
        elif line.verb == HANDED_OVER:
            self.told.handed.add(key)
        elif line.verb == FORGET and line.detail is not None:
            detail = _detail(line)
            machine = detail["machine"] if (detail["machine"], detail["entity"]) in self.told.tokens else ""
            self.told.tokens.pop((machine, detail["entity"]), None)  # lines of earlier versions did not say the machine

    def _arrive(self, line: Line, key: int, queue: int) -> None:
        told = self.told
        counts = told.counts.get(queue, Counts())
        number = counts.arrivals + 1
        told.counts[queue] = counts._replace(arrivals=number)
        place = told.messages[key] = Place(queue, State.UNPROCESSED, line.seq, number, line.seq, None)
        told.came[key] = line.seq
        if line.detail is not None:
            self._arrive_saying(line, key, place)

    def _arrive_saying(self, line: Line, key: int, place: Place) -> None:
        detail = _detail(line)
        if "dossier" in detail:
            self.told.dossiers.setdefault(key, set()).add((place.queue, detail["dossier"]))
        if line.verb in _ASKED and not detail.keys().isdisjoint(("priority", "due", "expires")):
            due = detail.get("due")
            wanted = place._replace(priority=detail.get("priority", 0), due=due, expires=detail.get("expires"))
            self.told.messages[key] = wanted if due is None else wanted._replace(state=State.DELAYED)
            self._depart(place.queue, int(due is not None))
        if line.verb == "put" and "entity" in detail:
            stored = None if self._tables is None else self._tables.tokens.get(key)
            machine = detail["machine"] if "machine" in detail else stored[0] if stored is not None else ""
            self.told.tokens[machine, detail["entity"]] = key

    def _move(self, line: Line, place: Place) -> None:
        assert line.message is not None
        assert line.target is not None
        self._leave(line, line.message, place)
        self._arrive(line, line.message, line.target)

    def _leave(self, line: Line, key: int, place: Place) -> None:
        """The message leaves its place, or is new."""
        if place.state not in _ENDS:  # which were counted when they were put aside
            self._depart(place.queue)
        self.told.leases.pop(place.last, None)  # the line before was its lease, if it was leased
        lock = self.told.locks.get(place.queue)
        if lock is not None and lock[0] == key:
            del self.told.locks[place.queue]
        if line.target != place.queue:
            self.told.dossiers.pop(key, None)

    def _depart(self, queue: int, count: int = 1) -> None:
        counts = self.told.counts[queue]
        self.told.counts[queue] = counts._replace(departed=counts.departed + count)

    def _reserve(self, line: Line, place: Place) -> None:
        assert line.message is not None
        self._leave(line, line.message, place)
        self.told.messages[line.message] = place._replace(state=State.RESERVED, last=line.seq, processed=line.at)

    def _give_back(self, line: Line, place: Place) -> None:
        assert line.message is not None
        if place.state != State.RESERVED:
            self._break(line, f"{key_text(line.message)} is given back, and nobody had it")
        self._depart(place.queue, -1)
        self.told.messages[line.message] = place._replace(state=State.UNPROCESSED, last=line.seq, processed=None)

    def _deliver(self, line: Line, place: Place) -> None:
        """The message keeps its place, and is leased, delayed, blocked or available."""
        assert line.message is not None
        key, verb, detail = line.message, line.verb, _detail(line)
        self._leave(line, key, place)
        if verb in ("lease", "block"):
            leased = verb == "lease"
            state = State.LEASED if leased else State.BLOCKED
            place = place._replace(state=state, attempts=place.attempts + leased, lane=detail.get("lane"))
            if leased:
                self.told.leases[line.seq] = key
        else:
            due = detail.get("due")
            state = State.UNPROCESSED if due is None else State.DELAYED
            lane = None if due is None else place.lane
            place = place._replace(state=state, attempts=place.attempts - (verb == "release"), due=due, lane=lane)
            self._depart(place.queue, -1 if due is None else 0)
        moment = line.at if state in (State.LEASED, State.DELAYED) else None
        self.told.messages[key] = place._replace(last=line.seq, processed=moment)

    def _take(self, line: Line, place: Place) -> None:
        assert line.message is not None
        self._leave(line, line.message, place)
        counts = self.told.counts[place.queue]
        self.told.counts[place.queue] = counts._replace(processed=counts.processed + 1)
        about = place._replace(state=State.PROCESSED, position=line.seq, last=line.seq, processed=line.at, lane=None)
        self.told.messages[line.message] = about

    def _set_aside(self, line: Line, place: Place) -> None:
        assert line.message is not None
        self._leave(line, line.message, place)
        about = place._replace(state=State.SET_ASIDE, position=line.seq, last=line.seq)
        self.told.messages[line.message] = about

    def _return(self, line: Line, key: int, place: Place | None) -> None:
        """The message was taken, and is back in its place."""
        told, detail, queue = self.told, _detail(line), _queue(line.target)
        if place is None and told.departed.pop(key, None) is None:
            self._break(line, f"{line.verb} of {key_text(key)}, which was never there")
        if place is not None and (place.state != State.PROCESSED or place.queue != queue):
            self._break(line, f"{line.verb} of {key_text(key)}, which is not processed in queue {queue}")
        number = detail["number"]
        if number == detail["position"]:  # a store that does not count arrivals has written it
            number = self.left.pop(key, number) if place is None else place.number
            told.came[key] = detail["position"]
        back = Place(queue, State.UNPROCESSED, detail["position"], number, line.seq, None)
        told.messages[key] = back if place is None else place._replace(**_where(back))
        counts = told.counts.get(queue, Counts())
        kept = counts.processed - (place is not None)
        told.counts[queue] = counts._replace(departed=counts.departed - 1, processed=kept)

    def _note(self, line: Line, place: Place) -> None:
        """The message stays where it is."""
        assert line.message is not None
        key, detail = line.message, _detail(line)
        self.told.messages[key] = place._replace(last=line.seq)
        if line.verb == "segment":
            self.told.locks[place.queue] = (key, detail["segment"])
        elif line.verb == "unlock":
            self.told.locks.pop(place.queue, None)
        elif line.verb == "dossier":
            self.told.dossiers.setdefault(key, set()).add((place.queue, detail["dossier"]))
        elif line.verb == "remove-dossier":
            self.told.dossiers.get(key, set()).discard((place.queue, detail["dossier"]))

    # --- processed messages that nobody keeps ---

    def _purge(self, line: Line, detail: dict[str, Any]) -> None:
        places = self.told.messages.items()
        gone = [key for key, place in places if place.queue == line.source and place.state == State.PROCESSED]
        self._forget(line, detail, gone)

    def _sweep(self, line: Line, detail: dict[str, Any]) -> None:
        if "keys" in detail:
            gone = [key for first, last in detail["keys"] for key in range(first, last + 1)]
        else:
            departed = self._fill_in(line, lambda tables: tables.departed())
            placed = [(place.position, key) for key, place in self.told.messages.items() if place.queue == line.source]
            gone = [key for _, key in sorted(placed) if departed.get(key) == self.told.messages[key].last]
        self._forget(line, detail, gone[: detail["messages"]])

    def _forget(self, line: Line, detail: dict[str, Any], gone: list[int]) -> None:
        if len(gone) != detail["messages"]:
            self._break(line, f"{line.verb} of {detail['messages']} messages, which were {len(gone)}")
        for key in gone:
            place = self.told.messages.get(key)
            if place is None or place.queue != line.source or place.state != State.PROCESSED:
                self._break(line, f"{line.verb} of {key_text(key)}, which is not processed in queue {line.source}")
                continue
            del self.told.messages[key]
            self.told.came.pop(key, None)
            self.told.departed[key] = place.last
            counts = self.told.counts[place.queue]
            self.told.counts[place.queue] = counts._replace(processed=counts.processed - 1)

    def _beats(self, line: Line, detail: dict[str, Any]) -> None:
        """One line for all earlier lines of heartbeats."""
        told, queue = self.told, _queue(line.source)
        for key in [key for key, place in told.messages.items() if place.queue == queue]:
            del told.messages[key]
            told.came.pop(key, None)
        for key, last, number in detail["hearts"]:
            told.messages[key] = Place(queue, State.UNPROCESSED, last, number, last, None)
        told.counts[queue] = Counts(detail["arrivals"], detail["departed"], 0)

    # --- queues ---

    def _create_queue(self, line: Line, detail: dict[str, Any]) -> None:
        if "name" in detail:
            names = ("name", "kind", "path", "ordinal", "keep", "command")
            settings = Settings(**{name: detail[name] for name in names}, command_seconds=detail.get("command_seconds"))
        else:
            stored = self._fill_in(line, lambda tables: tables.queues.get(_queue(line.target)))
            settings = stored._replace(hold=Hold.NONE, retired=0)
        self.told.queues[_queue(line.target)] = settings
        self.told.counts.setdefault(_queue(line.target), Counts())

    def _fill_in(self, line: Line, look: Callable[[Tables], T | None]) -> T:
        """Stored data for what a line of an earlier version did not record."""
        self.told.older.append(line.seq)
        stored = None if self._tables is None else look(self._tables)
        if stored is None:
            self.told.unknown = self.told.unknown or line.seq
            raise KeyError("what it did not say")
        return stored

    def _set(self, queue: int | None, **changed: Any) -> None:
        self.told.queues[_queue(queue)] = self.told.queues[_queue(queue)]._replace(**changed)

    def _change_queue(self, line: Line, detail: dict[str, Any]) -> None:
        if "ordinal" not in detail:
            stored = self._fill_in(line, lambda tables: tables.queues.get(_queue(line.target)))
            detail = {"path": stored.path, "ordinal": stored.ordinal, "command": stored.command, **detail}
        self._set(line.target, path=detail["path"], ordinal=detail["ordinal"], command=detail["command"], retired=0)
        self._set(line.target, command_seconds=detail.get("command_seconds"))

    def _retire_queue(self, line: Line, detail: dict[str, Any]) -> None:
        self._set(line.source, retired=1, command=None, command_seconds=None)

    def _hold(self, line: Line, detail: dict[str, Any]) -> None:
        self._set(line.target, hold=next(hold for hold in Hold if hold.label == detail.get("hold", "")))

    def _mode(self, line: Line, detail: dict[str, Any]) -> None:
        self._set(line.target, keep=int(detail["processed"] == "keep"))

    def _door(self, line: Line, detail: dict[str, Any]) -> None:
        self._set(line.target, door=detail["doors"])

    def _unlock(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.locks.pop(_queue(line.source), None)

    def _policy(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.policies.pop(_queue(line.target), None)
        if detail:
            self.told.policies[_queue(line.target)] = Policy(**detail).text()

    # --- the rest of the room ---

    def _schedule(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.schedules[detail["schedule"]] = detail["due"]

    def _remove_schedule(self, line: Line, detail: dict[str, Any]) -> None:
        del self.told.schedules[detail["schedule"]]

    def _timer(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.timers[detail["timer"]] = (detail["kind"], detail["due"])

    def _timer_done(self, line: Line, detail: dict[str, Any]) -> None:
        del self.told.timers[detail["timer"]]

    def _effect(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.outbox[detail["outbox"]] = ("pending", 0)

    def _attempt(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.outbox[detail["outbox"]] = (self.told.outbox[detail["outbox"]][0], detail["attempt"])

    def _failed(self, line: Line, detail: dict[str, Any]) -> None:
        state = "pending" if detail["retry"] else "failed"
        self.told.outbox[detail["outbox"]] = (state, self.told.outbox[detail["outbox"]][1])

    def _effect_gone(self, line: Line, detail: dict[str, Any]) -> None:
        del self.told.outbox[detail["outbox"]]

    def _add_node(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.nodes.add(detail["node"])

    def _remove_node(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.nodes.remove(detail["node"])

    def _add_gateway(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.gateways[detail["gateway"]] = detail["transport"]

    def _remove_gateway(self, line: Line, detail: dict[str, Any]) -> None:
        del self.told.gateways[detail["gateway"]]

    def _add_station(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.stations[detail["station"]] = detail["node"]

    def _remove_station(self, line: Line, detail: dict[str, Any]) -> None:
        del self.told.stations[detail["station"]]

    def _password(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.principals.add((detail["kind"], detail["name"]))

    def _remove_password(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.principals.remove((detail["kind"], detail["name"]))

    def _load(self, line: Line, detail: dict[str, Any]) -> None:
        if detail["version"] != self.told.version + 1:
            self._break(line, f"version {detail['version']} was loaded after {self.told.version}")
        self.told.version = detail["version"]

    def _archive(self, line: Line, detail: dict[str, Any]) -> None:
        self.told.archives[detail["last"]] = detail["digest"]

    def _retention(self, line: Line, detail: dict[str, Any]) -> None:
        if detail["microseconds"] is None:
            self.told.retentions.pop(detail["kind"], None)
        else:
            self.told.retentions[detail["kind"]] = detail["microseconds"]


def _detail(line: Line) -> dict[str, Any]:
    detail: dict[str, Any] = {} if line.detail is None else json.loads(line.detail)
    return detail


def _where(place: Place) -> dict[str, Any]:
    """The parts of a place that move with it."""
    return {name: getattr(place, name) for name in ("queue", "state", "position", "number", "last", "processed")}


def _queue(number: int | None) -> int:
    if number is None:
        raise KeyError("queue")
    return number
