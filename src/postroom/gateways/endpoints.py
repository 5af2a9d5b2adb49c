"""The endpoints of a room: what an operator adds, lists, tries and removes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping

from postroom.errors import (
    GatewayExists,
    GatewayInUse,
    GatewayInvalid,
    GatewayUnknown,
    GatewayUnreachable,
)
from postroom.gateways.credentials import check_found, hidden
from postroom.gateways.transport import Transport, Undelivered, guarded, read_settings
from postroom.limits import GATEWAYS_MAX
from postroom.model.definitions import nearest
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import FLOW
from postroom.store.tables.endpoints import Endpoint

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")


class RoomEndpoints:
    def __init__(self, store: Store, transports: Callable[[], Mapping[str, Transport]]) -> None:
        self._store = store
        self._transports = transports  # they load all that speaks a protocol

    def add(self, name: str, transport: str, settings: Mapping[str, str]) -> Endpoint:
        if not _NAME.fullmatch(name):
            raise GatewayInvalid(gateway=repr(name), why="a name has a letter, then letters, digits, _ . -, at most 60")
        kind = self._transports().get(transport)
        if kind is None:
            why = f"no transport {transport!r}; there are {', '.join(self._transports())}"
            raise GatewayInvalid(gateway=name, why=why)
        read = read_settings(name, kind.settings, settings)
        try:
            does = kind.check(read)
            check_found(kind.settings, read)
        except ValueError as error:
            raise GatewayInvalid(gateway=name, why=str(error)) from None
        endpoint = Endpoint(name, transport, does, read, secrets.token_hex(8))

        def work(tx: Transaction) -> None:
            tx.definitions.lock()  # a program that names it is loaded before or after
            known = tx.endpoints.all()
            if name in known:
                raise GatewayExists(gateway=name)
            if len(known) >= GATEWAYS_MAX:
                raise GatewayInvalid(gateway=name, why=f"a room has at most {GATEWAYS_MAX} gateways")
            taken = read.get("path")
            same = next((other.name for other in known.values() if taken and other.settings.get("path") == taken), None)
            if same is not None:
                raise GatewayInvalid(gateway=name, why=f"the path {taken} is that of {same}")
            tx.endpoints.add(endpoint)

        self._store.transact("gateway", work)
        return endpoint

    def all(self) -> list[tuple[Endpoint, tuple[str, ...]]]:
        """Every endpoint, with the queues and spaces that use it."""

        def work(tx: Transaction) -> list[tuple[Endpoint, tuple[str, ...]]]:
            using = _using(tx)
            return [(endpoint, tuple(using.get(endpoint.name, ()))) for endpoint in tx.endpoints.all().values()]

        return self._store.read(work)

    def remove(self, name: str) -> None:
        def work(tx: Transaction) -> None:
            tx.definitions.lock()
            _find(tx, name)
            using = _using(tx).get(name)
            if using:
                raise GatewayInUse(gateway=name, queues=", ".join(using))
            tx.endpoints.remove(name)

        self._store.transact("gateway", work)

    def test(self, name: str) -> str:
        """Connect to the partner without sending a message; returns what was found."""
        endpoint = self._store.read(lambda tx: _find(tx, name))
        try:
            with guarded(name):
                return self._transports()[endpoint.transport].probe(endpoint)
        except Undelivered as error:
            raise GatewayUnreachable(gateway=name, why=hidden(str(error), endpoint.settings)) from None


def _using(tx: Transaction) -> dict[str, list[str]]:
    """The queues and spaces that use each endpoint."""
    users: dict[str, list[str]] = {}
    for port in tx.endpoints.ports():
        users.setdefault(port.endpoint, []).append(port.queue)
    for definition in tx.definitions.of_kind(FLOW):
        if "gateway" in definition.body:
            users.setdefault(definition.body["gateway"], []).append(definition.name)
    return users


def _find(tx: Transaction, name: str) -> Endpoint:
    endpoint = tx.endpoints.find(name)
    if endpoint is None:
        raise GatewayUnknown(gateway=name, nearest=nearest(name, tx.endpoints.all()))
    return endpoint
