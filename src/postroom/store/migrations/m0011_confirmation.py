"""Messages whose output is not confirmed yet; a digest of every line of the journal, and of every definition."""

STATEMENTS = (
    # Messages that were taken for someone who has not said yet that they arrived: whole, to be put back.
    """
    CREATE TABLE handouts (
        message {number},
        queue {int} NOT NULL,
        owner TEXT NOT NULL,
        expires {int} NOT NULL,
        position {int} NOT NULL,
        number {int} NOT NULL,
        created {int} NOT NULL,
        type TEXT,
        format TEXT NOT NULL,
        body TEXT NOT NULL,
        hash {bytes} NOT NULL,
        properties TEXT NOT NULL,
        cause {int}
    )
    """,
    # Lines and definitions from before have none, and are as good as they were.
    "ALTER TABLE journal ADD COLUMN digest {bytes}",
    "ALTER TABLE definitions ADD COLUMN digest {bytes}",
)
