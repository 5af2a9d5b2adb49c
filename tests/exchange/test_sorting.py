"""Sorting more than fits into memory."""

from __future__ import annotations

import random

import pytest

from postroom.exchange import sorting
from postroom.exchange.sorting import Sorter


@pytest.mark.parametrize(("rows", "files", "count"), [(1000, 8, 100), (7, 3, 1000), (10, 2, 40), (5, 4, 0)])
def test_records_come_back_in_their_order(rows: int, files: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "SORT_ROWS", rows)
    monkeypatch.setattr(sorting, "SORT_FILES_MAX", files)
    records = [(number % 17, number, f"é\n\u2028{number}", None) for number in range(count)]
    random.Random(7).shuffle(records)
    with Sorter() as sorter:
        for record in records:
            sorter.add(record)
        assert len(sorter._runs) <= files
        assert len(sorter._rows) < rows
        assert list(sorter.sorted()) == sorted(records)
    assert all(run.closed for run in sorter._runs)
