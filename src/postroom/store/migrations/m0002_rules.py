"""Slices and their retention, entries of indexes, and queues whose messages are worked on before they are let in."""

STATEMENTS = (
    # A queue with a door: its messages get computed properties, places in slices, or a timer.
    "ALTER TABLE queues ADD COLUMN door {int} NOT NULL DEFAULT 0",
    # The version since which a definition says what it says; loading it again unchanged does not make it younger.
    "ALTER TABLE definitions ADD COLUMN born {int}",
    "CREATE TABLE sets (id {id}, kind TEXT NOT NULL, name {path} NOT NULL, UNIQUE (kind, name))",
    """
    CREATE TABLE slices (
        slicing {int} NOT NULL,
        value {path} NOT NULL,
        position {int} NOT NULL,
        message {int} NOT NULL,
        PRIMARY KEY (slicing, value, position)
    ) {clustered}
    """,
    "CREATE INDEX slices_message ON slices (message)",
    """
    CREATE TABLE entries (
        source {int} NOT NULL,
        value {path} NOT NULL,
        position {int} NOT NULL,
        message {int} NOT NULL,
        PRIMARY KEY (source, value, position)
    ) {clustered}
    """,
    "CREATE INDEX entries_message ON entries (message)",
    "CREATE TABLE spent (message {number})",
)
