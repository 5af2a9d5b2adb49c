"""Which graph of flows was in force when, and whose messages flow."""

STATEMENTS = (
    # From this number of the journal on, messages flow through the graph of this version.
    "CREATE TABLE epochs (seq {number}, version {int} NOT NULL)",
    # Messages of this queue that arrived after one number, and before another if there is one, flow on.
    """
    CREATE TABLE flowing (
        queue {int} NOT NULL,
        since {int} NOT NULL,
        until {int},
        PRIMARY KEY (queue, since)
    ) {clustered}
    """,
    "CREATE INDEX definitions_name ON definitions (kind, name)",
    # Whose steps take the messages of a queue: there is one way for them to go.
    "CREATE TABLE watchers (queue {number}, watcher TEXT NOT NULL)",
)
