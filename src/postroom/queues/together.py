"""Sends and ends of leases in one commit: a program sends its results and acknowledges, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.queues.leases.leasing import Ended, Leasing
from postroom.queues.results import Sent
from postroom.queues.sending import Posting
from postroom.queues.verbs import Verbs
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class Together:
    """For one user of one store."""

    def __init__(self, store: Store, verbs: Verbs, leasing: Leasing) -> None:
        self._store = store
        self._verbs = verbs
        self._leasing = leasing

    def commit(self, sends: Sequence[Posting], ends: Sequence[Ended]) -> list[Sent]:
        """Send all and end all; if one is refused, nothing happens."""

        def work(tx: Transaction) -> list[Sent]:
            for ended in ends:
                self._leasing.end(tx, ended)
            return [self._verbs.post(tx, wanted) for wanted in sends]

        sent = self._store.transact("together", work)
        self._leasing.forget(ended.fence for ended in ends)
        return sent
