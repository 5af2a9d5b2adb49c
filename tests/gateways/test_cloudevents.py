"""Attributes of events in headers: what section 3.1.3.2 of the HTTP binding asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.gateways.cloudevents import decoded, encoded, reference


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("euro%20%e2%82%ac", "euro €"),
        ('"in quotes"', "in quotes"),
        (r'"a \"quoted\" \\ word"', 'a "quoted" \\ word'),
        ("%41%2F", "A/"),
        ("%2541", "%41"),  # one round
        ("100%", "100%"),
        ("€".encode().decode("latin-1"), "€"),
    ],
)
def test_a_header_is_read_once_and_whole(header: str, value: str) -> None:
    assert decoded("ce-id", header) == value


@pytest.mark.parametrize("header", ["%C0%A0", "%FF", "%E2%82", "\xe4"])
def test_what_is_no_text_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="this is no CloudEvent: ce-id: it is not percent-encoded UTF-8"):
        decoded("ce-id", header)


def test_the_source_of_an_event_is_a_reference() -> None:
    assert reference("/queues/große orders") == "/queues/gro%C3%9Fe%20orders"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_is_written_is_read_back_and_is_printable(value: str) -> None:
    header = encoded(value)
    assert decoded("ce-id", header) == value
    assert all("\x21" <= letter <= "\x7e" and letter != '"' for letter in header)
