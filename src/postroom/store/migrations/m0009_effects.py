"""Commands have a time limit of their own, and effects a destination: one after another to each."""

from __future__ import annotations

STATEMENTS = (
    "ALTER TABLE queues ADD COLUMN command_seconds {int}",
    # Those that wait from before share one destination: they are tried one after another, as they would have been.
    "ALTER TABLE outbox ADD COLUMN destination TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX outbox_destination ON outbox (destination, id)",
)
