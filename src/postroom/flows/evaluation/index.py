"""Content-based matching at scale: finds the select arcs that pass an event without testing each arc.

One predicate of each arc is looked up: an equality by hash, else the range that passes the fewest events of the batch,
by order. For the remaining arcs the other satisfied predicates are counted, for all pairs at once. So the cost grows
with the matches and not with the arcs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postroom.flows.language.predicates import Plain, Predicate

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Path = tuple[str, ...]
_NONE: Numbers = np.empty(0, np.int64)


@dataclass(frozen=True)
class Pairs:
    """Pairs of events and arcs, by number."""

    events: Numbers
    arcs: Numbers


class Index:
    """Built once for the arcs of a space; an arc is identified by its position."""

    def __init__(self, arcs: Sequence[Sequence[Predicate]]) -> None:
        self._paths = {
            path: _Path(path, arcs) for path in dict.fromkeys(predicate.path for arc in arcs for predicate in arc)
        }
        by_equality: defaultdict[Path, list[int]] = defaultdict(list)
        self._by_range: list[int] = []
        self._always: list[int] = []
        for number, arc in enumerate(arcs):
            equal = next((predicate.path for predicate in arc if predicate.sign == "="), None)
            if equal is not None:
                by_equality[equal].append(number)
            elif arc:
                self._by_range.append(number)
            else:
                self._always.append(number)
        self._by_equality = {path: _Buckets(self._paths[path], numbers) for path, numbers in by_equality.items()}

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that a batch needs as columns."""
        return tuple(self._paths)

    def match(self, columns: Mapping[Path, pa.Array], count: int) -> Pairs:
        """Every event of a batch with every arc that passes it, ordered by event and arc."""
        codes = {path: known.codes(columns[path]) for path, known in self._paths.items()}
        candidates = [buckets.candidates(codes[path]) for path, buckets in self._by_equality.items()]
        candidates += self._ranges(codes, count)
        for number in self._always:
            candidates.append(Pairs(np.arange(count), np.full(count, number)))
        events = np.concatenate([pairs.events for pairs in candidates]) if candidates else _NONE
        arcs = np.concatenate([pairs.arcs for pairs in candidates]) if candidates else _NONE
        satisfied = np.zeros(len(events), np.int64)
        for path, known in self._paths.items():
            satisfied += known.satisfied(codes[path], events, arcs)
        passed = satisfied == len(self._paths)
        events, arcs = events[passed], arcs[passed]
        order = np.lexsort((arcs, events))
        return Pairs(events[order], arcs[order])

    def _ranges(self, codes: Mapping[Path, Numbers], count: int) -> list[Pairs]:
        """Candidate pairs for arcs that have only ranges: each arc uses the path with the fewest events in range."""
        if not self._by_range:
            return []
        arcs = np.array(self._by_range)
        best, fewest, ordered = np.zeros(len(arcs), np.int64), np.full(len(arcs), count + 1), []
        for number, (path, known) in enumerate(self._paths.items()):
            order = np.argsort(codes[path], kind="stable")
            values = codes[path][order]
            first = np.searchsorted(values, known.low[arcs], "left")
            last = np.searchsorted(values, known.high[arcs], "right")
            ordered.append((order, first, last))
            inside = np.maximum(last - first, 0)
            better = (inside < fewest) & known.asked[arcs]
            best[better], fewest[better] = number, inside[better]
        ranges = []
        for number, (order, first, last) in enumerate(ordered):
            mine = np.flatnonzero(best == number)
            lengths = np.maximum(last[mine] - first[mine], 0)
            ranges.append(Pairs(order[_spread(first[mine], lengths)], np.repeat(arcs[mine], lengths)))
        return ranges


def _spread(first: Numbers, lengths: Numbers) -> Numbers:
    """The numbers from each first on, so many of each: 5 and 9, 2 and 3 of them, are 5 6 9 10 11."""
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) - np.repeat(before - first, lengths)


class _Path:
    """All comparisons of one value. Its constants are in order; a value's code tells which it is, or between which.

    A constant has an odd code, what lies between two of them an even one: so every comparison is a range of codes.
    """

    def __init__(self, path: Path, arcs: Sequence[Sequence[Predicate]]) -> None:
        here = [(number, predicate) for number, arc in enumerate(arcs) for predicate in arc if predicate.path == path]
        self._constants: list[Plain] = sorted({predicate.value for _, predicate in here})
        self._in_order = any(predicate.sign not in ("=", "!=") for _, predicate in here)
        place = {value: number for number, value in enumerate(self._constants)}
        self.low = np.zeros(len(arcs), np.int64)
        self.high = np.full(len(arcs), 2 * len(self._constants), np.int64)
        self.asked = np.zeros(len(arcs), bool)
        self._excluded: list[tuple[int, int]] = []
        for number, predicate in here:
            self.asked[number] = True
            code = 2 * place[predicate.value] + 1
            if predicate.sign == "!=":
                self._excluded.append((number, code))
                continue
            low, high = _RANGES[predicate.sign](code, 2 * len(self._constants))
            self.low[number], self.high[number] = max(self.low[number], low), min(self.high[number], high)

    def codes(self, column: pa.Array) -> Numbers:
        if pa.types.is_floating(column.type):
            column = pc.add(column, 0.0)  # there is one zero
        values = pa.array(self._constants, column.type)
        known = pc.index_in(column, value_set=values)
        codes = np.asarray(pc.fill_null(pc.add(pc.multiply(known.cast(pa.int64()), 2), 1), 0), np.int64)
        if not self._in_order:
            return codes  # what is none of the constants lies before them all: nobody asks where
        between = 2 * np.searchsorted(_comparable(values), _comparable(column), "left")
        return np.where(codes == 0, between, codes)

    def satisfied(self, codes: Numbers, events: Numbers, arcs: Numbers) -> Numbers:
        """For each pair: 1 if the event satisfies the arc's predicate on this value."""
        value = codes[events]
        fits = (value >= self.low[arcs]) & (value <= self.high[arcs])
        for number, code in self._excluded:
            fits &= ~((arcs == number) & (value == code))
        return fits.astype(np.int64)


_RANGES: Mapping[str, Callable[[int, int], tuple[int, int]]] = {
    "=": lambda code, end: (code, code),
    ">": lambda code, end: (code + 1, end),
    ">=": lambda code, end: (code, end),
    "<": lambda code, end: (0, code - 1),
    "<=": lambda code, end: (0, code),
}


def _comparable(values: pa.Array) -> Any:
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return np.array(values.to_pylist(), object)
    return values.to_numpy(zero_copy_only=False)


class _Buckets:
    """Arcs by the constant that one of their values must equal."""

    def __init__(self, path: _Path, arcs: Sequence[int]) -> None:
        numbers = np.array(arcs)
        codes = path.low[numbers]
        order = np.argsort(codes, kind="stable")
        self._arcs, self._codes = numbers[order], codes[order]

    def candidates(self, codes: Numbers) -> Pairs:
        first = np.searchsorted(self._codes, codes, "left")
        lengths = np.searchsorted(self._codes, codes, "right") - first
        return Pairs(np.repeat(np.arange(len(codes)), lengths), self._arcs[_spread(first, lengths)])
