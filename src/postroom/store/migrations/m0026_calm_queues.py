"""PostgreSQL: what the commonest calls look at is noted, and their statements are planned once. See decision 0078.

A queue is calm up to a moment: until then a receive has nothing to look at but the oldest message that waits. It is
open if a send has nothing to look at. Both stand in its tally: ``postroom_calm`` notes them, and whoever has the queue
alone, or changes what they stand for, takes them back.
"""

from postroom.store.kernel.statement import Statement

#: As in the migration that made them: the queue's locks for those who send and who receive, and of those who wait.
_LOCK = "(('messages'::regclass::oid::bigint << 32) | (q << 1))"
_WAITING = "(('messages'::regclass::oid::bigint << 32) | 1)"
_SHARED = f"pg_advisory_xact_lock_shared({_LOCK})::text"
_SHARED_OUT = f"pg_advisory_xact_lock_shared({_LOCK} + 1)::text"
_NOW = "coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"

#: Left to itself, PostgreSQL plans these statements anew in every call as soon as there are many messages, which takes
#: longer than all the rest. What they look for has an index, however small a table was when they were planned.
_PLANNED = "SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off"

_SENDABLE = "o.hold = 0 AND o.retired = 0 AND o.command IS NULL AND o.door = 0"
_UNLOCKED = "NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)"
_UNLIMITED = "NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.limited = 1)"
_RELEASING = f"""
    o.hold < 2 AND o.retired = 0 AND {_UNLOCKED}
    AND NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q)
    AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.ordered = 1)
    AND NOT EXISTS (SELECT 1 FROM messages u WHERE u.queue = q AND u.state = 1 AND u.priority > 0)
"""

#: Whether a queue may be sent to in the short way; blocks of a function.
_ENTER = f"""
            IF {_SHARED} IS NULL THEN
                RETURN NULL;
            END IF;
            IF NOT (pg_try_advisory_lock({_WAITING}) AND pg_advisory_unlock({_WAITING})) THEN
                PERFORM postroom_wake(q);
            END IF;
"""
_ADMIT = f"""
                PERFORM 1 FROM queues o WHERE o.id = q AND {_SENDABLE} AND {_UNLOCKED} AND {_UNLIMITED};
                IF NOT FOUND THEN
                    RETURN NULL;
                END IF;
"""
_INSERT = "INSERT INTO messages (key, queue, position, number, created, body, format, properties, hash)"
#: Where to look in a queue that may be received from in the short way; a block of a function, with ``more`` to ask.
#: The queue's name is told by whoever had to look; those who ask know it from then on.
_LOOK = """
            moment := {now};
            SELECT n.head, n.ends, n.calm INTO low, over, peace
            FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1;
            IF peace IS NULL OR peace <= moment THEN
                low := coalesce(low, 0);
                over := coalesce(over, 0);
                SELECT o.name INTO queue FROM queues o
                WHERE o.id = q AND {releasing} {more}
                    AND NOT EXISTS (
                        SELECT 1 FROM deliveries d WHERE d.queue = q AND d.until > over AND d.until <= moment
                    )
                    AND NOT EXISTS (SELECT 1 FROM messages d WHERE d.queue = q AND d.state = 3 AND d.due <= moment)
                    AND NOT EXISTS (
                        SELECT 1 FROM messages e
                        WHERE e.queue = q AND e.state > 0 AND e.expires IS NOT NULL AND e.expires <= moment
                    );
                IF NOT FOUND THEN
                    RETURN;
                END IF;
            END IF;
"""
_LOOK_TO_RECEIVE = _LOOK.format(now=_NOW, releasing=_RELEASING, more="AND o.keep = 1")
_LOOK_TO_LEASE = _LOOK.format(now=_NOW, releasing=_RELEASING, more="")
_SEEN = """
            moment BIGINT;
            low BIGINT;
            over BIGINT;
            peace BIGINT;
"""
#: A message as it is told: numbers that are always there, and the rest.
_TOLD = """OUT key BIGINT, OUT created BIGINT, OUT place BIGINT, OUT number BIGINT, OUT last BIGINT, OUT line BIGINT,
            {more} OUT cause BIGINT, OUT queue TEXT, OUT type TEXT, OUT format TEXT, OUT body TEXT, OUT hash BYTEA,
            OUT properties TEXT"""
_STORED = """
                m.key, m.created, m.position, m.number, coalesce(m.last, m.position), m.cause, m.type, m.format, m.body,
                m.hash, m.properties
"""
_INTO = "key, created, place, number, last, cause, type, format, body, hash, properties"
_HEAD = """
            FROM messages m WHERE m.queue = q AND m.state = 1 AND m.position > low
            ORDER BY m.position LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            line := nextval('journal_numbers');
"""
_SOONER = """
            IF {until} <= over OR {until} < peace THEN
                UPDATE tallies t SET ends = least(t.ends, {until} - 1), calm = least(t.calm, {until})
                WHERE t.queue = q AND (t.ends >= {until} OR t.calm > {until});
            END IF;
"""
_CHANGED = """
    OLD.queue <> NEW.queue OR OLD.state <> NEW.state OR OLD.position <> NEW.position OR OLD.priority <> NEW.priority
"""

STATEMENTS = tuple(
    Statement("", statement)
    for statement in (
        "ALTER TABLE tallies ADD COLUMN calm BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE tallies ADD COLUMN open BIGINT NOT NULL DEFAULT 0",
        # --- counts ---
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
                t := (q, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            END IF;
            SELECT count(*) INTO came FROM messages
            WHERE queue = q AND state = 1 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*) INTO lent FROM messages
            WHERE queue = q AND state = -2 AND position > t.upto AND xmin IS DISTINCT FROM own;
            SELECT count(*), count(*) FILTER (WHERE number > t.upto) INTO gone, passed FROM messages
            WHERE queue = q AND state = 0 AND position > t.upto AND xmin IS DISTINCT FROM own;
            IF came = 0 AND lent = 0 AND gone = 0 THEN
                IF t.calm > 0 OR t.open > 0 THEN
                    UPDATE tallies SET calm = 0, open = 0 WHERE queue = q;
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
                t := (q, -1, 0, 0, 0, 0, 0, 0, 0, 0);
            END IF;
            INSERT INTO tallies (queue, upto, arrived, departed, processed, head, low, ends)
            VALUES (q, line, t.arrived + came, t.departed + gone, t.processed + kept, t.head, t.low, t.ends)
            ON CONFLICT (queue, upto) DO UPDATE SET arrived = excluded.arrived, departed = excluded.departed,
                processed = excluded.processed;
            DELETE FROM tallies WHERE queue = q AND upto = t.upto AND upto <> line;
        END
        $$
        """,
        # --- calm queues ---
        f"""
        CREATE FUNCTION postroom_calm(q BIGINT) RETURNS VOID LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            over BIGINT;
            stop BIGINT := 0;
            sendable BIGINT;
        BEGIN
            PERFORM postroom_lock(q);
            SELECT n.ends INTO over FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            SELECT count(*) INTO sendable FROM queues o
            WHERE o.id = q AND {_SENDABLE} AND {_UNLOCKED} AND {_UNLIMITED};
            PERFORM 1 FROM queues o WHERE o.id = q AND o.keep = 1 AND {_RELEASING} AND {_UNLIMITED};
            IF FOUND THEN
                SELECT least(9223372036854775807,
                    (SELECT d.until FROM deliveries d WHERE d.queue = q AND d.until > over ORDER BY d.until LIMIT 1),
                    (SELECT m.due FROM messages m WHERE m.queue = q AND m.state = 3 ORDER BY m.due LIMIT 1),
                    (SELECT m.expires FROM messages m WHERE m.queue = q AND m.state > 0 AND m.expires IS NOT NULL
                     ORDER BY m.expires LIMIT 1)
                ) INTO stop;
            END IF;
            UPDATE tallies SET calm = stop, open = sendable WHERE queue = q AND (calm <> stop OR open <> sendable);
        END
        $$
        """,
        # Whoever changes a queue, its policy or its lock, or hands a message out, has it alone from then on: nobody
        # notes it as calm who does not see the change yet. A room that is restored is had alone as a whole.
        f"""
        CREATE FUNCTION postroom_stir() RETURNS TRIGGER LANGUAGE plpgsql AS $$
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
            UPDATE tallies SET calm = 0, open = 0 WHERE queue = q AND (calm > 0 OR open > 0);
            RETURN NULL;
        END
        $$
        """,
        """
        CREATE TRIGGER queues_stir AFTER UPDATE OF hold, retired, keep, command, door ON queues
        FOR EACH ROW EXECUTE FUNCTION postroom_stir()
        """,
        """
        CREATE TRIGGER policies_stir AFTER INSERT OR UPDATE OR DELETE ON policies
        FOR EACH ROW EXECUTE FUNCTION postroom_stir()
        """,
        "CREATE TRIGGER locks_stir AFTER INSERT ON locks FOR EACH ROW EXECUTE FUNCTION postroom_stir()",
        "CREATE TRIGGER handouts_stir AFTER INSERT ON handouts FOR EACH ROW EXECUTE FUNCTION postroom_stir()",
        # --- triggers of messages: a condition is read from its text in every statement that may meet it ---
        # Whoever brings a message back sets one of these columns; whoever takes, leases or ends a lease sets none.
        "DROP TRIGGER messages_back ON messages",
        """
        CREATE TRIGGER messages_back AFTER UPDATE OF queue, number, due ON messages FOR EACH ROW
        WHEN (NEW.state = 1 AND (OLD.state <> 1 OR NEW.position < OLD.position))
        EXECUTE FUNCTION postroom_back()
        """,
        # Those of selectors are made for the first who asks for one, as on SQLite. Whoever asked before asks again.
        *(f"DROP TRIGGER messages_{name} ON messages" for name in ("select", "reselect", "unselect")),
        "DELETE FROM selected",
        "DELETE FROM selections",
        f"""
        CREATE FUNCTION postroom_selects() RETURNS VOID LANGUAGE plpgsql AS $$
        BEGIN
            LOCK TABLE messages IN SHARE ROW EXCLUSIVE MODE;
            PERFORM 1 FROM pg_trigger WHERE tgrelid = 'messages'::regclass AND tgname = 'messages_select';
            IF FOUND THEN
                RETURN;
            END IF;
            CREATE TRIGGER messages_select AFTER INSERT ON messages FOR EACH ROW
            WHEN (NEW.state = 1 AND length(NEW.properties) > 2) EXECUTE FUNCTION postroom_select();
            CREATE TRIGGER messages_reselect AFTER UPDATE ON messages FOR EACH ROW
            WHEN ((length(OLD.properties) > 2 OR length(NEW.properties) > 2) AND (OLD.state = 1 OR NEW.state = 1)
                AND ({_CHANGED})) EXECUTE FUNCTION postroom_select();
            CREATE TRIGGER messages_unselect AFTER DELETE ON messages FOR EACH ROW
            WHEN (OLD.state = 1 AND length(OLD.properties) > 2) EXECUTE FUNCTION postroom_select();
        END
        $$
        """,
        # --- the commonest calls ---
        # The line of a send is told as a negative number if the queue had to be looked at. Its statements are planned
        # once without being told to.
        f"""
        CREATE OR REPLACE FUNCTION postroom_send(q BIGINT, k BIGINT, at BIGINT, body TEXT, form TEXT, properties TEXT,
            hash BYTEA, who TEXT, digest BYTEA) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE
            line BIGINT;
            looked BIGINT := 1;
        BEGIN
            {_ENTER}
            line := nextval('journal_numbers');
            {_INSERT} SELECT k, q, line, line, at, body, form, properties, hash
            FROM (SELECT n.open FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1) t WHERE t.open = 1;
            IF NOT FOUND THEN
                looked := -1;
                {_ADMIT}
                {_INSERT} VALUES (k, q, line, line, at, body, form, properties, hash);
            END IF;
            INSERT INTO journal (seq, at, verb, message, target, actor, digest)
            VALUES (line, at, 'put', k, q, who, digest);
            RETURN looked * line;
        END
        $$
        """,
        f"""
        CREATE OR REPLACE FUNCTION postroom_send_many(q BIGINT, ks BIGINT[], at BIGINT, bodies TEXT[], forms TEXT[],
            properties TEXT[], hashes BYTEA[], who TEXT, digests BYTEA[]) RETURNS BIGINT
        LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            last BIGINT;
            sendable BIGINT;
        BEGIN
            {_ENTER}
            SELECT n.open INTO sendable FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1;
            IF sendable IS DISTINCT FROM 1 THEN
                {_ADMIT}
            END IF;
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
            RETURN last;
        END
        $$
        """,
        f"ALTER FUNCTION postroom_wake(BIGINT) {_PLANNED}",
        "DROP FUNCTION postroom_receive(BIGINT, TEXT, BIGINT)",
        f"""
        CREATE FUNCTION postroom_receive(q BIGINT, who TEXT, at BIGINT, {_TOLD.format(more="OUT processed BIGINT,")})
        LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE {_SEEN}
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            {_LOOK_TO_RECEIVE}
            SELECT {_STORED} INTO {_INTO} {_HEAD}
            processed := moment;
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (line, moment, 'take', key, last, q, q, who, postroom_digest(key, last, moment, 'take', q, q, who));
            UPDATE messages m SET state = 0, position = line, last = NULL, processed = moment
            WHERE m.key = postroom_receive.key;
        END
        $$
        """,
        "DROP FUNCTION postroom_lease(BIGINT, TEXT, TEXT, BIGINT, BIGINT)",
        # The line is also the number of the lease.
        f"""
        CREATE FUNCTION postroom_lease(q BIGINT, who TEXT, holder TEXT, span BIGINT, at BIGINT,
            {_TOLD.format(more="OUT attempts BIGINT, OUT until BIGINT,")})
        LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE {_SEEN}
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            {_LOOK_TO_LEASE}
            SELECT {_STORED}, m.attempts + 1 INTO {_INTO}, attempts {_HEAD}
            until := moment + span;
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (line, moment, 'lease', key, last, q, q, who,
                postroom_digest(key, last, moment, 'lease', q, q, who));
            INSERT INTO deliveries (fence, message, queue, owner, until) VALUES (line, key, q, holder, until);
            UPDATE messages m SET state = -2, last = line, processed = moment, attempts = m.attempts + 1, lane = NULL
            WHERE m.key = postroom_lease.key;
            {_SOONER.format(until="until")}
        END
        $$
        """,
        f"""
        CREATE OR REPLACE FUNCTION postroom_lease_many(q BIGINT, who TEXT, holder TEXT, span BIGINT, at BIGINT,
            most BIGINT)
        RETURNS TABLE (key BIGINT, queue TEXT, created BIGINT, processed BIGINT, type TEXT, format TEXT, body TEXT,
            hash BYTEA, properties TEXT, cause BIGINT, place BIGINT, number BIGINT, last BIGINT, fence BIGINT,
            attempts BIGINT, until BIGINT)
        LANGUAGE plpgsql ROWS 10 {_PLANNED} AS $$
        #variable_conflict use_column
        DECLARE {_SEEN}
            stop BIGINT;
        BEGIN
            IF {_SHARED_OUT} IS NULL THEN
                RETURN;
            END IF;
            {_LOOK_TO_LEASE}
            stop := moment + span;
            {_SOONER.format(until="stop")}
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
        f"""
        CREATE OR REPLACE FUNCTION postroom_extend(stop BIGINT, f BIGINT) RETURNS BOOLEAN
        LANGUAGE plpgsql {_PLANNED} AS $$
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
            UPDATE tallies t SET ends = least(t.ends, stop - 1), calm = least(t.calm, stop)
            WHERE t.queue = q AND (t.ends >= stop OR t.calm > stop);
            RETURN true;
        END
        $$
        """,
        # Of a queue that keeps what is processed, for whose order and limit nobody waits.
        "DROP FUNCTION postroom_done(BIGINT, TEXT, BIGINT)",
        f"""
        CREATE FUNCTION postroom_done(f BIGINT, who TEXT, at BIGINT) RETURNS BIGINT LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            q BIGINT;
            k BIGINT;
            moment BIGINT;
            peace BIGINT;
            before BIGINT;
            line BIGINT;
        BEGIN
            SELECT d.queue, d.message INTO q, k FROM deliveries d WHERE d.fence = f;
            IF NOT FOUND OR {_SHARED_OUT} IS NULL THEN
                RETURN NULL;
            END IF;
            SELECT n.calm INTO peace FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1;
            IF peace IS NULL OR peace = 0 THEN
                PERFORM 1 FROM queues o WHERE o.id = q AND o.keep = 1
                    AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND (p.ordered = 1 OR p.limited = 1));
                IF NOT FOUND THEN
                    RETURN NULL;
                END IF;
            END IF;
            SELECT coalesce(m.last, m.position) INTO before FROM messages m
            WHERE m.key = k AND m.state = -2 AND m.lane IS NULL;
            IF NOT FOUND THEN
                RETURN NULL;
            END IF;
            DELETE FROM deliveries d WHERE d.fence = f;
            IF NOT FOUND THEN  -- another has ended it
                RETURN NULL;
            END IF;
            moment := {_NOW};
            line := nextval('journal_numbers');
            INSERT INTO journal (seq, at, verb, message, prior, source, target, actor, digest)
            VALUES (line, moment, 'take', k, before, q, q, who,
                postroom_digest(k, before, moment, 'take', q, q, who));
            UPDATE messages m SET state = 0, position = line, last = NULL, processed = moment WHERE m.key = k;
            RETURN line;
        END
        $$
        """,
        f"ALTER FUNCTION postroom_done_many(BIGINT[], TEXT, BIGINT) {_PLANNED}",
    )
)
