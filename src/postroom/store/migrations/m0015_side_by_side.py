"""PostgreSQL: sends and receives beside each other, without a row that all of them change. See decision 0054.

A queue has two locks in memory. Whoever sends shares the first, whoever receives the second, and whoever does anything
else has both alone. What the shared ones did is counted from the rows of messages behind the line of the last tally.
"""

from postroom.store.kernel.statement import Statement

#: The number of a queue's first lock; the second has the next. Rooms of one database differ in their tables.
_LOCK = "(('messages'::regclass::oid::bigint << 32) | (q << 1))"
#: Held by all who wait for a commit, each in a connection of its own.
_WAITING = "(('messages'::regclass::oid::bigint << 32) | 1)"

#: A lock in words that plpgsql works out without a query; never null.
_SHARED = f"pg_advisory_xact_lock_shared({_LOCK})::text"
_SHARED_OUT = f"pg_advisory_xact_lock_shared({_LOCK} + 1)::text"

STATEMENTS = tuple(
    Statement("", statement)
    for statement in (
        # What a queue's counts were at a line; the newest row counts. A fold adds a row and removes the one before:
        # whoever looks for the newest never meets what vacuum has not cleared yet. No message waits up to ``head``.
        """
        CREATE TABLE tallies (
            queue BIGINT NOT NULL,
            upto BIGINT NOT NULL,
            arrived BIGINT NOT NULL,
            departed BIGINT NOT NULL,
            processed BIGINT NOT NULL,
            head BIGINT NOT NULL,
            PRIMARY KEY (queue, upto)
        ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)
        """,
        """
        INSERT INTO tallies
        SELECT q.id, (SELECT last_value FROM journal_numbers), greatest(q.arrived, coalesce((
            SELECT m.number FROM messages m WHERE m.queue = q.id AND m.state = 1 ORDER BY m.position DESC LIMIT 1
        ), 0)), q.departed, q.processed, 0 FROM queues q
        """,
        """
        ALTER TABLE messages SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_cost_delay = 0)
        """,
        "ALTER TABLE counters SET (fillfactor = 50)",
        "ALTER TABLE queues SET (fillfactor = 50)",
        # --- counts ---
        """
        CREATE FUNCTION postroom_fold(q BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
        DECLARE
            t tallies%ROWTYPE;
            came BIGINT;
            gone BIGINT;
            passed BIGINT;
            line BIGINT;
            low BIGINT;
            own XID := pg_current_xact_id_if_assigned()::xid;  -- what this transaction did is counted by its tally
        BEGIN
            SELECT * INTO t FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1;
            IF NOT FOUND THEN
                t := (q, 0, 0, 0, 0, 0);
            END IF;
            SELECT count(*) INTO came FROM messages
            WHERE queue = q AND state = 1 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*), count(*) FILTER (WHERE number > t.upto) INTO gone, passed FROM messages
            WHERE queue = q AND state = 0 AND position > t.upto AND xmin IS DISTINCT FROM own;
            IF came = 0 AND gone = 0 THEN
                RETURN;
            END IF;
            SELECT last_value INTO line FROM journal_numbers;
            SELECT position - 1 INTO low FROM messages WHERE queue = q AND state = 1 AND position > t.head
            ORDER BY position LIMIT 1;
            INSERT INTO tallies VALUES (q, line, t.arrived + came + passed, t.departed + gone, t.processed + gone,
                coalesce(low, line));
            DELETE FROM tallies WHERE queue = q AND upto = t.upto;
        END
        $$
        """,
        # What a transaction has changed that has a queue alone, since it was folded.
        """
        CREATE FUNCTION postroom_tally(q BIGINT, came BIGINT, gone BIGINT, kept BIGINT) RETURNS VOID
        LANGUAGE plpgsql AS $$
        DECLARE
            t tallies%ROWTYPE;
            line BIGINT;
        BEGIN
            SELECT last_value INTO line FROM journal_numbers;
            SELECT * INTO t FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1;
            IF NOT FOUND THEN
                t := (q, -1, 0, 0, 0, 0);
            END IF;
            INSERT INTO tallies VALUES (q, line, t.arrived + came, t.departed + gone, t.processed + kept, t.head)
            ON CONFLICT (queue, upto) DO UPDATE SET arrived = excluded.arrived, departed = excluded.departed,
                processed = excluded.processed;
            DELETE FROM tallies WHERE queue = q AND upto = t.upto AND upto <> line;
        END
        $$
        """,
        # What the counts of a queue are, whatever was noted of them.
        """
        CREATE FUNCTION postroom_set_tally(q BIGINT, came BIGINT, gone BIGINT, kept BIGINT) RETURNS VOID
        LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM tallies WHERE queue = q;
            INSERT INTO tallies SELECT q, last_value, came, gone, kept, 0 FROM journal_numbers;
        END
        $$
        """,
        # A message comes back to its place, which may lie before the head.
        """
        CREATE FUNCTION postroom_back() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE tallies SET head = NEW.position - 1 WHERE queue = NEW.queue AND head >= NEW.position;
            RETURN NULL;
        END
        $$
        """,
        """
        CREATE TRIGGER messages_back AFTER UPDATE ON messages FOR EACH ROW
        WHEN (NEW.state = 1 AND (OLD.state <> 1 OR NEW.position < OLD.position))
        EXECUTE FUNCTION postroom_back()
        """,
        """
        CREATE TRIGGER messages_again AFTER INSERT ON messages FOR EACH ROW
        WHEN (NEW.last IS NOT NULL) EXECUTE FUNCTION postroom_back()
        """,
        # --- locks ---
        f"""
        CREATE FUNCTION postroom_lock(q BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock({_LOCK});
            PERFORM pg_advisory_xact_lock({_LOCK} + 1);
            PERFORM postroom_fold(q);
            RETURN q;
        END
        $$
        """,
        # --- the commonest send and receive, each in one call ---
        f"""
        CREATE FUNCTION postroom_send(q BIGINT, k BIGINT, at BIGINT, body TEXT, form TEXT, properties TEXT, hash BYTEA,
            who TEXT, digest BYTEA) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE
            line BIGINT;
        BEGIN
            IF {_SHARED} IS NULL THEN
                RETURN NULL;
            END IF;
            PERFORM 1 FROM queues WHERE id = q AND hold = 0 AND retired = 0 AND command IS NULL AND door = 0
                AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)
                AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.limited = 1);
            IF NOT FOUND THEN
                RETURN NULL;
            END IF;
            IF NOT (pg_try_advisory_lock({_WAITING}) AND pg_advisory_unlock({_WAITING})) THEN
                PERFORM postroom_wake(q);
            END IF;
            line := nextval('journal_numbers');
            INSERT INTO journal (seq, at, verb, message, target, actor, digest)
            VALUES (line, at, 'put', k, q, who, digest);
            INSERT INTO messages (key, queue, position, number, created, body, format, properties, hash)
            VALUES (k, q, line, line, at, body, form, properties, hash);
            RETURN line;
        END
        $$
        """,
        f"""
        CREATE FUNCTION postroom_send_many(q BIGINT, ks BIGINT[], at BIGINT, bodies TEXT[], forms TEXT[],
            properties TEXT[], hashes BYTEA[], who TEXT, digests BYTEA[]) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE
            last BIGINT;
        BEGIN
            IF {_SHARED} IS NULL THEN
                RETURN NULL;
            END IF;
            PERFORM 1 FROM queues WHERE id = q AND hold = 0 AND retired = 0 AND command IS NULL AND door = 0
                AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)
                AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.limited = 1);
            IF NOT FOUND THEN
                RETURN NULL;
            END IF;
            IF NOT (pg_try_advisory_lock({_WAITING}) AND pg_advisory_unlock({_WAITING})) THEN
                PERFORM postroom_wake(q);
            END IF;
            WITH numbered AS MATERIALIZED (
                SELECT v.*, nextval('journal_numbers') AS seq
                FROM unnest(ks, bodies, forms, properties, hashes, digests) AS v (k, body, form, said, hash, digest)
            ), lines AS (
                INSERT INTO journal (seq, at, verb, message, target, actor, digest)
                SELECT seq, at, 'put', k, q, who, digest FROM numbered
            ), rows AS (
                INSERT INTO messages (key, queue, position, number, created, body, format, properties, hash)
                SELECT k, q, seq, seq, at, body, form, said, hash FROM numbered
            )
            SELECT max(seq) INTO last FROM numbered;
            RETURN last;
        END
        $$
        """,
        # Someone waits, and may have found the queue empty. Two who ask at once may each take the other for one who
        # waits; that wakes nobody.
        """
        CREATE FUNCTION postroom_wake(q BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
        BEGIN
            IF NOT EXISTS (
                SELECT 1 FROM messages WHERE queue = q AND state = 1 AND position > coalesce((
                    SELECT head FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1
                ), 0)
            ) THEN
                PERFORM pg_notify('postroom', '');
            END IF;
        END
        $$
        """,
        f"""
        CREATE FUNCTION postroom_receive(q BIGINT, who TEXT, INOUT at BIGINT, OUT key BIGINT, OUT queue TEXT,
            OUT created BIGINT, OUT processed BIGINT, OUT type TEXT, OUT format TEXT, OUT body TEXT, OUT hash BYTEA,
            OUT properties TEXT, OUT cause BIGINT, OUT place BIGINT, OUT number BIGINT, OUT last BIGINT,
            OUT line BIGINT)
        LANGUAGE plpgsql AS $$
        DECLARE
            low BIGINT;
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            processed := coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
            SELECT o.name, (SELECT t.head FROM tallies t WHERE t.queue = q ORDER BY t.upto DESC LIMIT 1)
            INTO queue, low FROM queues o WHERE o.id = q AND o.hold < 2 AND o.retired = 0 AND o.keep = 1
                AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)
                AND NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q)
                AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.ordered = 1)
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.queue = q AND d.until <= postroom_receive.processed)
                AND NOT EXISTS (SELECT 1 FROM messages u WHERE u.queue = q AND u.state = 1 AND u.priority > 0)
                AND NOT EXISTS (
                    SELECT 1 FROM messages d
                    WHERE d.queue = q AND d.state = 3 AND d.due <= postroom_receive.processed
                )
                AND NOT EXISTS (
                    SELECT 1 FROM messages e
                    WHERE e.queue = q AND e.state > 0 AND e.expires IS NOT NULL
                        AND e.expires <= postroom_receive.processed
                );
            IF NOT FOUND THEN
                RETURN;
            END IF;
            SELECT m.key, m.created, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position, m.number,
                coalesce(m.last, m.position)
            INTO key, created, type, format, body, hash, properties, cause, place, number, last
            FROM messages m WHERE m.queue = q AND m.state = 1 AND m.position > coalesce(low, 0)
            ORDER BY m.position LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            line := nextval('journal_numbers');
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (line, processed, 'take', key, last, q, q, who,
                postroom_digest(key, last, processed, 'take', q, q, who));
            UPDATE messages m SET state = 0, position = line, last = NULL, processed = postroom_receive.processed
            WHERE m.key = postroom_receive.key;
        END
        $$
        """,
        # The digest of a line that the server makes: see ``journal.py``.
        """
        CREATE FUNCTION postroom_digest(message BIGINT, prior BIGINT, at BIGINT, verb TEXT, source BIGINT,
            target BIGINT, actor TEXT) RETURNS BYTEA STABLE LANGUAGE sql AS $$
            SELECT '\\x01'::bytea || substring(sha256(convert_to(concat_ws(chr(31), message, prior, at, verb, source,
                target, actor), 'UTF8')) FROM 1 FOR 8)
        $$
        """,
        # A block of keys need not be on disk before it is used: what is sent under its keys is written behind it. A
        # store whose keys are lent has few, and goes the long way.
        """
        CREATE FUNCTION postroom_keys(size BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE
            stop BIGINT;
        BEGIN
            PERFORM set_config('synchronous_commit', 'off', true);
            UPDATE counters SET value = value + size WHERE name = 'keys'
                AND NOT EXISTS (SELECT 1 FROM counters WHERE name = 'keys until') RETURNING value INTO stop;
            RETURN stop;
        END
        $$
        """,
        f"""
        CREATE FUNCTION postroom_wait() RETURNS VOID LANGUAGE sql AS $$
            SELECT pg_advisory_lock_shared({_WAITING})
        $$
        """,
    )
)
