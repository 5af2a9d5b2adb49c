"""A dry run: what proposed counters would do with the waiting messages. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from postroom.engine.steps.effects import Document, Enqueue
from postroom.engine.steps.failures import error_message
from postroom.engine.steps.tryout import Tried, begins, unsent
from postroom.errors import BodyError
from postroom.limits import PAGE_ROWS
from postroom.model.key import key_text
from postroom.model.message import NO_PROPERTIES, Draft, Stored
from postroom.stations.counters.definitions import Kept
from postroom.stations.counters.definitions import kept as in_force
from postroom.stations.counters.stage import failure_of, fields_of
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.filling_process import created_apart
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.transaction import Transaction


def tried(
    store: Store, proposed: Sequence[Kept], forms: Mapping[str, Edition], since: datetime | None, admit: Admit
) -> Iterator[Tried]:
    """Every waiting message of a proposed counter, in order."""
    first = begins(since)
    for kept in proposed:
        edition = forms.get(kept.counter.type or "")
        after: int | None = 0
        while after is not None:
            some, after = store.read(partial(_some, kept, edition, admit, after, first))
            yield from some


def tried_alone(tx: Transaction, forms: Forms, queue: str, draft: Draft, admit: Admit) -> Tried | None:
    """What the counter in force would do with a message if it were sent now; None if none takes from the queue."""
    for kept in in_force(tx):
        if kept.source == queue:
            edition = None if kept.counter.type is None else forms.named(tx, kept.counter.type)
            return _tried(tx, kept, edition, admit, unsent(tx, queue, draft))
    return None


def _some(
    kept: Kept, edition: Edition | None, admit: Admit, after: int, first: int, tx: Transaction
) -> tuple[list[Tried], int | None]:
    """The next results, and the position of the last one; None at the end."""
    source = tx.queues.named_to_read(kept.source)
    page = [] if source is None else tx.messages.page(source, State.UNPROCESSED, after, PAGE_ROWS)
    tried = [_tried(tx, kept, edition, admit, stored) for stored in page if stored.sound and stored.created >= first]
    return tried, page[-1].position if page else None


def _tried(tx: Transaction, kept: Kept, edition: Edition | None, admit: Admit, stored: Stored) -> Tried:
    try:
        action = _given(tx, kept, stored, admit) if edition is None else _taken(tx, kept, stored, edition)
    except BodyError as refusal:
        document = Document(stored.key, stored.format, stored.type, stored.body)
        action = error_message(failure_of(kept.counter, refusal), stored.queue, stored.key, document)
    return Tried(key_text(stored.key), stored.queue, (action,))


def _taken(tx: Transaction, kept: Kept, stored: Stored, edition: Edition) -> Enqueue:
    body = created_apart(edition, fields_of(stored, edition.form), 0, kept.counter.station, tx.now)
    return Enqueue(kept.counter.name, kept.goal, "json", edition.form.name, NO_PROPERTIES, body)


def _given(tx: Transaction, kept: Kept, stored: Stored, admit: Admit) -> Enqueue:
    goal = tx.queues.named_to_read(kept.goal)
    draft = Draft(stored.body, stored.format, stored.type, NO_PROPERTIES)
    if goal is not None and goal.admission:
        (put,) = admit(tx, goal, [draft])
        draft = put.draft
    return Enqueue(kept.counter.name, kept.goal, draft.format, draft.type, draft.properties, draft.body)
