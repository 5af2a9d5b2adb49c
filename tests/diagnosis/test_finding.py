"""Findings: their order, their number, and what a check says that finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from postroom.diagnosis.finding import Case, Check, Finding, Severity, Told, note, ok, warning, wrong
from postroom.limits import FINDINGS_MAX

NO_CASE = cast(Case, None)  # these checks look at nothing


def check(*told: Told) -> list[Finding]:
    def look(_: Case) -> Iterator[Told]:
        yield from told

    return Check("example", "all is well", look).findings(NO_CASE)


def test_a_check_that_finds_nothing_says_that_it_is_fine() -> None:
    assert check() == [Finding(Severity.OK, "example", "all is well")]


def test_the_worst_is_told_first_and_equals_stay_in_their_order() -> None:
    found = check(ok("a"), warning("b", "w", "do b"), note("c", "n"), wrong("d", "x", "do d"), warning("e", "w", ""))
    assert [each.what for each in found] == ["d", "b", "e", "c", "a"]
    assert found[0].as_dict() == {
        "severity": "wrong",
        "check": "example",
        "finding": "d",
        "concerns": "x",
        "do": "do d",
    }


def test_more_than_can_be_read_is_a_number() -> None:
    many = [warning(str(number), "here", "") for number in range(FINDINGS_MAX + 3)]
    found = check(*many, wrong("worst", "here", ""))
    assert len(found) == FINDINGS_MAX + 1
    assert found[0].what == "worst"
    assert (found[-1].level, found[-1].what) == (Severity.NOTE, "and 4 more")
    assert len(check(*many[:FINDINGS_MAX])) == FINDINGS_MAX


@pytest.mark.parametrize(
    ("level", "problem"),
    [(Severity.OK, False), (Severity.NOTE, False), (Severity.WARNING, True), (Severity.WRONG, True)],
)
def test_a_problem_is_what_a_person_should_see_to(level: Severity, problem: bool) -> None:
    assert level.is_problem is problem
    assert level.is_ok is (level == "ok")
    assert level.is_wrong is (level == "wrong")
