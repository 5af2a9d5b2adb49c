"""Authentication and rights of a client: checked once for each destination, and again after a change of rights."""

from __future__ import annotations

import logging
from functools import partial

from postroom.errors import PostroomError, TokenRefused
from postroom.interfaces.http.access import Caller, Callers
from postroom.interfaces.http.services import Services
from postroom.interfaces.stomp.messages import Destination

log = logging.getLogger("postroom.stomp")
#: The right that a frame needs at a queue, and at a topic.
SEND, RECEIVE = ("send", "publish"), ("receive", "subscribe")


def identified(callers: Callers, login: str | None, passcode: str) -> tuple[str, Caller]:
    """Authenticate a login and passcode; also returns the key of the cache. A passcode is a token of the user."""
    authorization = f"Bearer {passcode}"
    caller = callers.known(authorization) or callers.find(authorization)
    if login and login != caller.name:
        raise TokenRefused(why=f"it is not a token of {login!r}")
    return authorization, caller


class Rights:
    """What the client of one connection may do."""

    def __init__(self, services: Services, authorization: str, caller: Caller) -> None:
        self._services = services
        self._authorization = authorization
        self.caller = caller
        self._allowed: set[tuple[str, Destination]] = set()
        self._note()

    def _note(self) -> None:
        self._services.others[self.caller.name] = self.caller.room._parts.verbs

    def has(self, right: tuple[str, str], to: Destination) -> bool:
        """Whether this was allowed before, and no right has changed since; does not read the store."""
        known = self._services.callers.known(self._authorization)
        return known is self.caller and (right[to.topic], to) in self._allowed

    async def require(self, right: tuple[str, str], to: Destination) -> Caller:
        """Raise unless the client may; returns the current caller."""
        if not self.has(right, to):
            try:
                await self._services.inside(partial(self._require, right[to.topic], to))
            except PostroomError as refusal:
                log.warning("refused %s %s %s: %s", self.caller.name, right[to.topic], to, refusal.code)
                raise
        return self.caller

    def _require(self, right: str, to: Destination) -> None:
        callers, authorization = self._services.callers, self._authorization
        caller = callers.known(authorization) or callers.find(authorization)
        if caller is not self.caller:
            self.caller, self._allowed = caller, set()
            self._note()
        if to.topic:
            caller.identity.require(right, to.name)
            caller.room.flows._find_space(to.name)
        else:
            for names in self._services.room.access.names(*to.names):
                caller.identity.require(right, *names)
        self._allowed.add((right, to))
