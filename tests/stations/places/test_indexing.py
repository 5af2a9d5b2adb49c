"""The index of messages: by type and by fields, also those that were there before their index."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.world import NOTE, desk, network

from postroom.limits import INDEXED_CHARS_MAX
from postroom.model.message import Stored
from postroom.room import Postroom
from postroom.stations.forms.reader import parse
from postroom.stations.places import indexing
from postroom.store.tables.field_index import IndexedField

LISTED = "type LIST\n| Tags: ____ No: ___ |\nfield Tags list of string free\nfield No int free\nindex Tags\nindex No\n"
BY_TYPE, BY_TAGS, BY_NUMBER = (
    IndexedField(1, "LIST", "", "", 1),
    IndexedField(2, "LIST", "Tags", "string", 1),
    IndexedField(3, "LIST", "No", "int", 1),
)


def message(body: str) -> Stored:
    return Stored(42, "station:A", 0, None, "LIST", "json", body, b"", "{}", None, 1, 1, 1)


def test_a_message_has_one_entry_by_its_type_and_one_for_each_value() -> None:
    entries = indexing.entries([BY_TYPE, BY_TAGS, BY_NUMBER], message('{"Tags":["b","a","b"],"No":7}'))
    assert [entry.index_id for entry in entries] == [1, 2, 2, 3]
    assert [entry.value for entry in entries if entry.index_id == 2] == ["a", "b"]
    assert indexing.entries([BY_TYPE, BY_TAGS], message("{}")) == indexing.entries([BY_TYPE], message("{}"))


def test_a_long_value_is_indexed_by_its_beginning() -> None:
    (_, entry) = indexing.entries([BY_TYPE, BY_TAGS], message(f'{{"Tags":["{"x" * 5_000}"]}}'))
    assert entry.value == "x" * INDEXED_CHARS_MAX


def test_forms_say_which_indexes_they_want() -> None:
    assert indexing.wanted(parse(LISTED + NOTE, "f")) == {
        ("LIST", "Tags", "string"),
        ("LIST", "No", "int"),
        ("NOTE", "Text", "string"),
    }


@pytest.fixture
def room(url: str, tmp_path: Path) -> Postroom:
    return network(url, tmp_path, {}, {"A": "control"}, NOTE.replace("index Text\n", ""))


def test_an_index_is_filled_with_what_is_there_and_removed_when_no_form_wants_it(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "INDEX_ROWS", 3)  # several pages
    with room:
        keys = desk(room, "A").create_many("NOTE", [{"To": "x", "Text": f"t{number % 2}"} for number in range(8)])
        (form,) = parse(NOTE, "f")
        indexing.align(room.store, [form])
        assert _by_text(room) == sorted((f"t{number % 2}", key) for number, key in enumerate(keys))
        assert all(indexed_field.ready for indexed_field in room.store.read(lambda tx: tx.field_index.all()))
        indexing.align(room.store, parse(NOTE.replace("index Text\n", ""), "f"))
        assert _by_text(room) == []
        assert [
            indexed_field.field for indexed_field in room.store.read(lambda tx: tx.field_index.of_type("NOTE"))
        ] == [""]


def _by_text(room: Postroom) -> list[tuple[str, str]]:
    statement = "SELECT f.value, f.message FROM filed f JOIN filings i ON i.id = f.filing WHERE i.field = 'Text'"
    rows = room.store.read(lambda tx: tx.session.rows(statement))
    return sorted((value, f"{key // 100_000:05d}.{key % 100_000:05d}") for value, key in rows)
