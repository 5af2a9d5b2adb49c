"""Delivering the output of a Spark job in one commit. A batch that Spark repeats is delivered once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from postroom.errors import ArgumentInvalid
from postroom.limits import BATCH_MESSAGES_MAX, STREAM_RECEIPTS_KEPT
from postroom.model.message import Draft
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

#: Lets messages into a queue inside of a transaction, as a send does.
Put = Callable[[Transaction, str, Sequence[Draft]], Sequence[int]]

_FINGERPRINT = b"spark"  # a batch is known by its number, whatever it says when it comes again


class Receipt(NamedTuple):
    """Identifies a batch of a streaming query. Spark keeps both parts across restarts, in the query's checkpoint."""

    query: str
    batch: int

    def name(self, queue: str) -> str:
        return f"spark:{self.query}:{queue}:{self.batch:019d}"


def deliver(store: Store, queue: str, drafts: Sequence[Draft], put: Put, receipt: Receipt | None = None) -> int:
    """Put messages into a queue in one commit. Returns how many: 0 for a batch that was delivered before."""
    if len(drafts) > BATCH_MESSAGES_MAX:
        why = f"{len(drafts)} messages; one commit takes at most {BATCH_MESSAGES_MAX}. Write them in several jobs"
        raise ArgumentInvalid(argument="write", why=why)

    def work(tx: Transaction) -> int:
        name = "" if receipt is None else receipt.name(queue)
        if receipt is not None and tx.receipts.find(name, _FINGERPRINT) is not None:
            return 0
        keys = put(tx, queue, drafts)
        if receipt is not None:
            tx.receipts.add(name, keys[0], _FINGERPRINT)
            # Spark repeats no batch but the newest.
            oldest = receipt._replace(batch=max(receipt.batch - STREAM_RECEIPTS_KEPT, 0))
            tx.receipts.forget(oldest._replace(batch=0).name(queue), oldest.name(queue))
        return len(keys)

    return store.transact("deliver", work) if drafts else 0
