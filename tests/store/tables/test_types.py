"""Message types are definitions, found by name, and what claims one must fit it."""

from __future__ import annotations

import pytest

from postroom.errors import PostroomError, TypeUnknown
from postroom.model.message import Draft
from postroom.model.types import Field, Kind, MessageType
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.types import all_types, check_typed, define_type, find_type

NOTE = MessageType("NOTE", (Field("No", Kind.INT, required=True), Field("Words", Kind.STRING, many=True)))


def test_a_type_is_found_as_it_was_defined(tx: Transaction) -> None:
    version = define_type(tx, NOTE)
    assert define_type(tx, NOTE) == version, "the same again is no new version"
    assert find_type(tx, "NOTE") == NOTE
    assert all_types(tx) == {"NOTE": NOTE}
    with pytest.raises(TypeUnknown, match="NOTE"):
        find_type(tx, "NOTES")


def test_a_body_that_does_not_fit_its_type_is_refused(tx: Transaction) -> None:
    define_type(tx, NOTE)
    check_typed(tx, Draft.of({"No": 1, "Words": ["a"]}, type="NOTE"))
    with pytest.raises(PostroomError):
        check_typed(tx, Draft.of({"No": "x"}, type="NOTE"))
