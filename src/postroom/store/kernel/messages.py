"""Messages in their places: put, take, move, edit, remove. Each is a row, a line of the journal, a change of counts.

Many at once, in a given order, are a batch (``batch.py``, ``handling.py``). The statements are in ``message_rows.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored, hashes_alike, message_hash
from postroom.store.kernel import message_rows as rows
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.journal import RETURN, Journal
from postroom.store.kernel.keys import Keys
from postroom.store.kernel.message_rows import STORED, MessageRows, State, arrived, check_one, new_row, record
from postroom.store.kernel.queues import MEND, UNLOCK, Keep, Queue
from postroom.store.kernel.session import Session
from postroom.store.kernel.slices import Slices
from postroom.store.kernel.statement import NUMBERS, Statement

# The index leads to the key, and the row itself says where it is and in which state: so a damaged index is noticed.
_HEAD = (
    f"SELECT {STORED}, m.priority, m.queue, m.state"
    """
FROM messages m JOIN queues q ON q.id = m.queue
WHERE m.key = coalesce((SELECT u.key FROM messages u"""
    + Statement(" INDEXED BY messages_urgent", "")
    + """ WHERE u.queue = ? AND u.state = 1 AND u.priority > 0
    ORDER BY u.priority DESC, u.position LIMIT 1),
    (SELECT i.key FROM messages i WHERE i.queue = ? AND i.state = 1 ORDER BY i.position LIMIT 1))
"""
)
_STATE = "SELECT state FROM messages WHERE key = ?"
_IS_IN_STATE = "SELECT 1 FROM messages WHERE key = ? AND state = ?"
_ANY = "SELECT key FROM messages LIMIT 1"
_FROM = "FROM messages m JOIN queues q ON q.id = m.queue "
_SELECT = f"SELECT {STORED} {_FROM}"
_FIND = _SELECT + "WHERE m.key = ?"
_WAITING = _SELECT + "WHERE m.key = ? AND m.queue = ? AND m.state = 1"
_FIND_MANY = _SELECT + "WHERE m.key IN " + NUMBERS
_PAGE = _SELECT + "WHERE m.queue = ? AND m.state = ? AND m.position > ? ORDER BY m.position LIMIT ?"
_NEWEST = _SELECT + "WHERE m.queue = ? AND m.state = 1 ORDER BY m.position DESC LIMIT ?"
# By their keys: what an index over queues hides is still among the newest messages of all.
_BEHIND = (
    """
SELECT n.queue, n.key FROM (SELECT m.key, m.queue, m.state, m.position FROM messages m ORDER BY m.key DESC LIMIT ?) n
WHERE n.queue IN """
    + NUMBERS
    + " AND n.state = 1 AND n.position > ? LIMIT 1"
)
_POSITIONS = """
SELECT m.position FROM messages m WHERE m.queue = ? AND m.state = 1 AND m.position > ? ORDER BY m.position LIMIT ?
"""
_SPAN = "WHERE m.queue = ? AND m.state = 1 AND m.position > ? AND m.position <= ? ORDER BY m.position"
_BETWEEN = _SELECT + _SPAN
_OUTLINES = f"SELECT {rows.OUTLINE}, octet_length(m.body) {_FROM}{_SPAN}"
_NEXT_OF = _SELECT + "WHERE q.name = ? AND m.state = 1 AND m.position > ? ORDER BY m.position LIMIT ?"


class Messages(MessageRows):
    def __init__(self, session: Session, journal: Journal, keys: Keys, counts: Counts, slices: Slices) -> None:
        super().__init__(session)
        self._journal = journal
        self._keys = keys
        self._counts = counts
        self._slices = slices

    # --- put ---

    def put(self, queue: Queue, draft: Draft, cause: int | None = None, detail: Mapping[str, Any] | None = None) -> int:
        """Store a new message at the end of a queue; returns its key number."""
        key, now = self._keys.next(), self._session.now
        position = self._journal.add("put", message=key, target=queue.id, detail=detail)
        (number,) = self._counts.arrive(queue, (position,))
        hash = message_hash(key, now, cause, *draft)
        self._session.run(rows.INSERT, (key, queue.id, position, number, now, *draft, hash, cause))
        return key

    def put_many(self, queue: Queue, drafts: Sequence[Draft], cause: int | None = None) -> Sequence[int]:
        """Store many messages in order, in batches."""
        if not drafts:
            return ()
        keys, positions = self._keys.take(len(drafts)), self._session.journal_numbers(len(drafts))
        numbers = self._counts.arrive(queue, positions)
        now, id = self._session.now, queue.id
        if not self._insert_alike(id, keys, positions, numbers[0], drafts, cause):
            self.insert(
                (key, id, position, number, now, *draft, message_hash(key, now, cause, *draft), cause)
                for key, position, number, draft in zip(keys, positions, numbers, drafts, strict=False)
            )
        self._journal.add_arrivals("put", positions, keys, id)
        return keys

    def put_alike(self, queue: int, number: int, drafts: Sequence[Draft]) -> Sequence[int] | None:
        """Store messages that differ in their bodies alone, the first under ``number``; None if they differ in more."""
        keys, positions = self._keys.take(len(drafts)), self._session.journal_numbers(len(drafts))
        if not self._insert_alike(queue, keys, positions, number, drafts, None):
            self._keys.give_back(keys[0])
            return None
        self._journal.add_arrivals("put", positions, keys, queue)
        return keys

    def _insert_alike(
        self,
        queue: int,
        keys: Sequence[int],
        positions: Sequence[int],
        number: int,
        drafts: Sequence[Draft],
        cause: int | None,
    ) -> bool:
        """Insert new messages by a column of their bodies; False if they differ in more."""
        bodies, *others = zip(*drafts, strict=True)
        column = self._session.column(bodies) if all(len(set(other)) == 1 for other in others) else None
        if column is None:
            return False
        now, alike = self._session.now, drafts[0][1:]
        hashes = hashes_alike(keys, now, cause, bodies, alike)
        self.insert_alike(queue, (keys[0], positions[0], number), hashes, column, now, *alike, cause)
        return True

    def create(
        self, queue: Queue, messages: Sequence[tuple[int, str, str, str]], cause: int | None = None
    ) -> list[Stored]:
        """Store new messages of a station: key, type, properties and body of each."""
        if not messages:
            return []
        positions = self._session.journal_numbers(len(messages))
        numbers = self._counts.arrive(queue, positions)
        now, name = self._session.now, queue.name
        made = [
            arrived(key, name, now, (body, "json", type, properties), cause, seq, number)
            for seq, number, (key, type, properties, body) in zip(positions, numbers, messages, strict=True)
        ]
        self.insert([new_row(queue.id, stored) for stored in made])
        self._journal.add_arrivals("create", positions, [stored.key for stored in made], queue.id)
        return made

    def put_foreign(self, queue: Queue, stored: Stored, verb: str, detail: Mapping[str, Any]) -> Stored:
        """Store a message from another store, which may have been here before."""
        if not stored.sound:
            raise StoreCorrupt(why=f"message {key_text(stored.key)} does not match its hash")
        gone = self._session.row(rows.LAST_OF_DEPARTED, (stored.key,))
        self._session.run(rows.RETURN, (stored.key,))
        prior = None if gone is None else gone[0]
        seq = self._journal.add(verb, message=stored.key, prior=prior, target=queue.id, detail=detail)
        (number,) = self._counts.arrive(queue, (seq,))
        here = stored._replace(queue=queue.name, position=seq, number=number, last=seq)
        self._session.run(rows.INSERT, new_row(queue.id, here))
        return here

    # --- take ---

    def take(self, queue: Queue, stored: Stored) -> None:
        """Mark the message processed, or discard it if the queue keeps none."""
        if not queue.keep:
            self.let_go(queue, stored, "take")
            return
        line = self.line("take", stored, queue, queue)
        check_one(self._session.run(rows.MARK, (line, self._session.now, stored.key, queue.id)), stored)
        if queue.keep == Keep.SLICED:
            self._slices.spend([stored.key])
        self._counts.depart(queue, stored.number, kept=True)

    def untake(self, queue: Queue, stored: Stored, why: str) -> bool:
        """Undo ``take``: put a message back into its place; False if it was not taken."""
        key = stored.key
        kept = self._session.row(rows.LAST_OF_PROCESSED, (key, queue.id))
        prior = kept or self._session.row(rows.LAST_OF_DEPARTED, (key,))
        if prior is None:
            return False
        detail = {"position": stored.position, "number": stored.number, "why": why}
        source = queue.id if kept else None
        seq = self._journal.add(RETURN, message=key, prior=prior[0], source=source, target=queue.id, detail=detail)
        if kept:
            self._session.run(rows.UNTAKE, (stored.position, stored.number, seq, key, queue.id))
            self._slices.unspend(key)
        else:
            self._session.run(rows.RETURN, (key,))
            self._session.run(rows.INSERT_RESERVED, (*new_row(queue.id, stored), int(State.RESERVED)))
            self._session.run(rows.GIVE_BACK, (seq, key, queue.id))
        self._counts.depart(queue, stored.number, -1, kept=bool(kept))
        return True

    def reserve(self, queue: Queue, stored: Stored) -> None:
        """Reserve a message: nobody else gets it, and it keeps its key and place."""
        line = self.line("reserve", stored, queue, queue)
        check_one(self._session.run(rows.RESERVE, (line, self._session.now, stored.key, queue.id)), stored)
        self._counts.depart(queue, stored.number, kept=False)

    def give_back(self, queue: Queue, stored: Stored) -> None:
        """Put a reserved message back into its place, before later ones. The journal counts its deliveries."""
        line = self.line("give-back", stored, queue, queue, {"attempts": self._journal.attempts(stored.key)})
        check_one(self._session.run(rows.GIVE_BACK, (line, stored.key, queue.id)), stored)
        self._counts.come_back(queue)

    def take_reserved(self, queue: Queue, stored: Stored) -> None:
        """Make a reserved message processed, or discard it if the queue keeps none."""
        self.take_for_good(queue, stored, rows.MARK_RESERVED, rows.DISCARD_RESERVED)

    def take_for_good(self, queue: Queue, stored: Stored, mark: str, discard: str) -> None:
        """Make a temporarily taken message processed or discarded, by the statements for its state."""
        line = self.line("take", stored, queue, queue if queue.keep else None)
        if queue.keep:
            changed = self._session.run(mark, (line, self._session.now, stored.key, queue.id))
            if queue.keep == Keep.SLICED:
                self._slices.spend([stored.key])
            self._counts.keep(queue)
        else:
            self._session.run(rows.DEPART, (stored.key, line, stored.cause, stored.type))
            changed = self._session.run(discard, (stored.key, queue.id))
        check_one(changed, stored)

    def set_aside(self, queue: Queue, stored: Stored) -> None:
        """Set a damaged message aside, so that no receiver meets it; what is left of it is kept."""
        line = self.line("set-aside", stored, queue, queue)
        check_one(self._session.run(rows.SET_ASIDE, (line, stored.key, queue.id)), stored)
        self._counts.depart(queue, stored.number, kept=False)

    # --- move and edit ---

    def move(
        self,
        stored: Stored,
        source: Queue,
        target: Queue,
        verb: str = "move",
        detail: Mapping[str, Any] | None = None,
        properties: str | None = None,
    ) -> Stored:
        """Take an unprocessed message out of one queue and append it to another, optionally with other properties.

        Returns the moved message.
        """
        if properties is not None and properties != stored.properties:
            hashed = (stored.created, stored.cause, stored.body, stored.format, stored.type, properties)
            stored = stored._replace(properties=properties, hash=message_hash(stored.key, *hashed))
        seq = self.line(verb, stored, source, target, detail)
        (number,) = self._counts.arrive(target, (seq,))
        values = (target.id, seq, number, stored.properties, stored.hash, stored.key, source.id)
        check_one(self._session.run(rows.MOVE, values), stored)
        self._counts.depart(source, stored.number, kept=False)
        return stored._replace(queue=target.name, position=seq, number=number, last=seq)

    def edit(self, queue: Queue, stored: Stored, body: str, properties: str, detail: Mapping[str, Any]) -> Stored:
        """Store a new edition of a message under its key; the previous one is kept."""
        seq = self.line("modify", stored, queue, queue, detail)
        hash = message_hash(stored.key, stored.created, stored.cause, body, stored.format, stored.type, properties)
        # The newest of a queue has the highest number, so this one is new.
        (number,) = self._counts.arrive(queue, (seq,))
        values = (queue.id, seq, number, body, properties, hash, stored.key, queue.id, stored.position)
        check_one(self._session.run(rows.REWRITE, values), stored)
        self._counts.depart(queue, stored.number, kept=False)
        self._session.run(rows.KEEP_EDITION, (stored.key, seq, stored.body, stored.properties))
        return stored._replace(body=body, properties=properties, hash=hash, position=seq, number=number, last=seq)

    # --- remove ---

    def remove(self, queue: Queue, stored: Stored, verb: str, detail: Mapping[str, Any] | None = None) -> None:
        """Delete an unprocessed message, also from slices and indexes; the journal records it."""
        self.let_go(queue, stored, verb, detail)
        if queue.lock_message == stored.key:  # of someone who has ended: nothing is left to be read
            self._session.run(UNLOCK, (queue.id,))
        self._slices.forget(stored.key)

    def purge_processed(self, queue: Queue) -> int:
        """Delete a queue's processed messages; trace still works."""
        self._session.run(rows.DEPART_PROCESSED, (queue.id,))
        gone = self._session.run(rows.PURGE, (queue.id,))
        if gone:
            self._journal.add("purge", source=queue.id, detail={"messages": gone})
            self._counts.purge(queue, gone)
        return gone

    def let_go(self, queue: Queue, stored: Stored, verb: str, detail: Mapping[str, Any] | None = None) -> int:
        """Delete an unprocessed message that is in no slice; returns the number of the journal line."""
        line = self.line(verb, stored, queue, None, detail)
        self._session.run(rows.DEPART, (stored.key, line, stored.cause, stored.type))
        check_one(self._session.run(rows.DISCARD, (stored.key, queue.id)), stored)
        self._counts.depart(queue, stored.number, kept=False)
        return line

    def line(
        self, verb: str, stored: Stored, source: Queue, target: Queue | None, detail: Mapping[str, Any] | None = None
    ) -> int:
        """The next line of a message."""
        goal = None if target is None else target.id
        return self._journal.add(
            verb, message=stored.key, prior=stored.last, source=source.id, target=goal, detail=detail
        )

    # --- reading ---

    def head(self, queue: Queue) -> Stored | None:
        """The next unprocessed message of a queue."""
        row = self._session.row(_HEAD, (queue.id, queue.id))
        if row is None:
            return None
        stored, urgent = record(row[:-3]), bool(row[-3])
        passed_over = self._session.counts_arrivals and not (urgent or _is_next(stored, queue))
        if row[-2:] != (queue.id, State.UNPROCESSED) or passed_over:
            raise StoreCorrupt(why=f"the order of {queue.name} is not that of its messages. {MEND}")
        return stored

    def check_end(self, queues: Iterable[Queue], after: int = 0) -> None:
        """Raise if queues have messages after a position where their index has none.

        Counts use the same index, so damage that hides the newest messages hides them from both. They are searched
        among the newest of all messages.
        """
        by_id = {queue.id: queue for queue in queues}
        row = self._session.row(_BEHIND, (PAGE_ROWS, json.dumps(list(by_id)), after)) if by_id else None
        if row is not None:
            why = f"an index of {by_id[row[0]].name} does not lead to message {key_text(row[1])}, which is there"
            raise StoreCorrupt(why=f"{why}. {MEND}")

    def find(self, key: int) -> Stored | None:
        return self._session.one(record, _FIND, (key,))

    def shown(self, key: int) -> Stored | None:
        """A message as it is shown: one that is leased, delayed or reserved has not been processed."""
        stored = self.find(key)
        if stored is None or stored.processed is None or self.state(key) is State.PROCESSED:
            return stored
        return stored._replace(processed=None)

    def waiting(self, queue: Queue, key: int) -> Stored | None:
        """An unprocessed message of a queue; None if it has left."""
        return self._session.one(record, _WAITING, (key, queue.id))

    def find_many(self, keys: Sequence[int]) -> dict[int, Stored]:
        """The existing messages of these keys."""
        selected = self._session.rows(_FIND_MANY, (json.dumps(list(keys)),)) if keys else []
        return {row[0]: record(row) for row in selected}

    def is_reserved(self, key: int) -> bool:
        return self._session.row(_IS_IN_STATE, (key, int(State.RESERVED))) is not None

    def is_set_aside(self, key: int) -> bool:
        """Whether a message was set aside as damaged."""
        return self._session.row(_IS_IN_STATE, (key, int(State.SET_ASIDE))) is not None

    def state(self, key: int) -> State | None:
        """The state of a message; None if it is gone."""
        return self._session.one(lambda row: State(row[0]), _STATE, (key,))

    def any(self) -> bool:
        """Whether there is any message."""
        return self._session.row(_ANY) is not None

    def positions(self, queue: Queue, after: int, limit: int) -> list[int]:
        """The positions of the next unprocessed messages of a queue, after a position."""
        return [row[0] for row in self._session.rows(_POSITIONS, (queue.id, after, limit))]

    def next_of(self, queue: str, after: int, limit: int) -> list[Stored]:
        """The next unprocessed messages of a queue, which may not exist, after a position."""
        return _unprocessed(list(map(record, self._session.rows(_NEXT_OF, (queue, after, limit)))))

    def between(self, queue: Queue, after: int, last: int) -> list[Stored]:
        """The unprocessed messages of a queue between two positions, oldest first."""
        return _unprocessed(list(map(record, self._session.rows(_BETWEEN, (queue.id, after, last)))))

    def outlines(self, queue: Queue, after: int, last: int) -> list[tuple[Stored, int]]:
        """Like ``between``, with body sizes instead of bodies."""
        outlines = self._session.rows(_OUTLINES, (queue.id, after, last))
        sizes = [row[-1] for row in outlines]
        return list(zip(_unprocessed([record(row[:-1]) for row in outlines]), sizes, strict=True))

    def newest(self, queue: Queue, limit: int) -> list[Stored]:
        """The newest unprocessed messages of a queue, newest first."""
        return _keyed(list(map(record, self._session.rows(_NEWEST, (queue.id, limit)))))

    def page(self, queue: Queue, state: State, after: int, limit: int) -> list[Stored]:
        """Messages of a queue in one state, oldest first, after a position."""
        return _keyed(list(map(record, self._session.rows(_PAGE, (queue.id, int(state), after, limit)))))


def _is_next(stored: Stored, queue: Queue) -> bool:
    """Whether all earlier arrivals of a queue have left it: else one was skipped."""
    number = stored.number
    return isinstance(number, int) and number <= queue.departed + 1


def _unprocessed(messages: list[Stored]) -> list[Stored]:
    """Messages that the index calls unprocessed, filtered by the rows themselves."""
    for stored in _keyed(messages):
        if stored.processed is not None:
            why = f"message {key_text(stored.key)} is processed, and an index has it otherwise. {MEND}"
            raise StoreCorrupt(why=why)
    return messages


def _keyed(messages: list[Stored]) -> list[Stored]:
    """Messages with keys: with a damaged schema the key may be read as empty."""
    if any(not isinstance(stored.key, int) for stored in messages):
        raise StoreCorrupt(why=f"messages are read without their keys. {MEND}")
    return messages
