"""Definitions that act with the rights of a user, and what each of them lacks since a right was withdrawn."""

STATEMENTS = (
    """
    CREATE TABLE bindings (
        what {path} NOT NULL,
        name {path} NOT NULL,
        principal {path} NOT NULL,
        lacking TEXT,
        PRIMARY KEY (what, name)
    ) {clustered}
    """,
)
