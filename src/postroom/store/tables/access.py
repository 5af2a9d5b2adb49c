"""Grants and tokens. Only hashes of tokens are stored."""

from __future__ import annotations

from typing import NamedTuple

from postroom.store.kernel.journal import JournaledTable

_VERSION = "SELECT value FROM counters WHERE name = 'access'"
_CHANGE = "UPDATE counters SET value = value + 1 WHERE name = 'access'"
_GRANTS = "SELECT principal, verb, object FROM grants ORDER BY principal, verb, object"
_GRANTS_OF = "SELECT principal, verb, object FROM grants WHERE principal = ? ORDER BY verb, object"
_GRANT = "INSERT INTO grants (principal, verb, object) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_WITHDRAW = "DELETE FROM grants WHERE principal = ? AND verb = ? AND object = ?"
_COLUMNS = "SELECT id, principal, name, digest, verbs, created, expires FROM access_tokens "
_FIND = _COLUMNS + "WHERE id = ?"
_ALL = _COLUMNS + "ORDER BY principal, created, id"
_ADD = "INSERT INTO access_tokens (id, principal, name, digest, verbs, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM access_tokens WHERE id = ?"
_FORGET = ("DELETE FROM grants WHERE principal = ?", "DELETE FROM access_tokens WHERE principal = ?")


class Grant(NamedTuple):
    """A right on an object and everything below it; the object * means everything."""

    principal: str
    verb: str
    object: str


class TokenRow(NamedTuple):
    id: str
    principal: str
    name: str
    digest: bytes
    verbs: str | None  # those that it is limited to, with a blank between
    created: int
    expires: int | None


class AccessRights(JournaledTable):
    def version(self) -> int:
        """Grows with every change."""
        return self._session.number(_VERSION)

    def _changed(self, line: str, /, **detail: str) -> None:
        self._session.run(_CHANGE)
        self._journal.add(line, detail=detail)

    def note_refusal(self, count: int, /, **detail: str) -> None:
        """Record a refusal, with a count."""
        self._journal.add("denied", detail={**detail, "count": count})

    # --- grants ---

    def all(self) -> list[Grant]:
        return [Grant(*row) for row in self._session.rows(_GRANTS)]

    def of(self, principal: str) -> list[Grant]:
        return [Grant(*row) for row in self._session.rows(_GRANTS_OF, (principal,))]

    def add(self, grant: Grant) -> bool:
        """Add a grant; False if it exists."""
        added = bool(self._session.run(_GRANT, grant))
        if added:
            self._changed("grant", **grant._asdict())
        return added

    def remove(self, grant: Grant) -> bool:
        """Remove a grant; False if there is none."""
        removed = bool(self._session.run(_WITHDRAW, grant))
        if removed:
            self._changed("withdraw", **grant._asdict())
        return removed

    # --- tokens ---

    def token(self, id: str) -> TokenRow | None:
        return self._session.one(_token, _FIND, (id,))

    def tokens(self) -> list[TokenRow]:
        return [_token(row) for row in self._session.rows(_ALL)]

    def add_token(self, token: TokenRow) -> None:
        self._session.run(_ADD, token)
        self._changed("token", principal=token.principal, name=token.name, id=token.id)

    def remove_token(self, token: TokenRow) -> None:
        self._session.run(_REMOVE, (token.id,))
        self._changed("remove-token", principal=token.principal, name=token.name, id=token.id)

    def forget(self, principal: str) -> None:
        """Remove everything of a user, so that a later one of the same name starts without rights."""
        if sum(self._session.run(statement, (principal,)) for statement in _FORGET):
            self._changed("withdraw", principal=principal)


def _token(row: tuple[object, ...]) -> TokenRow:
    token = TokenRow(*row)  # type: ignore[arg-type]  # the columns are those of the statement
    return token._replace(digest=bytes(token.digest))
