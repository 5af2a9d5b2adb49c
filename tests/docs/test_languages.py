"""The pages on languages: each grammar is whole, and has an example of every construct that loads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import postroom
from postroom.flows.language.patterns import parse_expression, parse_pattern
from postroom.model.types import Kind
from postroom.queues.tree.description import CLAUSE_LEVELS
from postroom.stations.forms.form import FormField, Rule
from postroom.stations.queries.conditions import parse as parse_conditions

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = {"qdl": "description-language.md", "demaq": "rules.md", "flow": "flows.md", "form": "forms.md"}
TERMINAL = re.compile(r"\"(?:[^\"\s]+)\"|'(?:[^'\s]+)'")


@dataclass(frozen=True)
class Language:
    """A page's grammar, its rules by name, and its examples."""

    rules: dict[str, str]
    example: str

    @classmethod
    def of(cls, suffix: str) -> Language:
        page = (REFERENCE / PAGES[suffix]).read_text()
        prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
        lines = [line[4:] for line in prose.splitlines() if line.startswith("    ")]
        rules: dict[str, str] = {}
        name = ""
        for line in lines:
            found = re.match(r"(\w+) += (.*)", line)
            if found:
                name = found[1]
                assert name not in rules, f"{name} is defined twice"
            if name and (found or line.startswith(" ")):
                rules[name] = rules.get(name, "") + " " + (found[2] if found else line.strip())
        blocks = re.findall(rf"^```{suffix}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        return cls(rules, "\n".join(blocks))

    @property
    def words(self) -> set[str]:
        """What is written as it is: keywords and signs."""
        return {found[1:-1] for rule in self.rules.values() for found in TERMINAL.findall(rule)}


@pytest.mark.parametrize("suffix", PAGES)
def test_a_grammar_is_whole(suffix: str) -> None:
    language = Language.of(suffix)
    first, *others = language.rules
    used = {word for rule in language.rules.values() for word in re.findall(r"\b[a-z]\w*", TERMINAL.sub(" ", rule))}
    assert used <= set(language.rules), "a name in small letters is defined; what is in capitals is said in words"
    assert set(others) <= used, f"reached from {first}"
    page = (REFERENCE / PAGES[suffix]).read_text()
    for name in {
        word for rule in language.rules.values() for word in re.findall(r"\b[A-Z]+\b", TERMINAL.sub(" ", rule))
    }:
        if name not in ("NUMBER", "INTEGER", "TEXT", "STATION", "FIELD"):  # these say it themselves
            assert f"`{name}`" in page, f"{name}: what is it?"


@pytest.mark.parametrize("suffix", PAGES)
def test_the_example_has_every_construct(suffix: str) -> None:
    language = Language.of(suffix)
    assert len(language.words) > 12, "the search still works"
    for word in language.words:
        known = re.escape(word)
        edge = r"\b" if word[0].isalnum() else ""
        assert re.search(f"{edge}{known}", language.example), f"no example of {word}"


def test_the_examples_load(sqlite_url: str, tmp_path: Path) -> None:
    postroom.function(next_number)
    (tmp_path / "order.xsd").write_text(
        '<schema xmlns="http://www.w3.org/2001/XMLSchema"><element name="order" type="anyType"/></schema>'
    )
    (tmp_path / "cities.csv").write_text("code,city\nOSL,Oslo\n")
    (tmp_path / "ranks.xml").write_text("<ranks><row><item>bolt</item><factor>3</factor></row></ranks>")
    (tmp_path / "before.demaq").write_text("create collection ranks")
    with postroom.open(sqlite_url) as room:
        room.load(tmp_path / "before.demaq")
        room.definitions.load_collection("ranks", tmp_path / "ranks.xml")
        for station, queue in (("Simon", "incoming"), ("Oscar", "settled")):  # of the counters
            room.stations.add(station, "secret")
            room.queues.create(queue)
        room.gateways.add("carrier", "http", address="https://carrier.example/")
        room.gateways.add("scans", "files", folder=str(tmp_path))
        room.stations.add("sales", "secret")  # that the procedure ships to
        for suffix in PAGES:
            file = tmp_path / f"page.{suffix}"
            file.write_text(Language.of(suffix).example)
            assert room.load(file).added, suffix
        assert len(room.definitions.levels()) == 8
        assert len(room.flows.graph().arcs) == 15
        assert [kept.procedure.name for kept in room.stations.procedures()] == ["settle", "refuse"]
        assert [str(counter) for counter in room.stations.counters()] == [
            "counter front at Simon takes ORDER from incoming",
            "counter back at Oscar gives to settled",
        ]


def next_number(last: int, more: int) -> int:
    """What the example of procedures calls."""
    return last + more


def test_the_description_language_has_every_word_of_its_reader() -> None:
    source = (ROOT / "src" / "postroom" / "queues" / "tree" / "description.py").read_text()
    asked = set(re.findall(r'_keyword\("([A-Z]+)"\)', source)) | set(re.findall(r'== "([A-Z]+)"', source))
    assert {"IS", "HASH", "COMMAND", "LINE", "PASSWORD"} <= asked, "the search still works"
    assert asked | set(CLAUSE_LEVELS) <= Language.of("qdl").words


def test_every_pattern_function_and_condition_of_the_tables_is_one() -> None:
    flows = (REFERENCE / "flows.md").read_text()
    patterns = _spans(flows, "## Patterns", "## Functions")
    assert len(patterns) > 10
    for pattern in patterns:
        assert parse_pattern(pattern.replace("pattern", "p")), pattern
    functions = re.findall(r"`(\w+\([^`]*\))`", flows.partition("## Functions")[2].partition("## The meta")[0])
    assert len(functions) > 20
    for function in functions:
        assert parse_expression(re.sub(r" or \w+|, …", "", function)), function
    forms = (REFERENCE / "forms.md").read_text()
    conditions = _spans(forms, "## Conditions", "## Procedures")
    assert len(conditions) > 8
    field = FormField("Subject", Kind.STRING, Rule.FREE)
    for condition in conditions:
        assert parse_conditions(field, condition), condition


def _spans(page: str, begin: str, end: str) -> list[str]:
    """The code in the first column of a table."""
    section = page.partition(begin)[2].partition(end)[0]
    return [
        span for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for span in re.findall(r"`([^`]+)`", row)
    ]
