"""What happened to messages: shown, traced, located, and the journal by pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import postroom
from postroom.errors import ArgumentInvalid, KeyInvalid, MessageUnknown
from postroom.model.types import Field, Kind, MessageType
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_a_message_is_shown_wherever_it_is_and_its_way_is_told(small: Postroom) -> None:
    small.queues.create("q")
    sent = small.send("q", "hello")
    assert small.show(sent.key).body == "hello"
    assert small.journal.locate(sent.key) == "q"
    small.receive("q")
    assert [event.verb for event in small.trace(sent.key)] == ["put", "take"]
    assert small.trace(sent.key, causes=True)


def test_the_fields_of_a_message_are_typed_and_without_a_type_there_are_none(small: Postroom) -> None:
    small.definitions.define_type(MessageType("FEE", (Field("Payer"), Field("Fee", Kind.INT))))
    small.queues.create("q")
    small.send("q", {"Payer": "IBM", "Fee": 7}, type="FEE")
    small.send("q", "plain")
    typed, plain = small.peek("q")
    assert small.journal.fields(typed) == {"Payer": "IBM", "Fee": 7}
    with pytest.raises(ArgumentInvalid, match="has no type"):
        small.journal.fields(plain)


def test_the_journal_is_read_from_its_end_or_page_by_page(small: Postroom) -> None:
    small.queues.create("q")
    small.send_many("q", ["a", "b"])
    last = small.journal.last(2)
    assert len(last) == 2
    assert last[0].seq < last[1].seq
    every = small.journal.after(0)
    assert every[-2:] == last
    assert small.journal.after(last[-1].seq) == []
    for number in (0, -1, 1_000_001):
        with pytest.raises(ArgumentInvalid, match="1 to 1000000"):
            small.journal.last(number)


def test_a_key_that_is_none_or_of_nothing_is_refused(small: Postroom) -> None:
    for verb in (small.show, small.trace, small.journal.locate, small.journal.why):
        with pytest.raises(MessageUnknown):
            verb("00001.00001")
        with pytest.raises(KeyInvalid):
            verb("nonsense")


def test_a_sound_room_is_verified_and_has_nothing_to_mend(small: Postroom) -> None:
    small.queues.create("q")
    small.send("q", "x")
    assert small.journal.verify().differences == ()
    assert small.journal.mend().left == ()


def test_the_past_is_a_time_or_an_age(small: Postroom, tmp_path: Path) -> None:
    with pytest.raises(ArgumentInvalid, match="a datetime or a timedelta is expected"):
        small.journal.archive(cast(Any, "yesterday"), tmp_path / "archive")
    assert small.journal.archive(timedelta(days=1), tmp_path / "archive") == []
    assert small.journal.archives() == []
