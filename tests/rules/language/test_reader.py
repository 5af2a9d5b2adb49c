"""The definition language, by examples in ``fixtures/language/``.

An example is a program, a line ``--- expect``, and what becomes of it: one line for each definition with its place, or
one line ``error LINE:COLUMN [rule]`` for each problem.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import ProgramInvalid
from postroom.rules.language.definitions import (
    AnyDefinition,
    Expression,
    ModuleDefinition,
    Program,
    PropertyDefinition,
    QueueDefinition,
    RuleDefinition,
    SlicingDefinition,
    SystemDefinition,
    as_catalog,
    from_catalog,
)
from postroom.rules.language.reader import TYPES, parse

EXAMPLES = {path.stem: path for path in sorted((Path(__file__).parent / "fixtures" / "language").glob("*.txt"))}


def example(name: str) -> tuple[str, str]:
    source, _, expected = EXAMPLES[name].read_text().partition("\n--- expect\n")
    return source, expected


def said(expression: Expression) -> str:
    return f"{expression.text.replace(chr(10), '⏎')} @{expression.line}:{expression.column}"


def shown(definition: AnyDefinition) -> str:
    """A definition on one line: its place, what it is, and all that differs from nothing."""
    place = definition.position
    words = [f"{place.line}:{place.column} {definition.what} {definition.name}"]
    if isinstance(definition, QueueDefinition):
        words += [f"kind={definition.kind} mode={definition.mode}"]
        words += [f"priority={definition.priority}"] if definition.priority else []
        for clause in ("schema", "errorqueue", "interface", "port"):
            value = getattr(definition, clause)
            words += [f"{clause}={value}"] if value is not None else []
        if definition.policies:
            words.append(f"policies={','.join(f'{each.extension}:{each.file}' for each in definition.policies)}")
    elif isinstance(definition, PropertyDefinition):
        words.append(f"as={definition.type}")
        words += [flag for flag in ("fixed", "inherited") if getattr(definition, flag)]
        for value in definition.values:
            words.append(f"queue {','.join(value.queues)}" + (f" value {said(value.value)}" if value.value else ""))
    elif isinstance(definition, SlicingDefinition):
        words.append(f"on={definition.property}")
    elif isinstance(definition, RuleDefinition):
        words.append(f"for={definition.target}")
        words += [f"errorqueue={definition.errorqueue}"] if definition.errorqueue else []
        words.append(f"body={said(definition.body)}")
    elif isinstance(definition, (ModuleDefinition, SystemDefinition)) and definition.errorqueue:
        words.append(f"errorqueue={definition.errorqueue}")
    return " ".join(words)


def outcome(text: str) -> str:
    try:
        return "".join(f"{shown(each)}\n" for each in parse(text, "some/file.demaq"))
    except ProgramInvalid as error:
        problems = error.facts["problems"]
    lines = text.split("\n")
    for problem in problems:
        assert problem.position.file == "some/file.demaq"
        assert 1 <= problem.position.line <= len(lines)
        assert 1 <= problem.position.column <= len(lines[problem.position.line - 1]) + 1
    return "".join(f"error {each.position.line}:{each.position.column} [{each.rule}]\n" for each in problems)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_means_what_it_says(name: str) -> None:
    source, expected = example(name)
    assert outcome(source) == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_comments_and_blank_lines_between_change_nothing_but_the_places(name: str) -> None:
    source, expected = example(name)
    lower = re.sub(r"(?m)^(error )?(\d+):|@(\d+):", _two_lines_on, expected)
    # The module of a file without a name begins with the file.
    assert outcome(f"(: one\n   two :)\n{source}") == lower.replace("3:1 module file", "1:1 module file")


def _two_lines_on(match: re.Match[str]) -> str:
    error, line, value = match.groups()
    return f"@{int(value) + 2}:" if value else f"{error or ''}{int(line) + 2}:"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not example(name)[1].startswith("error")])
def test_definitions_come_back_from_the_catalog_as_they_were(name: str) -> None:
    found = parse(example(name)[0], "file.demaq")
    assert tuple(from_catalog(as_catalog(each)) for each in found) == found


def test_every_definition_belongs_to_the_module_of_its_file() -> None:
    unnamed = parse("create collection c", "some/where/shop.demaq")
    assert [(each.what, each.name, each.module) for each in unnamed] == [
        ("module", "shop", "shop"),
        ("collection", "c", "shop"),
    ]
    named = parse("create collection c create module m create collection d", "shop.demaq")
    assert {each.module for each in named} == {"m"}


@pytest.mark.parametrize("type", TYPES)
def test_every_type_of_a_property_is_read(type: str) -> None:
    (_, found) = parse(f"create property p as xs:{type} queue a", "f.demaq")
    assert isinstance(found, PropertyDefinition)
    assert found.type == type


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("create queue a kind basic", "mode is missing at the end of the statement"),
        ("create queue a kind red mode persistent", "basic or echo or incomingGateway or outgoingGateway is wanted"),
        ("create queue a kind basic mode persistent kind echo", "kind stands twice"),
        ("create slicing s on p on", "the end of the statement, or create, is wanted here, not 'on'"),
        ("create property p as xs:colour queue a", "xs:colour is not a type; known are xs:anyURI"),
        ("create rule r for a", "the rule's body, if (…) then …, is missing"),
        ("select", "a statement begins with create and one of collection, module, property, queue, rule"),
    ],
)
def test_a_problem_is_told_in_a_sentence(text: str, what: str) -> None:
    with pytest.raises(ProgramInvalid) as caught:
        parse(text, "f.demaq")
    assert what in str(caught.value)
    assert caught.value.code == "program-invalid"


def test_the_error_survives_a_process_border_with_all_its_problems() -> None:
    with pytest.raises(ProgramInvalid) as caught:
        parse("create queue a create queue b", "f.demaq")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.facts) == (str(caught.value), caught.value.facts)
    assert str(copy).endswith("(and 1 more: postroom load --check lists them)")


def test_a_program_knows_what_watches_what() -> None:
    program = Program(
        parse(
            """create queue a kind basic mode persistent priority 4 create queue b kind basic mode persistent
            create property p as xs:string queue a, c create slicing s on p
            create rule one for b if (x) then do reset create rule two for s if (x) then do reset
            create rule three for a if (x) then do reset""",
            "f.demaq",
        )
    )
    assert program.watched == {"b": 0, "a": 4, "c": 0}
    assert [rule.name for rule in program.rules_of("a")] == ["two", "three"]
    assert [rule.name for rule in program.rules_of("c")] == ["two"]
    assert program.sliced(program.slicings["s"]) == ("a", "c")


def test_error_queues_are_told_from_the_nearest_to_the_last() -> None:
    program = Program(
        parse(
            """create module m errorqueue e3 create system errorqueue e4
            create queue a kind basic mode persistent errorqueue e2
            create queue e2 kind basic mode persistent
            create rule r for a errorqueue e1 if (x) then do reset
            create rule s for e3 if (x) then do reset""",
            "f.demaq",
        )
    )
    assert program.error_queues("a", "r") == ["e1", "e2", "e3", "e4", "postroom-errors"]
    assert program.error_queues("a", None) == ["e2", "e3", "e4", "postroom-errors"]
    assert program.error_queues("e3", "s") == ["e4", "postroom-errors"]
    assert program.error_queues("unknown", None) == ["e4", "postroom-errors"]


def test_a_module_takes_the_place_of_the_one_of_its_name() -> None:
    first = Program(parse("create module a create collection x create collection y", "f.demaq"))
    both = first.with_modules(parse("create module b create collection z", "g.demaq"))
    again = both.with_modules(parse("create module a create collection w", "f.demaq"))
    assert list(both.collections) == ["x", "y", "z"]
    assert list(again.collections) == ["z", "w"]


VALID = [source for source, expected in map(example, EXAMPLES) if not expected.startswith("error")]


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(
            st.floats(0, 1), st.integers(0, 5), st.sampled_from(["", '"', "(", "}", "<", "(:", " create ", ";", "é"])
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_a_damaged_program_is_understood_or_invalid_and_nothing_else(
    text: str, changes: list[tuple[float, int, str]]
) -> None:
    for where, cut, put in changes:
        at = int(where * len(text))
        text = text[:at] + put + text[at + cut :]
    outcome(text)
