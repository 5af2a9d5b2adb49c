"""Procedures: how far each station's messages have been looked at, and who waits for whom."""

STATEMENTS = (
    # A station whose messages procedures look at. ``edition`` is what these were when its candidates were found.
    """
    CREATE TABLE desks (
        id {id},
        station {path} NOT NULL UNIQUE,
        edition TEXT NOT NULL,
        turn {int} NOT NULL,
        own {int} NOT NULL,
        mail {int} NOT NULL
    )
    """,
    # Messages that fit a sketch, by the values that others will look for. What has moved since has another position.
    """
    CREATE TABLE candidates (
        desk {int} NOT NULL,
        slot {path} NOT NULL,
        value {path} NOT NULL,
        turn {int} NOT NULL,
        message {int} NOT NULL,
        position {int} NOT NULL,
        mail {int} NOT NULL,
        since {int} NOT NULL,
        said TEXT NOT NULL,
        PRIMARY KEY (desk, slot, value, turn, message)
    ) {clustered}
    """,
    # Messages that a procedure could not handle, as they were then.
    """
    CREATE TABLE withdrawn (
        desk {int} NOT NULL,
        message {int} NOT NULL,
        procedure {path} NOT NULL,
        position {int} NOT NULL,
        PRIMARY KEY (desk, message, procedure)
    ) {clustered}
    """,
)
