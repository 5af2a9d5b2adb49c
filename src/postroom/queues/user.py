"""One user of a store's queues, and a cache of its references."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from postroom.limits import REFERENCES_KNOWN_MAX
from postroom.queues.leases.returning import Returns
from postroom.queues.locks import User
from postroom.queues.tree.addressing import Names
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit, admit_nothing

if TYPE_CHECKING:
    from postroom.queues.leases.leasing import Leasing


class QueueUser:
    """A user of the queues of a store."""

    def __init__(
        self, store: Store, user: User, admit: Admit = admit_nothing, again: Callable[[], Store] | None = None
    ) -> None:
        self._store = store
        self._user = user
        self._returns = None if again is None else Returns(store, again)
        self._admit = admit
        self._known: dict[Names, int] = {}  # where a reference led last; the store looks whether it still may

    @cached_property
    def _leasing(self) -> Leasing:
        from postroom.queues.leases.leasing import Leasing

        return Leasing(self._store)

    def share(self, other: QueueUser) -> None:
        """Share the cache of another user of the same store."""
        self._known = other._known

    def _remember(self, reference: Names, queue: int) -> None:
        if len(self._known) >= REFERENCES_KNOWN_MAX:
            self._known.clear()
        self._known[reference] = queue
