"""Queries mean the same wherever they run: a machine's time zone is not theirs."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import os, time
from postroom.rules.evaluation.xquery import Saxon
found = Saxon()
print(found.run("implicit-timezone()", "<a/>"))
print(found.run("xs:dateTime('2026-01-01T05:00:00Z') eq xs:dateTime('2026-01-01T05:00:00')", "<a/>"))
print(os.environ.get("TZ"), time.localtime(0).tm_hour)
"""


def test_a_moment_without_a_zone_is_in_utc_whatever_the_machine_has() -> None:
    for zone, hour in (("America/New_York", 19), ("Asia/Tokyo", 9)):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "TZ": zone}, capture_output=True, text=True, timeout=60
        )
        assert ran.stdout.split() == ["PT0S", "true", zone, str(hour)], ran.stderr
