"""Schedules: messages sent at recurring times.

Updating the next time and sending are one commit, so each time is sent once.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from postroom.model.moment import to_datetime, to_iso
from postroom.store.kernel.journal import JournaledTable

_COLUMNS = "name, cron, zone, queue, body, format, properties, catch_up, due"
_ALL = f"SELECT {_COLUMNS} FROM schedules ORDER BY name"
_DUE = f"SELECT {_COLUMNS} FROM schedules WHERE due <= ? ORDER BY due, name"
_ADD = f"INSERT INTO schedules ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING"
_MOVE_ON = "UPDATE schedules SET due = ? WHERE name = ? AND due = ?"
_REMOVE = "DELETE FROM schedules WHERE name = ?"


class Schedule(NamedTuple):
    """A schedule, and when it is due next."""

    name: str
    cron: str
    zone: str
    queue: str
    body: str
    format: str
    properties: str
    catch_up: str
    due: int

    def as_dict(self) -> dict[str, Any]:
        due = to_iso(to_datetime(self.due))
        shape = {name: getattr(self, name) for name in ("name", "cron", "zone", "queue", "catch_up")}
        return shape | {"due": due}


class Schedules(JournaledTable):
    def all(self) -> list[Schedule]:
        return [Schedule(*row) for row in self._session.rows(_ALL)]

    def due(self, moment: int) -> list[Schedule]:
        return [Schedule(*row) for row in self._session.rows(_DUE, (moment,))]

    def add(self, schedule: Schedule) -> bool:
        """Add a schedule; False if the name exists."""
        added = self._session.run(_ADD, schedule) == 1
        if added:
            about = {"cron": schedule.cron, "queue": schedule.queue, "body": schedule.body}
            self._journal.add("schedule", detail={"schedule": schedule.name, "due": schedule.due, **about})
        return added

    def move_on(self, schedule: Schedule, due: int) -> bool:
        """Set the next time; False if someone else has done so, and so has sent what was due."""
        moved = self._session.run(_MOVE_ON, (due, schedule.name, schedule.due)) == 1
        if moved:
            self._journal.add("schedule", detail={"schedule": schedule.name, "due": due})
        return moved

    def remove(self, name: str) -> bool:
        removed = self._session.run(_REMOVE, (name,)) == 1
        if removed:
            self._journal.add("remove-schedule", detail={"schedule": name})
        return removed


def said(schedule: Schedule) -> dict[str, object]:
    """Its properties."""
    properties: dict[str, object] = json.loads(schedule.properties)
    return properties
