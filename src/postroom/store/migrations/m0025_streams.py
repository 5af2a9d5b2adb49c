"""Streams from outside: for each, its checkpoint and the newest batch, with the version of the graph that it meets."""

STATEMENTS = (
    """
    CREATE TABLE streams (
        name {path} PRIMARY KEY,
        sources TEXT NOT NULL,
        checkpoint TEXT NOT NULL,
        batch {int} NOT NULL,
        version {int} NOT NULL,
        done {int} NOT NULL
    )
    """,
)
