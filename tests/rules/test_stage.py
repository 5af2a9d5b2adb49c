"""x."""

from __future__ import annotations

from pathlib import Path

from tests.faults.here import evaluate_here

import postroom


def test_a(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "r.db") as room:
        (tmp_path / "p.demaq").write_text(
            "create queue a kind basic mode persistent create queue b kind basic mode persistent create rule r for a if (//x) then do enqueue <y/> into b"
        )
        room.load(tmp_path / "p.demaq")
        room.send("a", "<x/>", format="xml")
        evaluate_here(room).run_until_idle()
        assert [m.body for m in room.info("b")] == ["<y/>"]
