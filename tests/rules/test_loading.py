"""Rule programs as a language of a room."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import FileUnreadable, ProgramInvalid, SchemaMalformed
from postroom.rules.language.definitions import QueueDefinition
from postroom.rules.loading import RuleLanguage

SCHEMA = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="order"/></xs:schema>'
PROGRAM = """create queue a kind basic mode persistent schema order.xsd
create queue b kind basic mode persistent
create rule r for a if (/order) then do enqueue . into b
"""


def written(folder: Path, program: str = PROGRAM, schema: str | None = SCHEMA) -> Path:
    if schema is not None:
        (folder / "order.xsd").write_text(schema)
    (folder / "shop.demaq").write_text(program)
    return folder / "shop.demaq"


def test_a_schema_is_read_with_the_program_that_names_it(tmp_path: Path) -> None:
    read = RuleLanguage().read([written(tmp_path)])
    (queue,) = (each for each in read.definitions if isinstance(each, QueueDefinition) and each.name == "a")
    assert queue.schema_text == SCHEMA
    assert read.count == len(read.definitions)


def test_a_schema_that_is_not_there_or_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match=r"order\.xsd"):
        RuleLanguage().read([written(tmp_path, schema=None)])
    with pytest.raises(SchemaMalformed, match=r"order\.xsd"):
        RuleLanguage().read([written(tmp_path, schema="<xs:no/>")])


def test_a_program_is_checked_without_a_room(tmp_path: Path) -> None:
    RuleLanguage().read([written(tmp_path)]).check(None, alone=True)
    bad = RuleLanguage().read([written(tmp_path, PROGRAM.replace("into b", "into nowhere"))])
    with pytest.raises(ProgramInvalid, match="nowhere"):
        bad.check(None, alone=True)


def test_what_is_printed_has_a_file_for_each_module_and_schema(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        assert room.store.read(RuleLanguage().printed) == {}
        room.load(written(tmp_path))
        printed = room.store.read(RuleLanguage().printed)
    assert sorted(printed) == ["a.xsd", "shop.demaq"]
    assert printed["a.xsd"].decode() == SCHEMA
    assert b"schema a.xsd" in printed["shop.demaq"]
