"""One look for all who ask the same, until something changes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from postroom.interfaces.http.waiting.looks import Looks


def test_what_was_not_found_is_known_to_all_who_ask_the_same_until_something_changes() -> None:
    async def looking() -> None:
        with ThreadPoolExecutor(1) as pool:
            looks, before, after = Looks(pool), asyncio.Event(), asyncio.Event()
            began = monotonic()
            assert looks.known("orders", before) is None
            quiet = await looks.quiet("orders", before, lambda: 5.0, "nothing")
            assert began + 5 <= quiet.until <= monotonic() + 5
            assert looks.known("orders", before) == quiet
            assert looks.known("others", before) is None
            assert looks.known("orders", after) is None, "something has changed"
            await looks.quiet("others", after, lambda: 5.0, "nothing")
            assert looks.known("orders", after) is None
            assert looks.known("orders", before) is None, "what is older is forgotten"

    asyncio.run(looking())


def test_who_asks_what_nobody_else_can_ask_looks_alone() -> None:
    async def looking() -> None:
        with ThreadPoolExecutor(1) as pool:
            looks, now = Looks(pool), asyncio.Event()
            quiet = await looks.quiet(None, now, lambda: 5.0, "nothing")
            assert quiet.outcome == "nothing"
            assert looks.known(None, now) is None

    asyncio.run(looking())
