"""Letters: forms that are filled in and put straight into a mailbox, in a commit that others share.

A draft of a letter has the fields as they are given, and among its properties who has written it.
"""

from __future__ import annotations

import json

from postroom.errors import StationUnknown, TypeUnknown
from postroom.model.body import check_text
from postroom.model.definitions import nearest
from postroom.model.message import Draft
from postroom.stations.forms.apart import created_apart
from postroom.stations.forms.catalog import Forms
from postroom.stations.mail.mail import queue_of
from postroom.stations.places import indexing as filing
from postroom.stations.places.names import mailbox
from postroom.stations.places.postmarks import Marks, properties
from postroom.store.kernel.queues import MAILBOX, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES

WRITER = "sender"


def box(tx: Transaction, station: str) -> Queue:
    """The mailbox of a station, locked."""
    if tx.nodes.home(station) is None:
        raise StationUnknown(station=station, nearest=nearest(station, tx.nodes.stations()))
    tx.tracking.enter(MAILBOXES)
    return queue_of(tx, mailbox(station), MAILBOX)


def check(tx: Transaction, forms: Forms, draft: Draft) -> None:
    """Refuse a letter that its form does not take."""
    _body(tx, forms, draft, 0)


def post(tx: Transaction, forms: Forms, target: Queue, draft: Draft, cause: int | None) -> int:
    """Put a letter into a mailbox; answers with its key."""
    key = tx.keys.take(1)[0]
    body = _body(tx, forms, draft, key)
    check_text(body)
    said = json.loads(draft.properties)
    edition = forms.named(tx, draft.type or "")
    marks = properties(Marks(edition.version, said.get(WRITER), sphere=said.get("sphere")))
    made = tx.transfers.create(target, [(key, edition.form.name, marks, body)], cause)
    filing.file(tx, target, made)
    tx.wake()
    return key


def _body(tx: Transaction, forms: Forms, draft: Draft, key: int) -> str:
    if draft.type is None:
        raise TypeUnknown(type="", nearest="; a letter is a form: name its type")
    writer = str(json.loads(draft.properties).get(WRITER, ""))
    return created_apart(forms.named(tx, draft.type), json.loads(draft.body), key, writer, tx.now)
