"""Random conditions against a plain evaluator: at one station and over nodes, with an index and without."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.stations.world import desk, network

from postroom.errors import FormInvalid
from postroom.model.types import Kind, text
from postroom.room import Postroom
from postroom.stations.forms.form import FormField, Rule
from postroom.stations.forms.quoting import quoted
from postroom.stations.queries.conditions import parse

#: Every kind twice: found through an index, and by looking at all.
FORM = """\
type PAPER
| Pages: ____ Sheets: ____ Title: ________ Name: ________ |
| Day: ______ Due: ______ Fee: ______ Cost: ______ |
| Tags: __________ Words: __________ |
field Pages int free
field Sheets int free
field Title string free
field Name string free
field Day date free
field Due date free
field Fee decimal free
field Cost decimal free
field Tags list of string free
field Words list of string free
index Pages
index Title
index Day
index Fee
index Tags
"""
KINDS = {
    "Pages": Kind.INT, "Sheets": Kind.INT, "Title": Kind.STRING, "Name": Kind.STRING, "Day": Kind.DATE,
    "Due": Kind.DATE, "Fee": Kind.DECIMAL, "Cost": Kind.DECIMAL, "Tags": Kind.STRING, "Words": Kind.STRING,
}  # fmt: skip
MANY = ("Tags", "Words")
TEXTS = ["a", "ab", "b", "ba", "a b", 'q"q', "x..y", "*", "<5", "=", "zz", "Ä", "back\\slash"]
Record = dict[str, Any]
Holds = Callable[[Any], bool]


def value(chance: random.Random, kind: Kind) -> Any:
    if kind is Kind.INT:
        return chance.choice([0, 1, 5, 7, 10, 12, 13, 14, -3, 2**53 + 1, 2**63 - 1])
    if kind is Kind.DECIMAL:
        return Decimal(chance.choice(["0", "1.5", "1.50", "2", "-7.25", "10", "1000000000000000.1"]))
    if kind is Kind.DATE:
        return date(2026, 1, 1) + timedelta(days=chance.randrange(8))
    return chance.choice(TEXTS)


def record(chance: random.Random) -> Record:
    said: Record = {}
    for name, kind in KINDS.items():
        if chance.random() < 0.35:
            continue
        said[name] = [value(chance, kind) for _ in range(chance.randint(1, 3))] if name in MANY else value(chance, kind)
    return said


def simple(chance: random.Random, kind: Kind) -> tuple[str, Holds | None]:
    """A condition as it is written, and what it means of a value; None is that there is no value."""
    what = chance.choice(["=", "<>", "<", "<=", ">", ">=", "..", "..", "empty", "filled", "~"])
    if what == "empty":
        return chance.choice(['""', '= ""']), None
    if what == "filled":
        return '<> ""', lambda _: True
    if what == "~" and kind is Kind.STRING:
        pattern = chance.choice(["a*", "*b", "?", "*", "a?b", "z*z"])
        like = re.compile("".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern), re.DOTALL)
        return f"={pattern}", lambda each: like.fullmatch(each) is not None
    one = value(chance, kind)
    if what in ("..", "~"):
        low, high = sorted([one, value(chance, kind)])
        return f"{chance.choice(['=', '= '])}{_end(low)}..{_end(high)}", lambda each: low <= each <= high
    holds: dict[str, Holds] = {
        "=": lambda each: each == one,
        "<>": lambda each: each != one,
        "<": lambda each: each < one,
        "<=": lambda each: each <= one,
        ">": lambda each: each > one,
        ">=": lambda each: each >= one,
    }
    return f"{what}{' ' * chance.randrange(2)}{_end(one)}", holds[what]


def _end(said: Any) -> str:
    return quoted(said) if isinstance(said, str) else text(said)


def field_condition(chance: random.Random, name: str) -> tuple[str, Holds]:
    several = [simple(chance, KINDS[name]) for _ in range(chance.randint(1, 3))]

    def holds(given: Any) -> bool:
        values = [] if given is None else given if isinstance(given, list) else [given]
        if not values:
            return any(one is None for _, one in several)
        return any(one(each) for _, one in several if one is not None for each in values)

    return " ".join(written for written, _ in several), holds


def sought(chance: random.Random) -> tuple[dict[str, str], Callable[[Record], bool]]:
    names = chance.sample(list(KINDS), chance.randint(1, 3))
    found = {name: field_condition(chance, name) for name in names}
    return (
        {name: written for name, (written, _) in found.items()},
        lambda said: all(holds(said.get(name)) for name, (_, holds) in found.items()),
    )


def check(room: Postroom, chance: random.Random, records: dict[str, Record], scope: str, times: int) -> None:
    ann = desk(room, "ann")
    for _ in range(times):
        asked, holds = sought(chance)
        expected = sorted(key for key, said in records.items() if holds(said))
        assert [image.key for image in ann.query("PAPER", asked, scope=scope)] == expected, asked
        assert ann.count("PAPER", asked, scope=scope) == len(expected), asked


def battery(url: str, folder: Path, seed: int, local: int, over_nodes: int) -> None:
    chance = random.Random(seed)
    homes = {"ann": "control", "bob": "control", "cid": "north"}
    with network(url, folder, {"north": str(folder / "north.db")}, homes, FORM) as room:
        own: dict[str, Record] = {}
        everywhere: dict[str, Record] = {}
        for name in homes:
            several = [record(chance) for _ in range(40)]
            keys = desk(room, name).create_many("PAPER", several)
            everywhere.update(zip(keys, several, strict=True))
            if name == "ann":
                own = dict(everywhere)
        check(room, chance, own, "local", local)
        check(room, chance, everywhere, "global", over_nodes)


def test_random_conditions_mean_what_they_say(url: str, tmp_path: Path, spark: SparkSession) -> None:
    battery(url, tmp_path, 19, 120, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_very_many_random_conditions_mean_what_they_say(
    url: str, tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    battery(url, tmp_path, seed, 2_000, 100)


def test_ranges_stand_among_alternatives_and_emptiness_can_be_asked() -> None:
    pages, title = FormField("Pages", Kind.INT, Rule.FREE), FormField("Title", Kind.STRING, Rule.FREE)
    found = [number for number in range(20) if any(each.holds(number) for each in parse(pages, "<5 =10..13"))]
    assert found == [0, 1, 2, 3, 4, 10, 11, 12, 13]
    (one,) = parse(title, '"a".."b"')
    assert [one.holds(each) for each in ("a", "az", "b", "ba")] == [True, True, True, False]
    assert parse(title, 'a.."b"') == parse(title, '"a"..b') == parse(title, "=a..b") == (one,)
    for said in ('""', '= ""', '<> ""', '"a".."b c"', '"x..y"'):
        (condition,) = parse(title, said)
        assert parse(title, str(condition)) == (condition,)
    with pytest.raises(FormInvalid, match="a range is asked for with = or without a sign, not with <>"):
        parse(pages, "<> 3..5")
