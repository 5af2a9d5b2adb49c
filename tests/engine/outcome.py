"""What a run of the engine has come to, for tests that compare two ways."""

from __future__ import annotations

from typing import Any

from postroom.room import Postroom


def staged(room: Postroom) -> int:
    return room.store.read(lambda tx: tx.staging.parts)


def told(room: Postroom) -> dict[str, list[tuple[Any, ...]]]:
    """All that a room holds, in its order, but the moments."""
    return {
        count.queue: [
            (each.key, each.body, each.format, dict(each.properties), each.cause, each.processed is not None)
            for listing in (room.queues.history, room.queues.info)
            for each in listing(count.queue)
        ]
        for count in room.queues.accept().queues
    }


def verbs(room: Postroom) -> list[tuple[Any, ...]]:
    return [
        (each.verb, each.key, each.source, each.target, each.by)
        for each in room.journal.last(5_000)
        if each.verb not in ("lease", "release-lease")
    ]
