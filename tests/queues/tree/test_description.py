"""The Queue Description Language, by examples in ``descriptions/`` and by chance.

An example is a description, a line ``--- expect``, and what becomes of it: the printed tree, or one line
``error LINE:COLUMN [rule]`` for each problem. ``<A/B>`` stands for the hash that the tests give the password at that
path, and ``--- 1000 times: LINE`` for a thousand lines, in which ``#`` counts.
"""

from __future__ import annotations

import pickle
import re
import time
from base64 import b64encode
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from postroom.errors import DescriptionInvalid
from postroom.model.definitions import Position, Problem
from postroom.queues.tree.checks import check, paths
from postroom.queues.tree.description import Entry, parse
from postroom.queues.tree.hierarchy import levels_of, printed

EVERY_CLAUSE = (
    "PASSWORD, COMMAND LINE, TIMEOUT, LEASE, ATTEMPTS, BACKOFF, BACKOFF-MAX, DEAD-LETTERS, ORDER, EXPIRED, "
    "MESSAGES-MAX, BYTES-MAX, AGE-MAX, RETRY and WHEN-FULL, each with IS"
)
EXAMPLES = {path.stem: path for path in sorted((Path(__file__).parent / "descriptions").glob("*.txt"))}
SHORT = [name for name in EXAMPLES if not name.startswith(("size", "entries"))]


def secret(path: str) -> str:
    """A complete hash in form; no password fits it."""
    digest = b64encode(blake2b(path.encode(), digest_size=32).digest()).decode().rstrip("=")
    return f"$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0c2FsdA${digest}"


def example(name: str) -> tuple[str, str]:
    source, _, expected = EXAMPLES[name].read_bytes().decode().partition("--- expect\n")
    return _repeated(source), re.sub(r"<([^>]+)>", lambda match: secret(match[1]), _repeated(expected))


def _repeated(text: str) -> str:
    def times(match: re.Match[str]) -> str:
        return "".join(match[2].replace("#", str(number)) for number in range(int(match[1])))

    return re.sub(r"^--- (\d+) times: (.*\n)", times, text, flags=re.MULTILINE)


def meaning(text: str) -> str:
    entries = parse(text, "test.qdl")
    check(entries)
    secrets = {
        path: entry.password_hash or secret(path)
        for path, entry in zip(paths(entries), entries, strict=True)
        if entry.password_hash or entry.password
    }
    return printed(levels_of(entries), secrets)


def problems(text: str) -> list[Problem]:
    with pytest.raises(DescriptionInvalid) as caught:
        meaning(text)
    found: list[Problem] = caught.value.facts["problems"]
    assert caught.value.code == "description-invalid"
    assert str(caught.value).startswith(str(found[0]))
    return found


def outcome(text: str) -> str:
    """The printed tree or the problems; each problem must be at a place that the text has."""
    try:
        return meaning(text)
    except DescriptionInvalid as error:
        found: list[Problem] = error.facts["problems"]
    lines = text.split("\n")
    for place in (problem.position for problem in found):
        assert place.file == "test.qdl"
        assert 1 <= place.line <= len(lines)
        assert 1 <= place.column <= len(lines[place.line - 1]) + 1
    return "".join(f"error {each.position.line}:{each.position.column} [{each.rule}]\n" for each in found)


# --- by examples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_means_what_it_says(name: str) -> None:
    source, expected = example(name)
    assert expected
    assert outcome(source) == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_printed_parses_back_to_itself(name: str) -> None:
    _, expected = example(name)
    if not expected.startswith("error"):
        assert meaning(expected) == expected


@pytest.mark.parametrize("name", SHORT)
def test_line_ends_of_windows_change_nothing(name: str) -> None:
    source, expected = example(name)
    assert outcome(re.sub("\r?\n", "\r\n", source)) == expected


@pytest.mark.parametrize("name", SHORT)
def test_blank_lines_and_comments_between_the_lines_change_nothing_but_the_line_numbers(name: str) -> None:
    source, expected = example(name)
    spaced = "".join(f"\n* comment\n{line}" for line in source.splitlines(keepends=True))
    lines = re.sub(r"^error (\d+)", lambda match: f"error {3 * int(match[1])}", expected, flags=re.MULTILINE)
    # Where the text ends too early, the place is its end, and no comment stands after that.
    at_the_end = f"error {3 * source.count(chr(10)) + 1}"
    assert outcome(spaced) == lines.replace(f"error {3 * source.count(chr(10)) + 3}", at_the_end)


@pytest.mark.parametrize("name", [name for name in SHORT if not example(name)[1].startswith("error")])
def test_a_byte_order_mark_and_anything_after_99_change_nothing(name: str) -> None:
    source, expected = example(name)
    marked = source if source.startswith("*") else "\ufeff" + source
    assert outcome(marked + '\n"§ (\n01 INPUT-QUEUE') == expected


def test_the_examples_of_unusual_bytes_still_have_them() -> None:
    assert EXAMPLES["crlf"].read_bytes().count(b"\r\n") == 7
    assert EXAMPLES["byte-order-mark"].read_bytes().startswith(b"\xef\xbb\xbf01")
    assert EXAMPLES["tabs-and-blank-lines"].read_bytes().count(b"\t") == 11


def test_an_entry_keeps_what_was_written_and_where() -> None:
    text = '\n 01 input-queue ( A ) password is "P1 "\n02 SUB-QUEUE-1\n(B) COMMAND LINE IS " go " 99'
    assert parse(text, "f.qdl") == (
        Entry(1, "INPUT-QUEUE", "A", Position("f.qdl", 2, 2), password="P1 "),
        Entry(2, "SUB-QUEUE-1", "B", Position("f.qdl", 3, 1), command=" go "),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("01 INPUT-QUEUE (A)", "test.qdl:1:19: the description must end with level 99 [end-required]"),
        (
            '01 INPUT-QUEUE (A) PASSWORD IS "X',
            "test.qdl:1:32: a quoted string has no closing quote on its line [syntax]",
        ),
        ("01 INPUT-QUEUE (A", "test.qdl:1:16: a name has no closing parenthesis on its line [syntax]"),
        ("01 INPUT-QUEUE (A);", "test.qdl:1:19: the character ';' is not in the language [syntax]"),
        ("1 INPUT-QUEUE (A)", "test.qdl:1:1: a level number (01 to 04, or 99) is expected, not 1 [syntax]"),
        ("01", "test.qdl:1:3: INPUT-QUEUE, OUTPUT-QUEUE or SUB-QUEUE-n is expected, but the text ends [syntax]"),
        ("01 QUEUE (A)", "test.qdl:1:4: INPUT-QUEUE, OUTPUT-QUEUE or SUB-QUEUE-n is expected, not QUEUE [syntax]"),
        ("01 INPUT-QUEUE A", "test.qdl:1:16: a name in parentheses is expected, not A [syntax]"),
        ("01 INPUT-QUEUE (A) PASSWORD IS X", "test.qdl:1:32: a password in double quotes is expected, not X [syntax]"),
        (
            "07 INPUT-QUEUE (A)",
            "test.qdl:1:1: level 07 does not exist; levels are 01 to 04, and 99 at the end [levels]",
        ),
        (
            '01 OUTPUT-QUEUE (A) STATION NAME IS "X"',
            f"test.qdl:1:21: STATION is not accepted here; what is: {EVERY_CLAUSE} [no-station]",
        ),
        (
            "01 INPUT-QUEUE (A) MAX-MESSAGES IS 1000",
            "test.qdl:1:20: MAX-MESSAGES is no clause (did you mean MESSAGES-MAX?); "
            f"the clauses are {EVERY_CLAUSE} [syntax]",
        ),
        (
            "01 INPUT-QUEUE (A) ATEMPTS IS 3",
            f"test.qdl:1:20: ATEMPTS is no clause (did you mean ATTEMPTS?); the clauses are {EVERY_CLAUSE} [syntax]",
        ),
        (
            "01 INPUT-QUEUE (A) COLOUR IS 3",
            f"test.qdl:1:20: COLOUR is no clause; the clauses are {EVERY_CLAUSE} [syntax]",
        ),
    ],
)
def test_a_mistake_is_told_in_a_sentence_with_its_place_and_rule(text: str, said: str) -> None:
    assert [str(problem) for problem in problems(text)] == [said]


def test_the_error_survives_a_process_border_with_all_its_problems() -> None:
    with pytest.raises(DescriptionInvalid) as caught:
        meaning("01 OUTPUT-QUEUE (-) 99")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.facts) == (str(caught.value), caught.value.facts)
    assert [problem.rule for problem in copy.facts["problems"]] == ["input-required", "name-form"]


# --- by chance ---------------------------------------------------------------------------------------------------

VALID = [source for source, expected in map(example, SHORT) if not expected.startswith("error")]


def is_empty(text: str) -> bool:
    """Whether nothing stands before 99; that is a gap with a test of its own."""
    try:
        return not parse(text, "test.qdl")
    except DescriptionInvalid:
        return False


CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1), st.integers(0, 6), st.binary(max_size=4) | st.sampled_from([b'"', b"(", b")", b"99", b"*"])
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(VALID), CHANGES)
def test_a_damaged_description_is_understood_or_invalid_and_nothing_else(
    text: str, changes: list[tuple[float, int, bytes]]
) -> None:
    damaged = text.encode()
    for where, cut, put in changes:
        at = int(where * len(damaged))
        damaged = damaged[:at] + put + damaged[at + cut :]
    broken = damaged.decode(errors="surrogateescape")
    assume(not is_empty(broken))
    started = time.process_time()
    outcome(broken)
    assert time.process_time() - started < 1


WORDS = (
    '01 02 03 04 05 99 INPUT-QUEUE OUTPUT-QUEUE SUB-QUEUE-1 SUB-QUEUE-2 (A) (B) () PASSWORD HASH IS "P" COMMAND LINE'
)
ENTRIES = [
    "01 INPUT-QUEUE (A)",
    "02 SUB-QUEUE-1 (B)",
    "03 SUB-QUEUE-2 (C)",
    "04 SUB-QUEUE-3 (D)",
    "01 OUTPUT-QUEUE (E)",
]
CLAUSES = ['PASSWORD IS "P"', 'COMMAND LINE IS "c"', "PROCESSOR", "\n", "* c\n"]


@settings(deadline=None, max_examples=250)
@given(st.lists(st.sampled_from([*WORDS.split(), *ENTRIES, *ENTRIES, *CLAUSES]), max_size=20))
def test_words_in_any_order_are_understood_or_invalid_and_nothing_else(words: list[str]) -> None:
    text = " ".join([*words, "99"])
    assume(not is_empty(text))
    found = outcome(text)
    if not found.startswith("error"):
        assert meaning(found) == found


@pytest.mark.parametrize("piece", ['"', "(", ")", "()", '""', "*", "* \n", " ", "\n", "0", "99", "01 INPUT-QUEUE (A) "])
def test_a_long_hostile_text_is_answered_quickly(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    assert outcome(text).startswith("error")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("before", ["\ufeff", "\f"])
def test_a_comment_may_stand_after_a_byte_order_mark_or_a_form_feed(before: str) -> None:
    assert meaning(f"{before}* comment\n01 INPUT-QUEUE (A)\n99\n") == "01 INPUT-QUEUE (A)\n99\n"


def test_nothing_but_99_is_an_empty_tree_or_lacks_its_input_queue() -> None:
    assert outcome("99\n") in ("99\n", "error 1:1 [input-required]\n")
