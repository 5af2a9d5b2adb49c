"""Tests of the processes that the tests of faults let work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.faults import forked


@pytest.fixture
def threads_that_alternate() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("threads_that_alternate")
def test_processes_that_end_at_once_each_have_their_own_exit_code(tmp_path: Path) -> None:
    def code_of(number: int) -> int:
        folder = tmp_path / str(number)
        folder.mkdir()
        return forked.run(sys.exit, 1 + number % 9, folder=folder).code

    with ThreadPoolExecutor(max_workers=2) as pool:
        codes = list(pool.map(code_of, range(200)))
    assert codes == [1 + number % 9 for number in range(200)]
