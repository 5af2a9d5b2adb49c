"""Stations: where messages are filed by their fields, on their way between stores, and seen by queries."""

STATEMENTS = (
    # At the control node: where its satellites are, and on which node each station is.
    "CREATE TABLE nodes (name {path} NOT NULL PRIMARY KEY, url TEXT NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE stations (name {path} NOT NULL PRIMARY KEY, node {path} NOT NULL)",
    # At a node: whose it is.
    "CREATE TABLE membership (mark TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL)",
    # What messages of a type are found by: a field, or nothing, which is the type itself in the order of keys.
    """
    CREATE TABLE filings (
        id {id},
        type {path} NOT NULL,
        field {path} NOT NULL,
        kind TEXT NOT NULL,
        ready {int} NOT NULL,
        UNIQUE (type, field, kind)
    )
    """,
    """
    CREATE TABLE filed (
        queue {int} NOT NULL,
        filing {int} NOT NULL,
        value {path} NOT NULL,
        message {int} NOT NULL,
        PRIMARY KEY (queue, filing, value, message)
    ) {clustered}
    """,
    # What a message said before it was modified.
    """
    CREATE TABLE editions (
        message {int} NOT NULL,
        seq {int} NOT NULL,
        body TEXT NOT NULL,
        properties TEXT NOT NULL,
        PRIMARY KEY (message, seq)
    ) {clustered}
    """,
    # Messages that have left for another store and are not yet known to be there.
    """
    CREATE TABLE handovers (
        message {number},
        hop {int} NOT NULL,
        verb TEXT NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        seen {int} NOT NULL,
        came {int} NOT NULL
    )
    """,
    # The journeys by which messages came to this store, and the last query that had run here by then.
    """
    CREATE TABLE visits (
        message {int} NOT NULL,
        hop {int} NOT NULL,
        done {int} NOT NULL,
        PRIMARY KEY (message, hop)
    ) {clustered}
    """,
    # Queries that are being read, from this number of the journal back.
    """
    CREATE TABLE queries (
        number {int} NOT NULL,
        place TEXT NOT NULL,
        opened {int} NOT NULL,
        owner TEXT NOT NULL,
        expires {int} NOT NULL,
        PRIMARY KEY (number, place)
    ) {clustered}
    """,
    # Messages that queries up to a number have met elsewhere and must not meet here.
    """
    CREATE TABLE hidden (
        place TEXT NOT NULL,
        message {int} NOT NULL,
        seen {int} NOT NULL,
        PRIMARY KEY (place, message)
    ) {clustered}
    """,
    # Messages that have left the mailboxes for a node where some queries had been already.
    """
    CREATE TABLE shown (
        id {id},
        station TEXT NOT NULL,
        seen {int} NOT NULL,
        until {int} NOT NULL,
        since {int} NOT NULL,
        key {int} NOT NULL,
        created {int} NOT NULL,
        type TEXT,
        format TEXT NOT NULL,
        body TEXT NOT NULL,
        hash {bytes} NOT NULL,
        properties TEXT NOT NULL,
        cause {int}
    )
    """,
    # What was here when a query was opened and has changed or left since.
    """
    CREATE TABLE ghosts (
        id {id},
        place TEXT NOT NULL,
        queue {int} NOT NULL,
        came {int} NOT NULL,
        gone {int} NOT NULL,
        seen {int} NOT NULL,
        key {int} NOT NULL,
        created {int} NOT NULL,
        type TEXT,
        format TEXT NOT NULL,
        body TEXT NOT NULL,
        hash {bytes} NOT NULL,
        properties TEXT NOT NULL,
        cause {int}
    )
    """,
    """
    CREATE TABLE dossiers (
        station {int} NOT NULL,
        name {path} NOT NULL,
        message {int} NOT NULL,
        seq {int} NOT NULL,
        PRIMARY KEY (station, name, message)
    ) {clustered}
    """,
    "CREATE INDEX dossiers_message ON dossiers (message)",
    # Temporary tables of stations: the images that a query found.
    """
    CREATE TABLE albums (
        station {int} NOT NULL,
        name {path} NOT NULL,
        type TEXT NOT NULL,
        form {int} NOT NULL,
        query {int} NOT NULL,
        at {int} NOT NULL,
        PRIMARY KEY (station, name)
    ) {clustered}
    """,
    """
    CREATE TABLE images (
        station {int} NOT NULL,
        name {path} NOT NULL,
        key {int} NOT NULL,
        place TEXT NOT NULL,
        form {int} NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (station, name, key)
    ) {clustered}
    """,
    "INSERT INTO counters (name, value) VALUES ('queries', 0), ('done stations', 0), ('done mailboxes', 0)",
)
