"""A command answers in well under a second because it loads only what it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

#: Half of a second by themselves: a command that is run needs them, its help does not.
ROOM = {"postroom.room", "postroom.store", "postroom.engine", "postroom.rules"}
SLOW = {"pyspark", "pyarrow", "pandas", "saxonche", "lxml", "psycopg", "rich", "urllib.request", "http.client"}


def test_the_program_starts_without_what_takes_long_to_load() -> None:
    script = f"import sys, postroom.interfaces.cli.main\nprint(sorted({SLOW | ROOM} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "[]\n", "import it in the function that needs it"


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    script = "import postroom\nprint(all(getattr(postroom, name) for name in postroom.__all__), dir(postroom))\n"
    script += "try:\n    postroom.nothing\nexcept AttributeError as error:\n    print(error)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    found, error = told.stdout.splitlines()
    assert found.startswith("True")
    assert "'Postroom'" in found
    assert error == "module 'postroom' has no attribute 'nothing'"


def test_a_send_and_a_receive_load_no_other_capability(tmp_path: Path) -> None:
    script = "import sys, postroom\nwith postroom.open(sys.argv[1]) as room:\n"
    script += "    room.queues.create('q')\n    room.send('q', 'x')\n    room.receive('q')\n    room.count('q')\n"
    script += "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('postroom.')}))"
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "room.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(ast.literal_eval(told.stdout))
    assert {"queues", "store"} <= loaded
    assert not {"rules", "flows", "spheres", "stations", "gateways", "diagnosis"} & loaded
