"""One message through every lens: whatever it is written in, and whoever looks, its fields have the same values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import postroom
from postroom.flows.conversion import event
from postroom.flows.language.types import Field as Part
from postroom.flows.language.types import List, Tuple, Type
from postroom.flows.language.types import Scalar as Simple
from postroom.flows.language.values import parse_event
from postroom.model.body import Format, check_body, json_text
from postroom.model.message import Draft
from postroom.model.order import sortable
from postroom.model.types import Field, FieldValue, Kind, MessageType, Scalar, plain, text
from postroom.model.views import as_lines, as_tuple, as_xml, record
from postroom.rules.evaluation.xquery import saxon
from postroom.stations.forms.drawing import Line
from postroom.stations.forms.form import Form, FormField, Rule
from postroom.stations.procedures.plan import Picked
from postroom.stations.queries.conditions import Condition
from postroom.stations.queries.reading import Asked, Plan

Record = dict[str, FieldValue]

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-14)), timezone(timedelta(hours=5, minutes=45))])
TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff") | st.sampled_from("\n\t :<&'\""),
    min_size=1,
    max_size=12,
)
#: What all capabilities have: a flow knows neither times of the day nor keys.
KINDS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.STRING: TEXTS,
    Kind.INT: st.integers(-(2**63), 2**63 - 1),
    Kind.DECIMAL: st.decimals("-1e15", "1e15", allow_nan=False, places=4),
    Kind.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    Kind.BOOLEAN: st.booleans(),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES),
}
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,6}", fullmatch=True)


@st.composite
def messages(draw: st.DrawFn) -> tuple[MessageType, Record]:
    """A random type, and a message of it with a value in every field."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    fields = [Field(name, draw(st.sampled_from(list(KINDS))), draw(st.booleans())) for name in names]
    values: Record = {}
    for field in fields:
        each = KINDS[field.kind]
        values[field.name] = draw(st.lists(each, min_size=1, max_size=3).map(tuple) if field.many else each)
    return MessageType(draw(NAMES), tuple(fields)), values


def written(type: MessageType, values: Record) -> dict[Format, str]:
    """The same message in every form of writing."""
    return {
        Format.JSON: json_text({name: plain(value) for name, value in values.items()}),
        Format.XML: as_xml(values, type),
        Format.TEXT: "\n".join(as_lines(values)),
    }


def several(value: FieldValue) -> tuple[Scalar, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


@settings(deadline=None, max_examples=150)
@given(messages())
def test_every_way_of_writing_is_the_same_record_and_the_same_event(message: tuple[MessageType, Record]) -> None:
    type, values = message
    parts = tuple(Part(each.name, _flow_type(each)) for each in type.fields)
    events = set()
    for format, body in written(type, values).items():
        check_body(body, format)
        assert as_tuple(record(body, format, type)) == as_tuple(values)
        draft = Draft(body, format.value, type.name, "{}")
        events.add(event(draft, Tuple(parts), "Space", {type.name: type}).body)
        if format is not Format.TEXT:  # what a rule makes has no type
            events.add(event(draft._replace(type=None), Tuple(parts), "Space", {}).body)
    (said,) = events
    assert parse_event(said, Tuple(parts), "Space") == as_tuple(values), "a flow sees the same tuple"


def _flow_type(field: Field) -> Type:
    simple = Simple(field.kind.value)
    return List(simple) if field.many else simple


_CASTS = {
    Kind.STRING: "xs:string",
    Kind.INT: "xs:integer",
    Kind.DECIMAL: "xs:decimal",
    Kind.FLOAT: "xs:double",
    Kind.BOOLEAN: "xs:boolean",
    Kind.DATE: "xs:date",
    Kind.TIMESTAMP: "xs:dateTime",
}


@settings(deadline=None, max_examples=100)
@given(messages())
def test_a_rule_a_query_and_a_procedure_see_the_same_values(message: tuple[MessageType, Record]) -> None:
    type, values = message
    body = written(type, values)[Format.JSON]
    for field in type.fields:
        cast, said = _CASTS[field.kind], several(values[field.name])
        wanted = ", ".join(f"{cast}({_literal(text(each))})" for each in said)
        found = f"/{type.element}/{field.element} ! {cast}(.)"
        asked = f"string(deep-equal(({found}), ({wanted})))"
        assert saxon().run(_QUERY.format(asked), written(type, values)[Format.XML]) == "true", asked
        for each in said:
            equal, other = (Condition(sign, each, None, field.kind) for sign in ("=", "<>"))
            differs = any(sortable(field.kind, one) != sortable(field.kind, each) for one in said)
            for condition, holds in ((equal, True), (other, differs)):
                plan = Plan(type.name, (Asked(field.name, field.kind, not field.many, (condition,)),))
                assert plan.matches(body) is holds
                assert Plan.unpacked(plan.packed()).matches(body) is holds, "as Spark's workers get it"
                picked = Picked("it", type.name, ((field.name, field.kind, (condition,)),), (), ())
                assert picked.selects(json.loads(body), frozenset(["Desk"])) is holds


_QUERY = (
    'declare namespace output = "http://www.w3.org/2010/xslt-xquery-serialization"; '
    'declare option output:method "text"; {}'
)


def _literal(said: str) -> str:
    return '"' + said.replace("&", "&amp;").replace('"', '""').replace("\r", "&#13;") + '"'


WORDS = st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.]{0,5}", fullmatch=True), min_size=1, max_size=6).map(" ".join)


@settings(deadline=None, max_examples=100)
@given(st.fixed_dictionaries({kind: WORDS if kind is Kind.STRING else each for kind, each in KINDS.items()}))
def test_a_form_that_is_drawn_is_read_as_the_same_values(values: dict[Kind, Any]) -> None:
    names = {kind: kind.value.capitalize() for kind in KINDS}
    lines = tuple(Line.of(f" {name}: {'_' * 40} ") for name in names.values())
    form = Form("T", lines, tuple(FormField(name, kind, Rule.FREE) for kind, name in names.items()))
    filled: Record = {names[kind]: value for kind, value in values.items()}
    assert form.type.record(form.read(form.shown(filled))) == filled


# --- the capabilities themselves, on Spark -------------------------------------------------------------------------

FORMS = """
type T
| No: ____ Region: ________ Amount: ______ |
| Score: ____ Open: _____ Day: ___ At: ___ |
field No     int       required
field Region string    required
field Amount decimal   required
field Score  float     required
field Open   boolean   required
field Day    date      required
field At     timestamp required
type HIT
| No: ____ |
field No int required
"""
SPACE = "[No: int, Region: string, Amount: decimal, Score: float, Open: boolean, Day: date, At: timestamp]"


@dataclass(frozen=True)
class Question:
    """The same condition in every language."""

    name: str
    rule: str
    pattern: str
    sketch: tuple[str, str]
    truth: Callable[[dict[str, Any]], bool]


QUESTIONS = (
    Question(
        "dear",
        "xs:decimal(/T/Amount) > 50.25",
        "Amount: a > 50.25",
        ("Amount", ">50.25"),
        lambda said: said["Amount"] > Decimal("50.25"),
    ),
    Question(
        "north",
        '/T/Region = "North &amp; co"',
        'Region: "North & co"',
        ("Region", '"North & co"'),
        lambda said: said["Region"] == "North & co",
    ),
    Question(
        "poor",
        "xs:double(/T/Score) <= 0.5",
        "Score: s <= 0.5",
        ("Score", "<=0.5"),
        lambda said: said["Score"] <= 0.5,
    ),
    Question("open", "xs:boolean(/T/Open)", "Open: true", ("Open", "true"), lambda said: said["Open"]),
    Question(
        "late",
        'xs:date(/T/Day) >= xs:date("2026-11-16")',
        'Day: d >= "2026-11-16"',
        ("Day", ">=2026-11-16"),
        lambda said: said["Day"] >= date(2026, 11, 16),
    ),
    Question(
        "early",
        'xs:dateTime(/T/At) < xs:dateTime("2026-11-16T12:00:00Z")',
        'At: t < "2026-11-16T12:00:00Z"',
        ("At", "<2026-11-16T12:00:00Z"),
        lambda said: said["At"] < datetime(2026, 11, 16, 12, tzinfo=UTC),
    ),
)


def some(count: int) -> list[Record]:
    """Messages near the limits of the questions, so that a lens that sees a little too much or too little is found."""
    random = Random(1982)
    zones = [UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-11))]
    return [
        {
            "No": number,
            "Region": random.choice(["North & co", "North", "north & co", "<South>", " North & co"]),
            "Amount": random.choice([Decimal("50.25"), Decimal("50.250001"), Decimal("9"), Decimal("1000.00")]),
            "Score": random.choice([0.5, 0.5000001, -1e300, 2.5e-7]),
            "Open": random.random() < 0.5,
            "Day": date(2026, 11, 16) + timedelta(days=random.randint(-1, 1)),
            "At": (datetime(2026, 11, 16, 12, tzinfo=UTC) + timedelta(microseconds=random.randint(-1, 1))).astimezone(
                random.choice(zones)
            ),
        }
        for number in range(count)
    ]


def test_rules_arcs_queries_and_procedures_choose_the_same_messages(
    sqlite_url: str, tmp_path: Path, spark: object
) -> None:
    sent = some(48)
    rules = ["create queue incoming kind basic mode persistent"]
    flow = [f"domain d space Events : {SPACE}"]
    forms = [FORMS]
    for each in QUESTIONS:
        rules.append(f"create queue {each.name} kind basic mode persistent")
        rules.append(
            f"create rule r_{each.name} for incoming if ({each.rule}) then do enqueue <n>{{string(/T/No)}}</n> "
            f"into {each.name}"
        )
        flow.append(
            f"space S_{each.name} : {SPACE} arc a_{each.name} : Events -> S_{each.name} select [{each.pattern}]"
        )
        field, condition = each.sketch
        forms.append(
            f"procedure p_{each.name} at {each.name}\n  precondition it : T\n    {field}: {condition}\n"
            "  create hit : HIT\n    No: ?it.No\n"
        )
    for name, parts in (("l.demaq", rules), ("l.flow", flow), ("l.form", forms)):
        (tmp_path / name).write_text("\n".join(parts))
    with postroom.open(sqlite_url) as room:
        for each in QUESTIONS:
            room.stations.add(each.name, "secret")
        room.load(tmp_path / "l.form", tmp_path / "l.flow", tmp_path / "l.demaq")
        desks = {each.name: room.station(each.name, "secret") for each in QUESTIONS}
        type = room.stations.form("T").form.type
        for number, values in enumerate(sent):
            format, body = list(written(type, values).items())[number % 3]
            room.send("incoming", body, format=format, type="T")
            room.send("Events", body, format=format, type="T")
        for desk in desks.values():
            desk.create_many("T", [{name: plain(value) for name, value in values.items()} for values in sent])
        room.run_until_idle(master="local[2]")
        for each in QUESTIONS:
            field, condition = each.sketch
            desk = desks[each.name]
            truth = {values["No"] for values in sent if each.truth(values)}
            seen = {
                "rule": {int(message.body[3:-4]) for message in room.queues.info(each.name)},
                "arc": {message.value["No"] for message in room.queues.info(f"S_{each.name}")},
                "query": {image.fields["No"] for image in desk.query("T", {field: condition})},
                "procedure": {image.fields["No"] for image in desk.query("HIT")},
            }
            assert truth, "a question that nothing answers shows nothing"
            assert len(truth) < len(sent)
            assert seen == dict.fromkeys(seen, truth), each.name
        assert list(room.queues.info("postroom-errors")) == []
