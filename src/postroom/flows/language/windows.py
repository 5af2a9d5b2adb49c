"""Time in the flow language: durations, the time of an event and its lateness, and the windows of arcs with state.

    at t late 10 seconds      every 5 minutes      every 1 minute over 1 hour      session 30 seconds      until e

What is printed reads back as the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from postroom.flows.language.words import Words, fail
from postroom.limits import FLOW_EVENTS_KEPT_MAX, FLOW_WINDOWS_MAX
from postroom.model.definitions import Position

_NOWHERE = Position("window", 1)  # where something stands is no part of what it says
#: How many microseconds a unit has, by its name for several.
UNITS = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "seconds": 1_000_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "days": 86_400_000_000,
}
_LONGEST = 366 * 1000 * UNITS["days"]


@dataclass(frozen=True, slots=True)
class Duration:
    amount: int
    unit: str  # its name for several

    @property
    def micros(self) -> int:
        return self.amount * UNITS[self.unit]

    def __str__(self) -> str:
        return f"{self.amount} {self.unit[:-1] if self.amount == 1 else self.unit}"


NO_TIME = Duration(0, "seconds")


@dataclass(frozen=True, slots=True)
class Clock:
    """The variable with an event's time, and the allowed lateness: how much older than the newest event one may be."""

    variable: str
    late: Duration = NO_TIME
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"at {self.variable}" + (f" late {self.late}" if self.late.amount else "")


@dataclass(frozen=True, slots=True)
class Every:
    """Windows of one length, without overlap or starting each ``step``."""

    step: Duration
    length: Duration
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"every {self.step}" + (f" over {self.length}" if self.length != self.step else "")


@dataclass(frozen=True, slots=True)
class Session:
    """Session windows: events of a key without a gap of this length."""

    gap: Duration
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"session {self.gap}"


@dataclass(frozen=True, slots=True)
class Until:
    """All events of a key, up to the moment that a variable of the key has."""

    variable: str
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"until {self.variable}"


@dataclass(frozen=True, slots=True)
class LastEvents:
    """The last so many events of a key."""

    count: int
    position: Position = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"over {self.count} {'event' if self.count == 1 else 'events'}"


Window = Every | Session | Until | LastEvents


def read_clock(words: Words) -> Clock | None:
    """``at t late 10 seconds``, if it comes next."""
    position = words.next.position
    if not words.flag("at"):
        return None
    variable = words.name("the variable that has the time of an event").text
    return Clock(variable, read_lateness(words), position)


def read_lateness(words: Words) -> Duration:
    return read_duration(words) if words.flag("late") else NO_TIME


def read_window(words: Words) -> Window | None:
    """The window that comes next, if there is one."""
    position = words.next.position
    if not words.is_name("every", "session", "until", "over"):
        return None
    keyword = words.take().text
    if keyword == "session":
        return Session(_some(words), position)
    if keyword == "until":
        return Until(words.name("the variable that has the end of the window").text, position)
    if keyword == "over":
        return _last_events(words, position)
    step = length = _some(words)
    if words.flag("over"):
        length = _some(words)
    if not step.micros <= length.micros <= step.micros * FLOW_WINDOWS_MAX:
        what = f"windows of {length} each {step}: the length is 1 to {FLOW_WINDOWS_MAX} times the step"
        fail(position, what, "window")
    return Every(step, length, position)


def read_duration(words: Words) -> Duration:
    position = words.next.position
    amount = _whole(words, "a number, as in 10 seconds")
    unit = words.name(f"a unit of time ({', '.join(UNITS)})")
    plural = unit.text if unit.text in UNITS else f"{unit.text}s"
    if plural not in UNITS:
        fail(unit.position, f"{unit.text} is not a unit of time; there are {', '.join(UNITS)}", "duration")
    duration = Duration(amount, plural)
    if duration.micros > _LONGEST:
        fail(position, f"{duration} is longer than a thousand years", "duration")
    return duration


def _some(words: Words) -> Duration:
    position = words.next.position
    duration = read_duration(words)
    if not duration.amount:
        fail(position, "a window has a length", "duration")
    return duration


def _last_events(words: Words, position: Position) -> LastEvents:
    count = _whole(words, "a number, as in 10 events")
    words.keyword("events", "event")
    if not 1 <= count <= FLOW_EVENTS_KEPT_MAX:
        fail(position, f"over {count} events: 1 to {FLOW_EVENTS_KEPT_MAX} can be kept for a key", "window")
    return LastEvents(count, position)


def _whole(words: Words, wanted: str) -> int:
    if words.next.kind != "number" or not words.next.text.isdecimal() or len(words.next.text) > 18:
        words.refuse(wanted)
    return int(words.take().text)
