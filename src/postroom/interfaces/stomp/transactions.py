"""The transactions of a connection: sends and acknowledgements collected for one commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from postroom.errors import ArgumentInvalid
from postroom.interfaces.stomp.messages import Destination
from postroom.interfaces.stomp.subscriptions import Subscription
from postroom.limits import STOMP_TRANSACTION_BYTES_MAX, STOMP_TRANSACTION_FRAMES_MAX, STOMP_TRANSACTIONS_MAX
from postroom.queues.leases.leasing import Ended
from postroom.queues.sending import Posting


@dataclass
class Wanted:
    """The content of one transaction so far."""

    sends: list[Posting] = field(default_factory=list)
    ends: list[tuple[Subscription, Ended]] = field(default_factory=list)
    destinations: set[Destination] = field(default_factory=set)
    size: int = 0


class Transactions:
    """The open transactions; their size is limited, because they are in memory only."""

    def __init__(self) -> None:
        self._open: dict[str, Wanted] = {}

    def begin(self, id: str) -> None:
        if id in self._open:
            raise ArgumentInvalid(argument="transaction", why=f"{id!r} has begun already")
        if len(self._open) >= STOMP_TRANSACTIONS_MAX:
            raise ArgumentInvalid(argument="transaction", why=f"at most {STOMP_TRANSACTIONS_MAX} are open at a time")
        self._open[id] = Wanted()

    def add_send(self, id: str, wanted: Posting, to: Destination, size: int) -> None:
        self._require_room(size)
        transaction = self._find(id)
        transaction.sends.append(wanted)
        transaction.destinations.add(to)
        transaction.size += size

    def add_ends(self, id: str, ends: list[tuple[Subscription, Ended]]) -> None:
        self._require_room(0)
        transaction = self._find(id)
        known = {ended.fence for _, ended in transaction.ends}
        transaction.ends += [end for end in ends if end[1].fence not in known]

    def end(self, id: str) -> Wanted:
        """Remove a transaction and return its content."""
        transaction = self._find(id)
        del self._open[id]
        return transaction

    def _find(self, id: str) -> Wanted:
        transaction = self._open.get(id)
        if transaction is None:
            raise ArgumentInvalid(argument="transaction", why=f"{id!r} has not begun")
        return transaction

    def _require_room(self, size: int) -> None:
        every = self._open.values()
        if sum(len(transaction.sends) + len(transaction.ends) for transaction in every) >= STOMP_TRANSACTION_FRAMES_MAX:
            why = f"all that are open have at most {STOMP_TRANSACTION_FRAMES_MAX} frames"
            raise ArgumentInvalid(argument="transaction", why=why)
        if sum(transaction.size for transaction in every) + size > STOMP_TRANSACTION_BYTES_MAX:
            why = f"all that are open have at most {STOMP_TRANSACTION_BYTES_MAX} bytes"
            raise ArgumentInvalid(argument="transaction", why=why)
