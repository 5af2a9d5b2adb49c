"""Spheres at other nodes: which of them have come to a node, and what was made of their messages there."""

STATEMENTS = (
    # ``failed`` is set before what was made is withdrawn, and whoever makes something looks at it in the same commit.
    "CREATE TABLE reached (sphere {path} NOT NULL PRIMARY KEY, failed {int} NOT NULL) {clustered}",
    """
    CREATE TABLE made (
        sphere {path} NOT NULL,
        message {int} NOT NULL,
        queue {path} NOT NULL,
        maker {path} NOT NULL,
        outcome TEXT,
        PRIMARY KEY (sphere, message)
    ) {clustered}
    """,
)
