"""Queues without a description: make, remove, set the mode and the password."""

from __future__ import annotations

import re

from postroom.errors import ArgumentInvalid, NameInvalid, NameTaken, PasswordWrong, QueueInUse
from postroom.limits import PASSWORD_CHARS_MAX, QUEUE_NAME_CHARS_MAX
from postroom.model.password import hash_password, verify_password
from postroom.queues import locks
from postroom.queues.addressing import Names, names_of, one_queue, path_of, queues_of, shown
from postroom.queues.hierarchy import PRINCIPAL
from postroom.store.base import Store
from postroom.store.transaction import Transaction


class Administration:
    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, name: str, *, keep_processed: bool = True, password: str | None = None) -> None:
        """Make one queue by name; making it again, alike, is an error that says who has the name."""
        _check_name(name)
        secret = None if password is None else hash_password(_checked(password))

        def work(tx: Transaction) -> None:
            present = tx.queues.named(name)
            if present is None or present.retired:
                below = tx.queues.below(name)
                if below:
                    raise NameTaken(name=name, owner="the queue description")
            if present is None:
                tx.queues.create(name, "basic", path=name, keep=keep_processed)
            elif present.retired:
                tx.queues.evolve(present, path=name, ordinal=0, command=None)
                tx.queues.keep_processed(present, keep_processed)
            else:
                raise NameTaken(name=name, owner=f"a queue of kind {present.kind}")
            if secret is not None:
                tx.principals.set_secret(PRINCIPAL, name, secret)

        self._store.transact("create-queue", work)

    def remove(self, name: str) -> None:
        """Take a queue out of use. Unprocessed messages keep it; its history stays readable."""

        def work(tx: Transaction) -> None:
            queue = one_queue(tx, names_of((name,)))
            if queue.kind != "basic":
                raise ArgumentInvalid(
                    argument=name, why="it belongs to the queue description; load a description without it"
                )
            locks.refuse_locked(tx, queue)
            if queue.unprocessed:
                raise QueueInUse(queue=name, count=queue.unprocessed, where="")
            tx.queues.retire(queue)
            tx.principals.remove(PRINCIPAL, queue.path)

        self._store.transact("remove-queue", work)

    def set_mode(self, queue: Names, *, keep_processed: bool) -> list[str]:
        """Keep processed messages or discard them, for one queue or all below a level; frees what is discarded."""
        names = names_of(queue)

        def work(tx: Transaction) -> list[str]:
            changed = []
            for candidate in queues_of(tx, names):
                found = tx.queues.locked(candidate.id)
                locks.refuse_locked(tx, found)
                if bool(found.keep) != keep_processed:
                    tx.queues.keep_processed(found, keep_processed)
                    changed.append(found.name)
                if not keep_processed:
                    tx.messages.purge_processed(found)
            return changed

        return self._store.transact("mode", work)

    def set_password(self, queue: Names, password: str, *, old: str | None = None) -> None:
        """Give a queue or level its password; one that is set already must be shown first."""
        names = names_of(queue)
        _checked(password)

        def look(tx: Transaction) -> tuple[str, str | None]:
            queues_of(tx, names)
            path = path_of(tx, names)
            return path, tx.principals.secret(PRINCIPAL, path)

        path, present = self._store.read(look)
        if present is not None and (old is None or not verify_password(present, old.rstrip(" "))):
            raise PasswordWrong(queue=shown(names))
        secret = hash_password(password.rstrip(" "))

        def work(tx: Transaction) -> None:
            if tx.principals.secret(PRINCIPAL, path) != present:
                raise PasswordWrong(queue=shown(names))  # it was changed while we checked
            tx.principals.set_secret(PRINCIPAL, path, secret)

        self._store.transact("set-password", work)

    def has_password(self, queue: Names) -> bool:
        names = names_of(queue)

        def look(tx: Transaction) -> bool:
            queues_of(tx, names)
            return tx.principals.secret(PRINCIPAL, path_of(tx, names)) is not None

        return self._store.read(look)


def _check_name(name: str) -> None:
    why = None
    if not name or len(name) > QUEUE_NAME_CHARS_MAX:
        why = f"1 to {QUEUE_NAME_CHARS_MAX} characters"
    elif not name.isprintable() or name != name.strip():
        why = "printable characters, no blanks around them"
    elif "/" in name or name.startswith("-"):
        why = "no '/' (it separates the names of a path), and no '-' in front"
    elif re.fullmatch(r"(INP|OUT)_[0-9]{4,}", name):
        why = "INP_… and OUT_… name the queues of a description"
    if why is not None:
        raise NameInvalid(name=name, why=why)


def _checked(password: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]+ *", password) or len(password.rstrip()) > PASSWORD_CHARS_MAX:
        raise ArgumentInvalid(argument="password", why=f"1 to {PASSWORD_CHARS_MAX} letters and digits")
    return password.rstrip(" ")
