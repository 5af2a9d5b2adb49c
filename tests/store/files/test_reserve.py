"""Space that is kept for the day when the disk is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import StoreFull
from postroom.limits import RESERVE_BYTES, RESERVE_OPEN_BYTES
from postroom.store.files.reserve import EMPTYING, Reserve


def test_a_reserve_is_made_given_up_and_work_that_adds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "room.db-reserve"
    reserve = Reserve(tmp_path / "room.db", 0o600)
    reserve.open(create=False)
    assert not reserve.give_up(), "there is none"
    reserve.start(0)
    assert file.stat().st_size == RESERVE_BYTES
    reserve.take_turn()
    reserve.admit("send")
    assert reserve.give_up()
    assert file.stat().st_size == RESERVE_OPEN_BYTES
    reserve.admit("receive")
    with pytest.raises(StoreFull, match="bytes of disk space"):
        reserve.admit("send")
    monkeypatch.setattr("postroom.store.files.reserve.RESERVE_SECONDS", 0)
    reserve.admit("send")  # there is space again
    assert file.stat().st_size == RESERVE_BYTES
    assert reserve.give_up(whole=True)
    assert not reserve.give_up()
    reserve.end_turn()
    reserve.close()


def test_a_large_log_needs_a_large_reserve(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "room.db", 0o600)
    reserve.start(RESERVE_BYTES + 4096)
    assert (tmp_path / "room.db-reserve").stat().st_size == 2 * RESERVE_BYTES + 4096
    reserve.close()
    assert "receive" in EMPTYING
    assert "send" not in EMPTYING
