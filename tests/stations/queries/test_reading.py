"""Finding messages in one store: which index is used, and what the database tests on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.world import NOTE, desk, network

from postroom.model.types import Kind
from postroom.stations.forms.reader import parse
from postroom.stations.queries.conditions import sketch
from postroom.stations.queries.reading import Asked, Plan, TooMany, find, form_version, route
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.field_index import IndexedField

(FORM,) = parse(NOTE, "f")
BY_TYPE, BY_TEXT = IndexedField(1, "NOTE", "", "", 1), IndexedField(2, "NOTE", "Text", "string", 1)


def plan(**fields: str) -> Plan:
    kinds = {field.name: field.kind for field in FORM.fields}
    asked = sketch(FORM, fields)
    return Plan("NOTE", tuple(Asked(name, kinds[name], True, conditions) for name, conditions in asked.items()))


def test_the_narrowest_index_is_used_and_the_other_fields_are_tested() -> None:
    way = route([BY_TYPE, BY_TEXT], plan(Text="abc", Count=">3"))
    assert way is not None
    assert (way.by, len(way.spans), way.spans[0].low, way.spans[0].high) == (BY_TEXT, 1, "abc", "abc")
    assert [[test.field for test in tests] for tests in way.tests] == [["Count"]]


@pytest.mark.parametrize(
    ("fields", "by"),
    [({"Text": "*abc"}, BY_TYPE), ({"Text": "<> x"}, BY_TYPE), ({"Text": "a*"}, BY_TEXT), ({"To": "x"}, BY_TYPE)],
)
def test_an_index_that_leaves_everything_is_not_used(fields: dict[str, str], by: IndexedField) -> None:
    way = route([BY_TYPE, BY_TEXT], plan(**fields))
    assert way is not None
    assert way.by == by


def test_an_index_that_is_not_filled_yet_is_not_used() -> None:
    way = route([BY_TYPE, BY_TEXT._replace(ready=0)], plan(Text="abc"))
    assert way is not None
    assert way.by == BY_TYPE
    assert route([], plan()) is None, "there was never a message of the type"


def test_a_body_that_cannot_be_read_may_match() -> None:
    assert plan(Text="abc").matches('{"Text":"abc"}')
    assert not plan(Text="abc").matches('{"Text":"x"}')
    assert plan(Text="abc").matches("damaged")
    assert plan().matches("anything")


def test_messages_are_found_once_and_not_more_than_someone_wants_to_read(url: str, tmp_path: Path) -> None:
    with network(url, tmp_path, {}, {"A": "control"}) as room:
        texts = ["abc", "abd", "x", "abc"]
        keys = desk(room, "A").create_many("NOTE", [{"To": "x", "Text": text} for text in texts])

        def found(tx: Transaction, wanted: Plan, most: int = 100) -> list[str]:
            queue = tx.queues.named_to_read("station:A")
            assert queue is not None
            numbers = sorted(stored.key for stored in find(tx, wanted, [queue], most=most))
            return [f"{number // 100_000:05d}.{number % 100_000:05d}" for number in numbers]

        two = plan(Text='"abc" ab*')
        assert room.store.read(lambda tx: found(tx, two)) == [keys[0], keys[1], keys[3]]
        assert room.store.read(lambda tx: found(tx, plan(Count='= ""'))) == keys
        with pytest.raises(TooMany):
            room.store.read(lambda tx: found(tx, plan(), 3))


def test_the_version_of_a_form_is_in_the_properties() -> None:
    assert form_version('{"form":12,"from":"A"}') == 12
    assert Kind.INT in Kind
