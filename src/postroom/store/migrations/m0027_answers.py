"""What a send of several messages was answered, beside its idempotency key: a repetition is answered the same."""

STATEMENTS = ("ALTER TABLE receipts ADD COLUMN answer TEXT",)
