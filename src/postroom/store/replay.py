"""The journal told from its beginning: where every message must be now, in which state, and what else must hold.

Nothing here looks at another table. So what it comes to can be compared with them (``store/verification.py``), and a
line that was forgotten, doubled or lost shows. What messages say is in their rows alone, under a hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from postroom.model.key import key_text
from postroom.store.journal import NOTES, Line
from postroom.store.messages import State
from postroom.store.queues import Hold


class Place(NamedTuple):
    """Where a message is."""

    queue: int
    state: int
    position: int
    number: int  # among the arrivals of its queue
    last: int  # its newest line
    processed: int | None  # when


class Settings(NamedTuple):
    """What a queue is."""

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
    """A line that does not follow from those before it."""

    line: int
    why: str


@dataclass
class Told:
    """What a journal comes to. Queues are known by their numbers, messages by those of their keys."""

    lines: int = 0
    messages: dict[int, Place] = field(default_factory=dict)
    departed: dict[int, int] = field(default_factory=dict)  # the last line of each
    queues: dict[int, Settings] = field(default_factory=dict)
    counts: dict[int, Counts] = field(default_factory=dict)
    locks: dict[int, tuple[int, int]] = field(default_factory=dict)  # by queue: message and segment
    tokens: dict[tuple[str, str], int] = field(default_factory=dict)  # by machine and entity: message
    dossiers: dict[int, set[tuple[int, str]]] = field(default_factory=dict)  # by message: station and name
    timers: dict[int, tuple[str, int]] = field(default_factory=dict)  # kind, due
    outbox: dict[int, tuple[str, int]] = field(default_factory=dict)  # state, attempts
    nodes: set[str] = field(default_factory=set)
    stations: dict[str, str] = field(default_factory=dict)
    principals: set[tuple[str, str]] = field(default_factory=set)
    version: int = 0
    older: int | None = None  # the first line that an earlier version wrote, which did not name a new queue
    broken: list[Broken] = field(default_factory=list)


def told(lines: Iterable[Line]) -> Told:
    """Hear a whole journal."""
    replay = _Replay()
    for line in lines:
        replay.hear(line)
    return replay.told


class _Replay:
    def __init__(self) -> None:
        self.told = Told()
        self._of_message: dict[str, Callable[[Line, Place], None]] = {
            "take": self._take,
            "set-aside": self._set_aside,
            **dict.fromkeys(NOTES, self._note),
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
            "add-station": self._add_station,
            "remove-station": self._remove_station,
            "password": self._password,
            "remove-password": self._remove_password,
            "load": self._load,
        }

    def hear(self, line: Line) -> None:
        self.told.lines += 1
        if line.message is not None:
            self._message(line, line.message)
            return
        heard = self._of_room.get(line.verb)
        if heard is not None:
            try:
                heard(line, _said(line))
            except KeyError as missing:  # it speaks of what is not there, or does not say what it must
                self._break(line, f"{line.verb} without {missing}")

    def _break(self, line: Line, why: str) -> None:
        self.told.broken.append(Broken(line.seq, why))

    # --- messages ---

    def _message(self, line: Line, key: int) -> None:
        told = self.told
        place = told.messages.get(key)
        known = told.departed.get(key) if place is None else place.last
        if line.prior != known:
            self._break(line, f"{line.verb} of {key_text(key)} follows line {line.prior}, and its last was {known}")
        if place is None:
            if line.source is not None or line.target is None:
                self._break(line, f"{line.verb} of {key_text(key)}, which is nowhere")
            told.departed.pop(key, None)  # it has come back
            if line.target is not None:
                self._arrive(line, key, line.target)
            return
        if line.source != place.queue or place.state != State.UNPROCESSED:
            self._break(line, f"{line.verb} of {key_text(key)} in queue {line.source}, and it was in {place.queue}")
        if line.target is None:
            self._leave(line, key, place)
            del told.messages[key]
            told.departed[key] = line.seq
            return
        heard = self._of_message.get(line.verb)
        if heard is None:
            self._move(line, place)
        else:
            if line.target != place.queue:
                self._break(line, f"{line.verb} of {key_text(key)} brings it to queue {line.target}")
            heard(line, place)

    def _arrive(self, line: Line, key: int, queue: int) -> None:
        told = self.told
        counts = told.counts.get(queue, Counts())
        number = counts.arrivals + 1
        told.counts[queue] = counts._replace(arrivals=number)
        told.messages[key] = Place(queue, State.UNPROCESSED, line.seq, number, line.seq, None)
        if line.detail is not None:
            self._arrive_saying(line, key, queue)

    def _arrive_saying(self, line: Line, key: int, queue: int) -> None:
        said = _said(line)
        if "dossier" in said:
            self.told.dossiers.setdefault(key, set()).add((queue, said["dossier"]))
        if line.verb == "put" and "machine" in said:
            self.told.tokens[said["machine"], said["entity"]] = key

    def _move(self, line: Line, place: Place) -> None:
        assert line.message is not None
        assert line.target is not None
        self._leave(line, line.message, place)
        self._arrive(line, line.message, line.target)

    def _leave(self, line: Line, key: int, place: Place) -> None:
        """It is no longer where it was, or is there as a new one."""
        counts = self.told.counts[place.queue]
        self.told.counts[place.queue] = counts._replace(departed=counts.departed + 1)
        lock = self.told.locks.get(place.queue)
        if lock is not None and lock[0] == key:
            del self.told.locks[place.queue]
        if line.target != place.queue:
            self.told.dossiers.pop(key, None)

    def _take(self, line: Line, place: Place) -> None:
        assert line.message is not None
        self._leave(line, line.message, place)
        counts = self.told.counts[place.queue]
        self.told.counts[place.queue] = counts._replace(processed=counts.processed + 1)
        about = place._replace(state=State.PROCESSED, position=line.seq, last=line.seq, processed=line.at)
        self.told.messages[line.message] = about

    def _set_aside(self, line: Line, place: Place) -> None:
        assert line.message is not None
        self._leave(line, line.message, place)
        about = place._replace(state=State.SET_ASIDE, position=line.seq, last=line.seq)
        self.told.messages[line.message] = about

    def _note(self, line: Line, place: Place) -> None:
        """It stays where it is."""
        assert line.message is not None
        key, said = line.message, _said(line)
        self.told.messages[key] = place._replace(last=line.seq)
        if line.verb == "segment":
            self.told.locks[place.queue] = (key, said["segment"])
        elif line.verb == "unlock":
            self.told.locks.pop(place.queue, None)
        elif line.verb == "dossier":
            self.told.dossiers.setdefault(key, set()).add((place.queue, said["dossier"]))
        elif line.verb == "remove-dossier":
            self.told.dossiers.get(key, set()).discard((place.queue, said["dossier"]))

    # --- processed messages that nobody keeps ---

    def _purge(self, line: Line, said: dict[str, Any]) -> None:
        found = self.told.messages.items()
        gone = [key for key, place in found if place.queue == line.source and place.state == State.PROCESSED]
        self._forget(line, said, gone)

    def _sweep(self, line: Line, said: dict[str, Any]) -> None:
        self._forget(line, said, [key for first, last in said["keys"] for key in range(first, last + 1)])

    def _forget(self, line: Line, said: dict[str, Any], gone: list[int]) -> None:
        if len(gone) != said["messages"]:
            self._break(line, f"{line.verb} of {said['messages']} messages, which were {len(gone)}")
        for key in gone:
            place = self.told.messages.get(key)
            if place is None or place.queue != line.source or place.state != State.PROCESSED:
                self._break(line, f"{line.verb} of {key_text(key)}, which is not processed in queue {line.source}")
                continue
            del self.told.messages[key]
            self.told.departed[key] = place.last
            counts = self.told.counts[place.queue]
            self.told.counts[place.queue] = counts._replace(processed=counts.processed - 1)

    # --- queues ---

    def _create_queue(self, line: Line, said: dict[str, Any]) -> None:
        if "name" not in said and self.told.older is None:
            self.told.older = line.seq
        settings = Settings(*(said[name] for name in ("name", "kind", "path", "ordinal", "keep", "command")))
        settings = settings._replace(command_seconds=said.get("command_seconds"))
        self.told.queues[_queue(line.target)] = settings
        self.told.counts.setdefault(_queue(line.target), Counts())

    def _set(self, queue: int | None, **changed: Any) -> None:
        self.told.queues[_queue(queue)] = self.told.queues[_queue(queue)]._replace(**changed)

    def _change_queue(self, line: Line, said: dict[str, Any]) -> None:
        self._set(line.target, path=said["path"], ordinal=said["ordinal"], command=said["command"], retired=0)
        self._set(line.target, command_seconds=said.get("command_seconds"))

    def _retire_queue(self, line: Line, said: dict[str, Any]) -> None:
        self._set(line.source, retired=1, command=None, command_seconds=None)

    def _hold(self, line: Line, said: dict[str, Any]) -> None:
        self._set(line.target, hold=next(hold for hold in Hold if hold.label == said.get("hold", "")))

    def _mode(self, line: Line, said: dict[str, Any]) -> None:
        self._set(line.target, keep=int(said["processed"] == "keep"))

    def _door(self, line: Line, said: dict[str, Any]) -> None:
        self._set(line.target, door=said["doors"])

    def _unlock(self, line: Line, said: dict[str, Any]) -> None:
        self.told.locks.pop(_queue(line.source), None)

    # --- the rest of the room ---

    def _timer(self, line: Line, said: dict[str, Any]) -> None:
        self.told.timers[said["timer"]] = (said["kind"], said["due"])

    def _timer_done(self, line: Line, said: dict[str, Any]) -> None:
        del self.told.timers[said["timer"]]

    def _effect(self, line: Line, said: dict[str, Any]) -> None:
        self.told.outbox[said["outbox"]] = ("pending", 0)

    def _attempt(self, line: Line, said: dict[str, Any]) -> None:
        self.told.outbox[said["outbox"]] = (self.told.outbox[said["outbox"]][0], said["attempt"])

    def _failed(self, line: Line, said: dict[str, Any]) -> None:
        state = "pending" if said["retry"] else "failed"
        self.told.outbox[said["outbox"]] = (state, self.told.outbox[said["outbox"]][1])

    def _effect_gone(self, line: Line, said: dict[str, Any]) -> None:
        del self.told.outbox[said["outbox"]]

    def _add_node(self, line: Line, said: dict[str, Any]) -> None:
        self.told.nodes.add(said["node"])

    def _remove_node(self, line: Line, said: dict[str, Any]) -> None:
        self.told.nodes.remove(said["node"])

    def _add_station(self, line: Line, said: dict[str, Any]) -> None:
        self.told.stations[said["station"]] = said["node"]

    def _remove_station(self, line: Line, said: dict[str, Any]) -> None:
        del self.told.stations[said["station"]]

    def _password(self, line: Line, said: dict[str, Any]) -> None:
        self.told.principals.add((said["kind"], said["name"]))

    def _remove_password(self, line: Line, said: dict[str, Any]) -> None:
        self.told.principals.remove((said["kind"], said["name"]))

    def _load(self, line: Line, said: dict[str, Any]) -> None:
        if said["version"] != self.told.version + 1:
            self._break(line, f"version {said['version']} was loaded after {self.told.version}")
        self.told.version = said["version"]


def _said(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {} if line.detail is None else json.loads(line.detail)
    return found


def _queue(number: int | None) -> int:
    if number is None:
        raise KeyError("queue")
    return number
