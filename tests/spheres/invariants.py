"""What must be true of spheres, read from a room's journal alone.

A token is in one state queue always and moves along legal transitions. A compensation is delivered once if its sphere
fails and its primary was taken, and never otherwise; if its primary is given back after that, and nobody has taken
the compensation, both disappear. What is withdrawn was not taken. What a sphere has reserved is taken or given back
with its end. A sphere that has ended has nothing in COMP.Q. What goes to one queue goes there in the reverse order of
the sends, or in their order on commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from postroom.room import Postroom
from postroom.store.kernel.journal import Event

ACTIVE, COMMITTING, ABORTING, COMMITTED, ABORTED = "ACTIVE", "COMMITTING", "ABORTING", "COMMITTED", "ABORTED"
UNDO = "COMP.Q"
ENDED = (COMMITTED, ABORTED)
LEGAL = {(ACTIVE, COMMITTING), (ACTIVE, ABORTING), (COMMITTING, COMMITTED), (COMMITTING, ABORTING), (ABORTING, ABORTED)}


class Broken(AssertionError):
    """The journal tells of something that must not happen."""


@dataclass
class Remembered:
    """A message in COMP.Q, as the journal introduced it."""

    sphere: str
    seq: int
    when: str
    recipient: str
    primary: str | None
    on_commit: str | None
    left: str | None = None  # the verb by which it left


@dataclass
class Story:
    """One sphere."""

    state: str = ACTIVE
    remembered: list[Remembered] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)  # by queue: the send whose message came there last


@dataclass
class Told:
    """What a journal came to."""

    spheres: dict[str, str]  # id and state
    compensated: set[str]  # primaries
    withdrawn: set[str]
    waiting: int  # in COMP.Q
    reserved: set[str]
    phantoms: set[str]  # primaries that wait in their queues, of spheres that are aborted

    @property
    def over(self) -> bool:
        return all(state in ENDED for state in self.spheres.values())


def journal(room: Postroom) -> Iterator[Event]:
    after = 0
    while page := room.journal.after(after):
        yield from page
        after = page[-1].seq


def check(room: Postroom, *, over: bool = False) -> Told:
    """Check a room; with ``over``, every sphere must have come to its end, too."""
    told = read(journal(room))
    if over and not told.over:
        raise Broken(f"not at its end: {told.spheres}")
    if over and told.reserved:
        raise Broken(f"all is at its end, and reserved are {told.reserved}")
    if over and told.phantoms:
        raise Broken(f"their spheres are aborted, and they are there: {told.phantoms}")
    return told


def read(events: Iterable[Event]) -> Told:
    reader = _Reader()
    for event in events:
        try:
            reader.hear(event)
        except Broken as broken:
            raise Broken(f"{broken}: {event}") from None
    return reader.told()


class _Reader:
    def __init__(self) -> None:
        self.stories: dict[str, Story] = {}
        self.tokens: dict[str, str] = {}  # the sphere of each
        self.remembered: dict[str, Remembered] = {}
        self.taken: set[str] = set()
        self.begun: set[str] = set()  # someone has read a part
        self.reserved: set[str] = set()  # a sphere has it, and may give it back
        self.withdrawn: set[str] = set()
        self.aside: set[str] = set()
        self.compensated: set[str] = set()

    def hear(self, event: Event) -> None:
        if event.key is None:
            return
        if event.verb == "put" and event.target == ACTIVE:
            self.start(event)
        elif event.key in self.tokens:
            self.move(event)
        elif event.verb == "put" and event.target == UNDO:
            self.remember(event)
        elif event.source == UNDO:
            self.leave(event)
        else:
            self.pass_on(event, event.key)

    def pass_on(self, event: Event, key: str) -> None:
        """Something happens to a message that is in no queue of ours."""
        if event.verb == "withdraw":
            _must(key not in self.taken | self.reserved, "what was taken is withdrawn")
            _must(key not in self.withdrawn, "withdrawn twice")
            self.withdrawn.add(key)
            self.begun.discard(key)  # whoever had begun to read it has ended
        elif event.verb == "set-aside":
            self.aside.add(key)
        elif event.verb == "unlock":
            self.begun.discard(key)
        elif event.verb == "give-back":
            _must(key in self.reserved, "given back, and nobody had it")
            self.reserved.discard(key)
        elif event.verb == "ship" and event.source is None:  # it comes from another node, where it was made
            _must(key not in self.withdrawn, "what was withdrawn is there again")
        elif event.verb not in ("put", "create", "beat"):
            _must(key not in self.withdrawn, "what was withdrawn is there again")
            _must(event.verb != "reserve" or key not in self.reserved, "two have it")
            kinds = {"segment": self.begun, "reserve": self.reserved}
            kinds.get(event.verb, self.taken).add(key)
            if event.verb == "take":
                self.reserved.discard(key)

    def start(self, event: Event) -> None:
        assert event.key is not None
        id = (event.detail or {})["entity"]
        _must(id not in self.stories, "a second token")
        self.tokens[event.key] = id
        self.stories[id] = Story()

    def move(self, event: Event) -> None:
        assert event.key is not None
        story = self.stories[self.tokens[event.key]]
        _must(event.verb == "move", "a token is not moved but something else")
        _must(event.source == story.state, f"the token was in {story.state}")
        _must((event.source, event.target) in LEGAL, "no transition leads there")
        assert event.target is not None
        story.state = event.target
        if story.state in ENDED:
            left = [each for each in story.remembered if each.left is None]
            _must(not left, f"it has ended, and in {UNDO} is {left}")

    def remember(self, event: Event) -> None:
        assert event.key is not None
        said = event.detail or {}
        story = self.stories.get(said["sphere"])
        _must(story is not None, "remembered for a sphere that is not there")
        assert story is not None
        _must(story.state in (ACTIVE, COMMITTING), f"remembered while {story.state}")
        primary = said.get("compensates")
        found = Remembered(said["sphere"], event.seq, said["when"], said["recipient"], primary, said.get("on_commit"))
        _must(primary is None or all(each.primary != primary for each in self.remembered.values()), "remembered twice")
        self.remembered[event.key] = found
        story.remembered.append(found)

    def leave(self, event: Event) -> None:
        assert event.key is not None
        found = self.remembered.get(event.key)
        _must(found is not None, f"{UNDO} had no such message")
        assert found is not None
        _must(found.left is None, "it has left twice")
        found.left = event.verb
        story = self.stories[found.sphere]
        _must(story.state in (COMMITTING, ABORTING), f"it leaves while its sphere is {story.state}")
        if story.state == COMMITTING:
            goal = self.goal_on_commit(found)
        else:
            goal = self.goal_on_abort(found)
        if goal is None:
            _must(event.target is None and event.verb in ("withdraw", "discard"), "delivered, and must not be")
            return
        _must(event.verb in ("move", "deliver"), "not delivered, and must be")
        _must(event.target in (goal, None), f"delivered, and not to {goal}")
        before = story.order.get(goal)
        forwards = story.state == COMMITTING
        _must(before is None or (before < found.seq) == forwards, f"not in order with the one sent at {before}")
        story.order[goal] = found.seq

    def goal_on_commit(self, found: Remembered) -> str | None:
        return {"commit": found.recipient, "abort": None, "return": None, "now": found.on_commit}[found.when]

    def goal_on_abort(self, found: Remembered) -> str | None:
        if found.when == "commit":
            return None
        if found.primary is None:
            return found.recipient
        if found.primary in self.taken | self.begun | self.reserved:
            _must(found.primary not in self.compensated, "compensated twice")
            self.compensated.add(found.primary)
            return found.recipient
        _must(found.primary in self.withdrawn | self.aside, "its primary is neither taken nor withdrawn")
        return None

    def told(self) -> Told:
        waiting = sum(each.left is None for each in self.remembered.values())
        states = {id: story.state for id, story in self.stories.items()}
        gone = self.taken | self.withdrawn | self.aside | self.reserved
        aborted = {each.primary for each in self.remembered.values() if states[each.sphere] == ABORTED}
        phantoms = {key for key in aborted if key is not None and key not in gone}
        return Told(states, self.compensated, self.withdrawn, waiting, self.reserved, phantoms)


def _must(true: bool, otherwise: str) -> None:
    if not true:
        raise Broken(otherwise)
