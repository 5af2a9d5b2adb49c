"""Web Services: what a program says of a port, and sequences of reliable messaging.

A sequence that we send has its numbers given before anything is sent; one that we receive has what came before its
turn. Both change in the commits of the messages.
"""

STATEMENTS = (
    "ALTER TABLE ports ADD COLUMN terms TEXT",
    # ``identifier`` is the partner's, and unknown until it has answered; ``upto`` is the last number that was given.
    """
    CREATE TABLE sequences_out (
        id {id},
        queue {path} NOT NULL,
        mark TEXT NOT NULL,
        identifier TEXT,
        upto {int} NOT NULL,
        ended {int} NOT NULL,
        created {int} NOT NULL
    )
    """,
    "CREATE INDEX sequences_out_queue ON sequences_out (queue, id)",
    """
    CREATE TABLE sequence_numbers (
        message {number},
        sequence {int} NOT NULL,
        number {int} NOT NULL
    )
    """,
    "CREATE INDEX sequence_numbers_sequence ON sequence_numbers (sequence, number)",
    # ``next`` is the lowest number that has not come; state: open, closed, terminated.
    """
    CREATE TABLE sequences_in (
        identifier {path} NOT NULL PRIMARY KEY,
        endpoint {path} NOT NULL,
        next {int} NOT NULL,
        state TEXT NOT NULL,
        touched {int} NOT NULL
    ) {clustered}
    """,
    # What came before its turn; without a body if it was refused.
    """
    CREATE TABLE sequence_held (
        identifier {path} NOT NULL,
        number {int} NOT NULL,
        arrival TEXT,
        PRIMARY KEY (identifier, number)
    ) {clustered}
    """,
)
