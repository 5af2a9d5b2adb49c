"""Gateways of a room: the endpoints of its partners."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from postroom.gateways.endpoints import RoomEndpoints
from postroom.room.parts import RoomPart
from postroom.store.tables.endpoints import Endpoint

if TYPE_CHECKING:
    from ssl import SSLContext

    from starlette.applications import Starlette


class RoomGateways(RoomPart):
    """The endpoints that an operator sets, and that programs name."""

    @property
    def _endpoints(self) -> RoomEndpoints:
        return RoomEndpoints(self._parts.store, lambda: self._parts.transports)

    def add(self, name: str, transport: str, **settings: str) -> Endpoint:
        """Add an endpoint. Secrets are given as references: ``env:NAME`` or ``file:/PATH``.

        Setting names have underscores for hyphens.
        """
        return self._endpoints.add(name, transport, {key.replace("_", "-"): text for key, text in settings.items()})

    def all(self) -> list[dict[str, Any]]:
        """Every endpoint with its settings and the queues that use it."""
        return [{**endpoint.as_dict(), "queue_names": list(queues)} for endpoint, queues in self._endpoints.all()]

    def remove(self, name: str) -> None:
        """Remove an endpoint that no program names."""
        self._endpoints.remove(name)

    def http_app(self) -> Starlette:
        """An ASGI application with the paths of the endpoints that receive messages over HTTP."""
        from postroom.gateways.http_server import HttpServer

        return HttpServer(self._parts.store, self._parts.incoming).app

    def mail_server(self, host: str, port: int, tls: SSLContext | None = None) -> AbstractContextManager[Any]:
        """A mail server for the endpoints that receive mail; it runs during its ``with`` block."""
        from postroom.gateways.smtp_server import MailServer

        return MailServer(self._parts.store, self._parts.incoming, host, port, tls)

    def test(self, name: str) -> str:
        """Connect to the partner of an endpoint without sending a message; returns what was found."""
        return self._endpoints.test(name)
