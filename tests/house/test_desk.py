"""Messages of stations change at the desk only: a caller that forgets one part of a change cannot be written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

STATIONS = Path(__file__).parents[2] / "src" / "postroom" / "stations"
DESK = STATIONS / "places" / "desk.py"
INDEXING = STATIONS / "places" / "indexing.py"
#: The parts of a change, by what has them in a transaction.
PARTS = {
    "tracking": {"enter", "leave", "come", "show", "calm"},
    "transfers": {"depart", "noted", "arrive", "conclude"},
    "handling": {"apply"},
    "field_index": {"add", "remove_entries"},
    "messages": {"create", "put", "move", "edit", "remove"},
    "dossiers": {"leave", "leave_many"},
    "indexing": {"add", "remove"},
}


def parts(source: str) -> list[str]:
    """The parts of a change that a module calls by itself, such as ``tracking.leave``."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    owners = ((ast.unparse(call.value).rpartition(".")[2], call.attr) for call in calls)
    return [f"{owner}.{verb}" for owner, verb in owners if verb in PARTS.get(owner, ())]


@pytest.mark.parametrize("file", sorted(STATIONS.rglob("*.py")), ids=lambda file: str(file.relative_to(STATIONS)))
def test_only_the_desk_changes_messages_of_stations(file: Path) -> None:
    allowed = set(PARTS) if file == DESK else {"field_index"} if file == INDEXING else set()
    others = [part for part in parts(file.read_text()) if part.partition(".")[0] not in allowed]
    assert not others, f"{others}: use the verbs of places/desk.py, which do the whole of a change"


def test_the_rule_sees_what_it_forbids() -> None:
    assert parts("tx.tracking.leave(a)\nhandling.apply(tx, b)\nindexing.add(c)\nnames.add(d)") == [
        "tracking.leave",
        "handling.apply",
        "indexing.add",
    ]
    assert len(parts(DESK.read_text())) > 15
