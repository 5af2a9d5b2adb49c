"""Selectors: messages that wait, by the properties that receivers ask for; and how many bytes limited queues hold.

The entries are kept by triggers, whoever changes a message. Where nobody has asked for a property there are none.
"""

from postroom.store.kernel.statement import Statement

#: The entries of messages that wait: a text, or the beginning of a long one; and a number, also if it is written as a
#: text. They lead to candidates, and whoever reads those looks whether they are meant.
ENTRIES = Statement(
    """
    SELECT m.queue, e.key, CASE WHEN e.type IN ('true', 'false') THEN e.type WHEN e.type = 'text'
        THEN substr(e.value, 1, 200) END,
        CASE WHEN e.type IN ('integer', 'real') THEN CAST(e.value AS REAL) WHEN e.type = 'text' AND
        length(e.value) <= 32 AND e.value GLOB '[-0-9]*' AND e.value NOT GLOB '*[^-0-9.]*' THEN CAST(e.value AS REAL)
        END, -m.priority, m.position, m.key
    FROM messages m JOIN json_each(m.properties) e JOIN selections s ON s.queue = m.queue AND s.name = e.key
    WHERE m.state = 1 AND e.type <> 'null'
    """,
    """
    SELECT m.queue, e.key, CASE jsonb_typeof(e.value) WHEN 'string' THEN substr(e.value #>> array[]::text[], 1, 200)
        WHEN 'boolean' THEN e.value #>> array[]::text[] END,
        CASE WHEN jsonb_typeof(e.value) = 'number' OR (e.value #>> array[]::text[]) ~ '^(-|)[0-9]+([.][0-9]+|)$'
        AND length(e.value #>> array[]::text[]) <= 32
        THEN (e.value #>> array[]::text[])::double precision END, -m.priority, m.position, m.key
    FROM messages m CROSS JOIN LATERAL jsonb_each(m.properties::jsonb) e
        JOIN selections s ON s.queue = m.queue AND s.name = e.key
    WHERE m.state = 1 AND jsonb_typeof(e.value) <> 'null'
    """,
)
_ADD = "INSERT INTO selected (queue, name, word, number, rank, position, message) " + ENTRIES + " AND m.key = NEW.key;"
_REMOVE = "DELETE FROM selected WHERE message = OLD.key;"
_CHANGED = """
    OLD.queue <> NEW.queue OR OLD.state <> NEW.state OR OLD.position <> NEW.position OR OLD.priority <> NEW.priority
"""


#: Whether someone asks for properties of messages of a row's queue.
_NEW_ASKED, _OLD_ASKED = (f"EXISTS (SELECT 1 FROM selections s WHERE s.queue = {row}.queue)" for row in ("NEW", "OLD"))

#: What keeps the entries on SQLite. Properties are read again rather than taken from NEW: those would be read for every
#: message.
TRIGGERS = (
    f"CREATE TRIGGER messages_select AFTER INSERT ON messages WHEN NEW.state = 1 AND {_NEW_ASKED} BEGIN {_ADD} END",
    f"CREATE TRIGGER messages_reselect AFTER UPDATE OF queue, state, position, priority ON messages"
    f" WHEN (OLD.state = 1 OR NEW.state = 1) AND ({_CHANGED}) AND ({_NEW_ASKED} OR {_OLD_ASKED})"
    f" BEGIN {_REMOVE} {_ADD} END",
    f"CREATE TRIGGER messages_unselect AFTER DELETE ON messages WHEN OLD.state = 1 AND {_OLD_ASKED}"
    f" BEGIN {_REMOVE} END",
)

STATEMENTS = (
    "CREATE TABLE selections (queue {int} NOT NULL, name {path} NOT NULL, PRIMARY KEY (queue, name)) {clustered}",
    # Of a message the entries of one property have another ``rank``, the highest priority first.
    Statement(
        """
        CREATE TABLE selected (queue INTEGER NOT NULL, name TEXT NOT NULL, word TEXT, number REAL,
            rank INTEGER NOT NULL, position INTEGER NOT NULL, message INTEGER NOT NULL)
        """,
        """
        CREATE TABLE selected (queue BIGINT NOT NULL, name TEXT COLLATE "C" NOT NULL, word TEXT COLLATE "C",
            number DOUBLE PRECISION, rank BIGINT NOT NULL, position BIGINT NOT NULL, message BIGINT NOT NULL)
            WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000)
        """,
    ),
    "CREATE INDEX selected_words ON selected (queue, name, word, rank, position, message) WHERE word IS NOT NULL",
    "CREATE INDEX selected_numbers ON selected (queue, name, number, rank, position, message) WHERE number IS NOT NULL",
    "CREATE INDEX selected_places ON selected (queue, name, rank, position, message)",
    "CREATE INDEX selected_messages ON selected (message)",
    # No queue has more bytes than its row says, as long as nothing came to it but what its row has counted.
    "CREATE TABLE weights (queue {number}, bytes {int} NOT NULL, arrivals {int} NOT NULL)",
    # --- SQLite.
    *(Statement(trigger, "") for trigger in TRIGGERS),
    # --- PostgreSQL. A message without properties costs a comparison.
    Statement(
        "",
        f"""
        CREATE FUNCTION postroom_select() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP <> 'INSERT' AND {_OLD_ASKED} THEN
                {_REMOVE}
            END IF;
            IF TG_OP <> 'DELETE' AND {_NEW_ASKED} THEN
                {_ADD.postgres}
            END IF;
            RETURN NULL;
        END
        $$
        """,
    ),
    Statement(
        "",
        """
        CREATE TRIGGER messages_select AFTER INSERT ON messages FOR EACH ROW
        WHEN (NEW.state = 1 AND length(NEW.properties) > 2) EXECUTE FUNCTION postroom_select()
        """,
    ),
    Statement(
        "",
        f"""
        CREATE TRIGGER messages_reselect AFTER UPDATE ON messages FOR EACH ROW
        WHEN ((length(OLD.properties) > 2 OR length(NEW.properties) > 2) AND (OLD.state = 1 OR NEW.state = 1)
            AND ({_CHANGED})) EXECUTE FUNCTION postroom_select()
        """,
    ),
    Statement(
        "",
        """
        CREATE TRIGGER messages_unselect AFTER DELETE ON messages FOR EACH ROW
        WHEN (OLD.state = 1 AND length(OLD.properties) > 2) EXECUTE FUNCTION postroom_select()
        """,
    ),
    # Who waits with a selector may wait though the queue has messages.
    Statement(
        "",
        """
        CREATE OR REPLACE FUNCTION postroom_wake(q BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT 1 FROM selections s WHERE s.queue = q) OR NOT EXISTS (
                SELECT 1 FROM messages WHERE queue = q AND state = 1 AND position > coalesce((
                    SELECT head FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1
                ), 0)
            ) THEN
                PERFORM pg_notify('postroom', '');
            END IF;
        END
        $$
        """,
    ),
)
