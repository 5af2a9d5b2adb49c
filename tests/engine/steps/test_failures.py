"""Errors as messages: one shape, and a queue that is always there."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure, error_body, error_message, error_queue
from postroom.errors import SchemaInvalid
from postroom.limits import BODY_BYTES_MAX
from postroom.model.schema import check_schema
from postroom.room import Postroom
from postroom.store.kernel.queues import SYSTEM_ERRORS

FAILURE = Failure("application", "PR0001", "a <b> & c", "rule r")


def test_an_error_says_what_went_wrong_and_has_the_message() -> None:
    body = error_body(FAILURE, "q", 100_001, Document(1, "xml", None, "<?xml version='1.0'?><m>1</m>"))
    told = ElementTree.fromstring(body)
    assert [told.findtext(name) for name in ("class", "code", "description", "rule", "queue")] == [
        "application",
        "PR0001",
        "a <b> & c",
        "rule r",
        "q",
    ]
    assert told.findtext("initialMessage/m") == "1"


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_is_no_xml_is_there_as_text(form: str) -> None:
    told = ElementTree.fromstring(error_body(FAILURE, "q", 1, Document(1, form, None, '{"a": "<"}')))
    assert told.findtext("initialMessage") == '{"a": "<"}'


def test_a_message_that_is_too_long_is_named() -> None:
    body = error_body(FAILURE, "q", 100_001, Document(1, "text", None, "x" * BODY_BYTES_MAX))
    assert len(body) < 1_000
    assert 'key="00001.00001" omitted="true"' in body


def test_an_error_message_counts_as_a_failure() -> None:
    message = error_message(FAILURE, "q", 1, Document(1, "text", None, "x"))
    assert (message.queue, message.failed, message.rule) == (SYSTEM_ERRORS, True, "rule r")


def test_the_queue_for_errors_is_made_once(room: Postroom) -> None:
    first = room.store.transact("send", error_queue)
    assert room.store.transact("send", error_queue).id == first.id


SCHEMA = (Path(__file__).parents[3] / "docs" / "reference" / "error.xsd").read_text()


@pytest.mark.parametrize("failure", [
    Failure("application", "FORG0001", "a < b", "r", place="p.demaq:1:2"),
    Failure("system", "PR0005", "too long", None, ("r", "s")),
    Failure("network", "x", "y"),
])  # fmt: skip
def test_every_error_message_fits_its_schema(failure: Failure) -> None:
    for document in (
        Document(0, "xml", None, "<a xmlns='urn:x'>t<b/></a>"),
        Document(0, "text", None, "a & b"),
        Document(0, "xml", None, f"<a>{'x' * BODY_BYTES_MAX}</a>"),
    ):
        check_schema(SCHEMA, error_body(failure, "q", 1, document))
    with pytest.raises(SchemaInvalid):
        check_schema(SCHEMA, error_body(failure, "q", 1, document).replace("</class>", "</class><odd/>"))
