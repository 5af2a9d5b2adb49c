"""The journal: its newest entries, or those after a number, with filters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from postroom.interfaces.web.page import Page
from postroom.interfaces.web.visit import Visit
from postroom.limits import JOURNAL_SHOWN_ROWS, SEARCHED_MESSAGES_MAX
from postroom.model.place import place_of
from postroom.store.kernel.journal import Event

FILTERS = ("verb", "place", "by", "key")


def show(visit: Visit) -> Mapping[str, Any]:
    asked = {name: visit.query.get(name, "").strip() for name in FILTERS}
    after = None if not visit.query.get("after") else visit.number("after", 1, 999_999_999)
    if after is None:
        events = visit.room.journal.last(SEARCHED_MESSAGES_MAX if any(asked.values()) else JOURNAL_SHOWN_ROWS)[::-1]
    else:
        events = visit.room.journal.after(after - 1)
    rows = [row for row in map(entry, events) if _fits(row, asked)]
    shown = rows[:JOURNAL_SHOWN_ROWS]
    last = shown[-1]["seq"] if len(shown) < len(rows) else events[-1].seq if events else 0
    oldest = last if after is None else after
    return {
        "rows": shown,
        "looked": len(events),
        "asked": asked,
        "after": after,
        "older": visit.again(after=max(oldest - JOURNAL_SHOWN_ROWS, 1)) if oldest > 1 else None,
        "newer": None if after is None or not events else visit.again(after=last + 1),
        "live": "room" if after is None and not any(asked.values()) else (),
    }


def entry(event: Event, most: int = 300) -> dict[str, Any]:
    """An entry as pages show it, with so many characters of its detail."""
    return {
        "seq": event.seq,
        "time": event.time,
        "verb": event.verb,
        "key": event.key,
        "source": place_of(event.source) or "",
        "target": place_of(event.target) or "",
        "by": event.by,
        "detail": "" if not event.detail else json.dumps(dict(event.detail), ensure_ascii=False, default=str)[:most],
        "damaged": event.damaged,
    }


def _fits(row: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    places = (row["source"], row["target"])
    return (
        asked["verb"] in ("", row["verb"])
        and (not asked["place"] or asked["place"] in places)
        and asked["by"] in row["by"]
        and asked["key"] in ("", row["key"])
    )


PAGE = Page("/journal", "journal.html", show, "look", None, label="Journal", group="operators")
