"""Causes: what each message was made for, found from either side, also after it is gone."""

STATEMENTS = (
    "ALTER TABLE departed ADD COLUMN cause {int}",
    "ALTER TABLE departed ADD COLUMN type TEXT",
    # Most messages were made for no other and cost nothing here.
    "CREATE INDEX messages_cause ON messages (cause) WHERE cause IS NOT NULL",
    "CREATE INDEX departed_cause ON departed (cause) WHERE cause IS NOT NULL",
)
