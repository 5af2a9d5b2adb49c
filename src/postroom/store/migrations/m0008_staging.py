"""Staging: the answers of executors, from when they are written until the step that asked for them is committed."""

STATEMENTS = (
    # A step that loses its answers is evaluated again, so nothing here has to outlive a crash of the database.
    """
    CREATE {passing}TABLE staged (
        fence {int} NOT NULL,
        step {int} NOT NULL,
        job {int} NOT NULL,
        chunk {int} NOT NULL,
        part {int} NOT NULL,
        said {bytes} NOT NULL,
        PRIMARY KEY (fence, step, job, chunk, part)
    ) {clustered}
    """,
)
