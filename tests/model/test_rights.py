"""The verbs of grants are known without a room: the help of a command names them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import postroom
from postroom.model.rights import EVERYTHING, OPERATE, VERBS


def test_each_verb_can_be_granted_for_everything(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.flows.add_principal("ann")
        for verb in VERBS:
            room.access.grant("ann", verb, EVERYTHING)
        assert {grant.verb for grant in room.access.grants()} == set(VERBS)
    assert VERBS[OPERATE] == "room"


def test_the_verbs_are_known_without_a_room() -> None:
    script = (
        "import sys, postroom.model.rights\nprint(sorted(name for name in sys.modules if name.startswith('postroom')))"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "['postroom', 'postroom.model', 'postroom.model.rights', 'postroom.version']\n"
