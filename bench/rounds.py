"""Rounds: the same work for everyone, in turns so short that the machine's moods fall on all alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

SLICES = 20  # turns that each contender gets in one round

#: Seconds per operation of each contender in one round.
Round = dict[str, float]
Action = Callable[..., object]
Arguments = Sequence[tuple[Any, ...]]


class Ratio(NamedTuple):
    median: float
    lowest: float
    highest: float


def run_round(actions: Mapping[str, tuple[Action, Arguments]], first: int, slices: int = SLICES) -> Round:
    """Time every action over all its arguments, a slice at a time; ``first`` says who begins."""
    names = list(actions)
    names = names[first % len(names) :] + names[: first % len(names)]
    gc.collect()  # what was left over from before is nobody's cost
    spent = dict.fromkeys(actions, 0.0)
    for turn in range(slices):
        for name in names:
            action, arguments = actions[name]
            size = -(-len(arguments) // slices)
            spent[name] += timed(action, arguments[turn * size : (turn + 1) * size])
    return {name: spent[name] / len(arguments) for name, (_, arguments) in actions.items()}


def timed(action: Action, arguments: Arguments) -> float:
    start = perf_counter()
    for given in arguments:
        action(*given)
    return perf_counter() - start


def cost(rounds: Sequence[Round], name: str) -> float:
    """The middle one of the rounds: neither a lucky nor an interrupted one."""
    return median(one[name] for one in rounds)


def cost_ratio(rounds: Sequence[Round], above: str, below: str) -> Ratio:
    """Taken inside each round, where both met the same conditions; then the middle one."""
    ratios = [one[above] / one[below] for one in rounds]
    return Ratio(median(ratios), min(ratios), max(ratios))
