"""The tree of queues: from a checked description into the store, and back into text that loads to the same tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from postroom.engine.language import CurrentPassword, Load, Terms
from postroom.errors import NameTaken, PasswordNeeded, PasswordWrong, QueueInUse, StoreBusy
from postroom.model.definitions import Definition, Loaded
from postroom.model.password import hash_password, verify_password
from postroom.model.progress import OnProgress
from postroom.queues.tree.addressing import PRINCIPAL
from postroom.queues.tree.checks import paths
from postroom.queues.tree.description import Entry
from postroom.queues.tree.policy import check_setting, clauses, of_words
from postroom.queues.tree.uses import refuse_needed
from postroom.store.kernel.base import Store
from postroom.store.kernel.policies import NO_POLICY, Policy
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction

T = TypeVar("T")
LEVEL = "queue-level"  # the kind of these definitions in the catalog
_CLAUSES = {1: "INPUT-QUEUE", 2: "SUB-QUEUE-1", 3: "SUB-QUEUE-2", 4: "SUB-QUEUE-3"}
_PREFIXES = {"input": "INP_", "output": "OUT_"}


def _prove(changes: Mapping[str, str], current: CurrentPassword) -> None:
    """Raise unless the current password is given for each path in ``changes``, which has the hashes."""
    if not changes:
        return
    if current is None:
        what = f"the load would change the password of {', '.join(_typed(path) for path in changes)}"
        raise PasswordNeeded(what=what, word="load --change-passwords, or change_passwords=True")
    for path, secret in changes.items():
        given = current if isinstance(current, str) else current(_typed(path))
        if not verify_password(secret, given.rstrip(" ")):
            raise PasswordWrong(queue=_typed(path), source="")


@dataclass(frozen=True, slots=True)
class Level:
    """One entry of the tree. A leaf is a physical queue."""

    path: str
    level: int
    role: str  # input or output
    leaf: bool
    command: str | None  # as written here; the one that reaches a leaf may stand above it
    timeout: int | None  # seconds that the command may take; None is the common limit
    password: bool
    policy: Policy | None = None  # as written here; it holds for every queue below that has none of its own

    @property
    def name(self) -> str:
        """The last word of its path."""
        return self.path.rpartition("/")[2]


def levels_of(entries: Sequence[Entry]) -> list[Level]:
    levels, role = [], "input"
    below = [entry.level for entry in entries[1:]] + [0]
    for entry, path, next_level in zip(entries, paths(entries), below, strict=True):
        if entry.level == 1:
            role = "output" if entry.clause == "OUTPUT-QUEUE" else "input"
        protected = entry.password is not None or entry.password_hash is not None
        timeout = None if entry.timeout is None else int(entry.timeout)
        leaf, policy = next_level <= entry.level, of_words(entry.policy) if entry.policy else None
        levels.append(Level(path, entry.level, role, leaf, entry.command, timeout, protected, policy))
    return levels


class TreeLoad(Load):
    """Loads a description as the room's tree of queues.

    Queues that stay keep their physical names, messages, holds and modes. A queue that is not in the description is
    retired if it has no unprocessed message; otherwise the whole load is refused.
    """

    def __init__(self, store: Store, entries: Sequence[Entry], terms: Terms) -> None:
        self._entries = entries
        self._files = terms.files
        # Hashing takes a tenth of a second a password, by design: not while everyone else waits for the store.
        present = store.read(lambda tx: tx.principals.secrets(PRINCIPAL))
        self._hashes = _hashes(entries, present, terms.progress)
        self._changes = store.read(lambda tx: _changes(tx, levels_of(entries), self._hashes))
        self.removed: Sequence[str] = ()
        if not terms.change_passwords:
            _prove(self._changes, terms.current_password)

    def write(self, tx: Transaction) -> Loaded:
        levels = levels_of(self._entries)
        _refuse_taken(tx, self._entries, levels)
        added, kept, removed = _evolve_queues(tx, levels)
        if _changes(tx, levels, self._hashes) != self._changes:
            raise StoreBusy(seconds=0, why="someone has set a password while this was loaded")
        _set_passwords(tx, levels, self._hashes)
        _set_policies(tx, levels)
        definitions = [
            Definition(LEVEL, level.path, _body(level), entry.position)
            for level, entry in zip(levels, self._entries, strict=True)
        ]
        version = tx.definitions.replace(LEVEL, definitions, {"files": list(self._files)})
        tx.wake()
        self.removed = removed
        passwords = tuple(_typed(path) for path in self._changes)
        return Loaded(version, added, kept, removed, passwords=passwords)

    def finish(self, tx: Transaction) -> None:
        """What used a removed queue may have changed in the same load."""
        refuse_needed(tx, filter(None, map(tx.queues.named_to_read, self.removed)))


def read(tx: Transaction, version: int | None = None) -> list[Level]:
    """The current tree, or that of a version."""
    return [
        Level(
            definition.name,
            body["level"],
            body["role"],
            body["leaf"],
            body["command"],
            body.get("timeout"),
            body["password"],
            None if body.get("policy") is None else Policy(**body["policy"]),
        )
        for definition in tx.definitions.of_kind(LEVEL, version)
        for body in [definition.body]
    ]


def description(tx: Transaction, version: int | None = None) -> str:
    """The current tree, or that of a version, as a description; empty if there is none."""
    levels = read(tx, version)
    return printed(levels, tx.principals.secrets(PRINCIPAL)) if levels else ""


def printed(levels: Sequence[Level], secrets: dict[str, str]) -> str:
    """The description of a tree. Passwords appear as hashes, because only hashes are stored."""
    lines = []
    for level in levels:
        clause = "OUTPUT-QUEUE" if level.role == "output" else _CLAUSES[level.level]
        line = f"{'   ' * (level.level - 1)}{level.level:02d} {clause} ({level.name})"
        if level.path in secrets:
            line += f' PASSWORD HASH IS "{secrets[level.path]}"'
        if level.command is not None:
            line += f' COMMAND LINE IS "{level.command}"'
        if level.timeout is not None:
            line += f" TIMEOUT IS {level.timeout} SECONDS"
        if level.policy is not None:
            line += "".join(f" {clause}" for clause in clauses(level.policy))
        lines.append(line)
    return "\n".join([*lines, "99", ""])


def _hashes(entries: Sequence[Entry], present: dict[str, str], progress: OnProgress | None) -> dict[str, str]:
    """The hash for each path with a password; a password that did not change keeps its hash."""
    hashes = {}
    for number, (entry, path) in enumerate(zip(entries, paths(entries), strict=True), 1):
        if progress is not None:
            progress(number, len(entries))
        if entry.password_hash is not None:
            hashes[path] = entry.password_hash
        elif entry.password is not None:
            password = entry.password.rstrip()
            old = present.get(path)
            hashes[path] = old if old and verify_password(old, password) else hash_password(password)
    return hashes


def _refuse_taken(tx: Transaction, entries: Sequence[Entry], levels: Sequence[Level]) -> None:
    for entry, level in zip(entries, levels, strict=True):
        if level.level == 1:
            other = tx.queues.named_to_read(level.name)
            if other is not None and not other.retired:
                raise NameTaken(name=f"{level.name} ({entry.position})", owner=f"a queue of kind {other.kind}")


def _evolve_queues(
    tx: Transaction, levels: Sequence[Level]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    present = {(queue.kind, queue.path): queue for kind in _PREFIXES for queue in tx.queues.of_kind(kind)}
    numbers = {kind: _next_number(present, kind) for kind in _PREFIXES}
    added: list[str] = []
    kept: list[str] = []
    commands = {level.path: (level.command, level.timeout) for level in levels if level.command is not None}
    for ordinal, level in enumerate((level for level in levels if level.leaf), 1):
        queue = present.pop((level.role, level.path), None)
        command, seconds = _nearest(level.path, commands) or (None, None)
        if queue is None:
            name = f"{_PREFIXES[level.role]}{numbers[level.role]:04d}"
            numbers[level.role] += 1
            tx.queues.create(
                name, level.role, path=level.path, ordinal=ordinal, command=command, command_seconds=seconds
            )
            added.append(name)
        else:
            tx.queues.evolve(queue, path=level.path, ordinal=ordinal, command=command, command_seconds=seconds)
            (added if queue.retired else kept).append(queue.name)
    removed = tuple(_retire(tx, queue) for queue in present.values() if not queue.retired)
    return tuple(added), tuple(kept), removed


def _set_policies(tx: Transaction, levels: Sequence[Level]) -> None:
    """Set the policies of the description. Policies set by command, on which it has nothing, stay."""
    before = {definition.name: definition.body for definition in tx.definitions.of_kind(LEVEL)}
    declared = {path: body.get("policy") for path, body in before.items()}
    written = {level.path: level.policy for level in levels}
    for level in levels:
        if level.leaf:
            wanted = _nearest(level.path, written)
            had = _nearest(level.path, declared)
            (queue,) = tx.queues.below(level.path)
            if wanted is not None or had is not None:
                check_setting(tx, queue, wanted or NO_POLICY)
                tx.policies.set(queue, wanted or NO_POLICY)


def _nearest(path: str, of: Mapping[str, T | None]) -> T | None:
    """The setting of a path, inherited from the nearest level above."""
    return next((value for place in (path, *_above(path)) if (value := of.get(place)) is not None), None)


def _next_number(present: dict[tuple[str, str], Queue], kind: str) -> int:
    """The next number, never reused: a program that remembers a physical name must not reach another queue."""
    return max((int(queue.name[4:]) + 1 for (its, _), queue in present.items() if its == kind), default=0)


def _retire(tx: Transaction, stale: Queue) -> str:
    queue = tx.queues.locked(stale.id)
    inside = tx.deliveries.inside(queue)
    if inside:
        raise QueueInUse(
            queue=f"{queue.name} ({queue.path.replace('/', ' ')})",
            count=inside,
            where=(
                " in the description. A .qdl load replaces the room's whole description; "
                "for another tree use another room: --room other.db"
            ),
        )
    tx.queues.retire(queue)
    return queue.name


def _changes(tx: Transaction, levels: Sequence[Level], hashes: Mapping[str, str]) -> dict[str, str]:
    """The paths whose password changes or is removed, with the hash of the current one that is required.

    For an existing level without one it is that of the nearest level above: otherwise anyone could lift a hold from
    above by setting a password.
    """
    secrets = tx.principals.secrets(PRINCIPAL)
    before = {definition.name: definition.body for definition in tx.definitions.of_kind(LEVEL)}
    now = {level.path for level in levels}
    changes = {}
    for path in dict.fromkeys([*before, *hashes]):
        present, wanted = secrets.get(path), hashes.get(path)
        if present is not None:
            ends = path in before and wanted is None and (before[path]["password"] or path not in now)
            if ends or wanted not in (None, present):
                changes[path] = present
        elif wanted is not None and path in before:
            above = next((secrets[place] for place in _above(path) if place in secrets), None)
            if above is not None:
                changes[path] = above
    return changes


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _typed(path: str) -> str:
    """A path as typed."""
    return path.replace("/", " ")


def _set_passwords(tx: Transaction, levels: Sequence[Level], hashes: dict[str, str]) -> None:
    """Set the passwords of the description. Those set by command, on which it has nothing, stay."""
    before = {definition.name: definition.body for definition in tx.definitions.of_kind(LEVEL)}
    now = {level.path for level in levels}
    for path, secret in hashes.items():
        if tx.principals.secret(PRINCIPAL, path) != secret:
            tx.principals.set_secret(PRINCIPAL, path, secret)
    for path, body in before.items():
        if path not in hashes and (body["password"] or path not in now):
            tx.principals.remove(PRINCIPAL, path)


def _body(level: Level) -> dict[str, Any]:
    return {
        "level": level.level,
        "role": level.role,
        "leaf": level.leaf,
        "command": level.command,
        "timeout": level.timeout,
        "password": level.password,
        **({} if level.policy is None else {"policy": level.policy.as_dict()}),
    }
