"""Temporary subscribers: each has a subscription for as long as it is connected.

Their process renews a lease for each. Subscriptions of killed processes are removed by the next process that starts.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import blake2b
from secrets import token_hex

from postroom.errors import ArgumentInvalid, DefinitionUnknown, LeaseLost
from postroom.flows.clients import Clients, Subscription
from postroom.flows.graph.by import By
from postroom.flows.presence import LEASE, end_lapsed
from postroom.limits import CLIENT_LEASE_SECONDS
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import own_token
from postroom.store.kernel.transaction import Transaction

_MARK = "_visit_"


class Visits:
    """The temporary subscriptions of this process."""

    def __init__(self, store: Store, clients: Clients) -> None:
        self._store = store
        self._clients = clients
        self._fences: dict[str, int] = {}

    def begin(self, by: By, space: str, pattern: str | None, name: str | None = None) -> Subscription:
        """Subscribe. With a ``name`` the subscription is durable: events are kept while nobody is connected."""
        visitor = _named(by.principal, name) if name else f"{_word(by.principal)}{_MARK}{token_hex(6)}"
        if visitor in self._fences:
            raise ArgumentInvalid(argument="id", why=f"the durable subscription {name!r} is in use")
        fence = self._store.transact(
            "connect", lambda tx: tx.leases.acquire(LEASE + visitor, own_token(), CLIENT_LEASE_SECONDS)
        )
        try:
            made = self._clients.subscribe(visitor, space, pattern, by, durable=name is not None)
        except BaseException:
            self._release(visitor, fence)
            raise
        self._fences[visitor] = fence
        return made

    def end(self, visitor: str, by: By, *, forever: bool = True) -> None:
        """End a subscription; a durable one is only disconnected, unless ``forever``."""
        fence = self._fences.pop(visitor, None)
        with suppress(DefinitionUnknown):  # someone else has removed it
            if forever:
                self._clients.unsubscribe(visitor, None, by)
            else:
                self._clients.disconnect(visitor, by)
        if fence is not None:
            self._release(visitor, fence)

    def _release(self, visitor: str, fence: int) -> None:
        with suppress(LeaseLost):
            self._store.transact("disconnect", lambda tx: tx.leases.release(LEASE + visitor, fence))

    def renew(self) -> None:
        """Renew the leases of all visitors."""

        def work(tx: Transaction) -> list[str]:
            lost = []
            for visitor, fence in self._fences.items():
                try:
                    tx.leases.renew(LEASE + visitor, fence, CLIENT_LEASE_SECONDS)
                except LeaseLost:
                    lost.append(visitor)
            return lost

        for visitor in self._store.transact("connect", work) if self._fences else ():
            self._fences.pop(visitor)

    def tidy(self, by: By) -> list[str]:
        """Remove subscriptions of ended processes; returns their names."""
        end_lapsed(self._store, self._clients)
        left = self._clients.subscriptions()
        gone = sorted({one.client for one in left if _MARK in one.client and not one.connected})
        for visitor in gone:
            with suppress(DefinitionUnknown):
                self._clients.unsubscribe(visitor, None, by)
        return gone


def _word(text: str) -> str:
    """A name valid for spaces: letters, digits and _, not starting with a digit."""
    return re.sub(r"[^A-Za-z0-9_]|^(?=[0-9]|$)", "_", text)


def _named(principal: str, name: str) -> str:
    """The visitor of a durable subscription, unique for its principal and name."""
    digest = blake2b(f"{principal}\0{name}".encode(), digest_size=6).hexdigest()
    return f"{_word(principal)}_{_word(name)}_{digest}"
