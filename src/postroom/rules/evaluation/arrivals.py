"""Claimed messages with the sets that their rules read: slices by key, indexes by value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from postroom.engine.steps.effects import Arrival, Granule
from postroom.limits import INDEXED_CHARS_MAX
from postroom.model.message import Stored
from postroom.rules import entries as admission
from postroom.rules.compilation.plan import DUE, Key, Plan
from postroom.store.kernel.transaction import Transaction


def arrivals_of(plan: Plan, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
    """Messages with the sets that their rules read."""
    probing = [
        stored.key
        for stored in claimed
        if stored.queue in plan.queues
        and any(read.key and read.key.source == "probe" for read in plan.queues[stored.queue].reads)
    ]
    names = {number: name for name, number in tx.slices.ids("index").items()} if probing else {}
    values: dict[int, defaultdict[str, list[str]]] = {}
    for key, slices in zip(probing, tx.slices.values(probing), strict=True):
        values[key] = defaultdict(list)
        for number, value in slices:
            values[key][names[number]].append(value)
    return [
        Arrival(
            index,
            stored.queue,
            stored.key,
            stored.format,
            stored.type,
            stored.body,
            stored.properties,
            stored.created,
            stored.cause,
            _reads(plan, stored, values.get(stored.key, {})),
        )
        for index, stored in enumerate(claimed)
    ]


def _reads(plan: Plan, stored: Stored, values: Mapping[str, list[str]]) -> tuple[tuple[Granule, ...], ...]:
    queue = plan.queues.get(stored.queue)
    if queue is None or not queue.reads:
        return ()
    properties = admission.stored(stored.properties)
    moment = properties.get(DUE) if stored.queue in plan.absences else None
    until = moment if type(moment) is int else 0
    granules: list[tuple[Granule, ...]] = []
    for read in queue.reads:
        if read.key is None:
            granules.append((Granule("queue", read.name, until=until),))
        else:
            known = INDEXED_CHARS_MAX if read.kind == "index" else None
            granules.append(
                tuple(Granule(read.kind, read.name, key[:known], until) for key in _keys(read.key, properties, values))
            )
    return tuple(granules)


def _keys(key: Key, properties: Mapping[str, Any], values: Mapping[str, list[str]]) -> list[str]:
    if key.source == "literal":
        return [key.name]
    if key.source == "probe":
        return values.get(key.name, [])
    return [admission.text_of(properties[key.name])] if key.name in properties else []
