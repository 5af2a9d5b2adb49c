"""Spheres: what the engine made in them, heartbeats that share nothing, databases in doubt, states that are watched."""

STATEMENTS = (
    # Who of the engine made a message, and whether a step of the engine has used it up.
    "ALTER TABLE sends ADD COLUMN maker {path}",
    "ALTER TABLE sends ADD COLUMN used {int}",
    "CREATE INDEX sends_remembered ON sends (remembered)",
    # One row for each owner: a beat changes no other.
    "CREATE TABLE beats (owner {path} NOT NULL PRIMARY KEY, beats {int} NOT NULL, at {int} NOT NULL) {clustered}",
    # Which database has a share, as it may be shown.
    "ALTER TABLE branches ADD COLUMN place TEXT",
    "CREATE INDEX branches_sphere ON branches (sphere)",
    # Queues that are told when a token comes into a state.
    """
    CREATE TABLE watches (
        state {path} NOT NULL,
        target {path} NOT NULL,
        seen {int} NOT NULL,
        PRIMARY KEY (state, target)
    ) {clustered}
    """,
)
