"""Small chunks as JSON: the content of ``chunks.py``, without loading Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from postroom.engine.steps.effects import Action, Arrival, Change, Document, Effects, Enqueue, Granule, ResetSlice
from postroom.engine.steps.serial import Timeline
from postroom.rules.evaluation.grouping import Base, Chunk


def packed(chunk: Sequence[Arrival], base: Base, known: Timeline) -> bytes:
    numbers: dict[Granule, int] = {}
    rows = [
        [*one[:9], [[numbers.setdefault(seen, len(numbers)) for seen in read] for read in one.reads], one.failure]
        for one in chunk
    ]
    sets = [[granule, list(base.get(granule, ())), list(known.get(granule, ()))] for granule in numbers]
    return json.dumps([rows, sets], separators=(",", ":")).encode()


def chunk_of(packed: bytes) -> Chunk:
    rows, sets = json.loads(packed)
    granules = [Granule(*granule) for granule, _, _ in sets]
    pairs = list(zip(granules, sets, strict=True))
    base = {granule: [Document(*member) for member in members] for granule, (_, members, _) in pairs}
    given = {granule: [_change(*change) for change in made] for granule, (_, _, made) in pairs if made}
    arrivals = [
        Arrival._make((*values, tuple([tuple([granules[number] for number in read]) for read in reads]), failure))
        for *values, reads, failure in rows
    ]
    return Chunk(arrivals, base, given)


def _change(at: int, document: list[Any] | None) -> Change:
    return Change(at, None if document is None else Document(*document))


def answer_of(orders: list[int], effects: Mapping[int, Effects], unsettled: set[int]) -> bytes:
    made = [(order, effects.get(order, ())) for order in orders if order not in unsettled]
    return json.dumps(made, separators=(",", ":")).encode()


def settled(answer: bytes) -> dict[int, Effects]:
    """The effects of each message of a chunk that has settled."""
    return {order: tuple([_action(action) for action in made]) for order, made in json.loads(answer)}


def _action(plain: list[Any]) -> Action:
    if len(plain) == len(ResetSlice._fields):
        return ResetSlice(*plain)
    rule, queue, form, type, properties, body, slices, entries, *rest = plain
    return Enqueue(rule, queue, form, type, properties, body, pairs(slices), pairs(entries), *rest)


def pairs(lists: list[list[str]]) -> tuple[tuple[str, str], ...]:
    """Names and values as JSON has them."""
    return tuple([(name, value) for name, value in lists])
