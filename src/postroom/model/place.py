"""How places are shown: a queue, a mailbox, or a station by its name."""

from __future__ import annotations

from typing import overload

DATABASE = "station:"  # before the name of the queue that holds a station's messages


@overload
def place_of(queue: str) -> str: ...
@overload
def place_of(queue: str | None) -> str | None: ...
def place_of(queue: str | None) -> str | None:
    """A station's database is named like the station, a mailbox is told apart.

    >>> place_of("station:Ada"), place_of("mailbox:Ada"), place_of("orders")
    ('Ada', 'mailbox:Ada', 'orders')
    """
    return queue if queue is None else queue.removeprefix(DATABASE)
