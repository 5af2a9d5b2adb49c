"""The rules of a description, each on its own and all at once."""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import DescriptionInvalid
from postroom.limits import COMMAND_CHARS_MAX, HIERARCHY_ENTRIES_MAX, NAME_CHARS_MAX, PASSWORD_CHARS_MAX
from postroom.model.definitions import Position, Problem
from postroom.queues.tree import checks, description
from postroom.queues.tree.description import Entry, parse
from postroom.queues.tree.hierarchy import Level, levels_of, printed

HASH = "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0c2FsdA$4dPRYxNhFm+kuuWJtDXyXoEWIWIYBTyMsm6wMmXTwCI"
CLAUSES = {1: "INPUT-QUEUE", 2: "SUB-QUEUE-1", 3: "SUB-QUEUE-2", 4: "SUB-QUEUE-3"}


def broken(text: str) -> list[str]:
    """The rules that a description breaks, in the order of the text."""
    try:
        checks.check(parse(text, "test.qdl"))
    except DescriptionInvalid as error:
        return [problem.rule for problem in error.facts["problems"]]
    return []


def entry(level: int, name: str, line: int = 1, command: str | None = None) -> Entry:
    return Entry(level, CLAUSES[level], name, Position("test.qdl", line), command=command)


# --- every rule has an example -----------------------------------------------------------------------------------


def rules_in_examples() -> set[str]:
    found = set()
    for path in (Path(__file__).parent / "descriptions").glob("*.txt"):
        found.update(re.findall(r"^error \d+:\d+ \[(.+)\]$", path.read_bytes().decode(), flags=re.MULTILINE))
    return found


def rules_in_the_reader() -> set[str]:
    """The last argument of every ``fail(position, what, rule)``; a rule that is put together becomes a pattern."""
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(description))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail":
            rule = node.args[2]
            parts = rule.values if isinstance(rule, ast.JoinedStr) else [rule]
            found.add("".join(str(part.value) if isinstance(part, ast.Constant) else ".+" for part in parts))
    return found


def test_every_check_has_an_example() -> None:
    names = [rule.__name__.replace("_", "-") for rule in checks.CHECKS]
    assert len(set(names)) == len(names) == 12
    assert set(names) - rules_in_examples() == set()


def test_every_rule_of_the_reader_has_an_example() -> None:
    patterns = rules_in_the_reader()
    assert {"syntax", "levels", "end-required", "clause-once", "size", "no-.+"} <= patterns
    for pattern in patterns:
        assert any(re.fullmatch(pattern, rule) for rule in rules_in_examples()), pattern
    assert {"no-processor", "no-station"} <= rules_in_examples()


def test_every_example_names_a_rule_that_exists() -> None:
    known = [*rules_in_the_reader(), *(rule.__name__.replace("_", "-") for rule in checks.CHECKS)]
    for rule in rules_in_examples():
        assert any(re.fullmatch(pattern, rule) for pattern in known), rule


# --- sentences and limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("01 OUTPUT-QUEUE (A)", "a description needs at least one 01 INPUT-QUEUE"),
        ("01 INPUT-QUEUE (A) 03 SUB-QUEUE-1 (B)", "SUB-QUEUE-1 stands at level 02, not 03"),
        ("01 INPUT-QUEUE (A) 03 SUB-QUEUE-2 (B)", "level 03 needs a level 02 directly above it"),
        (
            "01 INPUT-QUEUE (A) 01 OUTPUT-QUEUE (B) 02 SUB-QUEUE-1 (C)",
            "an output queue has only the 01 level; C cannot",
        ),
        ("01 INPUT-QUEUE (ABCDEFGHIJKLM)", "the name 'ABCDEFGHIJKLM' has 13 characters; at most 12 are allowed"),
        ("01 INPUT-QUEUE (A_B)", "the name 'A_B' must be letters, digits and inner hyphens"),
        ("01 INPUT-QUEUE (A) 02 SUB-QUEUE-1 (B) 02 SUB-QUEUE-1 (B)", "A B is defined twice"),
        ('01 INPUT-QUEUE (A) PASSWORD IS "?"', "the password of A must be letters and digits, at least one"),
        ('01 INPUT-QUEUE (A) PASSWORD IS "ABCDEFGHIJK"', "the password of A is longer than 10 characters"),
        ('01 INPUT-QUEUE (A) PASSWORD HASH IS "X"', "the password hash of A is not a complete argon2id hash"),
        ('01 INPUT-QUEUE (A) COMMAND LINE IS ""', "the command line of A names no program"),
        ('01 INPUT-QUEUE (A) COMMAND LINE IS "it\'s"', "the command line of A cannot be split into words: No closing"),
        ('01 INPUT-QUEUE (A) 01 OUTPUT-QUEUE (B) COMMAND LINE IS "x"', "a command line belongs to input queues; B is"),
        (
            '01 INPUT-QUEUE (A) COMMAND LINE IS "x" 02 SUB-QUEUE-1 (B) COMMAND LINE IS "y"',
            "the command line of A covers B and cannot be redefined below it",
        ),
    ],
)
def test_a_broken_rule_is_told_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(DescriptionInvalid) as caught:
        checks.check(parse(f"{text} 99", "test.qdl"))
    assert said in [problem.what[: len(said)] for problem in caught.value.facts["problems"]]


def test_a_secret_is_not_repeated_in_the_error() -> None:
    with pytest.raises(DescriptionInvalid) as caught:
        checks.check(parse('01 INPUT-QUEUE (A) PASSWORD IS "not-a-good-one" 99', "test.qdl"))
    assert "not-a-good-one" not in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "most", "rule"),
    [
        ("01 INPUT-QUEUE ({})", NAME_CHARS_MAX, "name-form"),
        ('01 INPUT-QUEUE (A) PASSWORD IS "{}"', PASSWORD_CHARS_MAX, "password-form"),
        ('01 INPUT-QUEUE (A) COMMAND LINE IS "{}"', COMMAND_CHARS_MAX, "command-form"),
    ],
)
def test_a_length_is_bounded_exactly(shape: str, most: int, rule: str) -> None:
    assert broken(shape.format("x" * most) + " 99") == []
    assert broken(shape.format("x" * (most + 1)) + " 99") == [rule]


@pytest.mark.parametrize("shape", ["01 INPUT-QUEUE (Q{})", "01 OUTPUT-QUEUE (Q{})", "02 SUB-QUEUE-1 (Q{})"])
def test_entries_of_every_clause_count_towards_the_thousand(shape: str) -> None:
    most = ["01 INPUT-QUEUE (TOP)", *(shape.format(number) for number in range(HIERARCHY_ENTRIES_MAX - 1))]
    assert broken("\n".join([*most, "99"])) == []
    assert broken("\n".join([*most, shape.format("MORE"), "99"])) == ["entries-bounded"]


def test_the_error_shows_the_first_problem_and_counts_the_others() -> None:
    with pytest.raises(
        DescriptionInvalid, match=r"^test.qdl:1:1: .* \[name-form\] \(and 2 more: postroom load --check"
    ):
        checks.check(parse("01 INPUT-QUEUE (-) 01 INPUT-QUEUE (-) 99", "test.qdl"))
    with pytest.raises(DescriptionInvalid, match=r"\[name-form\]$"):
        checks.check(parse("01 INPUT-QUEUE (-) 99", "test.qdl"))


def test_problems_of_one_entry_stand_in_the_order_of_the_checks() -> None:
    order = [rule.__name__.replace("_", "-") for rule in checks.CHECKS]
    found = broken('02 OUTPUT-QUEUE (-) PASSWORD IS "" COMMAND LINE IS "x" 99')
    assert found == ["input-required", "clause-level", "level-skipped", "name-form", "password-form", "command-form"]
    assert found == sorted(found, key=order.index)


# --- by chance ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_levels_are_in_order_when_none_goes_down_by_more_than_one(levels: list[int]) -> None:
    entries = [entry(level, f"Q{line}", line) for line, level in enumerate(levels, 1)]
    skipped = [found.position.line for found, _ in checks.level_skipped(entries)]
    assert skipped == [line for line, (above, level) in enumerate(pairwise([0, *levels]), 1) if level - above > 1]


@st.composite
def levels_in_order(draw: st.DrawFn) -> list[int]:
    levels = [1]
    for _ in range(draw(st.integers(0, 11))):
        levels.append(draw(st.integers(1, min(levels[-1] + 1, 4))))
    return levels


@settings(deadline=None, max_examples=200)
@given(levels_in_order(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_command_is_redefined_exactly_where_one_stands_on_the_path_above(levels: list[int], has: list[bool]) -> None:
    entries = [entry(level, f"Q{line}", line, "run" if has[line - 1] else None) for line, level in enumerate(levels, 1)]
    places = checks.paths(entries)
    commanded = {path for path, each in zip(places, entries, strict=True) if each.command}
    expected = [
        line
        for line, path in enumerate(places, 1)
        if path in commanded and any(path.startswith(f"{up}/") for up in commanded)
    ]
    assert [found.position.line for found, _ in checks.command_redefined(entries)] == expected


NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,10}[A-Za-z0-9])?", fullmatch=True)
COMMANDS = st.text("abc xyz-./$;*()&|<>%§é\t", min_size=1, max_size=20).filter(lambda text: bool(text.strip()))


@st.composite
def trees(draw: st.DrawFn, above: str = "", level: int = 1, covered: bool = False) -> list[Level]:
    names = draw(st.lists(NAMES, min_size=1 if level == 1 else 0, max_size=3, unique=True))
    found: list[Level] = []
    for number, name in enumerate(names):
        # The first is an input queue: a description needs one.
        role = draw(st.sampled_from(["input", "output"])) if level == 1 and number else "input"
        command = None if covered or role == "output" else draw(st.none() | COMMANDS)
        path = f"{above}{name}"
        below: list[Level] = []
        if level < 4 and role == "input":
            below = draw(trees(above=f"{path}/", level=level + 1, covered=covered or command is not None))
        timeout = None if command is None else draw(st.none() | st.integers(1, 86_400))
        found += [Level(path, level, role, not below, command, timeout, draw(st.booleans())), *below]
    return found


@settings(deadline=None, max_examples=60)
@given(trees())
def test_every_tree_prints_as_a_description_that_loads_to_the_same_tree(tree: list[Level]) -> None:
    secrets = {level.path: HASH[:-3] + f"{number % 10}CI" for number, level in enumerate(tree) if level.password}
    text = printed(tree, secrets)
    entries = parse(text, "test.qdl")
    checks.check(entries)
    assert levels_of(entries) == tree
    assert printed(levels_of(entries), secrets) == text
    hashes = {path: each.password_hash for path, each in zip(checks.paths(entries), entries, strict=True)}
    assert {path: hash for path, hash in hashes.items() if hash} == secrets
    assert [each.position.line for each in entries] == list(range(1, len(tree) + 1))


def test_a_skipped_level_makes_no_false_double() -> None:
    assert broken("01 INPUT-QUEUE (A) 03 SUB-QUEUE-2 (X) 02 SUB-QUEUE-1 (X) 99") == ["level-skipped"]


@pytest.mark.parametrize("command", ["''", "'' x", "run \0"])
def test_a_command_line_that_no_system_can_run_is_refused(command: str) -> None:
    assert broken(f'01 INPUT-QUEUE (A) COMMAND LINE IS "{command}" 99') == ["command-form"]


def test_a_name_with_terminal_codes_is_not_shown_raw() -> None:
    with pytest.raises(DescriptionInvalid) as caught:
        checks.check(parse("01 INPUT-QUEUE (\x1b[31m-a-long-name) 99", "test.qdl"))
    first: Problem = caught.value.facts["problems"][0]
    assert "\x1b" not in first.what
