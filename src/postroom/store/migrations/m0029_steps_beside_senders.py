"""PostgreSQL: a step of the engine shares its queues with those who send and receive. See decision 0090.

It has no row that others change: what it did is counted from the rows of messages, like what they did. A lock of its
own keeps those away who would write the counts down meanwhile, and would have all others wait behind them.
"""

from postroom.store.kernel.statement import Statement

#: As in the migrations that made them.
_LOCK = "(('messages'::regclass::oid::bigint << 32) | (q << 1))"
_PLANNED = "SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off"
_UNLOCKED = "NOT EXISTS (SELECT 1 FROM locks l WHERE l.queue = q)"
_UNLIMITED = "NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.limited = 1)"
_UNORDERED = "NOT EXISTS (SELECT 1 FROM policies p WHERE p.queue = q AND p.ordered = 1)"
_HANDED_OUT_NONE = "NOT EXISTS (SELECT 1 FROM handouts h WHERE h.queue = q)"
_SENDABLE = "o.hold = 0 AND o.retired = 0 AND o.command IS NULL AND o.door = 0"
_NOT_URGENT = "NOT EXISTS (SELECT 1 FROM messages u WHERE u.queue = q AND u.state = 1 AND u.priority > 0)"
#: Of two numbers: whoever waits in the line of a queue has its number, a step the same below zero, a draw none.
_STEPS = "'messages'::regclass::oid::int, -(q::int)"
_DRAW = "'messages'::regclass::oid::int, 0"

STATEMENTS = tuple(
    Statement("", statement)
    for statement in (
        # Whether a step may share a queue, into which it puts messages, or from which it takes some.
        f"""
        CREATE FUNCTION postroom_sharable(q BIGINT, puts BOOLEAN, takes BOOLEAN) RETURNS BOOLEAN
        LANGUAGE plpgsql STABLE {_PLANNED} AS $$
        BEGIN
            PERFORM 1 FROM queues o
            WHERE o.id = q AND o.retired = 0 AND o.door = 0 AND {_UNLOCKED} AND {_UNLIMITED} AND {_UNORDERED}
                AND (NOT puts OR (o.hold = 0 AND o.command IS NULL))
                AND (NOT takes OR (o.hold < 2 AND o.keep > 0 AND {_HANDED_OUT_NONE}));
            RETURN FOUND;
        END
        $$
        """,
        # Shared until the commit: nobody changes from then on what was looked at. Who waits for what is put is woken.
        f"""
        CREATE FUNCTION postroom_share(q BIGINT, puts BOOLEAN, takes BOOLEAN) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock_shared({_STEPS});
            IF puts THEN
                PERFORM pg_advisory_xact_lock_shared({_LOCK});
            END IF;
            IF takes THEN
                PERFORM pg_advisory_xact_lock_shared({_LOCK} + 1);
            END IF;
            IF NOT postroom_sharable(q, puts, takes) THEN
                RETURN false;
            END IF;
            IF puts THEN
                PERFORM postroom_wake(q);
            END IF;
            RETURN true;
        END
        $$
        """,
        # No number of another draw lies between the first and the last. What is locked in a block that fails is given
        # back at once; numbers that were drawn in it stay drawn.
        f"""
        CREATE FUNCTION postroom_draw(count BIGINT) RETURNS BIGINT[] LANGUAGE plpgsql AS $$
        DECLARE
            numbers BIGINT[];
        BEGIN
            PERFORM pg_advisory_xact_lock({_DRAW});
            SELECT array_agg(nextval('journal_numbers')) INTO numbers FROM generate_series(1, count);
            RAISE EXCEPTION 'drawn' USING ERRCODE = 'P0777';
        EXCEPTION WHEN SQLSTATE 'P0777' THEN
            RETURN numbers;
        END
        $$
        """,
        # As before, but not while a step shares the queue: those who send would wait behind whoever waits for it.
        f"""
        CREATE OR REPLACE FUNCTION postroom_calm(q BIGINT) RETURNS VOID LANGUAGE plpgsql {_PLANNED} AS $$
        DECLARE
            over BIGINT;
            stop BIGINT := 0;
            sendable BIGINT;
        BEGIN
            IF NOT pg_try_advisory_xact_lock({_STEPS}) THEN
                RETURN;
            END IF;
            PERFORM postroom_lock(q);
            SELECT n.ends INTO over FROM tallies n WHERE n.queue = q ORDER BY n.upto DESC LIMIT 1;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            SELECT count(*) INTO sendable FROM queues o
            WHERE o.id = q AND {_SENDABLE} AND {_UNLOCKED} AND {_UNLIMITED};
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
            UPDATE tallies SET calm = stop, open = sendable WHERE queue = q AND (calm <> stop OR open <> sendable);
        END
        $$
        """,
    )
)
