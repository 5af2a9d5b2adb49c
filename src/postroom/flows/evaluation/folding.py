"""Arcs with state as plain Python: one event after another, each with what the state makes of it.

An event is late if it is older than the newest one before it by more than the arc's lateness. Late events change no
state. The watermark is the time of the newest event less the lateness: no event in time is older. A window is over when
the watermark has reached its end; then its state becomes an event. So the deliveries of arcs with state depend only on
the order of events, not on steps, batches or tasks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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

    def rows(self, group: str) -> Mapping[int, Row]:
        """The rows of a group, by their places; only until the next change."""

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


#: Processes events in their order, each with a mark and its space, and returns what each led to, with its mark.
Take = Callable[[Sequence[tuple[Any, str, Any]]], list[tuple[Any, Outcome]]]


class Fold(Protocol):
    """How an arc with state processes events."""

    def over(self, states: States) -> Take:
        """The function that processes events; nothing else changes these states meanwhile."""

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
        seen: Sequence[int] = (_AGO,) * sides + (0,) if row is None else row.value
        self.newest, self.number = list(seen[:-1]), seen[-1]
        self._kept = self.number

    def see(self, side: int, time: int) -> None:
        if time > self.newest[side]:
            self.newest[side] = time
        self.number += 1

    def keep(self) -> None:
        if self.number != self._kept:
            self._kept = self.number
            self._states.put(_CLOCK, 0, Row(NEVER, (*self.newest, self.number)))


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
    def partials(self) -> Partials:
        _, aggregates = split(self.does.result)
        return Partials(list(aggregates.values()), bind(self.does.pattern, self.source))

    @cached_property
    def match(self) -> Callable[..., Bound | None]:
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
    def time(self) -> Callable[[Any], datetime]:
        assert self.does.clock is not None
        return _at(paths(self.does.pattern, self.source)[self.does.clock.variable][0])

    @cached_property
    def groups(self) -> _Groups:
        return _Groups()

    def text(self, group: str, value: Any) -> str:
        return json_text(value)

    def value(self, group: str, text: str) -> Any:
        return json.loads(text)

    def over(self, states: States) -> Take:
        return _Collapse(self, states).take

    def part(self, bound: Bound, time: int) -> tuple[tuple[Any, ...], list[Any]]:
        """The keys of an event, and the state of that event alone."""
        one = self.partials.begun(bound, time)
        return tuple([written(bound[name]) for name, written, _ in self._keys]), one

    def made(self, row: Row) -> Outcome:
        """What a state delivers."""
        keys, start, partials = row.value
        try:
            bound: Bound = {name: read(key) for (name, _, read), key in zip(self._keys, keys, strict=True)}
            if isinstance(self.does.window, Every | Session):
                bound |= {START: moment(start), END: moment(row.due)}
            bound |= self.partials.results(partials)
            return Outcome(self._make(bound))
        except NoValue:
            return Outcome(failure=NO_VALUE)


class _Collapse:
    """A collapse at work on its states.

    What events add to a window is gathered, and joined with its row when that may have to be seen.
    """

    def __init__(self, fold: Collapsing, states: States) -> None:
        self._fold, self._states = fold, states
        self._joined = fold.partials.joined
        self._clock = None if fold.does.clock is None else _Clock(states, 1)
        self._gathered: dict[tuple[str, int], Row] = {}
        self._due = NEVER  # when the first of them is

    def take(self, given: Sequence[tuple[Any, str, Any]]) -> list[tuple[Any, Outcome]]:
        made: list[tuple[Any, Outcome]] = []
        fold, clock, time, watermark = self._fold, self._clock, 0, _AGO
        late = 0 if fold.does.clock is None else fold.does.clock.late.micros
        for mark, _, event in given:
            if clock is not None:
                time = to_microseconds(fold.time(event))
                watermark = clock.newest[0] - late
            try:
                bound = fold.match(event)
                if bound is not None:
                    if time < watermark:
                        raise _Refused(LATE)
                    changed = self._added(bound, time)
                    if changed is not None:
                        made.append((mark, fold.made(changed)))
            except NoValue:
                made.append((mark, Outcome(failure=NO_VALUE)))
            except _Refused as why:
                made.append((mark, Outcome(failure=str(why))))
            if clock is not None and time > watermark + late:
                clock.see(0, time)
                made += [(mark, fold.made(row)) for row in self._ended(time - late)]
        self._put()
        if clock is not None:
            clock.keep()
        return made

    def _added(self, bound: Bound, time: int) -> Row | None:
        """Add an event to the state of its key; returns the row to deliver, without a window."""
        keys, one = self._fold.part(bound, time)
        group, window = self._fold.groups[keys], self._fold.does.window
        if isinstance(window, Every):
            length = window.length.micros
            for start in starts(time, window):
                self._gather(group, start, start + length, keys, one)
            return None
        if isinstance(window, Session):
            self._session(group, time, window.gap.micros, keys, one)
            return None
        if isinstance(window, Until):
            end = to_microseconds(bound[window.variable])
            if time >= end:
                raise _Refused(OUTSIDE)
            self._gather(group, 0, end, keys, one)
            return None
        if isinstance(window, LastEvents):
            return self._last(group, window.count, keys, one)
        return self._join(group, 0, Row(NEVER, (keys, 0, one)))

    def _gather(self, group: str, place: int, due: int, keys: Sequence[Any], one: list[Any]) -> None:
        so_far = self._gathered.get((group, place))
        if so_far is not None:
            one = self._joined(so_far.value[2], one)
        elif due < self._due:
            self._due = due
        self._gathered[group, place] = Row(due, (keys, place, one))

    def _put(self) -> None:
        """Join what was gathered with the rows."""
        for (group, place), row in self._gathered.items():
            self._join(group, place, row)
        self._gathered.clear()
        self._due = NEVER

    def _join(self, group: str, place: int, later: Row) -> Row:
        before = self._states.row(group, place)
        if before is not None:
            keys, _, one = later.value
            later = Row(later.due, (keys, place, self._joined(before.value[2], one)))
        self._states.put(group, place, later)
        return later

    def _session(self, group: str, time: int, gap: int, keys: Sequence[Any], one: list[Any]) -> None:
        """Add an event to sessions: it and every session within the gap become one."""
        start, due, partials = time, time + gap, one
        near = [(place, row) for place, row in sorted(self._states.rows(group).items()) if place < time + gap]
        for place, row in near:
            if row.due > time:
                start, due = min(start, place), max(due, row.due)
                partials = self._joined(row.value[2], partials)
                self._states.put(group, place, None)
        self._states.put(group, start, Row(due, (keys, start, partials)))

    def _last(self, group: str, count: int, keys: Sequence[Any], one: list[Any]) -> Row:
        """The state of the last ``count`` events; each of them is kept."""
        before = self._states.row(group, 0)
        some = [*([] if before is None else before.value[1]), one][-count:]
        self._states.put(group, 0, Row(NEVER, (keys, some)))
        partials = some[0]
        for later in some[1:]:
            partials = self._joined(partials, later)
        return Row(NEVER, (keys, 0, partials))

    def _ended(self, watermark: int) -> Iterator[Row]:
        """The windows that have ended, ordered by end and keys."""
        if watermark >= self._due:
            self._put()
        ended = [
            (row.due, json_text(row.value[0]), place, group, row) for group, place, row in self._states.due(watermark)
        ]
        for _, _, place, group, row in sorted(ended, key=itemgetter(0, 1, 2, 3)):
            self._states.put(group, place, None)
            yield row


def starts(time: int, window: Every) -> list[int]:
    """The starts of all windows that contain a moment, in order."""
    step = window.step.micros
    return list(range((time - window.length.micros) // step * step + step, time + 1, step))


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
    def sides(self) -> list[_Side]:
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
    def both(self) -> tuple[Callable[..., Bound | None], Value]:
        """A matcher of both patterns for a pair, and the function that makes the new event."""
        match, types = matcher([(self.does.pattern, self.source), (self.does.other, self.other)])
        return match, maker(self.does.result, self.target, types)

    @cached_property
    def groups(self) -> _Groups:
        return _Groups()

    def text(self, group: str, value: Any) -> str:
        if group == _CLOCK:
            return json_text(value)
        time, event = value
        return json_text([time, self.sides[int(group[0])].write(event)])

    def value(self, group: str, text: str) -> Any:
        data = json.loads(text)
        return data if group == _CLOCK else (data[0], self.sides[int(group[0])].read(data[1]))

    def over(self, states: States) -> Take:
        return _Meet(self, states).take


class _Meet:
    """A join at work on its states. A row that is over while events are taken is never put."""

    def __init__(self, fold: Meeting, states: States) -> None:
        self._fold, self._states, self._clock = fold, states, _Clock(states, 2)
        self._within = fold.does.within.micros

    def take(self, given: Sequence[tuple[Any, str, Any]]) -> list[tuple[Any, Outcome]]:
        made: list[tuple[Any, Outcome]] = []
        new: dict[str, dict[int, tuple[int, Any]]] = {}
        fold, clock, states, late = self._fold, self._clock, self._states, self._fold.does.clock.late.micros
        for mark, space, event in given:
            side = int(space != fold.space)
            mine = fold.sides[side]
            time = to_microseconds(mine.time(event))
            try:
                if mine.match(event) is not None:
                    if time < clock.newest[side] - late:
                        raise _Refused(LATE)
                    group = fold.groups[mine.key(event)]
                    theirs = f"{1 - side}{group}"
                    stored = states.rows(theirs)
                    partners = [row.value for _, row in sorted(stored.items())] if stored else []
                    if theirs in new:
                        partners += new[theirs].values()
                    if partners:
                        made += [(mark, outcome) for outcome in self._met(side, event, time, partners)]
                    new.setdefault(f"{side}{group}", {})[clock.number] = (time, event)
            except NoValue:
                made.append((mark, Outcome(failure=NO_VALUE)))
            except _Refused as why:
                made.append((mark, Outcome(failure=str(why))))
            clock.see(side, time)
        self._put(new, min(clock.newest) - late)
        clock.keep()
        return made

    def _put(self, new: Mapping[str, Mapping[int, tuple[int, Any]]], watermark: int) -> None:
        """Keep what an event in time may still be near."""
        for group, place, _ in self._states.due(watermark - 1):
            self._states.put(group, place, None)
        for group, rows in new.items():
            for number, (time, event) in rows.items():
                if time + self._within >= watermark:
                    self._states.put(group, number, Row(time + self._within, (time, event)))

    def _met(self, side: int, event: Any, time: int, partners: Sequence[tuple[int, Any]]) -> Iterator[Outcome]:
        """Combine an event with each event of the other space that is near in time, in arrival order."""
        match, made = self._fold.both
        for when, other in partners:
            if abs(time - when) > self._within:
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

    def rows(self, group: str) -> Mapping[int, Row]:
        return self._rows.get(group, {})

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
