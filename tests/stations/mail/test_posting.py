"""A form is filled in and put straight into a mailbox, in a commit that others share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stations.world import desk, network

from postroom.errors import FieldRefused, StationUnknown, TypeUnknown
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.stations.mail import posting
from postroom.store.kernel.transaction import Transaction

DRAFT = Draft('{"To":"B","Text":"hello"}', "json", "NOTE", '{"sender":"A"}')


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with network(url, tmp_path, {}, {"A": "control", "B": "control"}) as opened:
        yield opened


def test_a_form_is_in_the_mailbox_and_names_its_sender_and_cause(room: Postroom) -> None:
    cause = desk(room, "A").create("NOTE", To="x")
    number = int(cause.replace(".", ""))

    def work(tx: Transaction) -> int:
        box = posting.box(tx, "B")
        posting.check(tx, room._parts.network.forms, DRAFT)
        return posting.post(tx, room._parts.network.forms, box, DRAFT, number)

    room.store.transact("sphere-send", work)
    (mail,) = desk(room, "B").mail()
    assert mail.type == "NOTE"
    shown = room.show(mail.key)
    assert (shown.queue, shown.cause, shown.properties["from"]) == ("mailbox:B", cause, "A")
    assert shown.value == {"To": "B", "Text": "hello", "KEY": mail.key}
    assert desk(room, "B").get() == [mail.key]
    assert desk(room, "B").query("NOTE", Text="hello")[0].key == mail.key, "it is in the index"
    assert room.journal.verify().differences == ()


@pytest.mark.parametrize(
    ("draft", "error"),
    [
        (DRAFT._replace(type=None), TypeUnknown),
        (DRAFT._replace(type="NOTES"), TypeUnknown),
        (DRAFT._replace(body='{"Text":"hello"}'), FieldRefused),
    ],
)
def test_what_is_no_form_is_refused(room: Postroom, draft: Draft, error: type[Exception]) -> None:
    with pytest.raises(error):
        room.store.read(lambda tx: posting.check(tx, room._parts.network.forms, draft))


def test_a_station_that_is_not_there_has_no_mailbox(room: Postroom) -> None:
    with pytest.raises(StationUnknown, match="C"):
        room.store.transact("sphere-send", lambda tx: posting.box(tx, "C"))
