"""When workers that end by themselves have nothing left: none of them, because one's function may send to another."""

from __future__ import annotations

import threading
from typing import Final

from postroom.limits import WORKER_WAIT_SECONDS

_PAUSE_SECONDS: Final = WORKER_WAIT_SECONDS / 10


class Idleness:
    """Of several workers, who has looked in vain since a message was last ended. All together they are idle, for good.

    A message that waits was sent by a function which has ended since, or still runs. In the one case the look came
    too early and is repeated; in the other its worker is not idle.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._changed = threading.Condition()
        self._turn = 0  # counts ended messages
        self._looked: dict[object, int] = {}  # of those who found nothing and wait, the turn before their look
        self.is_over = False

    def look(self) -> int:
        """Called before a worker looks for messages; what it says is needed if there are none."""
        return self._turn

    def ended(self) -> None:
        """Messages were ended: whoever looked before must look again."""
        with self._changed:
            self._turn += 1
            self._changed.notify_all()

    def found_none(self, worker: object, turn: int) -> bool:
        """Whether nobody has anything left; if others are at work, a moment later."""
        with self._changed:
            self._looked[worker] = turn
            if len(self._looked) == self._workers and set(self._looked.values()) == {self._turn}:
                self.is_over = True
                self._changed.notify_all()
            if not self.is_over and turn == self._turn:
                self._changed.wait(_PAUSE_SECONDS)
            if not self.is_over:
                del self._looked[worker]  # it looks again, and may find something
            return self.is_over
