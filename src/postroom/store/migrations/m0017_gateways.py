"""Gateways: the endpoints of partners, which queue uses which, messages that are to be sent, and requests that wait."""

STATEMENTS = (
    # Settings name files and variables that have secrets, never the secrets.
    """
    CREATE TABLE endpoints (
        name {path} NOT NULL PRIMARY KEY,
        transport TEXT NOT NULL,
        does TEXT NOT NULL,
        settings TEXT NOT NULL,
        mark TEXT NOT NULL
    ) {clustered}
    """,
    """
    CREATE TABLE ports (
        queue {path} NOT NULL PRIMARY KEY,
        direction TEXT NOT NULL,
        endpoint {path} NOT NULL
    ) {clustered}
    """,
    "ALTER TABLE outbox ADD COLUMN message {int}",
    "CREATE INDEX outbox_message ON outbox (message)",
    "CREATE INDEX outbox_pending ON outbox (destination, id) WHERE state = 'pending'",
    """
    CREATE TABLE requests (
        connection {path} NOT NULL PRIMARY KEY,
        endpoint {path} NOT NULL,
        message {int} NOT NULL,
        created {int} NOT NULL,
        response {int}
    ) {clustered}
    """,
    "CREATE INDEX requests_message ON requests (message)",
    "CREATE INDEX requests_created ON requests (created)",
)
