"""A test of a capability is in the slice once, on one store or the other; tests of stores are there on both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import pytest
from tests.slices import STORES, leave_out


@dataclass
class Collected:
    """A test as pytest has it, as far as it is looked at."""

    nodeid: str
    slow: bool = False

    def get_closest_marker(self, name: str) -> str | None:
        assert name == "slow"
        return name if self.slow else None

    def add_marker(self, name: str) -> None:
        assert name == "slow"
        self.slow = True


def in_slice(tests: Iterable[Collected]) -> list[str]:
    tests = list(tests)
    leave_out(cast(list[pytest.Item], tests))
    return [test.nodeid for test in tests if not test.slow]


def both(name: str) -> list[Collected]:
    return [Collected(name.replace("STORE", store)) for store in STORES]


@pytest.mark.parametrize("place", ["[STORE]", "[STORE-{}]", "[{}-STORE]", "[a-STORE-{}]"])
def test_a_test_of_a_capability_is_there_on_one_store_and_each_store_has_half_of_them(place: str) -> None:
    names = [f"tests/rules/test_it.py::test_{number}{place.format(number)}" for number in range(100)]
    left = in_slice(test for name in names for test in both(name))
    assert [name.replace("sqlite", "STORE").replace("postgres", "STORE") for name in left] == names, "each once"
    assert 30 < sum("sqlite" in name for name in left) < 70
    assert left == in_slice(test for name in names for test in both(name)), "the same in each run"


def test_tests_of_stores_and_of_one_store_stay() -> None:
    names = [
        "tests/store/test_it.py::test_put[STORE]",
        "tests/queues/test_it.py::test_send[STORE-1]",
        "tests/faults/test_kill.py::test_kill[STORE-kill]",
    ]
    assert len(in_slice(test for name in names for test in both(name))) == 6
    alone = [
        Collected("tests/rules/test_it.py::test_one[postgres]"),
        Collected("tests/rules/test_it.py::test_plain"),
        Collected("tests/rules/test_it.py::test_word[a word of sqlite]"),
        Collected("tests/rules/test_it.py::test_two[sqlite-postgres]"),
    ]
    assert len(in_slice(alone)) == 4


def test_a_test_that_is_slow_on_one_store_stays_on_the_other() -> None:
    tests = both("tests/flows/test_it.py::test_much[STORE]")
    tests[0].slow = True
    assert in_slice(tests) == [tests[1].nodeid]
