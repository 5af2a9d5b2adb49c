"""A checker of queues that are sent to and taken from: lost, unexpected, doubled, out of order, passed over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from tests.histories.record import FAIL, Operation


def check(
    history: Sequence[Operation],
    final: Mapping[str, Sequence[tuple[str, bool]]],
    overtaken: Callable[[str, str], bool] = lambda queue, value: False,
) -> list[str]:
    """What is wrong; ``final`` has every value that ever was in a queue, in the queue's order, and whether it waits.

    Others may be taken before a value that may be ``overtaken``, because someone else had it in hand.
    """
    wrong: list[str] = []
    for queue, values in final.items():
        waiting = {value for value, waits in values if waits}
        wrong += _one(queue, history, [value for value, _ in values], waiting, partial(overtaken, queue))
    return wrong


def _one(
    queue: str, history: Sequence[Operation], order: Sequence[str], waiting: set[str], overtaken: Callable[[str], bool]
) -> Iterator[str]:
    sends = {value: each for each in history for where, value in each.sent if where == queue}
    takes = [each for each in history if each.verb == "take" and each.asked == queue]
    taken = Counter(each.answer for each in takes if each.happened and each.answer is not None)
    there = Counter(order)
    for value, send in sends.items():
        if send.happened and not there[value]:
            yield f"{queue}: {value} is lost, and its send returned"
        if send.outcome == FAIL and (there[value] or taken[value]):
            yield f"{queue}: {value} is there, and its send failed"
    yield from (f"{queue}: {value} was never sent" for value in {*there, *taken} - {*sends})
    yield from (f"{queue}: {value} is there {times} times" for value, times in there.items() if times > 1)
    yield from (f"{queue}: {value} was taken {times} times" for value, times in taken.items() if times > 1)
    yield from (f"{queue}: {value} was taken and waits" for value in taken if value in waiting)
    open_ended = sum(not each.happened and each.outcome != FAIL for each in takes)
    nobody = [value for value in order if value not in waiting and not taken[value]]
    if len(nobody) > open_ended:
        yield f"{queue}: {len(nobody)} were taken by nobody, {open_ended} takes have no known end; one is {nobody[0]}"
    place = {value: number for number, value in enumerate(order)}
    yield from disordered(
        f"{queue}: sent", ((place[value], each, value) for value, each in sends.items() if value in place)
    )
    by_value = {each.answer: each for each in takes if each.happened and each.answer is not None}
    in_order = [value for value in by_value if value in place and not overtaken(value)]
    yield from disordered(f"{queue}: taken", ((place[value], by_value[value], value) for value in in_order))
    yield from _passed_over(queue, takes, sends, by_value, waiting)


def disordered(about: str, found: Iterable[tuple[int, Operation, str]]) -> Iterator[str]:
    """One that was over before another began must stand before it."""
    latest, of = -math.inf, ""
    for _, each, value in sorted(found, key=lambda entry: entry[0]):
        if each.ended < latest:
            yield f"{about}: {value} stands behind {of}, and was over before that one began"
        if each.begun > latest:
            latest, of = each.begun, value


def _passed_over(
    queue: str,
    takes: Sequence[Operation],
    sends: Mapping[str, Operation],
    by_value: Mapping[str, Operation],
    waiting: set[str],
) -> Iterator[str]:
    """A take that found nothing, although something was there from before it began until after it was over."""
    there = [
        (send.ended, by_value[value].begun if value in by_value else math.inf, value)
        for value, send in sends.items()
        if send.happened and (value in by_value or value in waiting)
    ]
    there.sort()
    found_nothing = sorted(
        (each for each in takes if each.happened and each.answer is None), key=lambda each: each.begun
    )
    latest, of, at = -math.inf, "", 0
    for each in found_nothing:
        while at < len(there) and there[at][0] < each.begun:
            if there[at][1] > latest:
                latest, of = there[at][1], there[at][2]
            at += 1
        if latest > each.ended:
            yield f"{queue}: a take found nothing, and {of} was there all the time"
