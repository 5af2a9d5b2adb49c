"""An engine whose executors read and write in the store, all in one process: requests are forked, answered and joined.

``work`` says what ``engine_workload`` says.
"""

from __future__ import annotations

from pathlib import Path

import postroom

from .engine_workload import PROGRAM, say, send
from .here import executors_here

REQUESTS = 12


def work(url: str, folder: Path) -> None:
    program = folder / "program.demaq"
    program.write_text(PROGRAM)
    with postroom.open(url) as room:
        room.load(program)
        for name in ("a", "b"):
            send(room, name, REQUESTS)
            executors_here(room).run_until_idle(step_messages=8)
    say("finished")
