"""Status keys: two digits, and those of answers are not those of refusals."""

from __future__ import annotations

import re

from postroom.errors import every_error
from postroom.queues import status


def test_an_answer_has_a_key_that_no_refusal_has() -> None:
    answers = {status.DONE, status.QUEUED, status.ALREADY}
    assert all(re.fullmatch(r"\d\d", key) for key in answers)
    assert len(answers) == 3
    assert answers.isdisjoint({kind.status for kind in every_error()})


def test_the_error_key_of_a_destination_tells_whether_it_was_served() -> None:
    assert (status.SERVED, status.REFUSED) == ("0", "1")


def test_every_key_of_the_program_interface_is_in_the_table() -> None:
    ansi = {"00", "10", "15", "20", "21", "30", "40", "50", "60", "70", "80"}
    assert ansi <= status.KEYS.keys()
    assert {kind.status for kind in every_error()} <= status.KEYS.keys() | {"99"}
    assert all(re.fullmatch(r"\d\d", key) and said for key, said in status.KEYS.items())


def test_two_of_10_15_and_20_are_80_and_any_other_counts_more() -> None:
    assert status.combined([]) == status.combined(["00", "00"]) == "00"
    assert [status.combined([key, "00"]) for key in ("10", "15", "20", "40")] == ["10", "15", "20", "40"]
    assert status.combined(["10", "15"]) == status.combined(["10", "15", "20"]) == "80"
    assert status.combined(["10", "20", "91"]) == "91"


def test_a_destination_has_the_error_key_of_its_status() -> None:
    keys = [status.error_key(key) for key in ("00", "20", "10", "70", "15", "92")]
    assert keys == ["0", "1", "2", "4", "5", "9"]
    assert set(keys) <= status.ERROR_KEYS.keys()
