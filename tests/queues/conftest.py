"""The trees of the Multics text, loaded into a room on each store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from postroom.room import Postroom

EXAMPLES = Path(__file__).parents[2] / "examples" / "queues"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a description to a file and name the file."""

    def write(text: str) -> Path:
        file = tmp_path / "tree.qdl"
        file.write_text(text)
        return file

    return write


@pytest.fixture
def tree(room: Postroom, write: Callable[[str], Path]) -> Postroom:
    """Figure 2-3's shape with two passwords: hashing twelve would take a second for every test."""
    room.load(
        write(
            """
            01 INPUT-QUEUE (MASTER-QUEUE) PASSWORD IS "MASTER"
               02 SUB-QUEUE-1 (SUBQ-1)
                  03 SUB-QUEUE-2 (QUE1A) PASSWORD IS "QUE"
               02 SUB-QUEUE-1 (SUBQ-3)
                  03 SUB-QUEUE-2 (QUE5)
                  03 SUB-QUEUE-2 (QUE6)
                  03 SUB-QUEUE-2 (QUE7)
            01 OUTPUT-QUEUE (OQ3)
            01 OUTPUT-QUEUE (OQ4)
            99
            """
        )
    )
    return room
