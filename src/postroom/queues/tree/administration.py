"""Administers queues without a description: create, remove, mode and password."""

from __future__ import annotations

import re
from collections.abc import Callable

from postroom.errors import ArgumentInvalid, NameInvalid, NameTaken, PasswordWrong, QueueInUse
from postroom.limits import PASSWORD_CHARS_MAX, QUEUE_NAME_CHARS_MAX
from postroom.model.password import hash_password, verify_password
from postroom.model.rights import EVERYTHING
from postroom.queues import locks
from postroom.queues.tree.addressing import (
    PRINCIPAL,
    Names,
    keyed_level,
    live,
    names_of,
    one_queue,
    path_of,
    queues_of,
    shown,
)
from postroom.queues.tree.uses import refuse_needed
from postroom.store.kernel.base import Store
from postroom.store.kernel.policies import NO_POLICY
from postroom.store.kernel.queues import LEAVING, MAILBOX, META_SPACE, STATION, Hold, Keep
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ALIVE_QUEUE, STATES, UNDO_QUEUE

#: In the address of a page or a request these mean another place.
DOTS = (".", "..")
NOT_DOTS = "'.' and '..' mean other places in the address of a page or a request"
_DESCRIPTION = "the queue description; load a description"
_GRAPH = "a flow graph; load its domain"
_OWNERS = {"rules": "a rule program; load its module", "space": _GRAPH, "meta": _GRAPH, "parked": _GRAPH}


class Administration:
    def __init__(self, store: Store) -> None:
        self._store = store

    def create(
        self, name: str, *, keep_processed: bool = True, password: str | None = None, exist_ok: bool = False
    ) -> None:
        """Make one queue by name. Raises if the name is taken, unless ``exist_ok`` and it is such a queue."""
        check_queue_name(name)
        _check_not_reserved(name)
        secret = None if password is None else hash_password(checked_password(password))

        def work(tx: Transaction) -> None:
            tx.definitions.lock()
            present = tx.queues.named(name)
            if exist_ok and present is not None and not present.retired and present.kind == "basic":
                return
            if present is None or present.retired:
                below = tx.queues.below(name)
                if below:
                    raise NameTaken(name=name, owner="the queue description")
            if present is None:
                tx.queues.create(name, "basic", path=name, keep=keep_processed)
            elif present.retired:
                tx.queues.evolve(present, path=name, ordinal=0, command=None)
                tx.queues.keep_processed(present, keep_processed)
                tx.policies.set(present, NO_POLICY)
                if present.hold:  # whoever held it is gone with its password
                    tx.queues.hold(present, Hold.NONE)
            else:
                same = " (use it as it is; in Python, exist_ok=True accepts it)" if present.kind == "basic" else ""
                raise NameTaken(name=name, owner=f"a queue of kind {present.kind}{same}")
            if secret is not None:
                tx.principals.set_secret(PRINCIPAL, name, secret)

        self._store.transact("create-queue", work)

    def remove(self, name: str, check: Callable[[Transaction], None]) -> None:
        """Retire a queue; raises while it has unprocessed messages, or something needs it. Its history stays readable.

        ``check`` is called when it is done, and may refuse it.
        """

        def work(tx: Transaction) -> None:
            queue = one_queue(tx, names_of((name,)))
            if queue.kind != "basic":
                owner = _OWNERS.get(queue.kind, _DESCRIPTION)
                raise ArgumentInvalid(argument=name, why=f"it belongs to {owner} without it")
            locks.refuse_locked(tx, queue)
            inside = tx.deliveries.inside(queue)
            if inside:
                raise QueueInUse(queue=name, count=inside, where="")
            tx.queues.retire(queue)
            refuse_needed(tx, [queue])
            check(tx)
            tx.principals.remove(PRINCIPAL, queue.path)

        self._store.transact("remove-queue", work)

    def set_mode(self, queue: Names, *, keep_processed: bool) -> list[str]:
        """Keep processed messages or discard them, for one queue or all below a level; frees what is discarded."""
        names = names_of(queue)

        def work(tx: Transaction) -> list[str]:
            changed = []
            for candidate in queues_of(tx, names):
                present = live(tx, candidate, names)
                locks.refuse_locked(tx, present)
                if present.keep == Keep.SLICED:
                    raise ArgumentInvalid(argument=present.name, why="its rule program decides how long messages stay")
                if bool(present.keep) != keep_processed:
                    tx.queues.keep_processed(present, keep_processed)
                    changed.append(present.name)
                if not keep_processed:
                    tx.messages.purge_processed(present)
            return changed

        return self._store.transact("mode", work)

    def set_password(self, queue: Names, password: str, *, old: str | None = None) -> None:
        """Set the password of a queue or level.

        ``old`` is its current password, or else that of the nearest level above: otherwise anyone could lift a hold
        from above by setting a password.
        """
        names = names_of(queue)
        checked_password(password)

        def look(tx: Transaction) -> tuple[str, str | None]:
            queues_of(tx, names)
            path = path_of(tx, names)
            level = keyed_level(tx, path)
            return path, None if level is None else tx.principals.secret(PRINCIPAL, level)

        path, present = self._store.read(look)
        if present is not None and (old is None or not verify_password(present, old.rstrip(" "))):
            raise PasswordWrong(queue=shown(names), source="")
        secret = hash_password(password.rstrip(" "))

        def work(tx: Transaction) -> None:
            if look(tx) != (path, present):
                raise PasswordWrong(queue=shown(names), source="")  # it was changed while we checked
            tx.principals.set_secret(PRINCIPAL, path, secret)

        self._store.transact("set-password", work)

    def has_password(self, queue: Names) -> bool:
        """Whether this level, or one above it, has a password."""
        names = names_of(queue)

        def look(tx: Transaction) -> bool:
            queues_of(tx, names)
            return keyed_level(tx, path_of(tx, names)) is not None

        return self._store.read(look)


def check_queue_name(name: str) -> None:
    why = None
    if not name or len(name) > QUEUE_NAME_CHARS_MAX:
        why = f"1 to {QUEUE_NAME_CHARS_MAX} characters"
    elif not name.isprintable() or name != name.strip():
        why = "printable characters, no blanks around them"
    elif name in DOTS:
        why = NOT_DOTS
    elif "/" in name:
        why = "no '/': a queue in a tree is described in a .qdl file, which is loaded with: postroom load FILE.qdl"
    elif name.startswith("-"):
        why = "no '-' in front"
    elif re.fullmatch(r"(INP|OUT)_[0-9]{4,}", name):
        why = "INP_… and OUT_… name the queues of a description"
    elif name == LEAVING or name.startswith((f"{STATION}:", f"{MAILBOX}:")):
        why = f"{STATION}:…, {MAILBOX}:… and {LEAVING} name the queues of stations"
    if why is not None:
        raise NameInvalid(name=name, why=why)


def _check_not_reserved(name: str) -> None:
    """Raise if a capability needs this name, so that a queue of a user would stop it later."""
    why = None
    if name in (*STATES, UNDO_QUEUE, ALIVE_QUEUE):
        why = f"spheres keep what they need in the queues {', '.join((*STATES, UNDO_QUEUE, ALIVE_QUEUE))}"
    elif name.startswith(f"{META_SPACE}:"):
        why = f"{META_SPACE}:… name the meta-spaces of flows"
    elif name == EVERYTHING:
        why = f"{EVERYTHING} means all queues in a grant"
    if why is not None:
        raise NameInvalid(name=name, why=why)


def checked_password(password: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]+ *", password) or len(password.rstrip()) > PASSWORD_CHARS_MAX:
        raise ArgumentInvalid(argument="password", why=f"1 to {PASSWORD_CHARS_MAX} letters and digits")
    return password.rstrip(" ")
