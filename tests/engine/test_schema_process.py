"""Schemas in a process apart: one that takes too long refuses its message or its load, and nobody else waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.test_poison import allow
from tests.mixture.test_isolation import others

import postroom
from postroom.engine import schema_process
from postroom.engine.schema_process import SchemaTooSlow, check_bounded, check_interface, compile_bounded, is_quick
from postroom.errors import EntryRefused, SchemaInvalid, SchemaMalformed
from postroom.model.wsdl import Unusable, gathered_wsdl
from postroom.room import Postroom
from postroom.rules.evaluation.xquery_process import BoundedXQuery

QUEUES = "".join(f"create queue {name} kind basic mode persistent {{{name}}}\n" for name in "ab")
WSDL = Path(__file__).parents[1] / "gateways/soap/supplier.wsdl"


def schema(inside: str) -> str:
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{inside}</xs:schema>'


def of_elements(type: str) -> str:
    many = f'<xs:element name="a" maxOccurs="unbounded">{type}</xs:element>'
    return schema(
        f'<xs:element name="r"><xs:complexType><xs:sequence>{many}</xs:sequence></xs:complexType></xs:element>'
    )


def pattern(text: str) -> str:
    return of_elements(
        f'<xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="{text}"/></xs:restriction></xs:simpleType>'
    )


def groups(levels: int) -> str:
    """Each of them has the one before it twice."""
    first = '<xs:group name="g0"><xs:sequence><xs:element name="a"/></xs:sequence></xs:group>'
    twice = "".join(
        f'<xs:group name="g{number}"><xs:sequence>{_reference(number - 1) * 2}</xs:sequence></xs:group>'
        for number in range(1, levels + 1)
    )
    top = f'<xs:element name="r"><xs:complexType><xs:group ref="g{levels}"/></xs:complexType></xs:element>'
    return schema(first + twice + top)


def _reference(number: int) -> str:
    return f'<xs:group ref="g{number}"/>'


def counted(times: int) -> str:
    inner = f'<xs:element name="a" maxOccurs="{times}"/>'
    for _ in range(3):
        inner = f'<xs:sequence maxOccurs="{times}">{inner}</xs:sequence>'
    return schema(f'<xs:element name="r"><xs:complexType>{inner}</xs:complexType></xs:element>')


SLOW = [
    (pattern("x*x*x*x*x*x*y"), f"<r>{('<a>' + 'x' * 100 + '</a>') * 100}</r>"),
    (counted(100), f"<r>{'<a/>' * 3000}<b/></r>"),
]
PLAIN = pattern("1").replace("xs:pattern", "xs:enumeration")


@pytest.mark.parametrize(("text", "body"), SLOW, ids=["pattern", "counts"])
def test_a_message_that_takes_too_long_to_be_compared_is_given_up(text: str, body: str) -> None:
    with pytest.raises(SchemaTooSlow, match=r"the schema exceeded the limit of 0\.2 seconds|the memory limit"):
        check_bounded(text, body, 0.2)
    check_bounded(pattern("x*y"), "<r><a>xxy</a></r>")  # and the next one is answered
    with pytest.raises(SchemaInvalid, match=r"line 1: Element 'a'.*not accepted by the pattern"):
        check_bounded(pattern("x*y"), "<r><a>xxz</a></r>")


@pytest.mark.parametrize(
    ("text", "body", "quick"),
    [
        (PLAIN, "<r><a>1</a></r>", True),
        (PLAIN, f"<r>{'<a>1</a>' * 400_000}</r>", False),
        (PLAIN, None, True),
        (pattern("x"), "<r/>", False),
        (groups(2), "<r/>", False),
        (counted(2), "<r/>", False),
    ],
)
def test_only_what_is_quick_is_compared_where_others_wait(text: str, body: str | None, quick: bool) -> None:
    assert is_quick(text, body) is quick


def test_a_schema_that_takes_too_long_to_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema_process, "EVALUATION_SECONDS", 1.0)
        with pytest.raises(SchemaMalformed, match=r"big\.xsd is not .*: the schema exceeded the"):
            compile_bounded(groups(40), "big.xsd")
    with pytest.raises(SchemaMalformed, match=r"bad\.xsd"):
        compile_bounded(schema('<xs:element name="r" type="none"/>'), "bad.xsd")
    compile_bounded(groups(3), "small.xsd")


def test_an_interface_whose_types_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wsdl(xsd: str) -> str:
        return gathered_wsdl(WSDL.read_text(), WSDL.name, lambda beside: xsd)

    xsd = (WSDL.parent / "supplier.xsd").read_text()
    check_interface(wsdl(xsd), "CapacityRequestPort")
    inside = groups(40).split(">", 1)[1].replace('ref="g', 'ref="t:g')
    slow = xsd.replace("<xs:schema ", '<xs:schema xmlns:t="urn:example:types" ').replace("</xs:schema>", inside)
    monkeypatch.setattr(schema_process, "EVALUATION_SECONDS", 1.0)
    with pytest.raises(Unusable, match="the types of the interface: the schema exceeded the"):
        check_interface(wsdl(slow), "CapacityRequestPort")


def test_a_message_that_its_schema_never_ends_with_is_refused_and_keeps_no_writer_waiting(
    room: Postroom, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, body = SLOW[0]
    (tmp_path / "s.xsd").write_text(text)
    (tmp_path / "p.demaq").write_text(QUEUES.format(a="schema s.xsd", b=""))
    room.load(tmp_path / "p.demaq")
    room.send("a", "<r><a>xy</a></r>", format="xml")
    with monkeypatch.context() as patch, others(url):
        patch.setattr("postroom.rules.answers.BoundedXQuery", lambda: BoundedXQuery(1.5))
        with pytest.raises(EntryRefused, match=r"queue a refuses .*the schema exceeded the limit") as refused:
            room.send("a", body, format="xml")
    assert refused.value.facts["reason"] == "PR0005"
    with pytest.raises(EntryRefused, match="not accepted by the pattern") as refused:
        room.send("a", "<r><a>z</a></r>", format="xml")
    assert refused.value.facts["reason"] == "schema-invalid"
    assert [message.body for message in room.queues.info("a")] == ["<r><a>xy</a></r>"]


def test_a_dry_run_ends_at_a_schema_that_takes_too_long(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.rules.tryout.TRYOUT_SECONDS", 0.5)
    text, body = SLOW[0]
    (tmp_path / "s.xsd").write_text(text)
    (tmp_path / "p.demaq").write_text(QUEUES.format(a="", b="schema s.xsd"))
    room.load(tmp_path / "p.demaq")
    room.send_many("a", [body, "<r><a>xy</a></r>"], format="xml")
    (tmp_path / "new.demaq").write_text("create rule guilty for a if (/r) then do enqueue . into b")
    slow, quick = room.definitions.try_out(tmp_path / "new.demaq")
    assert "guilty" in str(slow)
    assert "PR0005" in str(slow)
    assert "into b" in str(quick) or "b" in quick.as_dict()["actions"][0].values()


@pytest.mark.slow
def test_a_rule_whose_message_its_schema_never_ends_with_fails_alone(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, seconds=2.0)
    text, body = SLOW[0]
    (tmp_path / "s.xsd").write_text(text)
    rule = "create rule guilty for a if (/r) then do enqueue . into b"
    (tmp_path / "p.demaq").write_text(QUEUES.format(a="", b="schema s.xsd") + rule)
    with postroom.open(sqlite_url) as room:
        room.load(tmp_path / "p.demaq")
        room.send("a", "<r><a>xy</a></r>", format="xml")
        guilty = room.send("a", body, format="xml").key
        room.send("a", "<r><a>xxy</a></r>", format="xml")
        room.run_until_idle(spark="auto")
        assert [message.body for message in room.queues.info("b")] == ["<r><a>xy</a></r>", "<r><a>xxy</a></r>"]
        (error,) = room.queues.info("postroom-errors")
        assert error.cause == guilty
        assert "<rule>guilty</rule>" in error.body
        assert "PR0005" in error.body
