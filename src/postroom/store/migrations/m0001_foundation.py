"""Queues, messages and the journal; locks, leases, timers and the outbox; definitions and principals."""

STATEMENTS = (
    """
    CREATE TABLE queues (
        id {id},
        name {path} NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        path {path} NOT NULL,
        ordinal {int} NOT NULL,
        keep {int} NOT NULL,
        hold {int} NOT NULL,
        retired {int} NOT NULL,
        command TEXT,
        arrived {int} NOT NULL,
        departed {int} NOT NULL,
        processed {int} NOT NULL
    )
    """,
    "CREATE INDEX queues_path ON queues (path)",
    """
    CREATE TABLE messages (
        key {number},
        queue {int} NOT NULL,
        state {int} NOT NULL DEFAULT 1,
        position {int} NOT NULL,
        number {int} NOT NULL,
        last {int},
        created {int} NOT NULL,
        processed {int},
        type TEXT,
        format TEXT NOT NULL,
        body TEXT NOT NULL,
        hash {bytes} NOT NULL,
        properties TEXT NOT NULL,
        cause {int}
    )
    """,
    "CREATE INDEX messages_chain ON messages (queue, state, position)",
    "{journal sequence}",
    """
    CREATE TABLE journal (
        seq {journal number},
        at {int} NOT NULL,
        verb TEXT NOT NULL,
        message {int},
        prior {int},
        source {int},
        target {int},
        actor TEXT NOT NULL,
        detail TEXT
    )
    """,
    "CREATE TABLE departed (key {number}, last {int} NOT NULL)",
    """
    CREATE TABLE locks (
        queue {number},
        owner TEXT NOT NULL,
        actor TEXT NOT NULL,
        reference TEXT NOT NULL,
        message {int} NOT NULL,
        segment {int} NOT NULL,
        expires {int} NOT NULL
    )
    """,
    """
    CREATE TABLE leases (
        name TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        fence {int} NOT NULL,
        expires {int} NOT NULL
    )
    """,
    "CREATE TABLE timers (id {id}, due {int} NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL)",
    "CREATE INDEX timers_due ON timers (due)",
    """
    CREATE TABLE outbox (
        id {id},
        kind TEXT NOT NULL,
        payload TEXT NOT NULL,
        created {int} NOT NULL,
        due {int} NOT NULL,
        attempts {int} NOT NULL,
        state TEXT NOT NULL,
        note TEXT
    )
    """,
    "CREATE INDEX outbox_due ON outbox (state, due)",
    "CREATE TABLE versions (version {number}, at {int} NOT NULL, actor TEXT NOT NULL, note TEXT NOT NULL)",
    """
    CREATE TABLE definitions (
        id {id},
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        body TEXT NOT NULL,
        file TEXT,
        line {int},
        col {int},
        since {int} NOT NULL,
        until {int}
    )
    """,
    "CREATE INDEX definitions_kind ON definitions (kind, since)",
    """
    CREATE TABLE principals (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        secret TEXT NOT NULL,
        changed {int} NOT NULL,
        PRIMARY KEY (kind, name)
    )
    """,
    """
    CREATE TABLE receipts (
        name TEXT NOT NULL PRIMARY KEY,
        message {int} NOT NULL,
        fingerprint {bytes} NOT NULL,
        at {int} NOT NULL
    )
    """,
    "CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value {int} NOT NULL)",
    "INSERT INTO counters (name, value) VALUES ('keys', 100001), ('catalog', 0)",
)
