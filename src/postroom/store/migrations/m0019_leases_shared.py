"""PostgreSQL: leases and their ends beside sends and receives, each in one call. See decision 0064.

What is leased is counted from the rows of messages, like all that those who share a queue do: a tally counts as
departed what is not leased. ``low`` and ``ends`` let nobody meet what vacuum has not cleared yet.
"""

from postroom.store.kernel.statement import Statement

#: As in the migration that made them: the queue's lock for those who receive, shared.
_SHARED_OUT = "pg_advisory_xact_lock_shared((('messages'::regclass::oid::bigint << 32) | (q << 1)) + 1)::text"

#: The name of a queue that may be received from, and what its tally says of where to look; its order is free.
_LOOK = """
            SELECT o.name, coalesce(t.head, 0), coalesce(t.ends, 0) INTO queue, low, over
            FROM queues o LEFT JOIN LATERAL (
                SELECT n.head, n.ends FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1
            ) t ON true
            WHERE o.id = q AND o.hold < 2 AND o.retired = 0
                AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)
                AND NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q)
                AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.ordered = 1)
                AND NOT EXISTS (
                    SELECT 1 FROM deliveries d WHERE d.queue = q AND d.until > coalesce(t.ends, 0) AND d.until <= moment
                )
                AND NOT EXISTS (SELECT 1 FROM messages u WHERE u.queue = q AND u.state = 1 AND u.priority > 0)
                AND NOT EXISTS (SELECT 1 FROM messages d WHERE d.queue = q AND d.state = 3 AND d.due <= moment)
                AND NOT EXISTS (
                    SELECT 1 FROM messages e
                    WHERE e.queue = q AND e.state > 0 AND e.expires IS NOT NULL AND e.expires <= moment
                )
"""
#: The columns of a message as it is told, but for its queue and the time of its receipt.
_STORED = """
                m.key, m.created, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position, m.number,
                coalesce(m.last, m.position)
"""
_NOW = "coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"

STATEMENTS = tuple(
    Statement("", statement)
    for statement in (
        # No message is leased at a place up to ``low``; no lease ends at a time up to ``ends``.
        "ALTER TABLE tallies ADD COLUMN low BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE tallies ADD COLUMN ends BIGINT NOT NULL DEFAULT 0",
        """
        UPDATE tallies t SET departed = t.departed - (
            SELECT count(*) FROM messages m WHERE m.queue = t.queue AND m.state = -2
        )
        """,
        """
        ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_cost_delay = 0)
        """,
        # --- counts ---
        """
        CREATE OR REPLACE FUNCTION postroom_fold(q BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
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
                t := (q, 0, 0, 0, 0, 0, 0, 0);
            END IF;
            SELECT count(*) INTO came FROM messages
            WHERE queue = q AND state = 1 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*) INTO lent FROM messages
            WHERE queue = q AND state = -2 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*), count(*) FILTER (WHERE number > t.upto) INTO gone, passed FROM messages
            WHERE queue = q AND state = 0 AND position > t.upto AND xmin IS DISTINCT FROM own;
            IF came = 0 AND lent = 0 AND gone = 0 THEN
                RETURN;
            END IF;
            SELECT last_value INTO line FROM journal_numbers;
            SELECT position - 1 INTO waits FROM messages WHERE queue = q AND state = 1 AND position > t.head
            ORDER BY position LIMIT 1;
            SELECT position - 1 INTO leased FROM messages WHERE queue = q AND state = -2 AND position > t.low
            ORDER BY position LIMIT 1;
            SELECT until - 1 INTO first FROM deliveries WHERE queue = q AND until > t.ends ORDER BY until LIMIT 1;
            INSERT INTO tallies VALUES (q, line, t.arrived + came + lent + passed, t.departed + gone,
                t.processed + gone, coalesce(waits, line), least(coalesce(leased, line), coalesce(waits, line)),
                coalesce(first, t.ends));
            DELETE FROM tallies WHERE queue = q AND upto = t.upto;
        END
        $$
        """,
        """
        CREATE OR REPLACE FUNCTION postroom_tally(q BIGINT, came BIGINT, gone BIGINT, kept BIGINT) RETURNS VOID
        LANGUAGE plpgsql AS $$
        DECLARE
            t tallies%ROWTYPE;
            line BIGINT;
        BEGIN
            SELECT last_value INTO line FROM journal_numbers;
            SELECT * INTO t FROM tallies WHERE queue = q ORDER BY upto DESC LIMIT 1;
            IF NOT FOUND THEN
                t := (q, -1, 0, 0, 0, 0, 0, 0);
            END IF;
            INSERT INTO tallies
            VALUES (q, line, t.arrived + came, t.departed + gone, t.processed + kept, t.head, t.low, t.ends)
            ON CONFLICT (queue, upto) DO UPDATE SET arrived = excluded.arrived, departed = excluded.departed,
                processed = excluded.processed;
            DELETE FROM tallies WHERE queue = q AND upto = t.upto AND upto <> line;
        END
        $$
        """,
        # ``gone`` has what is leased now among it, as whoever reads the counts has.
        """
        CREATE OR REPLACE FUNCTION postroom_set_tally(q BIGINT, came BIGINT, gone BIGINT, kept BIGINT) RETURNS VOID
        LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM tallies WHERE queue = q;
            INSERT INTO tallies SELECT q, last_value, came, gone - (
                SELECT count(*) FROM messages m WHERE m.queue = q AND m.state = -2
            ), kept, 0, 0, 0 FROM journal_numbers;
        END
        $$
        """,
        """
        CREATE OR REPLACE FUNCTION postroom_back() RETURNS TRIGGER LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE tallies SET head = least(head, NEW.position - 1), low = least(low, NEW.position - 1)
            WHERE queue = NEW.queue AND (head >= NEW.position OR low >= NEW.position);
            RETURN NULL;
        END
        $$
        """,
        # Sends under way have ended when this returns. What is locked in a block that fails is given back at once.
        """
        CREATE FUNCTION postroom_settle(q BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock(('messages'::regclass::oid::bigint << 32) | (q << 1));
            RAISE EXCEPTION 'settled' USING ERRCODE = 'P0777';
        EXCEPTION WHEN SQLSTATE 'P0777' THEN
            NULL;
        END
        $$
        """,
        # --- leases by whoever has the queue alone, and their extension ---
        """
        CREATE FUNCTION postroom_deliver(f BIGINT, k BIGINT, q BIGINT, holder TEXT, stop BIGINT) RETURNS VOID
        LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO deliveries (fence, message, queue, owner, until) VALUES (f, k, q, holder, stop);
            UPDATE tallies SET ends = stop - 1 WHERE queue = q AND ends >= stop;
        END
        $$
        """,
        f"""
        CREATE FUNCTION postroom_extend(stop BIGINT, f BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
        DECLARE
            q BIGINT;
        BEGIN
            SELECT d.queue INTO q FROM deliveries d WHERE d.fence = f;
            IF NOT FOUND OR {_SHARED_OUT} IS NULL THEN
                RETURN false;
            END IF;
            UPDATE deliveries SET until = stop WHERE fence = f;
            IF NOT FOUND THEN
                RETURN false;
            END IF;
            UPDATE tallies SET ends = stop - 1 WHERE queue = q AND ends >= stop;
            RETURN true;
        END
        $$
        """,
        # --- the commonest receive, lease and end of a lease, each in one call ---
        f"""
        CREATE OR REPLACE FUNCTION postroom_receive(q BIGINT, who TEXT, INOUT at BIGINT, OUT key BIGINT, OUT queue TEXT,
            OUT created BIGINT, OUT processed BIGINT, OUT type TEXT, OUT format TEXT, OUT body TEXT, OUT hash BYTEA,
            OUT properties TEXT, OUT cause BIGINT, OUT place BIGINT, OUT number BIGINT, OUT last BIGINT,
            OUT line BIGINT)
        LANGUAGE plpgsql AS $$
        DECLARE
            moment BIGINT;
            low BIGINT;
            over BIGINT;
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            moment := {_NOW};
            {_LOOK} AND o.keep = 1;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            processed := moment;
            SELECT {_STORED}
            INTO key, created, type, format, body, hash, properties, cause, place, number, last
            FROM messages m WHERE m.queue = q AND m.state = 1 AND m.position > low
            ORDER BY m.position LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            line := nextval('journal_numbers');
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (line, moment, 'take', key, last, q, q, who, postroom_digest(key, last, moment, 'take', q, q, who));
            UPDATE messages m SET state = 0, position = line, last = NULL, processed = moment
            WHERE m.key = postroom_receive.key;
        END
        $$
        """,
        f"""
        CREATE FUNCTION postroom_lease(q BIGINT, who TEXT, holder TEXT, span BIGINT, at BIGINT, OUT key BIGINT,
            OUT queue TEXT, OUT created BIGINT, OUT processed BIGINT, OUT type TEXT, OUT format TEXT, OUT body TEXT,
            OUT hash BYTEA, OUT properties TEXT, OUT cause BIGINT, OUT place BIGINT, OUT number BIGINT, OUT last BIGINT,
            OUT fence BIGINT, OUT attempts BIGINT, OUT until BIGINT)
        LANGUAGE plpgsql AS $$
        DECLARE
            moment BIGINT;
            low BIGINT;
            over BIGINT;
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            moment := {_NOW};
            {_LOOK};
            IF NOT FOUND THEN
                RETURN;
            END IF;
            SELECT {_STORED}, m.attempts + 1
            INTO key, created, type, format, body, hash, properties, cause, place, number, last, attempts
            FROM messages m WHERE m.queue = q AND m.state = 1 AND m.position > low
            ORDER BY m.position LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            fence := nextval('journal_numbers');
            until := moment + span;
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (fence, moment, 'lease', key, last, q, q, who,
                postroom_digest(key, last, moment, 'lease', q, q, who));
            INSERT INTO deliveries (fence, message, queue, owner, until) VALUES (fence, key, q, holder, until);
            UPDATE messages m SET state = -2, last = fence, processed = moment, attempts = m.attempts + 1, lane = NULL
            WHERE m.key = postroom_lease.key;
            IF until <= over THEN
                UPDATE tallies t SET ends = until - 1 WHERE t.queue = q AND t.ends >= until;
            END IF;
        END
        $$
        """,
        f"""
        CREATE FUNCTION postroom_lease_many(q BIGINT, who TEXT, holder TEXT, span BIGINT, at BIGINT, most BIGINT)
        RETURNS TABLE (key BIGINT, queue TEXT, created BIGINT, processed BIGINT, type TEXT, format TEXT, body TEXT,
            hash BYTEA, properties TEXT, cause BIGINT, place BIGINT, number BIGINT, last BIGINT, fence BIGINT,
            attempts BIGINT, until BIGINT)
        LANGUAGE plpgsql ROWS 10 AS $$
        #variable_conflict use_column
        DECLARE
            moment BIGINT;
            stop BIGINT;
            low BIGINT;
            over BIGINT;
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            moment := {_NOW};
            stop := moment + span;
            {_LOOK};
            IF NOT FOUND THEN
                RETURN;
            END IF;
            IF stop <= over THEN
                UPDATE tallies t SET ends = stop - 1 WHERE t.queue = q AND t.ends >= stop;
            END IF;
            RETURN QUERY WITH found AS MATERIALIZED (
                SELECT m.key, m.created, m.type, m.format, m.body, m.hash, m.properties, m.cause, m.position, m.number,
                    coalesce(m.last, m.position) AS last, m.attempts + 1 AS attempts
                FROM messages m WHERE m.queue = q AND m.state = 1 AND m.position > low
                ORDER BY m.position LIMIT most FOR NO KEY UPDATE SKIP LOCKED
            ), lent AS MATERIALIZED (
                SELECT f.*, nextval('journal_numbers') AS fence FROM (SELECT * FROM found ORDER BY position) f
            ), lines AS (
                INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
                SELECT n.fence, moment, 'lease', n.key, n.last, q, q, who,
                    postroom_digest(n.key, n.last, moment, 'lease', q, q, who) FROM lent n
            ), notes AS (
                INSERT INTO deliveries (fence, message, queue, owner, until)
                SELECT n.fence, n.key, q, holder, stop FROM lent n
            ), rows AS (
                UPDATE messages m SET state = -2, last = n.fence, processed = moment, attempts = n.attempts, lane = NULL
                FROM lent n WHERE m.key = n.key
            )
            SELECT n.key, postroom_lease_many.queue, n.created, NULL::bigint, n.type, n.format, n.body, n.hash,
                n.properties, n.cause, n.position, n.number, n.last, n.fence, n.attempts, stop
            FROM lent n ORDER BY n.fence;
        END
        $$
        """,
        # Of a queue that keeps what is processed, for whose order and limit nobody waits.
        f"""
        CREATE FUNCTION postroom_done(f BIGINT, who TEXT, at BIGINT, OUT q BIGINT, OUT line BIGINT)
        LANGUAGE plpgsql AS $$
        DECLARE
            moment BIGINT;
            k BIGINT;
            before BIGINT;
        BEGIN
            SELECT d.queue INTO q FROM deliveries d WHERE d.fence = f;
            IF NOT FOUND OR {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            SELECT m.key, coalesce(m.last, m.position) INTO k, before
            FROM deliveries d JOIN messages m ON m.key = d.message JOIN queues o ON o.id = d.queue
            WHERE d.fence = f AND m.state = -2 AND m.lane IS NULL AND o.keep = 1
                AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND (p.ordered = 1 OR p.limited = 1));
            IF NOT FOUND THEN
                RETURN;
            END IF;
            DELETE FROM deliveries d WHERE d.fence = f;
            IF NOT FOUND THEN  -- another has ended it
                RETURN;
            END IF;
            moment := {_NOW};
            line := nextval('journal_numbers');
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (line, moment, 'take', k, before, q, q, who,
                postroom_digest(k, before, moment, 'take', q, q, who));
            UPDATE messages m SET state = 0, position = line, last = NULL, processed = moment WHERE m.key = k;
        END
        $$
        """,
        # All or none: one that cannot be ended so is a conflict, and whoever asked goes the long way.
        f"""
        CREATE FUNCTION postroom_done_many(fs BIGINT[], who TEXT, at BIGINT, OUT q BIGINT, OUT line BIGINT)
        LANGUAGE plpgsql AS $$
        DECLARE
            moment BIGINT;
            ended BIGINT;
        BEGIN
            FOR q IN SELECT DISTINCT d.queue FROM deliveries d WHERE d.fence = ANY (fs) ORDER BY d.queue LOOP
                IF {_SHARED_OUT} IS NULL THEN
                    RETURN;
                END IF;
            END LOOP;
            moment := {_NOW};
            WITH held AS MATERIALIZED (
                SELECT d.fence, d.message, d.queue FROM deliveries d WHERE d.fence = ANY (fs) ORDER BY d.fence
                FOR UPDATE
            ), numbered AS MATERIALIZED (
                SELECT h.*, coalesce(m.last, m.position) AS before, nextval('journal_numbers') AS seq
                FROM held h JOIN messages m ON m.key = h.message JOIN queues o ON o.id = h.queue
                WHERE m.state = -2 AND m.lane IS NULL AND o.keep = 1 AND NOT EXISTS (
                    SELECT 1 FROM policies p WHERE p.queue = h.queue AND (p.ordered = 1 OR p.limited = 1)
                )
            ), gone AS (
                DELETE FROM deliveries d USING numbered n WHERE d.fence = n.fence
            ), lines AS (
                INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
                SELECT n.seq, moment, 'take', n.message, n.before, n.queue, n.queue, who,
                    postroom_digest(n.message, n.before, moment, 'take', n.queue, n.queue, who) FROM numbered n
            ), rows AS (
                UPDATE messages m SET state = 0, position = n.seq, last = NULL, processed = moment
                FROM numbered n WHERE m.key = n.message
            )
            SELECT count(*), max(n.queue), max(n.seq) INTO ended, q, line FROM numbered n;
            IF ended <> cardinality(fs) THEN
                RAISE EXCEPTION 'one of the leases is not to be ended so' USING ERRCODE = '40001';
            END IF;
        END
        $$
        """,
    )
)
