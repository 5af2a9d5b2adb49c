"""What a selector says: which properties it wants, and the place of what is wrong with it."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from postroom.errors import ArgumentInvalid
from postroom.queues.selectors import Selector
from postroom.room import Postroom


def chooses(where: str, **properties: Any) -> bool:
    selector = Selector.of(where)
    assert selector is not None
    return selector.chooses(json.dumps(properties))


@pytest.mark.parametrize(
    ("where", "properties", "chosen"),
    [
        ("region = 'EU'", {"region": "EU"}, True),
        ("region = EU", {"region": "EU"}, True),
        ("region = 'EU'", {"region": "eu"}, False),
        ("region = 'EU' and total > 100", {"region": "EU", "total": 101}, True),
        ("region = 'EU' AND total > 100", {"region": "EU", "total": 100}, False),
        ("total > 100", {"total": "150"}, True),  # a command sets texts
        ("total > 100", {"total": "15O"}, False),
        ("total = 0.5", {"total": 0.5}, True),
        ("total >= -3 and total<=-1", {"total": -2}, True),
        ("total = 10..20", {"total": 20}, True),
        ("total = 10..20", {"total": 20.5}, False),
        ("day = 1981-08-01..1981-08-31", {"day": "1981-08-15"}, True),
        ("name = 'a'..'c'", {"name": "bob"}, True),
        ("name = off*", {"name": "office"}, True),
        ("name = 'off*'", {"name": "office"}, False),
        ("name = o?f*", {"name": "off"}, True),
        ("region = 'EU' or 'US'", {"region": "US"}, True),
        ("region = 'EU' or = 'US' or < 'B'", {"region": "AP"}, True),
        ("region = 'EU' or 'US'", {"region": "AP"}, False),
        ("region <> 'EU'", {"region": "US"}, True),
        ("region != 'EU'", {"region": "EU"}, False),
        ("region <> 'EU'", {}, False),  # a property that is not there has no value
        ("region = ''", {}, True),
        ("region = ''", {"region": None}, True),
        ("region = '' or 'EU'", {"region": "EU"}, True),
        ("region <> ''", {"region": "EU"}, True),
        ("region <> ''", {"region": ""}, False),
        ("urgent = true", {"urgent": True}, True),
        ("urgent = true", {"urgent": "true"}, True),
        ("urgent = true", {"urgent": False}, False),
        ("total = 1", {"total": True}, False),
        ("total = '100'", {"total": 100}, False),
        ("total <> 5", {"total": "five"}, True),
        ("\"a name\" = 'it''s'", {"a name": "it's"}, True),
        ("total = 9007199254740993", {"total": 9007199254740992}, False),  # whole numbers are compared exactly
        ("naïve = 'Ünïcode 😀'", {"naïve": "Ünïcode 😀"}, True),
    ],
)
def test_conditions_mean_what_queries_by_example_mean(where: str, properties: dict[str, Any], chosen: bool) -> None:
    assert chooses(where, **properties) is chosen


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("", "character 1: the name of a property is expected here, not the end"),
        ("region", "character 7: one of"),
        ("region = ", "character 10: a value is expected here, not the end"),
        ("= 'EU'", "character 1: the name"),
        ("region = 'EU", "character 10: this can be neither"),
        ("region = 'EU' total > 1", "character 15: 'and' or 'or' is expected here, not 'total'"),
        ("region = 'EU' or total > 1", "character 18: 'or' joins conditions on one property"),
        ("region = 'EU' or region = 'US'", "character 18: 'or' is followed by the next value, without the name"),
        ("region = 'EU' or region = 'US'", "write: region = 'EU' or 'US'"),
        ('a > 1 and "n x" < 5 or "n x" >= 10 and b = 1', 'write: "n x" < 5 or >= 10'),
        ("region = 'EU' and", "character 18: the name"),
        ("total > 10..20", "character 9: a range is asked for with ="),
        ("total = 20..10", "character 9: the range ends before it begins"),
        ("total = 1..x", "character 9: both ends"),
        ("'region' = 1", "character 2: the name"),
        ("a = 1 and " * 250, "text of at most"),
        ("a = 1" + " or 1" * 150, "more than 100 conditions"),
    ],
)
def test_a_selector_that_is_none_is_refused_with_its_place(where: str, place: str) -> None:
    with pytest.raises(ArgumentInvalid, match="where") as refused:
        Selector.of(where)
    assert place in str(refused.value)


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("(n = 5)", 1),
        ("n = (5)", 5),
        ("n = 5)", 6),
        ("a = 1 and (b = 2 or 3)", 11),
        ("not (n = 5)", 5),
        ("f(x) = 1", 2),
    ],
)
def test_parentheses_are_refused_with_their_place(where: str, place: int) -> None:
    with pytest.raises(ArgumentInvalid, match=f"character {place}: conditions have no parentheses"):
        Selector.of(where)


def test_parentheses_in_quotes_are_text() -> None:
    assert chooses("\"f(x)\" = '(5)'", **{"f(x)": "(5)"})
    assert not chooses("n = '(5)'", n=5)


def test_not_is_a_name_and_nothing_else() -> None:
    assert chooses("not = 5", **{"not": 5})
    for where in ("not n = 5", "n = 5 and not m = 3", "n not = 5"):
        with pytest.raises(ArgumentInvalid):
            Selector.of(where)


def test_no_selector_is_none() -> None:
    assert Selector.of(None) is None


def test_what_a_selector_chooses_lies_in_its_spans() -> None:
    """Else an index would lead past it."""
    dice = random.Random(7)
    values: list[Any] = ["a", "b", "ab", "EU", "x" * 300, -2, -1.5, 0, 3, 10, "3", "10", "-1.5", True, False, "", None]
    signs = ["=", "<>", "<", "<=", ">", ">="]
    for _ in range(2_000):
        wanted = dice.choice(values[:13])
        literal = str(wanted) if not isinstance(wanted, str) or dice.random() < 0.3 else f"'{wanted}'"
        selector = Selector.of(f"p {dice.choice(signs)} {literal}")
        assert selector is not None
        value = dice.choice(values)
        if not chooses(_written(selector), p=value):
            continue
        for (span,) in selector.spans():
            assert span.low is None or _lies_in(value, span.low, span.high)


def _written(selector: Selector) -> str:
    ((condition,),) = selector.wanted["p"]
    if condition.sign in ("empty", "filled"):
        return f"p {'=' if condition.sign == 'empty' else '<>'} ''"
    value = condition.value
    return f"p {condition.sign} " + (f"'{value}'" if isinstance(value, str) else str(value))


def _lies_in(value: Any, low: Any, high: Any) -> bool:
    if isinstance(low, str):
        text = str(value).lower() if isinstance(value, bool) else value
        return isinstance(text, str) and bool(low <= text <= high)
    return bool(low <= float(value) <= high)


# --- the same conditions, said in SQL ---

NAMES = ("n", "m", "a name", "größe", "and", "x.y")
TEXTS = (
    "",
    "EU",
    "eu",
    "it's",
    'say "hi"',
    "Ünï 😀",
    "a b",
    "(5)",
    "or",
    "5",
    "007",
    "-2.50",
    "1e3",
    "true",
    "off",
    "offer",
)
NUMBERS = (0, 5, -2.5, 7, 5.0, 10**15 - 1, 2**53 + 1, 0.1)


def quoted(text: str, sign: str) -> str:
    return f"{sign}{text.replace(sign, sign * 2)}{sign}"


def some_condition(chance: random.Random) -> tuple[str, str, list[Any]]:
    """A condition as a selector says it; the same in SQL, for a value as number ``n`` and text ``t``; its values."""
    kind = chance.random()
    if kind < 0.1:
        return chance.choice([("= ''", "NOT {there}", []), ("<> ''", "{there}", [])])
    if kind < 0.2:
        known = chance.choice(["off", "E", "a"])
        return f"= {known}*", "{t} GLOB ?", [f"{known}*"]
    if kind < 0.35:
        low, high = sorted(chance.sample([0, 5, 7, -2.5], 2))
        return f"= {low}..{high}", "{n} BETWEEN ? AND ?", [low, high]
    sign = chance.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
    if kind < 0.65:
        value: Any = chance.choice([number for number in NUMBERS if number != 2**53 + 1])
        column, written = "{n}", str(value)
    else:
        value = chance.choice([text for text in TEXTS if text])
        column, written = "{t}", quoted(value, chance.choice("'\""))
    sql = f"{column} {'<>' if sign == '!=' else sign} ?"
    other = f" OR ({{there}} AND {column} IS NULL)" if sign in ("<>", "!=") else ""
    return f"{sign} {written}", f"({sql}{other})", [value]


def some_selector(chance: random.Random) -> tuple[str, str, list[Any]]:
    """Conditions on properties, one or more of each, and the same as SQL over a table with columns for each."""
    parts, clauses, values = [], [], []
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(NAMES))
        name, number, text = NAMES[place], f"n{place}", f"t{place}"
        columns = {"n": number, "t": text, "there": f"({number} IS NOT NULL OR {text} IS NOT NULL)"}
        several = [some_condition(chance) for _ in range(chance.randint(1, 3))]
        shown = name if name.isidentifier() and chance.random() < 0.7 else quoted(name, '"')
        parts.append(f"{shown} " + chance.choice([" or ", " OR "]).join(said for said, _, _ in several))
        clauses.append("(" + " OR ".join(sql.format(**columns) for _, sql, _ in several) + ")")
        values += [value for _, _, given in several for value in given]
    return chance.choice([" and ", " AND  "]).join(parts), " AND ".join(clauses), values


def some_properties(chance: random.Random) -> dict[str, Any]:
    values = [*TEXTS, *NUMBERS, True, False, None]
    return {name: chance.choice(values) for name in NAMES if chance.random() < 0.6}


def in_columns(properties: dict[str, Any]) -> list[Any]:
    """Of each property its number, also of a text that is one, and its text; an empty one is not there."""
    columns: list[Any] = []
    for name in NAMES:
        value = properties.get(name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        written = isinstance(value, str) and re.fullmatch(r"-?[0-9]+([.][0-9]+)?", value) is not None
        columns.append(value if is_number else float(str(value)) if written else None)
        columns.append(str(value).lower() if isinstance(value, bool) else (value or None) if not is_number else None)
    return columns


@contextmanager
def table(rows: list[dict[str, Any]]) -> Iterator[sqlite3.Connection]:
    """Columns without an affinity: a number is compared with a number alone."""
    with closing(sqlite3.connect(":memory:")) as connection:
        columns = ", ".join(f"n{place}, t{place}" for place in range(len(NAMES)))
        connection.execute(f"CREATE TABLE p (id INTEGER, {columns})")
        marks = ", ".join("?" * (1 + 2 * len(NAMES)))
        connection.executemany(
            f"INSERT INTO p VALUES ({marks})", [[place, *in_columns(row)] for place, row in enumerate(rows)]
        )
        yield connection


@pytest.mark.parametrize("seed", range(4))
def test_conditions_mean_what_they_mean_in_sql(seed: int) -> None:
    chance = random.Random(seed)
    rows = [some_properties(chance) for _ in range(60)]
    chosen = 0
    with table(rows) as connection:
        for _ in range(250):
            where, sql, values = some_selector(chance)
            selector = Selector.of(where)
            assert selector is not None
            meant = [row[0] for row in connection.execute(f"SELECT id FROM p WHERE {sql} ORDER BY id", values)]
            assert [place for place, row in enumerate(rows) if selector.chooses(json.dumps(row))] == meant, where
            chosen += len(meant)
    assert chosen > 1_000


@pytest.mark.parametrize("seed", range(3))
def test_stores_choose_what_sql_chooses(room: Postroom, seed: int) -> None:
    """Found by reading all, and by the entries that the first receive has made."""
    chance = random.Random(100 + seed)
    rows = [some_properties(chance) for _ in range(40)]
    room.queues.create("q")
    for place, row in enumerate(rows):
        room.send("q", str(place), properties=row)
    with table(rows) as connection:
        for turn in range(24):
            where, sql, values = some_selector(chance)
            meant = [str(row[0]) for row in connection.execute(f"SELECT id FROM p WHERE {sql} ORDER BY id", values)]
            assert [message.body for message in room.peek("q", where=where)] == meant, where
            if turn % 4 == 0:
                leased = room.receive_many("q", count=100, lease=60, where=where)
                assert [message.body for message in leased] == meant, where
                for message in leased:
                    message.release()


def test_any_text_is_a_selector_or_refused_with_a_place() -> None:
    chance = random.Random(7)
    pieces = "n m = <> < > ( ) and or not 5 'a' \"b\" .. * ü \n".split(" ")
    refused = 0
    for _ in range(3_000):
        where = chance.choice(["", " "]).join(chance.choice(pieces) for _ in range(chance.randint(0, 9)))
        try:
            assert Selector.of(where) is not None
        except ArgumentInvalid as refusal:
            refused += re.match(r"where: character [0-9]+: ", str(refusal)) is not None
        else:
            refused += 1
            assert not {"(", ")"} & set(where), where
    assert refused == 3_000
