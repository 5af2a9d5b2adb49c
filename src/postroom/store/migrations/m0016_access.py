"""Access: what principals may do, and the tokens that stand for them."""

STATEMENTS = (
    """
    CREATE TABLE grants (
        principal {path} NOT NULL,
        verb {path} NOT NULL,
        object {path} NOT NULL,
        PRIMARY KEY (principal, verb, object)
    ) {clustered}
    """,
    # ``verbs`` are those that the token is limited to; NULL stands for all that its principal may do.
    """
    CREATE TABLE access_tokens (
        id {path} NOT NULL PRIMARY KEY,
        principal {path} NOT NULL,
        name TEXT NOT NULL,
        digest {bytes} NOT NULL,
        verbs TEXT,
        created {int} NOT NULL,
        expires {int}
    )
    """,
    # Grows with every change of who may do what: whoever remembers rights looks at it.
    "INSERT INTO counters (name, value) VALUES ('access', 0)",
)
