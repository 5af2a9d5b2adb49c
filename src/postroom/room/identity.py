"""An authenticated user and the user's rights. Only what is granted is allowed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from postroom.errors import RightMissing
from postroom.model.rights import EVERYTHING, OPERATE
from postroom.store.kernel.transaction import Transaction

_acting = threading.local()


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated user with the user's rights."""

    principal: str
    grants: frozenset[tuple[str, str]]
    only: frozenset[str] | None = None  # the verbs of the token, if it is limited

    def why_not(self, verb: str, *names: str) -> str | None:
        """Why an operation on an object, given by all its names, is not allowed; None if it is."""
        if self.only is not None and verb not in self.only:
            return f"the token is limited to: {', '.join(sorted(self.only))}"
        for granted, object in self.grants:
            if granted == OPERATE or (granted == verb and any(_covers(object, name) for name in names)):
                return None
        has = sorted(object for granted, object in self.grants if granted == verb)
        return f"only {', '.join(has)}" if has else "there is no such grant"

    def require(self, verb: str, *names: str) -> None:
        """Raise unless an operation on an object, given by all its names, is allowed."""
        why = self.why_not(verb, *names)
        if why is not None:
            raise RightMissing(principal=self.principal, verb=verb, object=names[0], why=why)

    def has_any(self, verb: str) -> bool:
        """Whether the operation is allowed on any object."""
        objects = [object for granted, object in self.grants if granted == verb]
        return self.why_not(verb, *(objects or [EVERYTHING])) is None

    def require_any(self, verb: str) -> None:
        """Raise unless the operation is allowed on some object; for the user's own things."""
        objects = [object for granted, object in self.grants if granted == verb]
        self.require(verb, *(objects or [EVERYTHING]))


def identity_of(tx: Transaction, principal: str, only: frozenset[str] | None = None) -> Identity:
    """The current rights of a user; ``only`` limits them to some operations."""
    return Identity(principal, frozenset((grant.verb, grant.object) for grant in tx.access.of(principal)), only)


@contextmanager
def acting_with(identity: Identity) -> Iterator[None]:
    """What this thread loads inside is loaded by someone, with the rights that they have."""
    before = getattr(_acting, "identity", None)
    _acting.identity = identity
    try:
        yield
    finally:
        _acting.identity = before


def whoever_acts() -> Identity | None:
    """None if it is someone who has the room itself, and so everything."""
    identity: Identity | None = getattr(_acting, "identity", None)
    return identity


def _covers(granted: str, name: str) -> bool:
    return granted in (EVERYTHING, name) or name.startswith(f"{granted}/")
