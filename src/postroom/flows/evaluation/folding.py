"""Arcs with state as plain Python: one event after another, each with what the state makes of it.

An event is late if it is older than the newest one before it by more than the arc's lateness. Late events change no
state. The watermark is the time of the newest event less the lateness: no event in time is older. A window is over when
the watermark has reached its end; then its state becomes an event. So the deliveries of arcs with state depend only on
the order of events, not on steps, batches or tasks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from postroom.flows.evaluation.closures import Bound, Value, maker, matcher
from postroom.flows.evaluation.partials import Partials
from postroom.flows.evaluation.paths import NO_VALUE
from postroom.flows.language.aggregates import END, START, collapsed, shared, split
from postroom.flows.language.arithmetic import NoValue
from postroom.flows.language.codecs import data_of_value, reader, value_of_data, writer
from postroom.flows.language.definitions import Arc, Collapse, Meet
from postroom.flows.language.inference import bind, paths
from postroom.flows.language.patterns import own
from postroom.flows.language.types import Type
from postroom.flows.language.windows import Every, LastEvents, Session, Until
from postroom.model.body import json_text
from postroom.model.moment import to_datetime, to_microseconds

NEVER = 2**62  # when the state of what has no window is due
LATE = "the event is late: it is older than the newest one before it by more than the lateness"
OUTSIDE = "the event is not before the end of its window"
_CLOCK = ""  # the group of what an arc knows of time
_AGO = -(2**62)  # the time of no event
_GROUPS = 50_000  # whose names are kept at hand


class Row(NamedTuple):
    """A part of a state: when it is due, and its value. Immutable; it is only replaced."""

    due: int
    value: Any


class States(Protocol):
    """The state of one arc: rows by group and place."""

    def rows(self, group: str) -> dict[int, Row]:
        """The rows of a group, by their places."""

    def row(self, group: str, place: int) -> Row | None:
        """One row of a group."""

    def put(self, group: str, place: int, row: Row | None) -> None:
        """Set a row; None removes it."""

    def due(self, until: int) -> list[tuple[str, int, Row]]:
        """The rows that are due by a moment."""


class Outcome(NamedTuple):
    """What an arc delivers: an event, or the reason for an error."""

    event: Any = None
    failure: str | None = None


class Fold(Protocol):
    """How an arc with state processes an event of one of its spaces."""

    def take(self, space: str, event: Any, states: States) -> Iterator[Outcome]: ...

    def text(self, group: str, value: Any) -> str:
        """The text of a row, as it is stored."""

    def value(self, group: str, text: str) -> Any:
        """The value of a stored row."""


def fold_of(arc: Arc, source: Type, target: Type, other: Type | None = None) -> Fold:
    if isinstance(arc.does, Collapse):
        return Collapsing(arc.does, source, target)
    assert isinstance(arc.does, Meet)
    assert other is not None
    return Meeting(arc.does, arc.source, source, other, target)


def moment(micros: int) -> datetime:
    try:
        return to_datetime(micros)
    except OverflowError:
        raise NoValue from None


def group_of(keys: Sequence[Any]) -> str:
    """The name of a group: a hash of its keys, of any length."""
    return hashlib.sha256(json_text(keys).encode()).hexdigest()


class _Groups(dict[tuple[Any, ...], str]):
    """Names of groups by their keys, cached."""

    def __missing__(self, keys: tuple[Any, ...]) -> str:
        if len(self) >= _GROUPS:
            self.clear()
        self[keys] = group = group_of(keys)
        return group


def _at(path: Sequence[int]) -> Callable[[Any], Any]:
    """Takes the part of a tuple at a path."""
    if len(path) == 1:
        return itemgetter(path[0])

    def part(value: Any) -> Any:
        for place in path:
            value = value[place]
        return value

    return part


class _Clock:
    """The newest event time that an arc has seen in each of its spaces, and the number of events."""

    def __init__(self, states: States, sides: int) -> None:
        self._states = states
        row = states.row(_CLOCK, 0)
        self._seen: Sequence[int] = (_AGO,) * sides + (0,) if row is None else row.value

    @property
    def number(self) -> int:
        return self._seen[-1]

    def newest(self, side: int) -> int:
        return self._seen[side]

    def see(self, side: int, time: int) -> None:
        seen = list(self._seen)
        seen[side] = max(seen[side], time)
        seen[-1] += 1
        self._seen = seen
        self._states.put(_CLOCK, 0, Row(NEVER, seen))


# --- collapsing ---------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """Why an event does not change the state."""


@dataclass(frozen=True)
class Collapsing:
    """A row says ``[keys, start, partials]``, and of the last so many events ``[keys, [partials, …]]``."""

    does: Collapse
    source: Type
    target: Type

    @cached_property
    def _partials(self) -> Partials:
        _, aggregates = split(self.does.result)
        return Partials(list(aggregates.values()), bind(self.does.pattern, self.source))

    @cached_property
    def _match(self) -> Callable[..., Bound | None]:
        return matcher([(self.does.pattern, self.source)])[0]

    @cached_property
    def _make(self) -> Value:
        return maker(split(self.does.result)[0], self.target, collapsed(self.does, self.source))

    @cached_property
    def _keys(self) -> list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]:
        """For each key its name, and functions to write and read its value."""
        types = bind(self.does.pattern, self.source)
        return [(name, data_of_value(types[name]), value_of_data(types[name])) for name in self.does.by]

    @cached_property
    def _time(self) -> Callable[[Any], datetime]:
        assert self.does.clock is not None
        return _at(paths(self.does.pattern, self.source)[self.does.clock.variable][0])

    @cached_property
    def _groups(self) -> _Groups:
        return _Groups()

    def text(self, group: str, value: Any) -> str:
        return json_text(value)

    def value(self, group: str, text: str) -> Any:
        return json.loads(text)

    def take(self, space: str, event: Any, states: States) -> Iterator[Outcome]:
        clock, time, late = None, 0, 0
        if self.does.clock is not None:
            clock, time, late = _Clock(states, 1), to_microseconds(self._time(event)), self.does.clock.late.micros
        try:
            bound = self._match(event)
            if bound is not None:
                if clock is not None and time < clock.newest(0) - late:
                    raise _Refused(LATE)
                changed = self._added(bound, time, states)
                if changed is not None:
                    yield self._made(changed)
        except NoValue:
            yield Outcome(failure=NO_VALUE)
        except _Refused as why:
            yield Outcome(failure=str(why))
        if clock is not None and time > clock.newest(0):
            clock.see(0, time)
            yield from self._over(time - late, states)

    def _over(self, watermark: int, states: States) -> Iterator[Outcome]:
        """The windows that have ended, ordered by end and keys."""
        if self.does.window is None or isinstance(self.does.window, LastEvents):
            return
        ended = [(row.due, json_text(row.value[0]), place, group, row) for group, place, row in states.due(watermark)]
        for _, _, place, group, row in sorted(ended, key=itemgetter(0, 1, 2, 3)):
            states.put(group, place, None)
            yield self._made(row)

    def _added(self, bound: Bound, time: int, states: States) -> Row | None:
        """Add an event to the state of its key; returns the row to deliver, without a window."""
        given = self._partials.values(bound)
        keys = tuple([written(bound[name]) for name, written, _ in self._keys])
        group, window = self._groups[keys], self.does.window
        one = self._partials.begun(given, time)
        if isinstance(window, Every):
            for start in starts(time, window):
                self._join(states, group, start, start + window.length.micros, keys, one)
            return None
        if isinstance(window, Session):
            self._session(states, group, time, window.gap.micros, keys, one)
            return None
        if isinstance(window, Until):
            end = to_microseconds(bound[window.variable])
            if time >= end:
                raise _Refused(OUTSIDE)
            self._join(states, group, 0, end, keys, one)
            return None
        if isinstance(window, LastEvents):
            return self._last(states, group, window.count, keys, one)
        return self._join(states, group, 0, NEVER, keys, one)

    def _join(self, states: States, group: str, place: int, due: int, keys: Sequence[Any], one: list[Any]) -> Row:
        before = states.row(group, place)
        row = Row(due, (keys, place, one if before is None else self._partials.joined(before.value[2], one)))
        states.put(group, place, row)
        return row

    def _session(self, states: States, group: str, time: int, gap: int, keys: Sequence[Any], one: list[Any]) -> None:
        """Add an event to sessions: it and every session within the gap become one."""
        start, due, partials = time, time + gap, one
        near = [(place, row) for place, row in sorted(states.rows(group).items()) if place < time + gap]
        for place, row in near:
            if row.due > time:
                start, due = min(start, place), max(due, row.due)
                partials = self._partials.joined(row.value[2], partials)
                states.put(group, place, None)
        states.put(group, start, Row(due, (keys, start, partials)))

    def _last(self, states: States, group: str, count: int, keys: Sequence[Any], one: list[Any]) -> Row:
        """The state of the last ``count`` events; each of them is kept."""
        before = states.row(group, 0)
        some = [*([] if before is None else before.value[1]), one][-count:]
        states.put(group, 0, Row(NEVER, (keys, some)))
        partials = some[0]
        for later in some[1:]:
            partials = self._partials.joined(partials, later)
        return Row(NEVER, (keys, 0, partials))

    def _made(self, row: Row) -> Outcome:
        keys, start, partials = row.value
        try:
            bound: Bound = {name: read(key) for (name, _, read), key in zip(self._keys, keys, strict=True)}
            if isinstance(self.does.window, Every | Session):
                bound |= {START: moment(start), END: moment(row.due)}
            bound |= self._partials.results(partials)
            return Outcome(self._make(bound))
        except NoValue:
            return Outcome(failure=NO_VALUE)


def starts(time: int, window: Every) -> list[int]:
    """The starts of all windows that contain a moment, in order."""
    step, length = window.step.micros, window.length.micros
    last = time // step * step
    return [start for start in range(last - (length - 1) // step * step, last + 1, step) if start + length > time]


# --- meeting ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Meeting:
    """A row says ``[time, event]``, the event as text."""

    does: Meet
    space: str
    source: Type
    other: Type
    target: Type

    @cached_property
    def _sides(self) -> list[_Side]:
        """The source and the other space."""
        ours = bind(self.does.pattern, self.source)
        names = shared(self.does, self.source, self.other)
        sides: list[_Side] = []
        for pattern, type, time in (
            (self.does.pattern, self.source, self.does.clock.variable),
            (own(self.does.other, frozenset(ours)), self.other, self.does.other_time),
        ):
            whole = paths(self.does.pattern if not sides else self.does.other, type)
            keys = [(_at(whole[name][0]), data_of_value(whole[name][1])) for name in names]
            sides.append(_Side(matcher([(pattern, type)])[0], _at(whole[time][0]), keys, reader(type), writer(type)))
        return sides

    @cached_property
    def _both(self) -> tuple[Callable[..., Bound | None], Value]:
        """A matcher of both patterns for a pair, and the function that makes the new event."""
        match, types = matcher([(self.does.pattern, self.source), (self.does.other, self.other)])
        return match, maker(self.does.result, self.target, types)

    @cached_property
    def _groups(self) -> _Groups:
        return _Groups()

    def text(self, group: str, value: Any) -> str:
        if group == _CLOCK:
            return json_text(value)
        time, event = value
        return json_text([time, self._sides[int(group[0])].write(event)])

    def value(self, group: str, text: str) -> Any:
        data = json.loads(text)
        return data if group == _CLOCK else (data[0], self._sides[int(group[0])].read(data[1]))

    def take(self, space: str, event: Any, states: States) -> Iterator[Outcome]:
        side = int(space != self.space)
        mine = self._sides[side]
        clock, time, late = _Clock(states, 2), to_microseconds(mine.time(event)), self.does.clock.late.micros
        try:
            if mine.match(event) is not None:
                if time < clock.newest(side) - late:
                    raise _Refused(LATE)
                group = self._groups[mine.key(event)]
                yield from self._met(side, event, time, states.rows(f"{1 - side}{group}"))
                states.put(f"{side}{group}", clock.number, Row(time + self.does.within.micros, (time, event)))
        except NoValue:
            yield Outcome(failure=NO_VALUE)
        except _Refused as why:
            yield Outcome(failure=str(why))
        clock.see(side, time)
        watermark = min(clock.newest(0), clock.newest(1)) - late
        for group, place, _ in states.due(watermark - 1):  # no event in time is near it any more
            states.put(group, place, None)

    def _met(self, side: int, event: Any, time: int, partners: dict[int, Row]) -> Iterator[Outcome]:
        """Combine an event with each event of the other space that is near in time, in arrival order."""
        match, made = self._both
        for _, row in sorted(partners.items()):
            when, other = row.value
            if abs(time - when) > self.does.within.micros:
                continue
            try:
                bound = match(event, other) if side == 0 else match(other, event)
                if bound is not None:
                    yield Outcome(made(bound))
            except NoValue:
                yield Outcome(failure=NO_VALUE)


class _Side(NamedTuple):
    match: Callable[..., Bound | None]  # what is asked of one event alone
    time: Callable[[Any], datetime]
    keys: Sequence[tuple[Callable[[Any], Any], Callable[[Any], Any]]]
    read: Callable[[str], Any]
    write: Callable[[Any], str]

    def key(self, event: Any) -> tuple[Any, ...]:
        return tuple([written(part(event)) for part, written in self.keys])


# --- states in memory ---------------------------------------------------------------------------------------------


class MemoryStates:
    """A state in memory only: for a dry run."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, Row]] = {}

    def rows(self, group: str) -> dict[int, Row]:
        return dict(self._rows.get(group, {}))

    def row(self, group: str, place: int) -> Row | None:
        return self._rows.get(group, {}).get(place)

    def put(self, group: str, place: int, row: Row | None) -> None:
        if row is None:
            self._rows.get(group, {}).pop(place, None)
        else:
            self._rows.setdefault(group, {})[place] = row

    def due(self, until: int) -> list[tuple[str, int, Row]]:
        return [
            (group, place, row) for group, rows in self._rows.items() for place, row in rows.items() if row.due <= until
        ]
