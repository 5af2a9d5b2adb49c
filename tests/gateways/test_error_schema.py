"""docs/reference/error.xsd is the schema of every error message: of those made here, and of every place in the code."""

from __future__ import annotations

import ast
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from lxml import etree
from tests.gateways.conftest import Partner
from tests.gateways.test_incoming import arrival
from tests.rules.conftest import without_spark

import postroom
from postroom.errors import PostroomError, QueueUnknown
from postroom.room import Postroom
from postroom.store.kernel.queues import SYSTEM_ERRORS

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "docs" / "reference" / "error.xsd"
XSD = "{http://www.w3.org/2001/XMLSchema}"
DEFINED = etree.parse(SCHEMA)
CLASSES = {choice.get("value") for choice in DEFINED.iter(f"{XSD}enumeration")}
ELEMENTS = {element.get("name") for element in DEFINED.iter(f"{XSD}element")}
ERRORS = "create queue errs kind basic mode persistent schema error.xsd\n"
#: Every place that makes a failure, by its file. A new one is counted here when a test below has made it for real.
SITES = {
    "engine/steps/step.py": 1,
    "flows/evaluation/events.py": 1,
    "flows/streams/ledger.py": 1,
    "gateways/incoming.py": 1,
    "gateways/outgoing.py": 4,
    "rules/entries.py": 13,
    "rules/evaluation/evaluate.py": 9,
    "rules/evaluation/share.py": 1,
    "spheres/remains.py": 1,
    "spheres/watching.py": 1,
    "stations/counters/stage.py": 1,
}


def failures() -> list[tuple[str, ast.Call]]:
    found = []
    for file in sorted((ROOT / "src" / "postroom").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Failure":
                found.append((str(file.relative_to(ROOT / "src" / "postroom")), node))
    return found


def test_every_place_that_makes_an_error_message_is_known_here() -> None:
    assert dict(Counter(file for file, _ in failures())) == SITES


def test_every_class_and_every_element_in_the_code_is_one_of_the_schema() -> None:
    for file, call in failures():
        kind = call.args[0]
        assert not isinstance(kind, ast.Constant) or kind.value in CLASSES, f"{file}:{call.lineno}"
    for source in (ROOT / "src" / "postroom").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call):
                added = [word.value for word in node.keywords if word.arg == "kinds"]
                names = [name for value in added for name in _texts(value)]
                assert set(names) <= ELEMENTS | {""}, f"{source}:{node.lineno}"


def _texts(value: ast.expr) -> list[str]:
    """The first of each pair."""
    pairs = [node for node in ast.walk(value) if isinstance(node, ast.Tuple) and len(node.elts) == 2]
    return [str(pair.elts[0].value) for pair in pairs if isinstance(pair.elts[0], ast.Constant)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "error.xsd").write_text(SCHEMA.read_text())
    (tmp_path / "number.xsd").write_text(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="n" type="xs:int"/></xs:schema>'
    )
    return tmp_path


def loaded(room: Postroom, folder: Path, text: str) -> Postroom:
    (folder / "p.demaq").write_text(text)
    room.load(folder / "p.demaq")
    return room


def taken(room: Postroom) -> list[str]:
    """The codes of the errors that the queue with the schema has taken; no other queue has one."""
    bodies = [message.body for message in [*room.queues.info("errs"), *room.queues.history("errs")]]
    schema = etree.XMLSchema(DEFINED)
    for body in bodies:
        schema.assertValid(etree.fromstring(body))
    with suppress(QueueUnknown):
        assert [message.body for message in room.queues.info(SYSTEM_ERRORS)] == []
    return sorted({etree.fromstring(body).findtext("code") or "" for body in bodies})


RULES = f"""{ERRORS}create module p errorqueue errs
create queue a kind basic mode persistent
create queue b kind basic mode persistent
create queue n kind basic mode persistent schema number.xsd
create queue later kind echo mode persistent
create property x as xs:integer queue b value /o/x
create property y as xs:integer queue b
create rule cast for a if (/cast) then do enqueue <o>{{xs:integer(/cast)}}</o> into b
create rule many for a if (/many) then do enqueue (<o/>, <o/>) into b
create rule values for a if (/values) then do enqueue <o/> into b with y value (1, 2)
create rule computed for a if (/computed) then do enqueue <o><x>x</x></o> into b
create rule echo for a if (/echo) then do enqueue <o/> into later with target value "a" with timeout value "soon"
create rule schema for a if (/schema) then do enqueue <o/> into n
create rule deep for a if (/deep) then do enqueue <o>{{string-join((1 to 4200000) ! "x")}}</o> into b
create rule late for a unless (qs:queue("b")) within (/late/@of) if (/late) then do enqueue <o/> into b
create rule thrown for a if (/thrown) then error((), "a &lt; b")
 else if (/none) then do enqueue <o/> into b
create rule update for a if (/update) then do enqueue copy $c := /update modify delete node /update return $c into b
"""


def test_errors_of_rules_enter_a_queue_that_has_the_schema(folder: Path) -> None:
    text = RULES.replace('error((), "a &lt; b")', 'do enqueue <o>{error((), "a &lt; b")}</o> into b')
    with postroom.open(folder / "room.db") as opened:
        room = loaded(without_spark(opened), folder, text)
        for name in ("cast", "many", "values", "computed", "echo", "schema", "deep", "late", "thrown", "update"):
            room.send("a", f"<{name}>a &amp; b</{name}>", format="xml")
        room.send("a", f"<cast>{'x' * 4_000_000}</cast>", format="xml")
        room.run_until_idle()
        assert taken(room) == [
            "FOER0000", "FORG0001", "PR0001", "PR0002", "PR0004", "PR0008", "XUDY0014", "body-too-large",
            "schema-invalid",
        ]  # fmt: skip


GATES = f"""{ERRORS}create module p errorqueue errs
create queue in kind incomingGateway mode persistent interface http port both
create queue answers kind outgoingGateway mode persistent interface http port both
create queue out kind outgoingGateway mode persistent interface http port out
create queue dead kind outgoingGateway mode persistent interface http port dead
create property id as xs:integer queue in value /order/id
"""


def test_errors_of_gateways_enter_a_queue_that_has_the_schema(folder: Path, partner: Partner) -> None:
    with postroom.open(folder / "room.db") as opened:
        room = without_spark(opened)
        room.gateways.add("both", "http", path="/both")
        room.gateways.add("out", "http", address=partner.address)
        room.gateways.add("dead", "http", address="http://127.0.0.1:9/", attempts="1")
        loaded(room, folder, GATES)
        for body in ("<order>", "<order><id>x</id></order>", "\x01\x02"):
            with pytest.raises(PostroomError):
                room._parts.incoming.accept(arrival(body, endpoint="both"))
        partner.answers.append((400, {}, b"no"))
        room.send("out", "<order/>", format="xml")
        room.send("dead", "plain")
        room.send("answers", "<late/>", format="xml")
        room.run_until_idle()
        assert taken(room) == ["disconnected", "entry-refused", "refused", "xml-malformed"]
