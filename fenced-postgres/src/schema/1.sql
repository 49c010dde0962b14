-- Fences, requests, and the functions that compare. They raise, so that a transaction's first
-- statements can be sent without waiting for one another:
--   ZF001 stale (DETAIL: the newest token)    ZF002 not claimed          ZF003 implausible (DETAIL: the newest token)
--   ZF004 not fenced                          ZF005 request mismatch
CREATE SCHEMA IF NOT EXISTS fenced;

CREATE TABLE IF NOT EXISTS fenced.version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
INSERT INTO fenced.version (version) VALUES (1);

-- The newest token of each resource: `token` of those who exclude everybody, `shared` of those
-- who exclude only these. 0: none yet. Without a CHECK, since that is
-- compiled anew for every claim; nothing but the functions below writes here.
CREATE TABLE fenced.fence (
    resource   text COLLATE "C" PRIMARY KEY,
    token      bigint NOT NULL DEFAULT 0,
    shared     bigint NOT NULL DEFAULT 0,
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);

-- What was applied, and what was answered. Written in the transaction of the effect.
CREATE TABLE fenced.request (
    id         text COLLATE "C" CONSTRAINT request_pkey PRIMARY KEY,
    resource   text COLLATE "C" NOT NULL,
    token      bigint NOT NULL,
    digest     bytea NOT NULL,
    answer     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Rows of smaller tokens were collected: where a fence is missing, this takes its place.
CREATE TABLE fenced.floor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    token    bigint NOT NULL CHECK (token >= 0)
);
INSERT INTO fenced.floor (token) VALUES (0);

-- STABLE, so that what calls it in an expression can be made part of the caller's plan.
CREATE FUNCTION fenced.refuse(code text, message text, detail text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, SCHEMA = 'fenced', MESSAGE = message, DETAIL = coalesce(detail, '');
END $$;

-- Raises the fence of `target`, waiting for the transactions of older holders to end. Says whether it
-- did, which leaves the row locked against everybody; false: it had been raised before.
CREATE FUNCTION fenced.claim(target text, mine bigint, is_shared boolean, max_step bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    newest fenced.fence;
    lowest bigint;
BEGIN
    FOR attempt IN 1..2 LOOP
        -- One that is stale finds nothing to raise, and so does not wait for newer holders.
        IF is_shared THEN
            UPDATE fenced.fence SET shared = mine, claimed_at = clock_timestamp()
            WHERE resource = target AND token < mine AND shared < mine
                AND (max_step IS NULL OR mine - greatest(token, shared) <= max_step);
        ELSE
            UPDATE fenced.fence SET token = mine, claimed_at = clock_timestamp()
            WHERE resource = target AND token < mine AND shared < mine
                AND (max_step IS NULL OR mine - greatest(token, shared) <= max_step);
        END IF;
        IF FOUND THEN
            RETURN true;
        END IF;
        SELECT * INTO newest FROM fenced.fence WHERE resource = target;
        IF FOUND THEN
            lowest := greatest(newest.token, newest.shared);
            IF newest.token > mine OR (newest.shared > mine AND NOT is_shared) THEN
                PERFORM fenced.refuse('ZF001', 'stale fencing token', lowest::text);
            ELSIF (CASE WHEN is_shared THEN newest.shared ELSE newest.token END) >= mine THEN
                RETURN false;
            ELSIF mine - lowest > max_step THEN
                PERFORM fenced.refuse('ZF003', 'implausible fencing token', lowest::text);
            END IF;
        ELSE
            IF current_setting('transaction_isolation') = 'read committed' THEN
                SELECT token INTO lowest FROM fenced.floor;
            ELSE
                -- A snapshot may be older than the floor; the lock fails then.
                SELECT token INTO lowest FROM fenced.floor FOR SHARE;
            END IF;
            IF mine < lowest THEN
                PERFORM fenced.refuse('ZF001', 'stale fencing token', lowest::text);
            ELSIF lowest > 0 AND mine - lowest > max_step THEN
                PERFORM fenced.refuse('ZF003', 'implausible fencing token', lowest::text);
            END IF;
            INSERT INTO fenced.fence (resource, token, shared)
            VALUES (target, CASE WHEN is_shared THEN lowest ELSE mine END, CASE WHEN is_shared THEN mine ELSE 0 END)
            ON CONFLICT (resource) DO NOTHING;
            IF FOUND THEN
                RETURN true;
            END IF;
        END IF;
        -- Another claim came first; the next attempt sees it.
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'the fence changed while it was claimed';
END $$;

-- The first statement of a fenced transaction: bounds its waits, claims or compares, holds the
-- fence until the transaction ends, and returns the stored answer to the request, if there is one.
CREATE FUNCTION fenced.enter(
    target text, mine bigint, is_shared boolean, is_claimed boolean,
    lock_wait text, idle_limit text, max_step bigint, request_id text, request_digest bytea
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    held text := coalesce(current_setting('fenced.held', true), '');
    unused text;
    newest bigint;
    newest_shared bigint;
    applied_digest bytea;
    applied_answer text;
BEGIN
    IF held = '' AND pg_current_xact_id_if_assigned() IS NOT NULL THEN
        PERFORM fenced.refuse('ZF004', 'the transaction has written before it entered', NULL);
    END IF;
    unused := set_config('lock_timeout', lock_wait, true) || set_config('idle_in_transaction_session_timeout', idle_limit, true);
    IF is_claimed OR NOT fenced.claim(target, mine, is_shared, max_step) THEN
        SELECT token, shared INTO newest, newest_shared FROM fenced.fence WHERE resource = target FOR SHARE;
        IF NOT FOUND THEN
            SELECT token INTO newest FROM fenced.floor;
            IF newest > mine THEN
                PERFORM fenced.refuse('ZF001', 'stale fencing token', newest::text);
            END IF;
            PERFORM fenced.refuse('ZF002', 'the fence is missing', NULL);
        ELSIF newest > mine OR (newest_shared > mine AND NOT is_shared) THEN
            PERFORM fenced.refuse('ZF001', 'stale fencing token', greatest(newest, newest_shared)::text);
        ELSIF (CASE WHEN is_shared THEN newest_shared ELSE newest END) < mine THEN
            PERFORM fenced.refuse('ZF002', 'the fence is behind', NULL);
        END IF;
    END IF;
    unused := set_config('fenced.held', concat(held, E'\n', target, E'\n'), true);
    IF request_id IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT digest, answer INTO applied_digest, applied_answer FROM fenced.request WHERE id = request_id;
    IF FOUND AND applied_digest <> request_digest THEN
        PERFORM fenced.refuse('ZF005', 'the request was made before with another content', NULL);
    END IF;
    RETURN applied_answer;
END $$;

-- Returns `target` if this transaction entered there; the last statement of a fenced transaction calls it.
CREATE FUNCTION fenced.held(target text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN target <> '' AND position(E'\n' || target || E'\n' IN coalesce(current_setting('fenced.held', true), '')) > 0
        THEN target
        ELSE fenced.refuse('ZF004', 'the transaction has not entered here', NULL)
    END
$$;

-- `enter` for a transaction that somebody else began. In a savepoint it would hold the fence only
-- until that is rolled back: each open one that has locked something holds a lock on its own id.
CREATE FUNCTION fenced.enter_own(
    target text, mine bigint, is_shared boolean, is_claimed boolean,
    lock_wait text, idle_limit text, max_step bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM fenced.enter(target, mine, is_shared, is_claimed, lock_wait, idle_limit, max_step, NULL, NULL);
    IF (SELECT count(*) FROM pg_locks
        WHERE pid = pg_backend_pid() AND locktype = 'transactionid' AND mode = 'ExclusiveLock') > 1 THEN
        PERFORM fenced.refuse('ZF004', 'entered inside a savepoint', NULL);
    END IF;
END $$;

-- Collects what is older than `lowest`, but never what is in use, and remembers that it did.
CREATE FUNCTION fenced.collect(lowest bigint, OUT fences bigint, OUT requests bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE fenced.floor SET token = greatest(token, lowest);
    DELETE FROM fenced.fence WHERE resource IN (
        SELECT resource FROM fenced.fence WHERE greatest(token, shared) < lowest FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS fences = ROW_COUNT;
    DELETE FROM fenced.request WHERE token < lowest;
    GET DIAGNOSTICS requests = ROW_COUNT;
END $$;

-- Who lowered which fence, and why.
CREATE TABLE fenced.reset (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource   text NOT NULL,
    old_token  bigint NOT NULL,
    old_shared bigint NOT NULL,
    new_token  bigint NOT NULL,
    reason     text NOT NULL CHECK (reason <> ''),
    done_by    text NOT NULL DEFAULT session_user,
    done_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION fenced.reset(target text, new_token bigint, reason text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old fenced.fence;
BEGIN
    SELECT * INTO old FROM fenced.fence WHERE resource = target FOR UPDATE;
    INSERT INTO fenced.reset (resource, old_token, old_shared, new_token, reason)
    VALUES (target, coalesce(old.token, 0), coalesce(old.shared, 0), new_token, reset.reason);
    INSERT INTO fenced.fence AS fence (resource, token) VALUES (target, new_token)
    ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token, shared = 0, claimed_at = clock_timestamp();
END $$;

-- Refuses every write to a row of `guarded` whose transaction has not entered the resource that
-- `expression` makes of the row, before and after.
CREATE FUNCTION fenced.guard(guarded regclass, expression text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text := 'guard_' || guarded::oid;
BEGIN
    EXECUTE format($body$
        CREATE OR REPLACE FUNCTION fenced.%1$I() RETURNS trigger LANGUAGE plpgsql AS $function$
        BEGIN
            IF TG_OP = 'TRUNCATE' THEN
                PERFORM fenced.refuse('ZF004', 'a guarded table is not truncated', NULL);
            END IF;
            IF TG_OP <> 'INSERT' THEN
                PERFORM fenced.held((SELECT (%2$s)::text FROM (SELECT OLD.*) AS guarded));
            END IF;
            IF TG_OP <> 'DELETE' THEN
                PERFORM fenced.held((SELECT (%2$s)::text FROM (SELECT NEW.*) AS guarded));
                RETURN NEW;
            END IF;
            RETURN OLD;
        END $function$;
        DROP TRIGGER IF EXISTS fenced_rows ON %3$s;
        DROP TRIGGER IF EXISTS fenced_truncate ON %3$s;
        CREATE TRIGGER fenced_rows BEFORE INSERT OR UPDATE OR DELETE ON %3$s
            FOR EACH ROW EXECUTE FUNCTION fenced.%1$I();
        CREATE TRIGGER fenced_truncate BEFORE TRUNCATE ON %3$s
            FOR EACH STATEMENT EXECUTE FUNCTION fenced.%1$I();
    $body$, name, expression, guarded);
END $$;
