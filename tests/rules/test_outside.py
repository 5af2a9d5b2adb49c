"""Messages from outside enter with what the system knows, and errors climb the ladder of error queues."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure
from postroom.errors import EntryRefused
from postroom.limits import ERROR_DEPTH_MAX
from postroom.model.message import Draft
from postroom.store.kernel.queues import SYSTEM_ERRORS
from postroom.store.kernel.transaction import Transaction

PROGRAM = """
create module m errorqueue moduleErrors
create system errorqueue systemErrors
create queue a kind basic mode persistent errorqueue queueErrors
create queue queueErrors kind basic mode persistent schema no.xsd
create queue moduleErrors kind basic mode persistent
create queue systemErrors kind basic mode persistent
create property code as xs:string queue moduleErrors value /error/code
create property n as xs:integer queue a value /x
create rule r for a errorqueue systemErrors if (/no) then do enqueue . into a
"""
SCHEMA = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="no"/></xs:schema>'


@pytest.mark.parametrize(("properties", "queue"), [
    ({}, "moduleErrors"), ({"rule": "r"}, "systemErrors"), ({"rule": 7}, "moduleErrors"),
    ({"errors": ERROR_DEPTH_MAX}, SYSTEM_ERRORS), ({"errors": "many"}, "moduleErrors"),
])  # fmt: skip
def test_an_error_goes_to_the_first_queue_that_takes_it(
    load: Load, tmp_path: Path, properties: dict[str, object], queue: str
) -> None:
    """The schema of the queue's own error queue refuses it."""
    (tmp_path / "no.xsd").write_text(SCHEMA)
    room = load(PROGRAM)
    outside = room._parts.outside

    def work(tx: Transaction) -> tuple[str, str]:
        failure = Failure("network", "refused", "why")
        put = outside.failed(tx, failure, "a", Document(0, "text", None, "x"), properties)
        return put.queue.name, put.draft.properties

    found, said = room.store.transact("send", work)
    assert found == queue
    assert ('"code":"refused"' in said) == (queue == "moduleErrors"), "with the properties of its queue"


def test_messages_enter_together_and_one_that_does_not_fit_is_refused_alone(load: Load, tmp_path: Path) -> None:
    (tmp_path / "no.xsd").write_text(SCHEMA)
    room = load(PROGRAM)
    drafts = [Draft.of(f"<x>{text}</x>", "xml") for text in ("1", "two", "3")]

    def work(tx: Transaction) -> list[str]:
        queue = tx.queues.named("a")
        assert queue is not None
        found = room._parts.outside.entered(tx, queue, [(draft, {"sender": "s"}) for draft in drafts])
        return [each.code if isinstance(each, EntryRefused) else each.draft.properties for each in found]

    assert room.store.transact("send", work) == ['{"n":1,"sender":"s"}', "entry-refused", '{"n":3,"sender":"s"}']
