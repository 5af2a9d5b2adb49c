"""Groups messages that read the same set into one chunk, so that most conflicts are settled at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from postroom.engine.steps.effects import Arrival, Document, Granule
from postroom.engine.steps.serial import Timeline

Base = Mapping[Granule, Sequence[Document]]


class Chunk(NamedTuple):
    """The messages that a worker evaluates together."""

    arrivals: Sequence[Arrival]
    base: Base  # the sets that they look at, as they stood before the step
    given: Timeline  # what earlier messages of the step do to these


def together(arrivals: Sequence[Arrival], count: int) -> list[list[Arrival]]:
    """Chunks of about equal size; messages that read the same slice or entry stay together."""
    if count == 1:
        return [list(arrivals)]
    groups: list[list[Arrival]] = []
    group_of: dict[Granule, list[Arrival]] = {}
    for arrival in arrivals:
        keyed = [granule for granule in arrival.granules if granule.kind != "queue"]
        group = next((group_of[granule] for granule in keyed if granule in group_of), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(arrival)
        for granule in keyed:
            group_of.setdefault(granule, group)
    size = -(-len(arrivals) // count)
    chunks: list[list[Arrival]] = [[]]
    for group in groups:
        if len(chunks[-1]) >= size:
            chunks.append([])
        chunks[-1] += group
    for chunk in chunks:
        chunk.sort()
    return chunks
