"""On SQLite a trigger costs every message of every queue: those of selectors are made when someone first asks for one.

Whoever asked before asks again, and has the entries made anew.
"""

from postroom.store.kernel.statement import Statement

STATEMENTS = (
    *(Statement(f"DROP TRIGGER messages_{name}", "") for name in ("select", "reselect", "unselect")),
    Statement("DELETE FROM selected", ""),
    Statement("DELETE FROM selections", ""),
)
