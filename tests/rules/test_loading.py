"""Rule programs as a language of a room."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import EntryRefused, ProgramInvalid, SchemaMalformed
from postroom.limits import SCHEMA_FILES_MAX
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
    with pytest.raises(ProgramInvalid, match=r"shop\.demaq:1:1: a: cannot read .*order\.xsd"):
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


XSD = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
ORDER = f"""<xs:schema {XSD} xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:include schemaLocation="types/money.xsd"/><xs:import namespace="urn:a" schemaLocation='address.xsd'/>
  <xs:element name="order"><xs:complexType><xs:sequence><xs:element name="price" type="t:money"/>
  <xs:element ref="a:street" xmlns:a="urn:a"/></xs:sequence></xs:complexType></xs:element></xs:schema>"""
MONEY = f"""<xs:schema {XSD}><xs:include schemaLocation="../deep.xsd"/>
  <xs:simpleType name="money"><xs:restriction base="amount"><xs:minInclusive value="0"/></xs:restriction>
  </xs:simpleType></xs:schema>"""
DEEP = f"""<xs:schema {XSD}><xs:include schemaLocation="types/money.xsd"/>
  <xs:simpleType name="amount"><xs:restriction base="xs:decimal"/></xs:simpleType></xs:schema>"""
ADDRESS = f'<xs:schema {XSD} targetNamespace="urn:a"><xs:element name="street" type="xs:string"/></xs:schema>'


def included(folder: Path) -> Path:
    (folder / "types").mkdir()
    (folder / "types" / "money.xsd").write_text(MONEY)
    (folder / "deep.xsd").write_text(DEEP)
    (folder / "address.xsd").write_text(ADDRESS)
    return written(folder, schema=ORDER)


def order(price: str) -> str:
    return f'<order xmlns="urn:t"><price>{price}</price><street xmlns="urn:a">x</street></order>'


def test_a_schema_has_with_it_what_it_includes(tmp_path: Path) -> None:
    """One without a namespace takes that of the including one; two include each other."""
    with postroom.open(tmp_path / "room.db") as room:
        room.load(included(tmp_path))
        for file in (tmp_path / "deep.xsd", tmp_path / "address.xsd", tmp_path / "types" / "money.xsd"):
            file.unlink()
        room.send("a", order("1.50"), format="xml")
        with pytest.raises(EntryRefused, match="price"):
            room.send("a", order("-1"), format="xml")
        printed = room.store.read(RuleLanguage().printed)
        assert sorted(printed) == ["a-address.xsd", "a-deep.xsd", "a-types-money.xsd", "a.xsd", "shop.demaq"]
        for name, text in printed.items():
            (tmp_path / name).write_bytes(text)
        room.load(tmp_path / "shop.demaq")
        with pytest.raises(EntryRefused, match="price"):
            room.send("a", order("-1"), format="xml")
        assert room.store.read(RuleLanguage().printed).keys() == {
            *("a-a-address.xsd", "a-a-deep.xsd", "a-a-types-money.xsd", "a.xsd", "shop.demaq"),
        }


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("../money.xsd", "of another file"),
        ("types/../../money.xsd", "of another file"),
        ("/etc/money.xsd", "of another file"),
        ("file:///etc/money.xsd", "of another file"),
        ("http://127.0.0.1:9/money.xsd", "of another file"),
        ("\\\\host\\money.xsd", "of another file"),
        ("", "of another file"),
        ("nowhere.xsd", "nowhere.xsd"),
    ],
)
def test_a_schema_includes_only_what_is_beside_it(tmp_path: Path, location: str, why: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "money.xsd").write_text(MONEY)
    schema = f'<xs:schema {XSD}><xs:include schemaLocation="{location}"/><xs:element name="order"/></xs:schema>'
    with pytest.raises((SchemaMalformed, ProgramInvalid)) as refusal:
        RuleLanguage().read([written(tmp_path / "sub", schema=schema)])
    assert why in str(refusal.value)


def test_a_redefinition_is_refused_and_so_are_too_many_files(tmp_path: Path) -> None:
    (tmp_path / "x.xsd").write_text(ADDRESS)
    schema = f'<xs:schema {XSD}><xs:redefine schemaLocation="x.xsd"/><xs:element name="order"/></xs:schema>'
    with pytest.raises(SchemaMalformed, match="xs:redefine of another file"):
        RuleLanguage().read([written(tmp_path, schema=schema)])
    for number in range(SCHEMA_FILES_MAX + 1):
        text = f'<xs:schema {XSD}><xs:include schemaLocation="{number + 1}.xsd"/></xs:schema>'
        (tmp_path / f"{number}.xsd").write_text(text)
    schema = f'<xs:schema {XSD}><xs:include schemaLocation="0.xsd"/><xs:element name="order"/></xs:schema>'
    with pytest.raises(SchemaMalformed, match=f"more than {SCHEMA_FILES_MAX} files"):
        RuleLanguage().read([written(tmp_path, schema=schema)])
