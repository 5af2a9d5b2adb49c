"""Spheres: the tokens of state machines, and what a sphere has sent, remembers, requires and waits for."""

STATEMENTS = (
    # The state of an entity is the queue that its token is in.
    """
    CREATE TABLE tokens (
        machine {path} NOT NULL,
        entity {path} NOT NULL,
        message {int} NOT NULL,
        PRIMARY KEY (machine, entity)
    ) {clustered}
    """,
    "CREATE UNIQUE INDEX tokens_message ON tokens (message)",
    # In the order of their tokens: a check goes through the active ones from the first to the last.
    """
    CREATE TABLE spheres (
        token {number},
        id {path} NOT NULL UNIQUE,
        owner {path} NOT NULL,
        heartbeat {int} NOT NULL,
        started {int} NOT NULL,
        sends {int} NOT NULL,
        ends {int},
        reason TEXT
    )
    """,
    # ``message`` is the primary, ``remembered`` what waits in COMP.Q for the outcome.
    """
    CREATE TABLE sends (
        sphere {path} NOT NULL,
        number {int} NOT NULL,
        moment TEXT NOT NULL,
        recipient {path} NOT NULL,
        message {int},
        queue {int},
        remembered {int},
        target {path},
        kept {path},
        sent {int} NOT NULL,
        received {int},
        processed {int},
        outcome TEXT,
        why TEXT,
        PRIMARY KEY (sphere, number)
    ) {clustered}
    """,
    "CREATE INDEX sends_message ON sends (message)",
    """
    CREATE TABLE requirements (
        sphere {path} NOT NULL,
        number {int} NOT NULL,
        recipients TEXT NOT NULL,
        processing {int} NOT NULL,
        enough {int} NOT NULL,
        since {int} NOT NULL,
        within {int} NOT NULL,
        PRIMARY KEY (sphere, number)
    ) {clustered}
    """,
    # Recipients that take part: a sphere is not committed before they are done.
    """
    CREATE TABLE parts (
        sphere {path} NOT NULL,
        message {int} NOT NULL,
        owner {path} NOT NULL,
        heartbeat {int} NOT NULL,
        done {int} NOT NULL,
        PRIMARY KEY (sphere, message)
    ) {clustered}
    """,
    # What databases call their share of a sphere: so it is known after a crash whose outcome they wait for.
    """
    CREATE TABLE branches (
        branch {path} NOT NULL PRIMARY KEY,
        sphere {path} NOT NULL
    ) {clustered}
    """,
    # How often compensation engines look whether owners live.
    "CREATE TABLE checks (engine {path} NOT NULL PRIMARY KEY, microseconds {int} NOT NULL) {clustered}",
)
