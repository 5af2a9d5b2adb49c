"""The benchmark of files of messages runs; figures are for a machine at rest."""

from __future__ import annotations

from pathlib import Path

import files


def test_a_few_rows_of_every_kind_are_sent_and_exported(tmp_path: Path) -> None:
    found = files.measure(tmp_path, 50, 2)
    assert set(found) == {"plain", "jsonl", "csv", "txt", "export"}
    assert all(len(turns) == 2 and min(min(turn) for turn in turns) > 0 for turns in found.values())
    assert len((tmp_path / "1-out.jsonl").read_text().splitlines()) == 50
