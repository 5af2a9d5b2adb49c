"""Serial equivalence: a batch evaluated at once ends as if its messages had come one after another.

Every message is evaluated against what it would have seen: the sets as they stood, and what earlier messages of the
batch have done to them. At first nothing is known of the others, so it is assumed that they do nothing. Where that
proves wrong, the later message is evaluated again. When all have been evaluated against what is true, the first one's
effects are right, hence the second one's, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from postroom.engine.effects import Arrival, Change, Document, Effects, Granule, changes

#: What earlier messages do to each granule, in their order.
Timeline = Mapping[Granule, Sequence[Change]]
#: Evaluates arrivals against a timeline. Those of one group have seen each other's effects; one may be left out.
Evaluate = Callable[[Sequence[Arrival], Timeline], Iterable[Mapping[int, Effects]]]

_at = attrgetter("at")


def settle(
    arrivals: Sequence[Arrival], evaluate: Evaluate, rounds: int, given: Timeline | None = None
) -> tuple[dict[int, Effects], set[int]]:
    """The effects of each arrival, and which of them are not settled after so many rounds.

    ``given`` is what messages outside of this batch do to the granules.
    """
    looked_at = {granule for arrival in arrivals if arrival.reads for granule in arrival.granules}
    effects: dict[int, Effects] = {}
    seen: dict[int, tuple[Change, ...]] = {}
    pending: Sequence[Arrival] = arrivals
    for number in range(rounds):
        for arrival in pending:
            effects.pop(arrival.order, None)
        chosen = pending if number < 2 else _apart(pending)
        known = timeline(effects, looked_at, given)
        by_index = {arrival.order: arrival for arrival in chosen} if looked_at else {}
        for group in evaluate(chosen, known):
            together = timeline(group, looked_at, known)
            effects.update(group)
            if looked_at:
                seen.update({index: view(by_index[index], together) for index in group})
        known = timeline(effects, looked_at, given)
        pending = [
            arrival
            for arrival in arrivals
            if arrival.order not in effects
            or (looked_at and arrival.reads and view(arrival, known) != seen[arrival.order])
        ]
        if not pending:
            break
    return effects, _unsettled(arrivals, effects, seen, {arrival.order for arrival in pending}, given)


def _unsettled(
    arrivals: Sequence[Arrival],
    effects: Mapping[int, Effects],
    seen: Mapping[int, tuple[Change, ...]],
    pending: set[int],
    given: Timeline | None,
) -> set[int]:
    """Those that are pending, and those that have seen what these seemed to do: it may not be what they will do."""
    found = set(pending)
    looked_at = {granule for arrival in arrivals for granule in arrival.granules} if pending else set()
    while looked_at:
        known = timeline({index: made for index, made in effects.items() if index not in found}, looked_at, given)
        others = [arrival for arrival in arrivals if arrival.order not in found and arrival.reads]
        more = {arrival.order for arrival in others if view(arrival, known) != seen[arrival.order]}
        if not more:
            break
        found |= more
    return found


def timeline(
    effects: Mapping[int, Effects], looked_at: set[Granule], given: Timeline | None = None
) -> dict[Granule, list[Change]]:
    """Every change to the granules that someone looks at, in the order of the messages that make them."""
    found: dict[Granule, list[Change]] = {granule: list(before) for granule, before in (given or {}).items()}
    if looked_at:
        for index, made in effects.items():
            for granule, change in changes(index, made) if made else ():
                if granule in looked_at:
                    found.setdefault(granule, []).append(change)
        for made_changes in found.values():
            made_changes.sort(key=_at)
    return found


def view(arrival: Arrival, known: Timeline) -> tuple[Change, ...]:
    """What earlier messages do to the granules that an arrival looks at."""
    return tuple(change for granule in arrival.granules for change in before(arrival.order, known.get(granule, ())))


def before(index: int, made: Sequence[Change]) -> Sequence[Change]:
    return made[: bisect_left(made, index, key=_at)]


def documents(base: Sequence[Document], made: Sequence[Change]) -> list[Document]:
    """A set after changes: a reset empties it, a new message is added at the end."""
    found = list(base)
    for change in made:
        if change.document is None:
            found.clear()
        else:
            found.append(change.document)
    return found


def _apart(pending: Sequence[Arrival]) -> list[Arrival]:
    """Arrivals that share no set with an earlier one: in a chain of conflicts only its head is worth a try."""
    taken: set[Granule] = set()
    chosen = []
    for arrival in pending:
        granules = set(arrival.granules)
        if not granules & taken:
            chosen.append(arrival)
        taken |= granules
    return chosen
