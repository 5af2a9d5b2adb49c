"""Fills in forms and puts them directly into a mailbox, in the caller's transaction.

The body of the draft has the given fields; its property ``sender`` is the sending station.
"""

from __future__ import annotations

import json

from postroom.errors import StationUnknown, TypeUnknown
from postroom.model.body import check_text
from postroom.model.definitions import nearest
from postroom.model.message import Draft
from postroom.stations.forms.catalog import Forms
from postroom.stations.forms.filling_process import created_apart
from postroom.stations.places import desk
from postroom.stations.places.postmarks import Postmarks, properties
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction

SENDER = "sender"


def box(tx: Transaction, station: str) -> Queue:
    """The mailbox of a station, locked for a change."""
    if tx.nodes.home(station) is None:
        raise StationUnknown(station=station, nearest=nearest(station, tx.nodes.stations()))
    return desk.mailbox_of(tx, station)


def check(tx: Transaction, forms: Forms, draft: Draft) -> None:
    """Raise for fields that the form does not accept."""
    _body(tx, forms, draft, 0)


def post(tx: Transaction, forms: Forms, target: Queue, draft: Draft, cause: int | None) -> int:
    """Fill in the form and put it into a mailbox; returns its key."""
    key = tx.keys.take(1)[0]
    body = _body(tx, forms, draft, key)
    check_text(body)
    given = json.loads(draft.properties)
    edition = forms.named(tx, draft.type or "")
    written = properties(Postmarks(edition.version, given.get(SENDER), sphere=given.get("sphere")))
    desk.put(tx, target, [(key, edition.form.name, written, body)], cause)
    return key


def _body(tx: Transaction, forms: Forms, draft: Draft, key: int) -> str:
    if draft.type is None:
        raise TypeUnknown(type="", nearest="; mail is a form: name its type")
    sender = str(json.loads(draft.properties).get(SENDER, ""))
    return created_apart(forms.named(tx, draft.type), json.loads(draft.body), key, sender, tx.now)
