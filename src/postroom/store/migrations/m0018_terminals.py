"""Sources: terminals that messages come from; and how many characters of a message its reader was given."""

STATEMENTS = (
    """
    CREATE TABLE sources (
        name {path} NOT NULL PRIMARY KEY,
        disabled {int} NOT NULL,
        input TEXT,
        output TEXT
    ) {clustered}
    """,
    "ALTER TABLE locks ADD COLUMN current_char {int} NOT NULL DEFAULT 0",
)
