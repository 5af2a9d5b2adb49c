"""Upkeep: how long what nobody needs any more is kept, and where the older part of the journal is."""

STATEMENTS = (
    "CREATE TABLE retentions (kind TEXT NOT NULL PRIMARY KEY, microseconds {int} NOT NULL)",
    # ``state`` is what the lines up to ``last`` come to; only the newest archive has it.
    """
    CREATE TABLE archives (
        id {id},
        folder TEXT NOT NULL,
        first {int} NOT NULL,
        last {int} NOT NULL,
        until {int} NOT NULL,
        lines {int} NOT NULL,
        departed {int} NOT NULL,
        digest TEXT NOT NULL,
        state {bytes}
    )
    """,
)
