"""PostgreSQL: a send knows from a number that nothing has changed since it looked at its queue. See decision 0101.

The number grows whenever a queue, its policy or its lock changes, while whoever changes it has the queue alone. A send
that shares the queue and finds the number of its last look has nothing to look at, and reads no row.
"""

from postroom.store.kernel.statement import Statement

#: As in the migrations that made them.
_LOCK = "(('messages'::regclass::oid::bigint << 32) | (q << 1))"
_WAITING = "(('messages'::regclass::oid::bigint << 32) | 1)"
_PLANNED = "SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off"
_UNLOCKED = "NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)"
_UNLIMITED = "NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.limited = 1)"
_UNORDERED = "NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.ordered = 1)"
_HANDED_OUT_NONE = "NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q)"
_SENDABLE = "o.hold = 0 AND o.retired = 0 AND o.command IS NULL AND o.door = 0"
_NOT_URGENT = "NOT EXISTS (SELECT 1 FROM messages u WHERE u.queue = q AND u.state = 1 AND u.priority > 0)"
_STEPS = "'messages'::regclass::oid::int, -(q::int)"

_SHARED = f"pg_advisory_xact_lock_shared({_LOCK})"
_NOBODY_WAITS = f"pg_try_advisory_lock({_WAITING}) AND pg_advisory_unlock({_WAITING})"
_CHANGES = "pg_sequence_last_value('queue_changes')"
#: Whoever waits is woken, and the queue is looked at unless nothing has changed since; a block of a function that
#: shares the queue. Nobody who changes it draws a number before the function has committed.
_LOOK = f"""
            IF NOT ({_NOBODY_WAITS}) THEN
                PERFORM postroom_wake(q);
            END IF;
            changes := {_CHANGES};
            IF changes IS DISTINCT FROM seen THEN
                PERFORM 1 FROM queues o WHERE o.id = q AND {_SENDABLE} AND {_UNLOCKED} AND {_UNLIMITED};
                IF NOT FOUND THEN
                    RETURN NULL;
                END IF;
                answer := -changes;
            END IF;
"""
_INSERT = "INSERT INTO messages (key, queue, position, number, created, body, format, properties, hash)"
_PUT = f"""
                WITH put AS (
                    INSERT INTO journal (seq, at, verb, message, target, actor, digest)
                    VALUES (line, at, 'put', k, q, who, digest)
                )
                {_INSERT} VALUES (k, q, line, line, at, body, form, properties, hash);
"""

STATEMENTS = tuple(
    Statement("", statement)
    for statement in (
        "CREATE SEQUENCE queue_changes",
        "SELECT nextval('queue_changes')",
        "ALTER TABLE tallies DROP COLUMN open",
        # Each expression of a function is prepared anew in every call, so one asks for all that a send has to know. Its
        # answer is its line, or below zero the number of changes at which it has looked.
        "DROP FUNCTION postroom_send(BIGINT, BIGINT, BIGINT, TEXT, TEXT, TEXT, BYTEA, TEXT, BYTEA)",
        f"""
        CREATE FUNCTION postroom_send(q BIGINT, k BIGINT, at BIGINT, body TEXT, form TEXT, properties TEXT,
            hash BYTEA, who TEXT, digest BYTEA, seen BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE
            line BIGINT;
            changes BIGINT;
            answer BIGINT;
        BEGIN
            line := CASE WHEN {_SHARED} IS NULL THEN NULL WHEN {_CHANGES} IS DISTINCT FROM seen THEN NULL
                WHEN {_NOBODY_WAITS} THEN nextval('journal_numbers') END;
            IF line IS NOT NULL THEN
                {_PUT}
                RETURN line;
            END IF;
            {_LOOK}
            line := nextval('journal_numbers');
            {_PUT}
            RETURN coalesce(answer, line);
        END
        $$
        """,
        """
        DROP FUNCTION postroom_send_many(BIGINT, BIGINT[], BIGINT, TEXT[], TEXT[], TEXT[], BYTEA[], TEXT, BYTEA[])
        """,
        f"""
        CREATE FUNCTION postroom_send_many(q BIGINT, ks BIGINT[], at BIGINT, bodies TEXT[], forms TEXT[],
            properties TEXT[], hashes BYTEA[], who TEXT, digests BYTEA[], seen BIGINT) RETURNS BIGINT
        LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            changes BIGINT;
            answer BIGINT;
            last BIGINT;
        BEGIN
            PERFORM {_SHARED};
            {_LOOK}
            WITH numbered AS MATERIALIZED (
                SELECT v.*, nextval('journal_numbers') AS seq
                FROM unnest(ks, bodies, forms, properties, hashes, digests) AS v (k, body, form, said, hash, digest)
            ), lines AS (
                INSERT INTO journal (seq, at, verb, message, target, actor, digest)
                SELECT seq, at, 'put', k, q, who, digest FROM numbered
            ), rows AS (
                {_INSERT} SELECT k, q, seq, seq, at, body, form, said, hash FROM numbered
            )
            SELECT max(seq) INTO last FROM numbered;
            RETURN coalesce(answer, last);
        END
        $$
        """,
        # A message that comes back by an insert is inserted as reserved, and given back.
        "DROP TRIGGER messages_again ON messages",
        # --- as before, without what a tally said of sends ---
        f"""
        CREATE OR REPLACE FUNCTION postroom_fold(q BIGINT) RETURNS VOID LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            t tallies%ROWTYPE;
            came BIGINT;
            lent BIGINT;
            gone BIGINT;
            passed BIGINT;
            line BIGINT;
            waits BIGINT;
            leased BIGINT;
            first BIGINT;
            own XID := pg_current_xact_id_if_assigned()::xid;  -- what this transaction did is counted by its tally
        BEGIN
            SELECT * INTO t FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1;
            IF NOT FOUND THEN
                t := (q, 0, 0, 0, 0, 0, 0, 0, 0);
            END IF;
            SELECT count(*) INTO came FROM messages
            WHERE queue = q AND state = 1 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*) INTO lent FROM messages
            WHERE queue = q AND state = -2 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*), count(*) FILTER (WHERE number > t.upto) INTO gone, passed FROM messages
            WHERE queue = q AND state = 0 AND position > t.upto AND xmin IS DISTINCT FROM own;
            IF came = 0 AND lent = 0 AND gone = 0 THEN
                IF t.calm > 0 THEN
                    UPDATE tallies SET calm = 0 WHERE queue = q;
                END IF;
                RETURN;
            END IF;
            SELECT last_value INTO line FROM journal_numbers;
            SELECT position - 1 INTO waits FROM messages WHERE queue = q AND state = 1 AND position > t.head
            ORDER BY position LIMIT 1;
            SELECT position - 1 INTO leased FROM messages WHERE queue = q AND state = -2 AND position > t.low
            ORDER BY position LIMIT 1;
            SELECT until - 1 INTO first FROM deliveries WHERE queue = q AND until > t.ends ORDER BY until LIMIT 1;
            INSERT INTO tallies (queue, upto, arrived, departed, processed, head, low, ends)
            VALUES (q, line, t.arrived + came + lent + passed, t.departed + gone, t.processed + gone,
                coalesce(waits, line), least(coalesce(leased, line), coalesce(waits, line)), coalesce(first, t.ends));
            DELETE FROM tallies WHERE queue = q AND upto = t.upto;
        END
        $$
        """,
        f"""
        CREATE OR REPLACE FUNCTION postroom_tally(q BIGINT, came BIGINT, gone BIGINT, kept BIGINT) RETURNS VOID
        LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            t tallies%ROWTYPE;
            line BIGINT;
        BEGIN
            SELECT last_value INTO line FROM journal_numbers;
            SELECT * INTO t FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1;
            IF NOT FOUND THEN
                t := (q, -1, 0, 0, 0, 0, 0, 0, 0);
            END IF;
            INSERT INTO tallies (queue, upto, arrived, departed, processed, head, low, ends)
            VALUES (q, line, t.arrived + came, t.departed + gone, t.processed + kept, t.head, t.low, t.ends)
            ON CONFLICT (queue, upto) DO UPDATE SET arrived = excluded.arrived, departed = excluded.departed,
                processed = excluded.processed;
            DELETE FROM tallies WHERE queue = q AND upto = t.upto AND upto <> line;
        END
        $$
        """,
        f"""
        CREATE OR REPLACE FUNCTION postroom_calm(q BIGINT) RETURNS VOID LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            over BIGINT;
            stop BIGINT := 0;
        BEGIN
            IF NOT pg_try_advisory_xact_lock({_STEPS}) THEN
                RETURN;
            END IF;
            PERFORM postroom_lock(q);
            SELECT n.ends INTO over FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            PERFORM 1 FROM queues o
            WHERE o.id = q AND o.keep = 1 AND o.hold < 2 AND o.retired = 0 AND {_UNLOCKED} AND {_HANDED_OUT_NONE}
                AND {_UNORDERED} AND {_NOT_URGENT} AND {_UNLIMITED};
            IF FOUND THEN
                SELECT least(9223372036854775807,
                    (SELECT d.until FROM deliveries d WHERE d.queue = q AND d.until > over ORDER BY d.until LIMIT 1),
                    (SELECT m.due FROM messages m WHERE m.queue = q AND m.state = 3 ORDER BY m.due LIMIT 1),
                    (SELECT m.expires FROM messages m WHERE m.queue = q AND m.state > 0 AND m.expires IS NOT NULL
                     ORDER BY m.expires LIMIT 1)
                ) INTO stop;
            END IF;
            UPDATE tallies SET calm = stop WHERE queue = q AND calm <> stop;
        END
        $$
        """,
        # Whoever changes a queue, its policy or its lock, or hands a message out, has it alone from then on: nobody
        # notes it as calm, or remembers it as open to sends, who does not see the change yet. A room that is restored
        # is had alone as a whole.
        f"""
        CREATE OR REPLACE FUNCTION postroom_stir() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        DECLARE
            q BIGINT;
        BEGIN
            IF TG_TABLE_NAME = 'queues' THEN
                q := NEW.id;
            ELSIF TG_OP = 'DELETE' THEN
                q := OLD.queue;
            ELSE
                q := NEW.queue;
            END IF;
            IF current_setting('postroom.restoring', true) = 'on' THEN
                RETURN NULL;
            END IF;
            PERFORM pg_advisory_xact_lock({_LOCK});
            PERFORM pg_advisory_xact_lock({_LOCK} + 1);
            IF TG_TABLE_NAME <> 'handouts' THEN
                PERFORM nextval('queue_changes');
            END IF;
            UPDATE tallies SET calm = 0 WHERE queue = q AND calm > 0;
            RETURN NULL;
        END
        $$
        """,
    )
)
