"""Leased messages: who has one and until when, how often it was given out, when it is due or expires, and policies."""

STATEMENTS = (
    "ALTER TABLE messages ADD COLUMN attempts {int} NOT NULL DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN priority {int} NOT NULL DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN due {int}",
    "ALTER TABLE messages ADD COLUMN expires {int}",
    # The key whose order it keeps: of a message that is leased, delayed, or waits for another of the same key.
    "ALTER TABLE messages ADD COLUMN lane TEXT",
    # Few messages are in these indexes: those that are not waiting as most do.
    "CREATE INDEX messages_urgent ON messages (queue, priority DESC, position) WHERE state = 1 AND priority > 0",
    "CREATE INDEX messages_due ON messages (queue, due) WHERE state = 3",
    "CREATE INDEX messages_expiring ON messages (queue, expires) WHERE state > 0 AND expires IS NOT NULL",
    "CREATE INDEX messages_lanes ON messages (queue, lane, position) WHERE lane IS NOT NULL",
    # The number of a lease is that of its line in the journal.
    """
    CREATE TABLE deliveries (
        fence {number},
        message {int} NOT NULL,
        queue {int} NOT NULL,
        owner TEXT NOT NULL,
        until {int} NOT NULL
    )
    """,
    "CREATE INDEX deliveries_queue ON deliveries (queue, until)",
    # ``ordered`` and ``limited`` are what the shortest ways of receiving and sending ask for.
    """
    CREATE TABLE policies (
        queue {number},
        policy TEXT NOT NULL,
        ordered {int} NOT NULL,
        limited {int} NOT NULL
    )
    """,
    """
    CREATE TABLE schedules (
        name {path} NOT NULL PRIMARY KEY,
        cron TEXT NOT NULL,
        zone TEXT NOT NULL,
        queue {path} NOT NULL,
        body TEXT NOT NULL,
        format TEXT NOT NULL,
        properties TEXT NOT NULL,
        catch_up TEXT NOT NULL,
        due {int} NOT NULL
    )
    """,
)
