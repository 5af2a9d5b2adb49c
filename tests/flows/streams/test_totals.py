"""What running streams answers with: it adds up, has a document, and is there without Spark."""

from __future__ import annotations

import subprocess
import sys

from postroom import StreamTotals
from postroom.store.tables.streams import Stream


def test_a_batch_is_added_to_what_was_done_before() -> None:
    first = StreamTotals("S").plus(Stream("S", ("S",), "c", 0, 7), {"delivered": 2, "refused": 1}, 0.5)
    second = first.plus(Stream("S", ("S",), "c", 1, 8), {"delivered": 3, "stored": 4}, 0.25)
    assert second == StreamTotals("S", 2, delivered=5, stored=4, refused=1, batch=1, version=8, seconds=0.25)
    assert second.as_dict() == {
        "stream": "S",
        "batch_count": 2,
        "delivered_count": 5,
        "stored_count": 4,
        "refused_count": 1,
        "batch": 1,
        "version": 8,
    }


def test_programs_can_name_it_without_waiting_for_spark() -> None:
    script = "import sys, postroom\nprint(postroom.StreamTotals.__name__, 'pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "StreamTotals False\n"
