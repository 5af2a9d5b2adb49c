"""Sources: terminals that messages come from, enabled and disabled by their password."""

from __future__ import annotations

import pytest

from postroom.errors import (
    NameInvalid,
    NameTaken,
    PasswordMissing,
    PasswordWrong,
    QueueUnknown,
    SourceHeld,
    SourceUnknown,
)
from postroom.room import Postroom


@pytest.fixture
def terminal(room: Postroom) -> Postroom:
    room.queues.create("in")
    room.queues.create_source("TERM-1", password="SECRET", input="in")
    return room


def test_a_message_says_which_source_it_came_from(terminal: Postroom) -> None:
    terminal.send("in", "hello", source="TERM-1")
    terminal.queues.send_segments("in", ["a", "b"], source="TERM-1")
    assert [message.properties["source"] for message in terminal.peek("in")] == ["TERM-1", "TERM-1"]


def test_a_disabled_source_sends_nothing_until_it_is_enabled(terminal: Postroom) -> None:
    assert terminal.queues.disable_source("TERM-1", "SECRET").status == "00"
    assert terminal.queues.disable_source("TERM-1", "SECRET").status == "15"
    with pytest.raises(SourceHeld):
        terminal.send("in", "hello", source="TERM-1")
    assert [one.enabled for one in terminal.queues.sources()] == [False]
    terminal.send("in", "from another")
    assert terminal.queues.enable_source("TERM-1", lambda: "SECRET").status == "00"
    assert terminal.send("in", "hello", source="TERM-1").status == "00"
    assert terminal.journal.verify().differences == ()


def test_the_password_is_checked_before_already(terminal: Postroom) -> None:
    for disable in (terminal.queues.disable_source, terminal.queues.enable_source):
        with pytest.raises(PasswordWrong):
            disable("TERM-1", "GUESS")
    assert terminal.queues.find_source("TERM-1").disabled == 0
    terminal.queues.create_source("OPEN")
    with pytest.raises(PasswordMissing):
        terminal.queues.disable_source("OPEN", "X")


def test_an_unknown_source_is_status_21_and_changes_nothing(terminal: Postroom) -> None:
    for verb in (terminal.queues.disable_source, terminal.queues.find_source, terminal.queues.remove_source):
        with pytest.raises(SourceUnknown) as refused:
            verb("NOBODY")
        assert refused.value.status == "21"
    with pytest.raises(SourceUnknown):
        terminal.send("in", "hello", source="NOBODY")
    assert terminal.count("in").queues[0].unprocessed == 0


def test_a_source_has_a_name_of_its_own_and_queues_that_are_there(terminal: Postroom) -> None:
    with pytest.raises(NameTaken):
        terminal.queues.create_source("TERM-1")
    with pytest.raises(NameInvalid):
        terminal.queues.create_source("A-NAME-THAT-IS-TOO-LONG")
    with pytest.raises(QueueUnknown):
        terminal.queues.create_source("TERM-2", output="nowhere")
    terminal.queues.remove_source("TERM-1")
    terminal.queues.create_source("TERM-1")
    assert [one.as_dict()["name"] for one in terminal.queues.sources()] == ["TERM-1"]
