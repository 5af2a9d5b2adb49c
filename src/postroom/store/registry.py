"""Who is who: principals with passwords or tokens, for everything in a room that asks.

A password is chosen, a token is dispensed; both are kept as argon2id hashes and shown to nobody.
"""

from __future__ import annotations

import secrets

from postroom.errors import ArgumentInvalid, PrincipalRefused
from postroom.limits import ACTOR_CHARS_MAX, SECRET_CHARS_MAX
from postroom.model.password import hash_password, verify_password
from postroom.store.base import Store
from postroom.store.transaction import Transaction

KIND = "principal"


class Registry:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, name: str, password: str | None = None) -> str | None:
        """Register a principal, or give one another secret. Without a password a token is made, and answered with."""
        if not name.isidentifier() or len(name) > ACTOR_CHARS_MAX:
            why = f"{name!r} is not a name: letters, digits and _, at most {ACTOR_CHARS_MAX}"
            raise ArgumentInvalid(argument="principal", why=why)
        if password is not None and not 0 < len(password) <= SECRET_CHARS_MAX:
            raise ArgumentInvalid(argument="password", why=f"1 to {SECRET_CHARS_MAX} characters")
        token = secrets.token_urlsafe(24) if password is None else None
        secret = hash_password(token or password or "")
        self._store.transact("principal", lambda tx: tx.principals.set_secret(KIND, name, secret))
        return token

    def remove(self, name: str) -> None:
        def work(tx: Transaction) -> None:
            if tx.principals.secret(KIND, name) is None:
                raise PrincipalRefused(principal=name, why="there is no such principal")
            tx.principals.remove(KIND, name)

        self._store.transact("principal", work)

    def names(self) -> list[str]:
        return sorted(self._store.read(lambda tx: tx.principals.secrets(KIND)))

    def knows(self, name: str) -> bool:
        return self._store.read(lambda tx: tx.principals.secret(KIND, name)) is not None

    def verify(self, name: str, password: str) -> None:
        """Raise unless a principal shows its secret. A wrong one and an unknown name look the same."""
        secret = self._store.read(lambda tx: tx.principals.secret(KIND, name))
        if not verify_password(secret or _NOBODY, password) or secret is None:
            raise PrincipalRefused(principal=name, why="there is no such principal, or the password is not its own")


#: A hash that no password has, of the usual cost: whoever asks for a name that is not there waits as long.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
