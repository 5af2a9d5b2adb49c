"""What a dry run tells."""

from __future__ import annotations

from datetime import UTC, datetime

from postroom.engine.steps.effects import Enqueue, ResetSlice
from postroom.engine.steps.tryout import Tried, begins


def test_actions_are_told_by_their_kind() -> None:
    enqueue = Enqueue("r", "q", "xml", None, "{}", "<m/>")
    tried = Tried("00001.00001", "in", (enqueue, enqueue._replace(failed=True), ResetSlice("z", "s", "k")))
    assert tried.as_dict() == {
        "key": "00001.00001",
        "queue": "in",
        "actions": [
            {"action": "enqueue", "rule": "r", "queue": "q", "body": "<m/>"},
            {"action": "error", "rule": "r", "queue": "q", "body": "<m/>"},
            {"action": "reset", "rule": "z", "slicing": "s", "slicekey": "k"},
        ],
    }


def test_without_a_time_all_messages_are_tried() -> None:
    assert begins(None) == 0
    assert begins(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1_000_000
