"""Authentication: principals with passwords or tokens, for all of a room.

Passwords are chosen, tokens are generated; both are stored as argon2id hashes only.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from hmac import compare_digest

from postroom.errors import ArgumentInvalid, PasswordNeeded, PrincipalInUse, PrincipalRefused, StoreError
from postroom.limits import ACTOR_CHARS_MAX, LOGIN_SECONDS, SECRET_CHARS_MAX
from postroom.model.body import is_text
from postroom.model.moment import in_microseconds
from postroom.model.password import hash_password, is_outdated, verify_password
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

KIND = "principal"
LOGIN = "login"


class Registry:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(
        self, name: str, password: str | None = None, *, old: str | None = None, replace: bool = False
    ) -> str | None:
        """Register a principal, or change its secret. Without a password a token is generated and returned.

        An existing one needs its current secret, or the operator's ``replace``.
        """
        from secrets import token_urlsafe  # few programs make a token

        token = token_urlsafe(24) if password is None else None
        secret = self.hashed(name, token or password or "")
        if old is not None and not replace:
            self.verify(name, old)
        seen = self._store.read(lambda tx: tx.principals.secret(KIND, name))

        def work(tx: Transaction) -> None:
            present = tx.principals.secret(KIND, name)
            if present is not None and not replace and (old is None or present != seen):
                word = "principal add --replace, or replace=True"
                raise PasswordNeeded(what=f"{name} is registered, and has a password", word=word)
            tx.principals.set_secret(KIND, name, secret)

        self._store.transact("principal", work)
        return token

    @staticmethod
    def hashed(name: str, password: str) -> str:
        """The hash of a principal's password; raises if name or password is invalid."""
        if not name.isidentifier() or len(name) > ACTOR_CHARS_MAX:
            why = f"{name!r} is not a name: letters, digits and _, at most {ACTOR_CHARS_MAX}"
            raise ArgumentInvalid(argument="principal", why=why)
        if not 0 < len(password) <= SECRET_CHARS_MAX or not is_text(password):
            raise ArgumentInvalid(argument="password", why=f"1 to {SECRET_CHARS_MAX} characters of text")
        return hash_password(password)

    def check_removable(self, name: str) -> None:
        """Raise unless the principal is registered and is not the login of a station."""
        self._store.read(lambda tx: _check_removable(tx, name))

    def remove(self, name: str) -> None:
        def work(tx: Transaction) -> None:
            tx.nodes.lock()  # no station of this name is added meanwhile
            _check_removable(tx, name)
            tx.principals.remove(KIND, name)
            tx.access.forget(name)
            tx.wake()

        self._store.transact("principal", work)

    def names(self) -> list[str]:
        return sorted(self._store.read(lambda tx: tx.principals.secrets(KIND)))

    def knows(self, name: str) -> bool:
        return is_text(name) and self._store.read(lambda tx: tx.principals.secret(KIND, name)) is not None

    def verify(self, name: str, password: str, names: str = "postroom principal list tells the names") -> None:
        """Raise unless the secret is right.

        Unknown names and wrong secrets look the same. ``names`` is advice for the error.
        """
        secret = self._store.read(lambda tx: tx.principals.secret(KIND, name)) if is_text(name) else None
        if not verify_password(secret or _NOBODY, password) or secret is None:
            why = f"there is no such principal, or the password is not its own; {names}"
            raise PrincipalRefused(principal=name, why=why)
        if is_outdated(secret):
            self._renew(name, secret, password)

    def _renew(self, name: str, secret: str, password: str) -> None:
        """Hash a password again with today's parameters. Logins bound to the old hash end."""
        renewed = hash_password(password)

        def work(tx: Transaction) -> None:
            if tx.principals.secret(KIND, name) == secret:
                tx.principals.set_secret(KIND, name, renewed)

        with suppress(StoreError):  # the password is right all the same, and is shown again
            self._store.transact("principal", work)

    # --- logins ---

    def login(self, name: str, password: str) -> str:
        """Check a password once; returns a token for some hours."""
        from secrets import token_hex, token_urlsafe

        self.verify(name, password)
        id, token = token_hex(4), token_urlsafe(24)

        def work(tx: Transaction) -> None:
            for login, secret in tx.principals.secrets(LOGIN).items():
                if int(secret.partition(":")[0]) < tx.now:
                    tx.principals.remove(LOGIN, login)
            expires = tx.now + in_microseconds(LOGIN_SECONDS)
            known = tx.principals.secret(KIND, name)
            tx.principals.set_secret(LOGIN, f"{name}/{id}", f"{expires}:{_digest(token, known)}")

        self._store.transact("login", work)
        return f"{id}.{token}"

    def logout(self, name: str, token: str) -> None:
        id = token.partition(".")[0]
        self._store.transact("login", lambda tx: tx.principals.remove(LOGIN, f"{name}/{id}"))

    def end_logins(self, name: str) -> int:
        """End every login of a principal; returns how many there were."""

        def work(tx: Transaction) -> int:
            if tx.principals.secret(KIND, name) is None:
                raise PrincipalRefused(principal=name, why="there is no such principal")
            ended = [login for login in tx.principals.secrets(LOGIN) if login.rpartition("/")[0] == name]
            for login in ended:
                tx.principals.remove(LOGIN, login)
            if ended:
                tx.wake()
            return len(ended)

        return self._store.transact("login", work)

    def admits(self, name: str, token: str) -> bool:
        """Whether a login token is valid for a name."""
        id, _, shown = token.partition(".")

        def work(tx: Transaction) -> bool:
            secret, known = tx.principals.secret(LOGIN, f"{name}/{id}"), tx.principals.secret(KIND, name)
            if secret is None or known is None:
                return False
            expires, _, digest = secret.partition(":")
            return compare_digest(digest, _digest(shown, known)) and int(expires) >= tx.now

        return is_text(name + token) and self._store.read(work)


def _check_removable(tx: Transaction, name: str) -> None:
    if not is_text(name) or tx.principals.secret(KIND, name) is None:
        raise PrincipalRefused(principal=name, why="there is no such principal")
    node = tx.nodes.home(name)
    if node is not None:
        raise PrincipalInUse(principal=name, node=node)


def check_actor(argument: str, name: str) -> None:
    """Raise for a name that the journal could not show."""
    if not isinstance(name, str) or not 0 < len(name) <= ACTOR_CHARS_MAX or not name.isprintable():
        raise ArgumentInvalid(argument=argument, why=f"1 to {ACTOR_CHARS_MAX} printable characters")


def _digest(token: str, secret: str | None) -> str:
    """A fast hash, which is enough for a random token. It includes the password's hash, so a new password ends it."""
    return blake2b(f"{token} {secret}".encode(), digest_size=32).hexdigest()


#: A hash that no password has, of the usual cost: whoever asks for a name that is not there waits as long.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
