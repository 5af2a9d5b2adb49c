"""Who may do what: grants, the tokens that stand for users, and why someone may not.

Only what is granted is allowed. A server enforces it; a program with access to the room's file or database can do
everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, NamedTuple

from postroom.errors import ArgumentInvalid, PrincipalRefused, QueueUnknown, TokenRefused
from postroom.limits import ACTOR_CHARS_MAX, OBJECT_CHARS_MAX, TOKEN_DAYS_MAX
from postroom.model.body import is_text
from postroom.model.moment import to_datetime, to_iso
from postroom.model.rights import EVERYTHING, VERBS
from postroom.queues.tree.addressing import names_of, queues_even_retired
from postroom.room.identity import Identity, identity_of
from postroom.room.parts import Parts, RoomPart
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.access import Grant, TokenRow
from postroom.store.tables.registry import KIND

_PREFIX = "postroom"


@dataclass(frozen=True, slots=True)
class TokenShown:
    """A token without its secret."""

    id: str
    principal: str
    name: str
    verbs: tuple[str, ...] | None  # those it is limited to; None if it may do all that its user may
    created: datetime
    expires: datetime | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "principal": self.principal,
            "name": self.name,
            "verbs": None if self.verbs is None else list(self.verbs),
            "created": to_iso(self.created),
            "expires": to_iso(self.expires) if self.expires else None,
        }


class Refusal(NamedTuple):
    """A refusal: who, and what."""

    principal: str  # or the address that an unknown token came from
    code: str
    verb: str
    object: str


class RoomAccess(RoomPart):
    """Grants and tokens of users."""

    def grant(self, principal: str, verb: str, object: str = EVERYTHING) -> bool:
        """Allow a user something; False if it was allowed already. A level of the tree stands for all below it."""
        grant = _checked(principal, verb, object)

        def work(tx: Transaction) -> bool:
            _require_known(tx, principal)
            tx.wake()
            added = tx.access.add(grant)
            if added:
                _refresh(tx, self._parts)
            return added

        return self._parts.store.transact("principal", work)

    def withdraw(self, principal: str, verb: str, object: str = EVERYTHING) -> bool:
        """Take a grant back, at once; False if there was none."""
        grant = _checked(principal, verb, object)

        def work(tx: Transaction) -> bool:
            tx.wake()
            removed = tx.access.remove(grant)
            if removed:
                _refresh(tx, self._parts)
            return removed

        return self._parts.store.transact("principal", work)

    def grants(self, principal: str | None = None) -> list[Grant]:
        """All grants, or those of one user."""
        return self._parts.store.read(lambda tx: tx.access.all() if principal is None else tx.access.of(principal))

    def why_not(self, principal: str, verb: str, object: str = EVERYTHING) -> str | None:
        """Why a user may not do something with an object; None if it may."""
        _checked(principal, verb, object)
        names = self.names(object) if VERBS[verb] == "queue" and object != EVERYTHING else [(object,)]
        identity = self._parts.store.read(lambda tx: _known_identity(tx, principal))
        return next((why for some in names if (why := identity.why_not(verb, *some)) is not None), None)

    def create_token(
        self, principal: str, name: str, *, verbs: Collection[str] | None = None, days: float | None = None
    ) -> str:
        """A new token that stands for a user; it is shown once. ``verbs`` limits it, and after ``days`` it expires."""
        if not isinstance(name, str) or not 0 < len(name) <= ACTOR_CHARS_MAX or not name.isprintable():
            raise ArgumentInvalid(argument="name", why=f"1 to {ACTOR_CHARS_MAX} printable characters")
        only = None if verbs is None else sorted({str(verb) for verb in verbs})
        for verb in only or ():
            _check_verb(verb)
        if days is not None and not 0 < days <= TOKEN_DAYS_MAX:
            raise ArgumentInvalid(argument="days", why=f"more than 0, at most {TOKEN_DAYS_MAX}")
        from secrets import token_hex, token_urlsafe  # few programs make a token

        id, secret = token_hex(6), token_urlsafe(32)

        def work(tx: Transaction) -> None:
            _require_known(tx, principal)
            expires = None if days is None else tx.now + int(days * 86_400_000_000)
            limited = None if only is None else " ".join(only)
            tx.access.add_token(TokenRow(id, principal, name, _digest(secret), limited, tx.now, expires))

        self._parts.store.transact("principal", work)
        return f"{_PREFIX}_{id}_{secret}"

    def tokens(self) -> list[TokenShown]:
        """All tokens, without their secrets."""
        return [_shown(row) for row in self._parts.store.read(lambda tx: tx.access.tokens())]

    def revoke_token(self, id: str) -> None:
        """Revoke a token, at once."""

        def work(tx: Transaction) -> None:
            row = tx.access.token(id) if is_text(id) else None
            if row is None:
                raise ArgumentInvalid(argument="token", why=f"there is no token {id!r}; postroom token list has all")
            tx.access.remove_token(row)
            tx.wake()

        self._parts.store.transact("principal", work)

    # --- sessions ---

    def sign_in(self, name: str, password: str) -> str:
        """Check a password once; returns a token that stands for the user for some hours, for `is_signed_in`."""
        return self._parts.registry.login(name, password)

    def is_signed_in(self, name: str, token: str) -> bool:
        """Whether a token of `sign_in` stands for a user, and still does."""
        return self._parts.registry.admits(name, token)

    def sign_out(self, name: str, token: str) -> None:
        """End one session, at once."""
        self._parts.registry.logout(name, token)

    def end_sessions(self, name: str) -> int:
        """End every session and login of a user, at once; returns how many there were."""
        return self._parts.registry.end_logins(name)

    # --- for whoever lets others in ---

    def identity(self, principal: str) -> Identity:
        """What a user may do who has signed in."""
        return self._parts.store.read(lambda tx: identity_of(tx, principal))

    def version(self) -> int:
        """Grows with every change of grants and tokens."""
        return self._parts.store.read(lambda tx: tx.access.version())

    def identify(self, token: str) -> tuple[Identity, datetime | None]:
        """The user of a token, and until when it is valid; raises if it is invalid."""
        prefix, _, rest = token.partition("_")
        id, _, secret = rest.partition("_")

        def work(tx: Transaction) -> tuple[Identity, datetime | None]:
            row = tx.access.token(id) if prefix == _PREFIX and is_text(id) else None
            if row is None or not compare_digest(row.digest, _digest(secret)):
                raise TokenRefused(why="it is unknown, or was revoked")
            if row.expires is not None and row.expires <= tx.now:
                raise TokenRefused(why=f"it has expired at {to_iso(to_datetime(row.expires))}")
            if tx.principals.secret(KIND, row.principal) is None:
                raise TokenRefused(why="its user was removed")
            only = None if row.verbs is None else frozenset(row.verbs.split())
            expires = None if row.expires is None else to_datetime(row.expires)
            return identity_of(tx, row.principal, only), expires

        return self._parts.store.read(work)

    def note_refusals(self, refused: Mapping[Refusal, int]) -> None:
        """Record refusals in the journal."""

        def work(tx: Transaction) -> None:
            for refusal, count in refused.items():
                tx.access.note_refusal(count, **refusal._asdict())

        self._parts.store.transact("principal", work)

    def has_users(self) -> bool:
        """Whether any grants exist."""
        return self._parts.store.read(lambda tx: bool(tx.access.all()))

    def names(self, *queue: str) -> list[tuple[str, ...]]:
        """For each queue of a reference, the names by which a grant may refer to it."""

        def work(tx: Transaction) -> list[tuple[str, ...]]:
            names = names_of(queue)
            try:
                return [(match.name, match.path) for match in queues_even_retired(tx, names)]
            except QueueUnknown:  # whoever may do it with everything learns that there is none
                return [("/".join(names),)]

        return self._parts.store.read(work)


def _known_identity(tx: Transaction, principal: str) -> Identity:
    _require_known(tx, principal)
    return identity_of(tx, principal)


def _require_known(tx: Transaction, principal: str) -> None:
    if tx.principals.secret(KIND, principal) is None:
        raise PrincipalRefused(principal=principal, why="there is no such user; add it with: postroom user add")


def _check_verb(verb: str) -> None:
    if verb not in VERBS:
        raise ArgumentInvalid(argument="verb", why=f"{verb!r} is none of {', '.join(VERBS)}")


def withdraw_all(parts: Parts, principal: str) -> None:
    """Revoke all rights of a user, at once."""

    def work(tx: Transaction) -> None:
        tx.wake()
        for grant in tx.access.of(principal):
            tx.access.remove(grant)
        _refresh(tx, parts)

    parts.store.transact("principal", work)


def _refresh(tx: Transaction, parts: Parts) -> None:
    """Look again at the definitions that act with somebody's rights, in the commit that changes these."""
    if tx.bindings.all():
        from postroom.room.reach import refresh  # it knows every language

        refresh(tx, parts)


def _checked(principal: str, verb: str, object: str) -> Grant:
    _check_verb(verb)
    if not is_text(principal) or not is_text(object) or not 0 < len(object) <= OBJECT_CHARS_MAX:
        raise ArgumentInvalid(argument="object", why=f"1 to {OBJECT_CHARS_MAX} characters of text")
    if VERBS[verb] in ("definitions", "spheres", "room") and object != EVERYTHING:
        raise ArgumentInvalid(argument="object", why=f"{verb} is granted for everything: leave the object out")
    return Grant(principal, verb, object.strip("/") or object)


def _shown(row: TokenRow) -> TokenShown:
    verbs = None if row.verbs is None else tuple(row.verbs.split())
    expires = None if row.expires is None else to_datetime(row.expires)
    return TokenShown(row.id, row.principal, row.name, verbs, to_datetime(row.created), expires)


def _digest(secret: str) -> bytes:
    """A fast hash, which is enough for a random secret."""
    return blake2b(secret.encode(errors="surrogateescape"), digest_size=32).digest()
