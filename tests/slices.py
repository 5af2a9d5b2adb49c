"""What of the tests is in ``make test``: a test of a capability is there on one store, a test of stores on both.

A capability reaches a store through its verbs, and these are tested on both (``BOTH`` below). So a test of a capability
is in the slice on SQLite or on PostgreSQL, whichever the checksum of its name says: each store has half of them.
``make test-all``, and a run without ``-m``, has every test on both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

import pytest

STORES = ("postgres", "sqlite")
#: Folders whose tests are about what a store does, or what remains of it after a crash.
BOTH = re.compile(
    r"tests/(aio|conformance|faults|golden|histories|interfaces|queues|room|simulation|spheres|store|testing)/"
)


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Mark as slow what is not in the slice."""
    for name, on in _on_both(items).items():
        if set(on) == set(STORES) and not any(item.get_closest_marker("slow") for item in on.values()):
            on[STORES[crc32(name.encode()) % 2]].add_marker("slow")


def _on_both(items: Iterable[pytest.Item]) -> dict[str, dict[str, pytest.Item]]:
    """The tests of capabilities by their names without the store, and by the store."""
    found: dict[str, dict[str, pytest.Item]] = defaultdict(dict)
    for item in items:
        function, bracket, given = item.nodeid.partition("[")
        words = given.rstrip("]").split("-")
        stores = [word for word in words if word in STORES]
        if bracket and len(stores) == 1 and not BOTH.match(item.nodeid):
            rest = "-".join("" if word in STORES else word for word in words)
            found[f"{function}[{rest}"][stores[0]] = item
    return found
