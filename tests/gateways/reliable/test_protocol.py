"""The words of reliable messaging are read as they are written, and what is none is none."""

from __future__ import annotations

import pytest

from postroom.gateways.reliable import protocol
from postroom.model.soap import read_envelope, written


def test_acknowledgements_are_read_as_they_are_written() -> None:
    said = protocol.acknowledgement("urn:a&b", [(1, 3), (5, 5)], final=True)
    envelope = read_envelope(written("1.2", [said], ""))
    assert protocol.acknowledged(envelope, "urn:a&b") == [(1, 3), (5, 5)]
    assert protocol.acknowledged(envelope, "urn:other") == []
    assert [protocol.within(n, [(1, 3), (5, 5)]) for n in range(7)] == [False, True, True, True, False, True, False]


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1" * 30, "٣", "1.5", None])
def test_what_is_no_number_of_a_message_is_none(text: str | None) -> None:
    assert protocol.number_of(text) is None


def test_bodies_are_known_by_their_names() -> None:
    for body, name in (
        (protocol.create_sequence(), "CreateSequence"),
        (protocol.ended("CloseSequence", "i"), "CloseSequenceResponse"),
    ):
        assert protocol.body_name(read_envelope(written("1.1", [], body))) == name
    assert protocol.body_name(read_envelope(written("1.1", [], "<order/>"))) is None
    inverted = protocol.acknowledgement("i", [(1, 3)], final=False).replace('Lower="1"', 'Lower="9"')
    assert protocol.acknowledged(read_envelope(written("1.1", [inverted], "")), "i") == []
