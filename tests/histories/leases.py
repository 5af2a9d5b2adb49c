"""A checker of a queue whose messages are leased: what processes were told, and the journal's lines in their order.

The lines are played on plain records, each in one state at a time: a lease that was given twice, an attempt counted
wrong, an order that was not kept are seen there. What processes were told must be what the lines say.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.histories.record import FAIL, Operation

WAITING, LEASED, DELAYED, BLOCKED, DONE, DEAD, EXPIRED = "waiting leased delayed blocked done dead expired".split()
#: The lines that end a lease, by the verb that asks for it.
ENDS = {"done": ("take",), "release": ("release",), "fail": ("fail", "dead-letter")}
RAN_OUT, PROCESS_ENDED = "its lease ran out", "its process ended"


class Line(NamedTuple):
    """A line of the journal about a message of the queue."""

    seq: int
    verb: str
    key: str
    detail: Mapping[str, Any] = {}
    at: int = 0  # nanoseconds of the clock of the history


class Promise(NamedTuple):
    """What the queue's policy says."""

    order: str = "free"
    by: str | None = None
    attempts: int | None = None


@dataclass
class Copy:
    """A message as the lines have it."""

    place: int
    value: Any  # of the property that orders and selects
    priority: int = 0
    state: str = WAITING
    attempts: int = 0
    fence: int = 0

    def before(self, other: Copy) -> bool:
        return (-self.priority, self.place) < (-other.priority, other.place)


@dataclass
class Told:
    """What processes were told, found by what it was about."""

    history: Sequence[Operation]
    killed: Collection[str] = ()
    sends: dict[str, Operation] = field(default_factory=dict)
    leases: dict[int, Operation] = field(default_factory=dict)
    until: dict[int, float] = field(default_factory=dict)
    ends: dict[int, list[Operation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.history:
            if each.verb == "send" and each.happened:
                self.sends[each.answer] = each
            elif each.verb == "lease" and each.happened:
                for _, fence, _, until in each.answer:
                    self.leases[fence] = each
                    self.until[fence] = max(until, self.until.get(fence, 0))
            elif each.verb == "extend" and each.happened:
                self.until[each.asked] = each.answer
            elif each.verb in ENDS:
                for fence in each.asked:
                    self.ends.setdefault(fence, []).append(each)


def check(told: Told, lines: Sequence[Line], values: Mapping[str, Any], promise: Promise) -> list[str]:
    """What is wrong. ``values`` has of each message the property that orders and selects."""
    played = _Played(told, values, promise)
    for line in lines:
        played.play(line)
    return [*played.wrong, *_answers(told, played), *_passed_over(told, played)]


class _Played:
    """The lines in their order, on plain records."""

    def __init__(self, told: Told, values: Mapping[str, Any], promise: Promise) -> None:
        self.told = told
        self.values = values
        self.promise = promise
        self.copies: dict[str, Copy] = {}
        self.wrong: list[str] = []
        self.given: dict[int, tuple[str, int]] = {}  # by lease: the message, and the how manieth attempt
        self.ended: dict[int, str] = {}  # by lease: the line that ended it
        self.stays: list[tuple[str, int, int | None]] = []  # waited from a line to a line
        self._since: dict[str, int] = {}
        self.verbs: dict[int, str] = {}  # by line

    def play(self, line: Line) -> None:
        self.verbs[line.seq] = line.verb
        if line.verb == "put":
            self.copies[line.key] = Copy(line.seq, self.values.get(line.key), line.detail.get("priority", 0))
            self._since[line.key] = line.seq
            return
        copy = self.copies.get(line.key)
        if copy is None:
            self.wrong.append(f"{line.key}: {line.verb}, and it was never sent")
            return
        before, expected = copy.state, _BEFORE[line.verb]
        if before not in expected:
            self.wrong.append(f"{line.key}: {line.verb} while it was {before}")
        if before == LEASED:  # a lease that ran out at the last attempt makes a dead letter, too
            ran_out = line.detail.get("reason") in (RAN_OUT, PROCESS_ENDED)
            self.ended[copy.fence] = "lapse" if ran_out else line.verb
        getattr(self, f"_{line.verb.replace('-', '_')}")(line, copy)
        if before == WAITING and copy.state != WAITING:
            self.stays.append((line.key, self._since[line.key], line.seq))
        if copy.state == WAITING and before != WAITING:
            self._since[line.key] = line.seq

    def waiting(self) -> Iterator[tuple[str, int, int | None]]:
        """Every stretch for which a message waited."""
        yield from self.stays
        yield from ((key, self._since[key], None) for key, copy in self.copies.items() if copy.state == WAITING)

    def _lease(self, line: Line, copy: Copy) -> None:
        copy.state, copy.fence, copy.attempts = LEASED, line.seq, copy.attempts + 1
        self.given[line.seq] = (line.key, copy.attempts)
        if self.promise.attempts is not None and copy.attempts > self.promise.attempts:
            self.wrong.append(f"{line.key}: attempt {copy.attempts} of {self.promise.attempts}")
        others = [(key, each) for key, each in self.copies.items() if each is not copy]
        if self.promise.order == "strict":
            self._check_strict(line, copy, others)
        if self.promise.by is not None:
            same = [(key, each) for key, each in others if each.value == copy.value]
            for key, each in same:
                if each.state == LEASED:
                    self.wrong.append(f"{line.key}: leased while {key} of its key is")
                if each.state in (WAITING, BLOCKED, DELAYED) and each.before(copy) and each.place < copy.place:
                    self.wrong.append(f"{line.key}: leased before {key} of its key, which is {each.state}")

    def _check_strict(self, line: Line, copy: Copy, others: Sequence[tuple[str, Copy]]) -> None:
        for key, each in others:
            if each.state == LEASED:
                self.wrong.append(f"{line.key}: leased while {key} is, in strict order")
            elif each.state == WAITING and each.before(copy):
                self.wrong.append(f"{line.key}: leased before {key}, in strict order")
            elif each.state == DELAYED and each.place < copy.place:
                self.wrong.append(f"{line.key}: leased before {key}, which comes back, in strict order")

    def _take(self, line: Line, copy: Copy) -> None:
        copy.state = DONE

    def _release(self, line: Line, copy: Copy) -> None:
        copy.state, copy.attempts = DELAYED if "due" in line.detail else WAITING, copy.attempts - 1

    def _fail(self, line: Line, copy: Copy) -> None:
        self._count(line, copy)
        copy.state = DELAYED if "due" in line.detail else WAITING

    def _lapse(self, line: Line, copy: Copy) -> None:
        self._count(line, copy)
        holder = self.told.leases.get(copy.fence)
        why, until = line.detail.get("why"), self.told.until.get(copy.fence, 0)
        if why == RAN_OUT and line.at < until - SLACK:
            self.wrong.append(f"{line.key}: given back {(until - line.at) / 1e9:.3f} s before lease {copy.fence} ends")
        if why == PROCESS_ENDED and holder is not None and holder.process not in self.told.killed:
            self.wrong.append(f"{line.key}: given back, and {holder.process} lives")
        copy.state = DELAYED if "due" in line.detail else WAITING

    def _dead_letter(self, line: Line, copy: Copy) -> None:
        self._count(line, copy)
        if copy.attempts != self.promise.attempts:
            self.wrong.append(f"{line.key}: dead after attempt {copy.attempts} of {self.promise.attempts}")
        copy.state = DEAD

    def _count(self, line: Line, copy: Copy) -> None:
        said = line.detail.get("attempts")
        if said != copy.attempts:
            self.wrong.append(f"{line.key}: {line.verb} says {said} attempts, and there were {copy.attempts}")

    def _due(self, line: Line, copy: Copy) -> None:
        copy.state = WAITING

    def _unblock(self, line: Line, copy: Copy) -> None:
        copy.state = WAITING

    def _block(self, line: Line, copy: Copy) -> None:
        copy.state = BLOCKED

    def _expire(self, line: Line, copy: Copy) -> None:
        copy.state = EXPIRED


#: In which states a message may be when a line says something of it.
_BEFORE = {
    "lease": (WAITING,),
    **dict.fromkeys(("take", "release", "fail", "lapse", "dead-letter"), (LEASED,)),
    "due": (DELAYED,),
    "block": (WAITING,),
    "unblock": (BLOCKED,),
    "expire": (WAITING, DELAYED, BLOCKED),
}
HAND = 3_000_000_000  # nanoseconds for which a call of one who was killed may go on in a server
SLACK = 50_000_000  # nanoseconds: the clock of the journal and that of the history are two


def _answers(told: Told, played: _Played) -> Iterator[str]:
    """What processes were told is what the lines say."""
    yield from (f"{key} is lost, and its send returned" for key in told.sends if key not in played.copies)
    unknown = [each for each in told.history if each.outcome not in ("ok", FAIL)]
    for each in told.leases.values():
        for key, fence, attempts, _ in each.answer:
            if played.given.get(fence) != (key, attempts):
                yield f"{key}: told of lease {fence}, attempt {attempts}, and it was {played.given.get(fence)}"
    nobody = sorted(set(played.given) - set(told.leases))
    possible = sum(each.asked.get("count", 1) for each in unknown if each.verb == "lease")
    if len(nobody) > possible:
        yield f"{len(nobody)} leases were told to nobody, and {possible} could not be; one is {nobody[0]}"
    for fence, ends in told.ends.items():
        good = [each for each in ends if each.happened]
        verb = played.ended.get(fence)
        if len(good) > 1:
            yield f"lease {fence} was ended {len(good)} times"
        for each in good:
            if verb not in ENDS[each.verb]:
                yield f"lease {fence}: {each.verb} was accepted, and the journal says {verb}"
        open_ended = any(each.outcome not in ("ok", FAIL) for each in ends)
        if not good and not open_ended and any(verb in ENDS[each.verb] for each in ends):
            yield f"lease {fence}: {ends[0].verb} was refused, and the journal says {verb}"


def _passed_over(told: Told, played: _Played) -> Iterator[str]:
    """In free order: a message was surely there for as long as a lease took, and one behind it or none was given."""
    if played.promise.order != "free" or played.promise.by is not None:
        return
    there = list(_surely(told, played))
    lost = [each.begun for each in told.history if each.verb == "lease" and each.outcome not in ("ok", FAIL)]
    for each in told.history:
        if each.verb != "lease" or not each.happened:
            continue
        if any(begun < each.ended and each.begun < begun + HAND for begun in lost):
            continue  # one who was killed may have had a message in hand, which is in its place again
        fits = [
            copy
            for key, start, stop in there
            if start < each.begun and stop > each.ended
            for copy in (played.copies[key],)
            if each.asked.get("where") is None or copy.value == each.asked["where"]
        ]
        given = [played.copies[key] for key, *_ in each.answer]
        if fits and len(given) < each.asked.get("count", 1):
            yield f"{each.process} was given {len(given)} messages, and there was the one at {fits[0].place}"
        for late in given:
            yield from (
                f"{each.process} was given the message at {late.place} before the one at {early.place}"
                for early in fits
                if early.before(late)
            )
        yield from (
            f"{each.process} asked for {each.asked['where']} and was given {late.value}"
            for late in given
            if each.asked.get("where") is not None and late.value != each.asked["where"]
        )


def _surely(told: Told, played: _Played) -> Iterator[tuple[str, float, float]]:
    """When a message waited for certain: between calls whose ends are known."""
    gave_back = {
        fence: each
        for fence, ends in told.ends.items()
        for each in ends
        if each.happened and each.verb != "done" and played.ended.get(fence) in ("release", "fail")
    }
    back: dict[str, list[tuple[int, Operation]]] = {
        played.given[fence][0]: [] for fence in gave_back if fence in played.given
    }
    for fence, each in gave_back.items():
        if fence in played.given:
            back[played.given[fence][0]].append((fence, each))
    for key, since, until in played.waiting():
        if played.verbs[since] not in ("put", "release", "fail"):
            continue  # no call says when it was due, or when its lease was over
        begin = told.sends.get(key) if since == played.copies[key].place else _ended_at(back.get(key, ()), since)
        end = told.leases.get(until) if until is not None else None
        if begin is not None and (until is None or end is not None):
            yield key, begin.ended, math.inf if end is None else end.begun


def _ended_at(ends: Sequence[tuple[int, Operation]], line: int) -> Operation | None:
    """The call by which a message came back at a line: that of the last lease before it."""
    found = [(fence, each) for fence, each in ends if fence < line]
    return max(found, key=lambda entry: entry[0])[1] if found else None
