"""Clients that are present: each is connected while its process lives. One that is killed becomes disconnected.

A present client renews a lease. The engine before each step, and every query of subscriptions, disconnects clients
whose lease has lapsed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from postroom.errors import DefinitionUnknown, LeaseLost, StoreError
from postroom.flows.clients import Clients
from postroom.flows.graph.by import By
from postroom.limits import CLIENT_LEASE_SECONDS
from postroom.store.kernel.base import Store
from postroom.store.kernel.leases import Lease
from postroom.store.kernel.owner import described, is_alive, process_token
from postroom.store.kernel.transaction import Transaction

LEASE = "client "
_NOBODY = "nobody"  # who takes the lease of a client that has ended


@contextmanager
def present(store: Store, clients: Clients, by: By) -> Iterator[None]:
    """Connect a client during the block; raises if another process has connected it."""
    name = LEASE + by.principal

    def begin(tx: Transaction) -> int:
        clients.switch(by.principal, by, tx, disabled=False)
        return tx.leases.acquire(name, process_token(), CLIENT_LEASE_SECONDS)

    def end(tx: Transaction) -> None:
        tx.leases.check(name, fence)
        tx.leases.release(name, fence)
        with suppress(DefinitionUnknown):  # it has no subscription any more
            clients.switch(by.principal, by, tx, disabled=True)

    with store.acting(by.principal):
        fence = store.transact("connect", begin)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(CLIENT_LEASE_SECONDS / 3):
            try:
                store.transact("connect", lambda tx: tx.leases.renew(name, fence, CLIENT_LEASE_SECONDS))
            except LeaseLost:
                return  # it was thought dead, and disconnected
            except StoreError:
                continue  # a busy store is asked again

    beat = threading.Thread(target=renew, name="postroom-client", daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        beat.join()
        with suppress(LeaseLost), store.acting(by.principal):
            store.transact("disconnect", end)


def end_lapsed(store: Store, clients: Clients) -> None:
    """Disconnect the clients whose processes have ended without disconnecting."""
    if not store.read(_lapsed):
        return

    def work(tx: Transaction) -> None:
        for lease in _lapsed(tx):
            client = lease.name.removeprefix(LEASE)
            with suppress(DefinitionUnknown):  # it has no subscription any more
                clients.switch(client, By(client, described(lease.owner), proven=True), tx, disabled=True)
            # With a number of its own, so that a process that was only slow learns of it.
            tx.leases.release(lease.name, tx.leases.acquire(lease.name, _NOBODY, 0))

    store.transact("disconnect", work)


def _lapsed(tx: Transaction) -> list[Lease]:
    held = [lease for lease in tx.leases.all() if lease.name.startswith(LEASE) and not lease.released]
    return [lease for lease in held if lease.expires <= tx.now or is_alive(lease.owner) is False]
