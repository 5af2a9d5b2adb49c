"""The index of messages by type, and by the fields that forms index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from postroom.limits import INDEX_ROWS, INDEXED_CHARS_MAX
from postroom.model.message import Stored
from postroom.model.order import HIGHEST, sortable
from postroom.model.types import Kind, scalars
from postroom.stations.forms.form import Form
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.field_index import Entry, IndexedField, Span, key_value
from postroom.store.tables.scans import END


def add(tx: Transaction, queue: Queue, messages: Iterable[Stored]) -> None:
    """Add messages that have entered a queue."""
    tx.field_index.add(queue.id, _entries(tx, messages))


def remove(tx: Transaction, queue: Queue, messages: Iterable[Stored]) -> None:
    """Remove messages, as they were before they left a queue or were edited."""
    tx.field_index.remove_entries(queue.id, _entries(tx, messages))


def _entries(tx: Transaction, messages: Iterable[Stored]) -> list[tuple[int, Entry]]:
    known: dict[str, list[IndexedField]] = {}
    rows = []
    for stored in messages:
        type = stored.type or ""
        indexed_fields = known.get(type)
        if indexed_fields is None:
            indexed_fields = known[type] = tx.field_index.of_type(type) or [
                tx.field_index.declare(type, "", "", ready=True)
            ]
        if len(indexed_fields) == 1:  # by its type alone, as most are
            rows.append((stored.key, Entry(indexed_fields[0].id, key_value(stored.key))))
        else:
            rows += [(stored.key, entry) for entry in entries(indexed_fields, stored)]
    return rows


def entries(indexed_fields: Sequence[IndexedField], stored: Stored) -> list[Entry]:
    """The index entries of a message. Long values are cut."""
    body: Mapping[str, Any] = json.loads(stored.body) if len(indexed_fields) > 1 else {}
    entries = []
    for indexed_field in indexed_fields:
        if not indexed_field.field:
            entries.append(Entry(indexed_field.id, key_value(stored.key)))
            continue
        kind = Kind(indexed_field.kind)
        values = {indexed(sortable(kind, value)) for value in scalars(kind, body.get(indexed_field.field))}
        entries += [Entry(indexed_field.id, value) for value in sorted(values)]
    return entries


def indexed(value: str) -> str:
    return value[:INDEXED_CHARS_MAX]


# --- which indexes there are ---


def wanted(forms: Iterable[Form]) -> set[tuple[str, str, str]]:
    """Type, field and kind of each index that forms need."""
    return {
        (form.name, name, str(field.kind)) for form in forms for name in form.indexes for field in form.fields
        if field.name == name
    }  # fmt: skip


def align(store: Store, forms: Sequence[Form]) -> None:
    """Create and fill the indexes that forms need, and remove others.

    Others may write meanwhile. A crash leaves an index unfinished, and it is not used.
    """
    asked = wanted(forms)
    known = {form.name for form in forms}
    present = store.read(lambda tx: tx.field_index.all())
    missing = asked - {index[1:4] for index in present}
    stale = [index for index in present if index.field and index.type in known and index[1:4] not in asked]
    if not missing and not stale and all(index.ready for index in present):
        return

    def declare(tx: Transaction) -> list[IndexedField]:
        tx.tracking.exclude()  # whoever writes now does not know of the new index
        for index in stale:
            tx.field_index.remove(index)
        there = {index[1:4] for index in tx.field_index.all()}
        for type, field, kind in sorted(asked - there):
            if not any(index.type == type and not index.field for index in tx.field_index.of_type(type)):
                tx.field_index.declare(type, "", "", ready=True)
            tx.field_index.declare(type, field, kind, ready=False)
        return [index for index in tx.field_index.all() if not index.ready]

    for indexed_field in store.transact("index", declare):
        _fill(store, indexed_field)


def _fill(store: Store, indexed_field: IndexedField) -> None:
    """Add all stored messages to a new index; then it is ready."""

    def queues(tx: Transaction) -> list[Queue]:
        return [*tx.queues.of_kind(STATION), *tx.queues.of_kind(MAILBOX)]

    for queue in store.read(queues):
        after: str | None = ""
        while after is not None:
            start = after
            after = store.transact("index", partial(_fill_page, indexed_field, queue, start))
    store.transact("index", lambda tx: tx.field_index.set_ready(indexed_field))


def _fill_page(indexed_field: IndexedField, queue: Queue, after: str, tx: Transaction) -> str | None:
    """Add the next messages of a queue to a new index; returns the position to continue, None at the end."""
    tx.queues.locked(queue.id)  # what is read here must not change before it is in the index
    (by_key,) = [index for index in tx.field_index.of_type(indexed_field.type) if not index.field]
    span = Span(by_key.id, after, HIGHEST)
    pages = tx.field_index.search((queue.id, queue.name), span, END, limit=INDEX_ROWS)
    messages = [stored for page in pages for stored in page]
    new = [(stored.key, entry) for stored in messages for entry in entries([by_key, indexed_field], stored)]
    tx.field_index.add(queue.id, new)
    return key_value(messages[-1].key + 1) if len(messages) == INDEX_ROWS else None
