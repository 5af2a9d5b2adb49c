"""What a step of procedures works on: new messages of stations, and the working sets that they complete.

Stations are independent. The messages of one station are examined one after another, each with the candidates left by
those before it. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.limits import CHAIN_MAX, SEARCH_TRIES_MAX
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.stations.places.postmarks import postmarks
from postroom.stations.procedures.actions import SLOW, Outcome
from postroom.stations.procedures.definitions import ME
from postroom.stations.procedures.errors import ERROR
from postroom.stations.procedures.goals import Goals
from postroom.stations.procedures.plan import Desk, Picked, Plan, Selected, selected
from postroom.stations.procedures.search import Memory, TooManyTries, complete, probes
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.working_sets import Candidate, Reached

CHAIN, TRIES, DAMAGED = "PP0002", "PP0003", "PP0004"  # chains and searches that are too long, messages unreadable
_FIRST_MAX = 10_000  # candidates that are looked up before anyone asks for each


class Arrival(NamedTuple):
    """A message that a station's procedures have not examined."""

    stored: Stored
    mail: bool


@dataclass(slots=True)
class WorkingSet:
    """A complete working set."""

    plan: Plan
    arrival: int  # the number of the message that has completed it, among those of its station
    members: dict[int, Candidate]  # by sketch
    stored: dict[int, Stored] = field(default_factory=dict)  # by sketch, the messages themselves
    keys: tuple[int, ...] = ()  # for new messages
    outcome: Outcome | None = None
    depth: int = 0  # procedures that have handled its messages one after another, with nothing new from a person

    @property
    def goals(self) -> Goals:
        """Where each of its messages goes, once its outcome is known."""
        assert self.outcome is not None
        return self.plan.goals(self.outcome.where)


@dataclass
class Look:
    """A station in a step: its arrivals, its current candidates, and its complete sets."""

    desk: Desk
    kept: Reached
    arrivals: list[Arrival]
    memory: Memory
    sets: list[WorkingSet] = field(default_factory=list)
    until: int = 0  # so many of the arrivals have been looked at
    fetch: dict[int, int] = field(default_factory=dict)  # mail of another store that is needed here, with its position
    fetcher: str = ""  # the procedure that needs it
    with_mail: bool = field(init=False)  # whether mail may be among its working sets: it has come now, or before

    def __post_init__(self) -> None:
        self.with_mail = self.kept.mail > 0 or any(arrival.mail for arrival in self.arrivals)

    @property
    def fired(self) -> list[WorkingSet]:
        """The sets that the step handles, up to its current end."""
        sets = [(working, working.outcome) for working in self.sets if working.arrival < self.until]
        return [working for working, outcome in sets if outcome is not None and not outcome.failed]

    @property
    def progress(self) -> Reached:
        """The station's position after the step."""
        seen = self.arrivals[: self.until]
        # Each of the two queues is read in its order.
        own = next((arrival.stored.position for arrival in reversed(seen) if not arrival.mail), self.kept.own)
        mail = self.kept.mail
        if self.with_mail:
            mail = next((arrival.stored.position for arrival in reversed(seen) if arrival.mail), mail)
        return self.kept._replace(own=own, mail=mail, turn=self.kept.turn + self.until)

    def end_at_failure(self) -> None:
        """End the step after the first set that fails: later messages are examined again without it."""
        for place, working in enumerate(self.sets):
            if working.outcome is not None and working.outcome.failed:
                self.until = working.arrival
                self.fetch.clear()
                del self.sets[place + 1 :]
                return

    def end_at_open(self) -> WorkingSet | None:
        """End the step before the first set that is not evaluated. Returns one that is slow."""
        for place, working in enumerate(self.sets):
            if working.outcome is not None and working.outcome.is_open:
                self.until = working.arrival
                self.fetch.clear()
                del self.sets[place:]
                return working if working.outcome.code == SLOW else None
        return None

    def turn(self, number: int) -> int:
        return self.kept.turn + number + 1


def arrivals(own: Sequence[Stored], mail: Sequence[Stored], size: int, *, apart: bool) -> list[Arrival]:
    """The messages of a station's two queues in arrival order.

    In one store that is the journal's order, up to the end of the shorter full page. Two stores have no common order:
    then mail comes last.
    """
    new = tuple.__new__  # the constructor's half cost counts here
    messages: list[Arrival] = [new(Arrival, (stored, False)) for stored in own]
    messages += [new(Arrival, (stored, True)) for stored in mail]
    if apart or not mail:
        return messages[:size]
    ends = [page[-1].position for page in (own, mail) if len(page) >= size]
    messages = [arrival for arrival in messages if not ends or arrival.stored.position <= min(ends)]
    return sorted(messages, key=lambda arrival: arrival.stored.position)[:size]


def look(tx: Transaction, desk: Desk, kept: Reached, some: list[Arrival], *, apart: bool) -> Look:
    """Examine messages of a station one after another, in the store of its node."""

    def look_up(slot: str, value: str, after: int) -> Sequence[Candidate]:
        return tx.working_sets.look_up(kept.id, [(slot, value, after)])[0]

    seen = Look(desk, kept, some, Memory(desk, look_up if kept.turn else None))
    withdrawn = tx.working_sets.withdrawn(kept.id, [arrival.stored.key for arrival in some])
    asked: _Asked = {}
    chosen = [_chosen(desk, arrival, withdrawn, asked) for arrival in some]
    _know(tx, seen, chosen)
    for number, (arrival, fits) in enumerate(zip(some, chosen, strict=True)):
        if not _look_at(seen, number, arrival, fits, apart=apart):
            break
        seen.until = number + 1
        if seen.sets and seen.sets[-1].outcome is not None:
            break  # a search that was too long ends the step: what comes behind it is looked at again
        if seen.memory.tries > SEARCH_TRIES_MAX:
            break  # enough for one step
    _fill(tx, seen)
    return seen


def look_dry(desk: Desk, some: list[Arrival]) -> Look:
    """Examine messages without a store: they find only each other."""
    seen = Look(desk, Reached(0, desk.station, desk.edition, 0, 0, 0), some, Memory(desk, None))
    for number, arrival in enumerate(some):
        _look_at(seen, number, arrival, _chosen(desk, arrival, {}, {}), apart=False)
    seen.until = len(some)
    _give(seen, {arrival.stored.key: arrival.stored for arrival in some})
    return seen


#: Who asks for messages by type, properties and whether they are mail, and where these come from. Most are alike.
_Asked = dict[tuple[str | None, str, bool], tuple[Sequence[tuple[int, int, Picked]], frozenset[str]]]


def _chosen(
    desk: Desk, arrival: Arrival, withdrawn: Mapping[tuple[str, int], int], asked: _Asked
) -> Sequence[Selected]:
    stored, mail = arrival
    alike = (stored.type, stored.properties, mail)
    known = asked.get(alike)
    if known is None:
        known = asked[alike] = who_asks(desk, *alike)
    wanted, origins = known
    if not wanted or not stored.sound:
        return ()  # nobody asks for it, or what it said is not known
    fits = selected(wanted, stored.body, origins)
    if not withdrawn:
        return fits
    return [fit for fit in fits if withdrawn.get((desk.plans[fit.plan].name, stored.key)) != stored.position]


def who_asks(
    desk: Desk, type: str | None, properties: str, mail: bool
) -> tuple[Sequence[tuple[int, int, Picked]], frozenset[str]]:
    """The sketches that match a message, and where it comes from."""
    try:
        about = postmarks(properties)
    except ValueError:  # damaged
        return (), frozenset()
    if type == ERROR.name and about.depth > CHAIN_MAX:
        return (), frozenset()  # errors about errors end here
    is_mail = mail or about.fetched
    shipper = about.sender or ("" if is_mail else desk.station)
    # Whoever shipped it last; and the station's own database, if it lies there, whoever brought it.
    return desk.wants(type or "", about.handled), frozenset([shipper] if is_mail else [shipper, ME])


def _know(tx: Transaction, seen: Look, chosen: Sequence[Sequence[Selected]]) -> None:
    """Look up the candidates for all messages in one query."""
    plans = seen.desk.plans
    if not seen.kept.turn:
        return  # nobody is there
    wanted: dict[str, dict[str, None]] = {}
    for fits in chosen:
        for fit in fits:
            for slot, value in probes(plans[fit.plan], fit):
                wanted.setdefault(slot, {})[value] = None
    for slot, values in wanted.items():
        known = tx.working_sets.look_up_all(seen.kept.id, slot, list(values), _FIRST_MAX + len(values))
        if known is not None:
            seen.memory.know(slot, values, known)


def _look_at(seen: Look, number: int, arrival: Arrival, fits: Sequence[Selected], *, apart: bool) -> bool:
    """Make a message a candidate, and find the set that it completes; False if mail must be fetched first."""
    if not fits:
        return True
    desk, memory, (stored, mail) = seen.desk, seen.memory, arrival
    turn, remote = seen.turn(number), int(mail and apart)
    firsts: list[Candidate] = []
    for fit in fits:
        about = ("", "", turn, stored.key, stored.position, remote, stored.created, fit.values, True)
        firsts.append(tuple.__new__(Candidate, about))
        memory.add(fit, firsts[-1])
    for place, fit in enumerate(fits):
        plan, first = desk.plans[fit.plan], firsts[place]
        try:
            members = complete(plan, fit, first, memory)
        except TooManyTries:
            why = f"the search for partners compared more than {SEARCH_TRIES_MAX} messages; join them by ="
            failed = Outcome(code=TRIES, why=why)
            seen.sets.append(WorkingSet(plan, number, {fit.sketch: first}, outcome=failed))
            return True
        if members is None:
            continue
        if apart and any(member.remote for member in members.values()):
            seen.fetcher = plan.name
            seen.fetch = {member.message: member.position for member in members.values() if member.remote}
            return False
        seen.sets.append(WorkingSet(plan, number, members))
        memory.gone.update([member.message for member in members.values()])
        break
    return True


def _fill(tx: Transaction, seen: Look) -> None:
    """Read the messages of complete sets; raises if one has moved meanwhile."""
    here = {arrival.stored.key: arrival.stored for arrival in seen.arrivals}
    wanted = {member.message for working in seen.sets for member in working.members.values()} - here.keys()
    more = tx.messages.find_many(sorted(wanted))
    _give(seen, {**here, **more}, {key for key, stored in more.items() if not stored.sound})


def _give(seen: Look, known: Mapping[int, Stored], damaged: Collection[int] = ()) -> None:
    for working in seen.sets:
        depths = []
        for sketch, member in working.members.items():
            stored = known.get(member.message)
            if stored is None or stored.position != member.position:
                raise Stale
            working.stored[sketch] = stored
            if stored.key not in damaged:
                depths.append(postmarks(stored.properties).depth)
            else:
                why = f"message {key_text(stored.key)} does not match its hash"
                working.outcome = Outcome(code=DAMAGED, why=why)
        working.depth = min(depths, default=0)
        if working.outcome is None and working.depth >= CHAIN_MAX:
            why = f"{working.depth} procedures have handled it one after another, and no person in between"
            working.outcome = Outcome(code=CHAIN, why=why)
