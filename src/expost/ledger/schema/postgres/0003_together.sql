-- Everything that this and what follows will need, at once, before any work, and in the order in which a batch asks.
LOCK TABLE expost_ledger, expost_owner, expost_entry, expost_account, expost_event IN ACCESS EXCLUSIVE MODE;

-- The same rules in fewer statements: each costs more than what it does. A single reservation or ending takes four
-- statements instead of nine, and many of them together three for all. Whatever is not plain (a refusal, a used key, an
-- expired process, every other step) goes step by step, as before.
ALTER FUNCTION expost_apply(BIGINT, TEXT, TEXT, BIGINT, TEXT, JSONB, JSONB) RENAME TO expost_singly;

CREATE FUNCTION expost_apply(
  p_ledger BIGINT, p_owner TEXT, p_identity TEXT, p_ttl BIGINT, p_batch TEXT, p_before JSONB, p_ops JSONB
) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
  v_outs JSONB;
  v_plain BOOLEAN := TRUE;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    RAISE EXCEPTION 'expost: synchronous_commit is off, so a commit could be lost';
  END IF;
  FOR i IN 0 .. jsonb_array_length(p_ops) - 1 LOOP
    v_plain := v_plain AND p_ops->i->>'do' IN ('reserve', 'end');
  END LOOP;
  IF v_plain AND jsonb_array_length(p_ops) = 1 THEN
    v_outs := expost_alone(p_ledger, p_owner, p_ttl, p_batch, p_before, p_ops->0);
  ELSIF v_plain THEN
    v_outs := expost_together(p_ledger, p_owner, p_ttl, p_batch, p_before, p_ops);
  END IF;
  IF v_outs IS NULL THEN
    PERFORM expost_seek(p_ledger, p_ops);
    v_outs := expost_singly(p_ledger, p_owner, p_identity, p_ttl, p_batch, p_before, p_ops);
    IF NOT v_plain THEN PERFORM expost_forget(p_ledger, p_owner); END IF;
  END IF;
  RETURN v_outs;
END $$;

-- An entry that was removed by force neither begins nor ends.
CREATE FUNCTION expost_seek(p_ledger BIGINT, p_ops JSONB) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE v_op JSONB;
BEGIN
  FOR v_op IN SELECT value FROM jsonb_array_elements(p_ops) WHERE value->>'do' IN ('begin', 'end') LOOP
    PERFORM 1 FROM expost_entry WHERE ledger = p_ledger AND number = (v_op->>'entry')::bigint;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'expost: entry % was removed', v_op->>'entry' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
  END LOOP;
END $$;

-- A process that has been silent for a month, and left nothing open, is forgotten. (Were it to wake, and send its last
-- batch once more, then a reservation could stand there twice: more would be charged, never less.)
CREATE INDEX expost_owner_expired ON expost_owner (ledger, deadline) WHERE expired = 1;
CREATE FUNCTION expost_forget(p_ledger BIGINT, p_owner TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM expost_owner owner WHERE ledger = p_ledger AND expired = 1 AND id <> p_owner
    AND deadline < expost_now() - 30 * 86400000000
    AND NOT EXISTS (SELECT 1 FROM expost_entry entry
      WHERE entry.ledger = p_ledger AND entry.owner = owner.id AND entry.state = 'reserved');
EXCEPTION WHEN insufficient_privilege THEN NULL;  -- somebody else will
END $$;

-- A line of the audit trail.
CREATE FUNCTION expost_line(p_at BIGINT, p_body TEXT, p_entry BIGINT, p_kind TEXT, p_sequence BIGINT)
RETURNS TEXT STABLE LANGUAGE sql AS $$
  SELECT '{"at":' || p_at || ',"body":' || p_body || ',"entry":' || p_entry || ',"event":"' || p_kind || '","sequence":'
    || p_sequence || '}'
$$;
CREATE FUNCTION expost_link(p_head TEXT, p_line TEXT) RETURNS TEXT STABLE LANGUAGE sql AS
$$ SELECT encode(sha256(convert_to(p_head || E'\n' || p_line, 'UTF8')), 'hex') $$;
CREATE FUNCTION expost_kind(p_state TEXT) RETURNS TEXT STABLE LANGUAGE sql AS
$$ SELECT CASE p_state WHEN 'settled' THEN 'settle' WHEN 'forfeited' THEN 'forfeit' WHEN 'voided' THEN 'void' END $$;

-- One reservation or ending; NULL, and nothing done, if it is not plain.
CREATE FUNCTION expost_alone(
  p_ledger BIGINT, p_owner TEXT, p_ttl BIGINT, p_batch TEXT, p_before JSONB, p_op JSONB
) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
  v_now BIGINT := expost_now();
  v_book RECORD;
  v_seen RECORD;
  v_line TEXT;
  v_head TEXT;
  v_outs JSONB;
  v_reserve BOOLEAN := p_op->>'do' = 'reserve';
  v_number BIGINT := (p_op->>'entry')::bigint;
  v_epsilon BIGINT := (p_op->>'epsilon')::bigint;
  v_delta BIGINT := (p_op->>'delta')::bigint;
  v_levels BIGINT[] := translate(p_op->>'levels', '[]', '{}')::bigint[];
BEGIN
  SELECT sequence + 1 AS sequence, entries, expost_tick(at, v_now, jsonb_build_array(p_op)) AS at, head INTO STRICT v_book
    FROM expost_ledger WHERE id = p_ledger FOR UPDATE;
  -- The owner's row is guarded by the ledger's lock.
  IF v_reserve THEN
    SELECT owner.batch, owner.expired, NULL::text AS state INTO v_seen FROM expost_owner owner WHERE owner.id = p_owner;
  ELSE
    SELECT owner.batch, owner.expired, entry.state, entry.begun, entry.account, entry.epsilon, entry.delta INTO v_seen
      FROM expost_owner owner LEFT JOIN expost_entry entry ON entry.ledger = p_ledger AND entry.number = v_number
      WHERE owner.id = p_owner;
  END IF;
  IF NOT FOUND OR NOT p_before ? v_seen.batch THEN RETURN NULL; END IF;
  IF v_reserve THEN
    IF v_seen.expired = 1 OR p_op->>'claim_text' IS NOT NULL THEN RETURN NULL; END IF;
    IF p_op->>'key' IS NOT NULL THEN
      PERFORM 1 FROM expost_entry WHERE ledger = p_ledger AND key = p_op->>'key';
      IF FOUND THEN RETURN NULL; END IF;
    END IF;
    -- At every level, if it fits at every level.
    IF cardinality(v_levels) = 1 THEN
      UPDATE expost_account SET epsilon_reserved = epsilon_reserved + v_epsilon, delta_reserved = delta_reserved + v_delta
        WHERE id = v_levels[1] AND closed = 0 AND v_epsilon <= epsilon_limit - epsilon_spent - epsilon_reserved
          AND v_delta <= delta_limit - delta_spent - delta_reserved;
    ELSE
      UPDATE expost_account SET epsilon_reserved = epsilon_reserved + v_epsilon, delta_reserved = delta_reserved + v_delta
        WHERE id = ANY (v_levels) AND NOT EXISTS (SELECT 1 FROM expost_account short WHERE short.id = ANY (v_levels)
          AND NOT (short.closed = 0 AND v_epsilon <= short.epsilon_limit - short.epsilon_spent - short.epsilon_reserved
            AND v_delta <= short.delta_limit - short.delta_spent - short.delta_reserved));
    END IF;
    IF NOT FOUND THEN RETURN NULL; END IF;
    v_number := v_book.entries + 1;
    v_outs := jsonb_build_array(jsonb_build_object('entry', v_number, 'at', v_book.at));
    v_line := expost_line(v_book.at, p_op->>'body', v_number, 'reserve', v_book.sequence);
  ELSE
    IF v_seen.state <> 'reserved' OR (p_op->>'state' = 'voided' AND v_seen.begun = 1)
      OR v_seen.account IS DISTINCT FROM v_levels[cardinality(v_levels)] THEN RETURN NULL;
    END IF;
    v_outs := jsonb_build_array(jsonb_build_object('at', v_book.at));
    v_line := expost_line(v_book.at, p_op->>'body', v_number, expost_kind(p_op->>'state'), v_book.sequence);
  END IF;
  v_head := expost_link(v_book.head, v_line);
  IF v_reserve THEN
    WITH event AS (
      INSERT INTO expost_event VALUES (p_ledger, v_book.sequence, v_line, v_head)
    ), ledger AS (
      UPDATE expost_ledger SET sequence = v_book.sequence, entries = v_number, at = v_book.at, head = v_head
        WHERE id = p_ledger
    ), owner AS (
      UPDATE expost_owner SET batch = p_batch, outcomes = v_outs, deadline = greatest(deadline, v_now + p_ttl)
        WHERE id = p_owner
    )
    INSERT INTO expost_entry (ledger, number, account, operation, subject, fingerprint, claim, label, key,
      epsilon, delta, owner, lease_until, begun, reserved_at)
    VALUES (p_ledger, v_number, v_levels[cardinality(v_levels)], p_op->>'operation', p_op->>'subject',
      p_op->>'fingerprint', p_op->>'claim', p_op->>'label', p_op->>'key', v_epsilon, v_delta,
      CASE WHEN p_op->>'lease' IS NULL THEN p_owner END, v_now + (p_op->>'lease')::bigint,
      (p_op->>'begun')::boolean::int, v_book.at);
  ELSE
    WITH event AS (
      INSERT INTO expost_event VALUES (p_ledger, v_book.sequence, v_line, v_head)
    ), ledger AS (
      UPDATE expost_ledger SET sequence = v_book.sequence, at = v_book.at, head = v_head WHERE id = p_ledger
    ), owner AS (
      UPDATE expost_owner SET batch = p_batch, outcomes = v_outs,
        deadline = CASE WHEN expired = 1 THEN deadline ELSE greatest(deadline, v_now + p_ttl) END
        WHERE id = p_owner
    ), account AS (
      UPDATE expost_account SET epsilon_reserved = epsilon_reserved - v_seen.epsilon,
        delta_reserved = delta_reserved - v_seen.delta, epsilon_spent = epsilon_spent + v_epsilon,
        delta_spent = delta_spent + v_delta WHERE id = ANY (v_levels)
    )
    UPDATE expost_entry SET state = p_op->>'state', begun = (p_op->>'state' <> 'voided')::int, part = p_op->>'part',
      charged_epsilon = v_epsilon, charged_delta = v_delta, output = p_op->>'output', digest = p_op->>'digest',
      ended_at = v_book.at WHERE ledger = p_ledger AND number = v_number;
  END IF;
  RETURN v_outs;
END $$;

-- Reservations that fit all at once, and endings of open entries: every order of them ends alike. NULL, and nothing
-- done, if they are not so.
CREATE FUNCTION expost_together(
  p_ledger BIGINT, p_owner TEXT, p_ttl BIGINT, p_batch TEXT, p_before JSONB, p_ops JSONB
) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
  v_now BIGINT := expost_now();
  v_sequence BIGINT;
  v_entries BIGINT;
  v_at BIGINT;
  v_head TEXT;
  v_plain BOOLEAN;
  v_op JSONB;
  v_kind TEXT;
  v_outs TEXT := '';
  v_steps INT := jsonb_array_length(p_ops);
  v_numbers BIGINT[] := '{}';
  v_lines TEXT[] := '{}';
  v_hashes TEXT[] := '{}';
BEGIN
  SELECT sequence, entries, expost_tick(at, v_now, p_ops), head INTO STRICT v_sequence, v_entries, v_at, v_head
    FROM expost_ledger WHERE id = p_ledger FOR UPDATE;
  WITH step AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(p_ops) AS step(
      "do" TEXT, entry BIGINT, state TEXT, levels BIGINT[], epsilon BIGINT, delta BIGINT, key TEXT, claim_text TEXT)
  )
  SELECT owner.expired = 0 AND p_before ? owner.batch
    AND (SELECT count(*) FROM step WHERE "do" = 'end') = (
      SELECT count(DISTINCT step.entry) FROM step JOIN LATERAL (
        SELECT state, begun, account FROM expost_entry WHERE ledger = p_ledger AND number = step.entry OFFSET 0
      ) entry ON TRUE
      WHERE step.do = 'end' AND entry.state = 'reserved' AND (step.state <> 'voided' OR entry.begun = 0)
        AND entry.account = step.levels[cardinality(step.levels)])
    AND NOT EXISTS (
      SELECT 1 FROM (
        SELECT level, sum(step.epsilon) AS epsilon, sum(step.delta) AS delta
        FROM step, unnest(step.levels) AS level WHERE step.do = 'reserve' GROUP BY level
      ) asked LEFT JOIN LATERAL (SELECT * FROM expost_account WHERE id = asked.level OFFSET 0) short ON TRUE
      WHERE short.id IS NULL OR short.closed = 1
        OR asked.epsilon > short.epsilon_limit - short.epsilon_spent - short.epsilon_reserved
        OR asked.delta > short.delta_limit - short.delta_spent - short.delta_reserved)
    AND NOT EXISTS (
      SELECT 1 FROM step JOIN LATERAL (
        SELECT 1 FROM expost_entry WHERE ledger = p_ledger AND key = step.key OFFSET 0
      ) used ON TRUE WHERE step.key IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM step WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1)
    AND NOT EXISTS (SELECT 1 FROM step WHERE claim_text IS NOT NULL)
    INTO v_plain FROM expost_owner owner WHERE owner.id = p_owner;
  IF v_plain IS NOT TRUE THEN RETURN NULL; END IF;
  FOR i IN 1 .. v_steps LOOP
    v_op := p_ops->(i - 1);
    IF v_op->>'do' = 'reserve' THEN
      v_entries := v_entries + 1;
      v_numbers[i] := v_entries;
      v_kind := 'reserve';
      v_outs := v_outs || ',{"at":' || v_at || ',"entry":' || v_entries || '}';
    ELSE
      v_numbers[i] := (v_op->>'entry')::bigint;
      v_kind := expost_kind(v_op->>'state');
      v_outs := v_outs || ',{"at":' || v_at || '}';
    END IF;
    v_lines[i] := expost_line(v_at, v_op->>'body', v_numbers[i], v_kind, v_sequence + i);
    v_head := expost_link(v_head, v_lines[i]);
    v_hashes[i] := v_head;
  END LOOP;
  v_outs := '[' || substr(v_outs, 2) || ']';
  WITH step AS MATERIALIZED (
    SELECT p_ledger AS ledger, * FROM ROWS FROM (jsonb_to_recordset(p_ops) AS (
      "do" TEXT, state TEXT, levels BIGINT[], epsilon BIGINT, delta BIGINT, operation TEXT, subject TEXT,
      fingerprint TEXT, claim TEXT, label TEXT, key TEXT, lease BIGINT, begun BOOLEAN, part TEXT, output TEXT,
      digest TEXT), unnest(v_numbers)) AS step(
      "do", state, levels, epsilon, delta, operation, subject, fingerprint, claim, label, key, lease, begun, part,
      output, digest, number)
  ), ended AS (
    UPDATE expost_entry entry SET state = step.state, begun = (step.state <> 'voided')::int, part = step.part,
      charged_epsilon = step.epsilon, charged_delta = step.delta, output = step.output, digest = step.digest,
      ended_at = v_at
    FROM step WHERE step.do = 'end' AND entry.ledger = step.ledger AND entry.number = step.number
    RETURNING step.levels, entry.epsilon AS held, entry.delta AS held_delta, step.epsilon AS paid,
      step.delta AS paid_delta
  ), moved AS (
    SELECT level, sum(more)::bigint AS more, sum(more_delta)::bigint AS more_delta, sum(paid)::bigint AS paid,
      sum(paid_delta)::bigint AS paid_delta
    FROM (
      SELECT levels, -held AS more, -held_delta AS more_delta, paid, paid_delta FROM ended
      UNION ALL SELECT levels, epsilon, delta, 0, 0 FROM step WHERE "do" = 'reserve'
    ) step, unnest(levels) AS level GROUP BY level
  ), account AS (
    UPDATE expost_account account SET epsilon_reserved = epsilon_reserved + moved.more,
      delta_reserved = delta_reserved + moved.more_delta, epsilon_spent = epsilon_spent + moved.paid,
      delta_spent = delta_spent + moved.paid_delta
    FROM moved WHERE account.id = moved.level
  ), entry AS (
    INSERT INTO expost_entry (ledger, number, account, operation, subject, fingerprint, claim, label, key,
      epsilon, delta, owner, lease_until, begun, reserved_at)
    SELECT ledger, number, levels[cardinality(levels)], operation, subject, fingerprint, claim, label, key,
      epsilon, delta, CASE WHEN lease IS NULL THEN p_owner END, v_now + lease, begun::int, v_at
    FROM step WHERE "do" = 'reserve'
  ), event AS (
    INSERT INTO expost_event SELECT p_ledger, v_sequence + place, line, hash
    FROM unnest(v_lines, v_hashes) WITH ORDINALITY AS written(line, hash, place)
  ), owner AS (
    UPDATE expost_owner SET batch = p_batch, outcomes = v_outs::jsonb, deadline = greatest(deadline, v_now + p_ttl)
    WHERE id = p_owner
  )
  UPDATE expost_ledger SET sequence = v_sequence + v_steps, entries = v_entries, at = v_at, head = v_head
    WHERE id = p_ledger;
  RETURN v_outs::jsonb;
END $$;
