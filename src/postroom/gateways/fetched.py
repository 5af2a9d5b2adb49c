"""The transport of partners who poll: messages wait in the queue until a program or a rule takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.gateways.transport import Delivered, Letter, Setting, Undelivered
from postroom.store.tables.endpoints import FETCHED, Endpoint


class FetchedTransport:
    name = "fetched"
    settings: tuple[Setting, ...] = ()

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({FETCHED})

    def outgoing(self, letter: Letter) -> Delivered:
        raise Undelivered("the partner fetches its messages", final=True)

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def probe(self, endpoint: Endpoint) -> str:
        return "messages wait in their queue until someone receives them"
