"""The state of arcs that collapse or join events: a row for each arc, group and place, written with the step."""

STATEMENTS = (
    """
    CREATE TABLE arc_states (
        arc {path} NOT NULL,
        grp {path} NOT NULL,
        place {int} NOT NULL,
        due {int} NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (arc, grp, place)
    ) {clustered}
    """,
    "CREATE INDEX arc_states_due ON arc_states (arc, due)",
)
