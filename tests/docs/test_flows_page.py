"""The pages on flows say all there is: every keyword, type, function, action and check; and their types are right."""

from __future__ import annotations

import re
from pathlib import Path

from postroom.flows.evaluation.events import _CODE
from postroom.flows.graph.checks import CHECKS
from postroom.flows.graph.meta import ACTION_TYPE
from postroom.flows.language import reader as language
from postroom.flows.language.definitions import ACTIONS, SUBSCRIBE
from postroom.flows.language.functions import FUNCTIONS
from postroom.flows.language.types import SCALARS, Tuple, Union, parse
from postroom.flows.language.values import canonical, parse_event

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "postroom" / "flows"
PAGE = (ROOT / "docs" / "reference" / "flows.md").read_text()


def test_every_keyword_is_in_the_grammar() -> None:
    text = "".join((SOURCE / "language" / f"{name}.py").read_text() for name in ("reader", "windows"))
    called = re.findall(r'(?:flag|is_name|keyword)\(((?:"\w+"(?:, )?)+)\)', text)
    words = {*language._STATEMENTS, *re.findall(r'"(\w+)"', " ".join(called))}
    assert {"retain", "durable", "join", "collection", "collapse", "session"} <= words, "the search still works"
    for word in words | {"any", "between", "and", "union", "meta"}:
        assert f'"{word}"' in PAGE, word


def test_every_type_function_action_and_check_is_listed() -> None:
    for name in SCALARS:
        assert f"| `{name}` |" in PAGE, name
    for function in FUNCTIONS.values():
        assert f"`{function.usage}`" in PAGE, function.name
    for action in (*ACTIONS, SUBSCRIBE):
        assert f"`{action}`" in PAGE, action
    raised = {
        name
        for file in SOURCE.rglob("*.py")
        for name in re.findall(r'fail\(.*"([a-z]+(?:-[a-z]+)*)"\)$', file.read_text(), re.MULTILINE)
    }
    assert {"syntax", "pattern-type", "union-empty"} <= raised, "the search still works"
    for name in raised | {check.__name__.replace("_", "-") for check in CHECKS}:
        assert f"`{name}`" in PAGE, name
    assert f"`{_CODE}`" in PAGE


def test_the_nine_events_are_listed_with_their_fields() -> None:
    assert isinstance(ACTION_TYPE, Union)
    for tag in ACTION_TYPE.tags:
        (row,) = [line for line in PAGE.splitlines() if re.search(rf"^\| [^|]*`{tag.name}`[^|]* \|", line)]
        assert isinstance(tag.type, Tuple)
        for each in tag.type.fields:
            assert f"`{each.name}`" in row or "those of `AddArc`" in row, (tag.name, each.name)


def test_the_events_of_the_table_of_types_are_what_it_says() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| [^|]+ \| `[^|]+` \| `", line)]
    checked = 0
    for row in rows:
        if len(row) != 4:
            continue
        types, events, bodies = (re.findall(r"`([^`]+)`", cell) for cell in row[1:])
        type = parse(types[0])
        for event in events:
            assert canonical(parse_event(event, type, "page"), type) == bodies[0], event
            checked += 1
    assert checked == 13
