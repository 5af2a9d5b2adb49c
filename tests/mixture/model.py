"""What must come of everything that was done, by plain lists: no store, no journal, no engine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.mixture.office import ASKED, DISCARDING, KEEPING, MAIL, TREE, Planned


@dataclass
class Place:
    """A queue of plain messages."""

    keep: bool = True
    hold: str = ""  # input, full
    waiting: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    read: str | None = None  # a message of which someone has the first segment

    @property
    def accepts(self) -> bool:
        return not self.hold and self.read is None

    def take(self) -> str:
        body = self.waiting.pop(0)
        self.read = None
        if self.keep:
            self.done.append(body)
        return body


@dataclass
class Sphere:
    sends: list[Planned] = field(default_factory=list)
    state: str = "ACTIVE"


@dataclass
class Note:
    """A message of a station."""

    number: int
    at: str
    mail: bool = False
    text: str = "first"
    kept: bool = False  # in a dossier
    fetched: bool = True  # it has been at a station


@dataclass
class Model:
    queues: dict[str, Place] = field(
        default_factory=lambda: {KEEPING: Place(), DISCARDING: Place(keep=False), TREE: Place()}
    )
    spheres: dict[str, Sphere] = field(default_factory=dict)
    aborting: list[str] = field(default_factory=list)  # in the order in which it was begun
    orphan: str | None = None  # a sphere whose owner has ended, and nobody has looked since
    asked: list[tuple[str, bool]] = field(default_factory=list)  # and whether the rule can answer
    finished: set[str] = field(default_factory=set)
    bound: int = 0
    published: list[int] = field(default_factory=list)
    answers_taken: int = 0
    passed: list[int] = field(default_factory=list)  # those that were big enough when they were published
    answers_hold: str = ""
    notes: dict[str, Note] = field(default_factory=dict)
    letters: list[tuple[str, int]] = field(default_factory=list)  # that spheres have sent, and whose keys are not known
    pairs: dict[str, list[int]] = field(default_factory=lambda: {"ORDER": [], "BILL": []})  # as they came to dan
    joins: bool = True

    # --- spheres ---

    def sent(self, id: str, planned: Planned) -> None:
        self.spheres[id].sends.append(planned)
        when, queue, body, *_ = planned
        if when == "now":
            self._arrive(queue, body)

    def _arrive(self, queue: str, body: str) -> None:
        if queue == ASKED:
            self.asked.append((id_of(body), True))
        elif queue.startswith(MAIL):
            self.letters.append((queue.removeprefix(MAIL), int(body)))
        else:
            self.queues[queue].waiting.append(body)

    def accepts(self, queue: str) -> bool:
        return queue not in self.queues or self.queues[queue].accepts

    def can_commit(self, id: str) -> bool:
        """A commit waits for queues that take nothing; nobody would open them here."""
        sends = self.spheres[id].sends
        goals = [queue for when, queue, *_ in sends if when == "commit"]
        goals += [kept for when, *_, kept in sends if when == "now" and kept is not None]
        return all(map(self.accepts, goals))

    def commit(self, id: str) -> None:
        sphere = self.spheres[id]
        for when, queue, body, undo, _, kept in sphere.sends:
            if when == "commit":
                self._arrive(queue, body)
            elif when == "now" and undo is not None and kept is not None:
                self._arrive(kept, undo)
        sphere.state, sphere.sends = "COMMITTED", []

    def abort(self, id: str, unasked: set[str]) -> None:
        """Undo what can be undone, the newest first; what cannot be delivered stays to be done.

        How far an engine has come, which may have been killed, only the room knows: ``unasked`` wait for a rule.
        """
        sphere = self.spheres[id]
        left = [each for each in reversed(sphere.sends) if not self._undone(each, unasked)]
        sphere.sends = left[::-1]
        sphere.state = "ABORTING" if left else "ABORTED"
        if left and id not in self.aborting:
            self.aborting.append(id)
        elif not left and id in self.aborting:
            self.aborting.remove(id)

    def _undone(self, planned: Planned, unasked: set[str]) -> bool:
        when, queue, body, undo, target, _ = planned
        if when == "commit" or (when == "now" and self._withdrawn(queue, body, unasked)):
            return True
        said, goal = (body, queue) if when == "abort" else (undo, target or queue)
        if said is None:
            return True  # it stands
        if not self.accepts(goal):
            return False
        self._arrive(goal, said)
        return True

    def _withdrawn(self, queue: str, body: str, unasked: set[str]) -> bool:
        """A primary that nobody has taken disappears."""
        if queue == ASKED:
            if id_of(body) in unasked:
                self.asked.remove((id_of(body), True))
            return id_of(body) in unasked
        if queue.startswith(MAIL):
            return self._letter_withdrawn((queue.removeprefix(MAIL), int(body)))
        place = self.queues[queue]
        untaken = body in place.waiting and place.read != body
        if untaken:
            place.waiting.remove(body)
        return untaken

    def _letter_withdrawn(self, letter: tuple[str, int]) -> bool:
        if letter in self.letters:  # it came in this step
            self.letters.remove(letter)
            return True
        found = [key for key, note in self.notes.items() if note.number == letter[1] and not note.fetched]
        for key in found:
            del self.notes[key]
        return bool(found)

    def compensate(self, unasked: set[str]) -> None:
        """An engine looks: at what is left of aborts in their order, then at the owner that has ended."""
        for id in [*self.aborting, *([] if self.orphan is None else [self.orphan])]:
            self.abort(id, unasked)
        self.orphan = None

    # --- what must be there when nothing is left to do ---

    @property
    def answers(self) -> list[str]:
        return [id for id, good in self.asked if good]

    @property
    def errors(self) -> list[str]:
        return [id for id, good in self.asked if not good]

    @property
    def retained(self) -> set[str]:
        """Requests without the other half of their slice, which holds them."""
        asked = {id for id, _ in self.asked}
        return (asked | self.finished) - (asked & self.finished)

    @property
    def joined(self) -> int:
        orders, bills = self.pairs["ORDER"], self.pairs["BILL"]
        return sum(min(orders.count(pair), bills.count(pair)) for pair in set(orders))

    def keys_at(self, station: str, mail: bool) -> set[str]:
        return {key for key, note in self.notes.items() if (note.at, note.mail) == (station, mail)}


def id_of(body: str) -> str:
    """Of a request, and of whatever came of it."""
    found = re.search(r"<id>(\w+)</id>", body)
    assert found is not None, body
    return found.group(1)
