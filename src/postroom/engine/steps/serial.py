"""Serial equivalence: a batch evaluated at once has the same result as one message after another.

Every message is evaluated against the sets that it would have read: as stored, with the changes of earlier messages of
the batch. At first these are assumed to change nothing. If that proves wrong, the later message is evaluated again. In
the end the first message's effects are right, hence the second one's, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from postroom.engine.steps.effects import Arrival, Change, Effects, Granule, changes

#: What an arrival has seen of each granule.
View = tuple[int, ...]
#: What earlier messages do to each granule, in their order.
Timeline = Mapping[Granule, Sequence[Change]]
#: Evaluates arrivals against a timeline. Those of one group have seen each other's effects; one may be left out.
Evaluate = Callable[[Sequence[Arrival], Timeline], Iterable[Mapping[int, Effects]]]

_at = attrgetter("at")
_GUESSES = 4  # rounds in which all that is pending is tried: most conflicts change what others see, not what they do


def settle(
    arrivals: Sequence[Arrival],
    evaluate: Evaluate,
    rounds: int,
    given: Timeline | None = None,
    *,
    guessing: bool = False,
) -> tuple[dict[int, Effects], set[int]]:
    """The effects of each arrival, and the arrivals that are not settled after ``rounds``.

    ``given`` are changes by messages outside this batch. With ``guessing``, messages to be evaluated again are assumed
    to have the effects of the last time; then each evaluation must see the changes of the whole batch.
    """
    looked_at = {granule for arrival in arrivals if arrival.reads for granule in arrival.granules}
    effects: dict[int, Effects] = {}
    seen: dict[int, View] = {}
    views = Views()
    pending: Sequence[Arrival] = arrivals
    for number in range(rounds):
        for arrival in () if guessing and number < _GUESSES else pending:
            effects.pop(arrival.order, None)
        chosen = pending if number < (_GUESSES if guessing else 2) else _apart(pending)
        known = timeline(effects, looked_at, given)
        by_index = {arrival.order: arrival for arrival in chosen} if looked_at else {}
        alone = views.of(known)
        for group in evaluate(chosen, known):
            effects.update(group)
            if looked_at:  # nobody sees what it does itself
                together = alone if len(group) == 1 else views.of(timeline(group, looked_at, known))
                seen.update({index: together(by_index[index]) for index in group})
        now = views.of(timeline(effects, looked_at, given))
        pending = [
            arrival
            for arrival in arrivals
            if arrival.order not in effects or (looked_at and arrival.reads and now(arrival) != seen[arrival.order])
        ]
        if not pending:
            break
    return effects, _unsettled(arrivals, effects, seen, {arrival.order for arrival in pending}, given, views)


def _unsettled(
    arrivals: Sequence[Arrival],
    effects: Mapping[int, Effects],
    seen: Mapping[int, View],
    pending: set[int],
    given: Timeline | None,
    views: Views,
) -> set[int]:
    """The pending arrivals, and those that have read sets that pending ones may change."""
    unsettled = set(pending)
    looked_at = {granule for arrival in arrivals for granule in arrival.granules} if pending else set()
    while looked_at:
        now = views.of(
            timeline({index: made for index, made in effects.items() if index not in unsettled}, looked_at, given)
        )
        others = [arrival for arrival in arrivals if arrival.order not in unsettled and arrival.reads]
        more = {arrival.order for arrival in others if now(arrival) != seen[arrival.order]}
        if not more:
            break
        unsettled |= more
    return unsettled


def timeline(
    effects: Mapping[int, Effects], looked_at: set[Granule], given: Timeline | None = None
) -> dict[Granule, list[Change]]:
    """Every change to the granules that someone reads, in message order."""
    changed: dict[Granule, list[Change]] = {granule: list(before) for granule, before in (given or {}).items()}
    if looked_at:
        for index, made in effects.items():
            for granule, change in changes(index, made) if made else ():
                if granule in looked_at:
                    changed.setdefault(granule, []).append(change)
        for made_changes in changed.values():
            made_changes.sort(key=_at)
    return changed


class Views:
    """Numbers for what arrivals read: equal if earlier messages make the same changes to their granules.

    A history is identified by its predecessor and last change, so long ones cost no more than short ones.
    """

    def __init__(self) -> None:
        self._histories: dict[tuple[int, Change], int] = {}

    def of(self, known: Timeline) -> Callable[[Arrival], View]:
        histories = {granule: self._numbered(made) for granule, made in known.items()}

        def view(arrival: Arrival) -> View:
            return tuple(
                [
                    histories[granule][len(before(arrival.order, known[granule]))] if granule in known else 0
                    for granule in arrival.granules
                ]
            )

        return view

    def _numbered(self, made: Sequence[Change]) -> list[int]:
        numbers = [0]
        for change in made:
            numbers.append(self._histories.setdefault((numbers[-1], change), len(self._histories) + 1))
        return numbers


def before(index: int, made: Sequence[Change]) -> Sequence[Change]:
    return made[: bisect_left(made, index, key=_at)]


def _apart(pending: Sequence[Arrival]) -> list[Arrival]:
    """Arrivals that share no set with an earlier one: of a chain of conflicts, only the head is worth evaluating."""
    taken: set[Granule] = set()
    chosen = []
    for arrival in pending:
        granules = set(arrival.granules)
        if not granules & taken:
            chosen.append(arrival)
        taken |= granules
    return chosen
