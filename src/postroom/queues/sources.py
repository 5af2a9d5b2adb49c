"""Sources: named terminals. A message may name its source; a disabled source cannot send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from postroom.errors import (
    ArgumentInvalid,
    NameInvalid,
    NameTaken,
    PasswordMissing,
    PasswordWrong,
    SourceHeld,
    SourceUnknown,
)
from postroom.limits import NAME_CHARS_MAX
from postroom.model.password import hash_password, verify_password
from postroom.queues import status
from postroom.queues.results import Held
from postroom.queues.tree.addressing import names_of, queues_of
from postroom.queues.tree.administration import DOTS, NOT_DOTS, checked_password
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.sources import Source

PRINCIPAL = "source"  # the kind of principal that a source with a password is


class SourceShown(NamedTuple):
    """A source: whether it may send, and its own queues."""

    name: str
    enabled: bool
    input: str | None
    output: str | None

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "enabled": self.enabled, "input_queue": self.input, "output_queue": self.output}


class SourceVerbs:
    def __init__(self, store: Store) -> None:
        self._store = store

    def create(
        self, name: str, *, password: str | None = None, input: str | None = None, output: str | None = None
    ) -> None:
        """Create a source.

        ``input`` and ``output`` are the queues for a program that communicates with it (an I-O CD).
        """
        if not name or len(name) > NAME_CHARS_MAX or not name.isprintable() or name != name.strip():
            raise NameInvalid(name=name, why=f"1 to {NAME_CHARS_MAX} printable characters, no blanks around them")
        if name in DOTS:
            raise NameInvalid(name=name, why=NOT_DOTS)
        secret = None if password is None else hash_password(checked_password(password))

        def work(tx: Transaction) -> None:
            tx.definitions.lock()
            if tx.sources.find(name) is not None:
                raise NameTaken(name=name, owner="a source")
            for queue in filter(None, (input, output)):
                queues_of(tx, names_of((queue,)))
            tx.sources.add(Source(name, 0, input, output))
            if secret is not None:
                tx.principals.set_secret(PRINCIPAL, name, secret)

        self._store.transact("create-queue", work)

    def remove(self, name: str) -> None:
        """Remove a source; messages that came from it keep its name."""

        def work(tx: Transaction) -> None:
            tx.definitions.lock()
            known(tx, name)
            tx.sources.remove(name)
            tx.principals.remove(PRINCIPAL, name)

        self._store.transact("remove-queue", work)

    def all(self) -> list[SourceShown]:
        sources = self._store.read(lambda tx: tx.sources.all())
        return [SourceShown(one.name, not one.disabled, one.input, one.output) for one in sources]

    def find(self, name: str) -> Source:
        """One source; raises if it does not exist."""
        return self._store.read(lambda tx: known(tx, name))

    def hold(self, name: str, disabled: bool, password: str | Callable[[], str]) -> Held:
        """Disable or enable a source. A given password is checked first."""

        def look(tx: Transaction) -> tuple[bool, str | None]:
            return bool(known(tx, name).disabled) == disabled, tx.principals.secret(PRINCIPAL, name)

        already, secret = self._store.read(look)
        if already and (secret is None or not password or callable(password)):
            return Held((), status.ALREADY)
        if secret is None:
            raise PasswordMissing(queue=name, advice="create the source again with a password: postroom source create")
        given = password if isinstance(password, str) else password()
        if not verify_password(secret, given.rstrip(" ")):
            raise PasswordWrong(queue=name, source="")
        if already:
            return Held((), status.ALREADY)

        def work(tx: Transaction) -> Held:
            if look(tx)[1] != secret:
                raise PasswordWrong(queue=name, source="")  # it was changed while we checked
            tx.sources.set_disabled(name, disabled)
            return Held((name,))

        return self._store.transact("hold", work)


def known(tx: Transaction, name: str) -> Source:
    source = tx.sources.find(name)
    if source is None:
        raise SourceUnknown(source=name)
    return source


def admitted(tx: Transaction, name: str) -> None:
    """Raise unless a source may send; within the send's transaction, so that a concurrent disable counts."""
    if not name:
        raise ArgumentInvalid(argument="source", why="give the name of a source")
    source = tx.sources.locked(name)
    if source is None:
        raise SourceUnknown(source=name)
    if source.disabled:
        raise SourceHeld(source=name)
