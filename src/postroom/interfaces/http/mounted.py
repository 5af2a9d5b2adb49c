"""The gateways of a room below a path of its server, /incoming: for partners, beside the operations for users.

A gateway with a token, a signature or a policy checks that itself. Any other accepts users with the right to send to
its queue, by their server token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from postroom.errors import PostroomError
from postroom.interfaces.http.contract.problems import status_of
from postroom.room import Postroom

if TYPE_CHECKING:
    from postroom.gateways.http_server import HttpServer

PREFIX = "/incoming"
#: Raises unless whoever shows this header may send to a queue.
Allow = Callable[[str, str], Awaitable[None]]


class Mounted:
    """Starts with the first request to a gateway, because most servers have none."""

    def __init__(self, room: Postroom, allow: Allow) -> None:
        self._room = room
        self._allow = allow
        self._server: HttpServer | None = None

    @staticmethod
    def takes(path: str) -> bool:
        return path.startswith(f"{PREFIX}/")

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if self._server is None:
            from postroom.gateways.http_server import HttpServer

            parts = self._room._parts
            self._server = HttpServer(parts.store, parts.incoming, self._permit)
            self._server.start()
        root = f"{scope.get('root_path', '')}{PREFIX}"
        await self._server.app({**scope, "root_path": root, "app_root_path": root}, receive, send)

    async def _permit(self, queue: str, authorization: str) -> None:
        from postroom.gateways.http_server import Refused

        try:
            await self._allow(queue, authorization)
        except PostroomError as error:
            raise Refused(status_of(type(error)), error.code, str(error)) from None

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
