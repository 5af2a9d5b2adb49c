"""Holds and releases queues, by the password of a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import join

from postroom.errors import PasswordMissing, PasswordWrong, PostroomError
from postroom.model.password import verify_password
from postroom.queues import locks, status
from postroom.queues.results import Held
from postroom.queues.tree.addressing import (
    PRINCIPAL,
    Names,
    holdable,
    names_of,
    path_of,
    queues_of,
    shown,
    typed_level,
)
from postroom.queues.user import QueueUser
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transaction import Transaction

#: A password that is known, or who asks for it.
Password = str | Callable[[], str]


class HoldVerbs(QueueUser):
    """The verbs hold and release."""

    def hold(self, queue: Names, wanted: Hold, password: Password) -> Held:
        """Put queues on hold, or release them.

        A given password is always checked; a function is called for it only if something would change.
        """
        names = names_of(queue)
        secret = self._secret(names, wanted, password)
        if secret is None:
            return Held((), status.ALREADY)
        return self._store.transact("hold", lambda tx: Held(self._held(tx, names, wanted, secret)))

    def hold_each(self, queues: Sequence[Names], wanted: Hold, password: str) -> list[str]:
        """Hold or release several destinations in one commit, as COBOL does; returns the status of each.

        Does nothing if the password is wrong for one of them.
        """
        keys, secrets = list[str](), dict[Names, str]()
        for names in map(names_of, queues):
            try:
                secret = self._secret(names, wanted, password)
            except PostroomError as refusal:
                keys.append(refusal.status)
            else:
                keys.append(status.ALREADY if secret is None else status.DONE)
                if secret is not None:
                    secrets[names] = secret
        if status.PASSWORD not in keys and secrets:
            self._store.transact(
                "hold", lambda tx: [self._held(tx, names, wanted, secret) for names, secret in sorted(secrets.items())]
            )
        return keys

    def _secret(self, names: Names, wanted: Hold, password: Password) -> str | None:
        """The hash that the password was checked against; None if there is nothing to do."""

        def look(tx: Transaction) -> tuple[bool, str | None, str | None]:
            queues = locks.unlocked(tx, queues_of(tx, names))
            already = all(queue.hold == wanted for queue in queues)
            path = path_of(tx, names)
            return already, tx.principals.secret(PRINCIPAL, path), typed_level(tx, path)

        already, secret, level = self._store.read(look)
        if already and (secret is None or not password or callable(password)):
            return None
        if secret is None:
            alone = f"postroom queue password {join(names)}"
            advice = f"name {level}, which has one, or set one for this level alone with: {alone}" if level else _ADVICE
            raise PasswordMissing(queue=shown(names), advice=advice)
        given = password if isinstance(password, str) else password()
        if not verify_password(secret, given.rstrip(" ")):
            self._store.transact("hold", lambda tx: self._denied(tx, names))
            raise PasswordWrong(queue=shown(names), source="")
        return None if already else secret

    def _held(self, tx: Transaction, names: Names, wanted: Hold, secret: str) -> tuple[str, ...]:
        """Change the queues; returns the changed ones."""
        if tx.principals.secret(PRINCIPAL, path_of(tx, names)) != secret:
            raise PasswordWrong(queue=shown(names), source="")  # it was changed while we checked
        changed = []
        for candidate in queues_of(tx, names):
            queue = holdable(tx, candidate, names)
            locks.refuse_locked(tx, queue)
            if queue.hold != wanted:
                tx.queues.hold(queue, wanted)
                changed.append(queue.name)
        tx.wake()
        return tuple(changed)

    def _denied(self, tx: Transaction, names: Names) -> None:
        for queue in queues_of(tx, names)[:1]:
            tx.journal.add("denied", target=queue.id, detail={"reference": shown(names), "why": "wrong password"})


_ADVICE = (
    "write PASSWORD IS at this level of the description, name a level that has one, "
    "or set one with: postroom queue password"
)
