"""A command answers in well under a second because it loads only what it needs."""

from __future__ import annotations

import subprocess
import sys

SLOW = {"pyspark", "pyarrow", "pandas", "saxonche", "lxml", "psycopg", "rich", "urllib.request", "http.client"}


def test_the_program_starts_without_what_takes_long_to_load() -> None:
    script = f"import sys, postroom.interfaces.cli.main\nprint(sorted({SLOW} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "[]\n", "import it in the function that needs it"
