"""Principals: users and services with a password. One registry for queues, stations, services and domains.

Only argon2id hashes are kept; there is no default account.
"""

from __future__ import annotations

from postroom.store.kernel.journal import JournaledTable

_FIND = "SELECT secret FROM principals WHERE kind = ? AND name = ?"
_OF_KIND = "SELECT name, secret FROM principals WHERE kind = ?"
_SET = """
INSERT INTO principals (kind, name, secret, changed) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET secret = excluded.secret, changed = excluded.changed
"""
_REMOVE = "DELETE FROM principals WHERE kind = ? AND name = ?"


class Principals(JournaledTable):
    def secret(self, kind: str, name: str) -> str | None:
        return self._session.value(_FIND, (kind, name))

    def secrets(self, kind: str) -> dict[str, str]:
        return {row[0]: row[1] for row in self._session.rows(_OF_KIND, (kind,))}

    def set_secret(self, kind: str, name: str, secret: str) -> None:
        self._session.run(_SET, (kind, name, secret, self._session.now))
        self._journal.add("password", detail={"kind": kind, "name": name})

    def remove(self, kind: str, name: str) -> None:
        if self._session.run(_REMOVE, (kind, name)):
            self._journal.add("remove-password", detail={"kind": kind, "name": name})
