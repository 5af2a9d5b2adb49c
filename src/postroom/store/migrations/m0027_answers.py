"""The stored result of a send of several messages, beside its idempotency key, so that a repetition gets the same."""

STATEMENTS = ("ALTER TABLE receipts ADD COLUMN answer TEXT",)
