"""Places as people and programs are told of them: a queue, a mailbox, or the database of a station by its name."""

from __future__ import annotations

from typing import TypeVar

DATABASE = "station:"  # before the name of the queue that holds a station's messages
N = TypeVar("N", str, None)


def place_of(queue: N) -> N:
    """A station's database is named like the station, a mailbox is told apart.

    >>> place_of("station:Ada"), place_of("mailbox:Ada"), place_of("orders")
    ('Ada', 'mailbox:Ada', 'orders')
    """
    return queue if queue is None else queue.removeprefix(DATABASE)
