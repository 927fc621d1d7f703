-- The rules, in one statement a batch: the ledger's own row is locked first, so batches on one ledger follow one another.
CREATE FUNCTION expost_now() RETURNS BIGINT LANGUAGE sql AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
-- The clock of the books shows full hours, and moves on with reservations and the owner's acts only: when work ended is not
-- told, for that would tell of the data. Leases go by expost_now().
CREATE FUNCTION expost_tick(p_at BIGINT, p_now BIGINT, p_ops JSONB) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 0 .. jsonb_array_length(p_ops) - 1 LOOP
    IF p_ops->i->>'do' IN ('reserve', 'account', 'limit', 'close') THEN RETURN greatest(p_at, p_now - p_now % 3600000000); END IF;
  END LOOP;
  RETURN p_at;
END $$;

CREATE FUNCTION expost_create(p_name TEXT, p_row JSONB) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
  v_at BIGINT := expost_tick(0, expost_now(), '[{"do": "account"}]');
  v_line TEXT := '{"at":' || v_at || ',"body":' || (p_row->>'body') || ',"entry":null,"event":"create","sequence":1}';
  v_head TEXT := encode(sha256(convert_to(repeat('0', 64) || E'\n' || v_line, 'UTF8')), 'hex');
  v_id BIGINT;
BEGIN
  INSERT INTO expost_ledger (name, neighbours, unit, sequence, entries, at, head)
    VALUES (p_name, p_row->>'neighbours', p_row->>'unit', 1, 0, v_at, v_head)
    ON CONFLICT (name) DO NOTHING RETURNING id INTO v_id;
  IF v_id IS NULL THEN RETURN FALSE; END IF;
  INSERT INTO expost_event VALUES (v_id, 1, v_line, v_head);
  INSERT INTO expost_account (ledger, path, epsilon_limit, delta_limit)
    VALUES (v_id, p_name, (p_row->>'epsilon')::bigint, (p_row->>'delta')::bigint);
  RETURN TRUE;
END $$;

CREATE FUNCTION expost_apply(
  p_ledger BIGINT, p_owner TEXT, p_identity TEXT, p_ttl BIGINT, p_batch TEXT, p_before JSONB, p_ops JSONB
) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
  v_now BIGINT := expost_now();
  v_book expost_ledger%ROWTYPE;
  v_owner expost_owner%ROWTYPE;
  v_entry RECORD;
  v_op JSONB;
  v_out JSONB;
  v_outs JSONB := '[]';
  v_do TEXT;
  v_kind TEXT;
  v_body TEXT;
  v_line TEXT;
  v_state TEXT;
  v_number BIGINT;
  v_epsilon BIGINT;
  v_delta BIGINT;
  v_account BIGINT;
  v_found BIGINT;
  v_fits BOOLEAN;
  v_levels BIGINT[];
  v_lost BIGINT[];
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    RAISE EXCEPTION 'expost: synchronous_commit is off, so a commit could be lost';
  END IF;
  SELECT * INTO STRICT v_book FROM expost_ledger WHERE id = p_ledger FOR UPDATE;
  v_book.at := expost_tick(v_book.at, v_now, p_ops);
  SELECT * INTO v_owner FROM expost_owner WHERE id = p_owner;  -- guarded by the ledger's lock
  IF FOUND THEN
    IF v_owner.batch = p_batch THEN RETURN v_owner.outcomes; END IF;  -- it was applied; only the answer was lost
    IF NOT p_before ? v_owner.batch THEN RETURN '{"stale": true}'; END IF;
  ELSE
    v_owner.expired := 0;
    INSERT INTO expost_owner (id, ledger, identity, deadline, batch, outcomes)
      VALUES (p_owner, p_ledger, p_identity, v_now + p_ttl, '', '[]');
  END IF;
  FOR v_op IN SELECT value FROM jsonb_array_elements(p_ops) LOOP
    v_do := v_op->>'do'; v_kind := NULL; v_number := NULL; v_body := v_op->>'body'; v_out := NULL; v_lost := '{}';
    IF v_do = 'reserve' THEN
      v_epsilon := (v_op->>'epsilon')::bigint; v_delta := (v_op->>'delta')::bigint;
      v_found := NULL;
      IF v_op->>'key' IS NOT NULL THEN
        SELECT number INTO v_found FROM expost_entry WHERE ledger = p_ledger AND key = v_op->>'key';
      END IF;
      v_levels := ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(v_op->'levels'));
      IF v_found IS NOT NULL THEN
        v_out := jsonb_build_object('used', v_found);
      ELSIF v_owner.expired = 1 AND v_op->>'lease' IS NULL THEN
        v_out := '{"expired": true}';
      ELSE
        -- At every level, if it fits at every level.
        UPDATE expost_account SET epsilon_reserved = epsilon_reserved + v_epsilon, delta_reserved = delta_reserved + v_delta
          WHERE id = ANY (v_levels) AND NOT EXISTS (SELECT 1 FROM expost_account short WHERE short.id = ANY (v_levels)
            AND NOT (short.closed = 0 AND v_epsilon <= short.epsilon_limit - short.epsilon_spent - short.epsilon_reserved
              AND v_delta <= short.delta_limit - short.delta_spent - short.delta_reserved));
        v_fits := FOUND;
      END IF;
      IF v_out IS NULL AND NOT v_fits THEN
        SELECT jsonb_build_object('levels', jsonb_agg(jsonb_build_array(epsilon_limit, delta_limit, epsilon_spent,
          delta_spent, epsilon_reserved, delta_reserved, closed) ORDER BY id))
          INTO v_out FROM expost_account WHERE id = ANY (v_levels);
      ELSIF v_out IS NULL THEN
        IF v_op->>'claim_text' IS NOT NULL THEN
          INSERT INTO expost_claim VALUES (v_op->>'claim', v_op->>'claim_text') ON CONFLICT DO NOTHING;
        END IF;
        v_book.entries := v_book.entries + 1;
        v_number := v_book.entries;
        INSERT INTO expost_entry (ledger, number, account, operation, subject, fingerprint, claim, label, key,
          epsilon, delta, owner, lease_until, begun, reserved_at)
        VALUES (p_ledger, v_number, v_levels[array_upper(v_levels, 1)], v_op->>'operation', v_op->>'subject',
          v_op->>'fingerprint', v_op->>'claim', v_op->>'label', v_op->>'key', v_epsilon, v_delta,
          CASE WHEN v_op->>'lease' IS NULL THEN p_owner END, v_now + (v_op->>'lease')::bigint,
          (v_op->>'begun')::boolean::int, v_book.at);
        v_kind := 'reserve';
        v_out := jsonb_build_object('entry', v_number, 'at', v_book.at);
      END IF;
    ELSIF v_do = 'begin' OR v_do = 'end' THEN
      v_number := (v_op->>'entry')::bigint;
      SELECT state, begun, account, epsilon, delta INTO v_entry
        FROM expost_entry WHERE ledger = p_ledger AND number = v_number;
      IF v_entry.state <> 'reserved' OR (v_op->>'state' = 'voided' AND v_entry.begun = 1) THEN
        v_out := jsonb_build_object('ended', v_entry.state);
      ELSIF v_do = 'begin' THEN
        IF v_entry.begun = 0 THEN
          UPDATE expost_entry SET begun = 1 WHERE ledger = p_ledger AND number = v_number;
          v_kind := 'begin'; v_body := '{}';
        END IF;
      ELSE
        v_state := v_op->>'state';
        v_epsilon := (v_op->>'epsilon')::bigint; v_delta := (v_op->>'delta')::bigint;
        UPDATE expost_entry SET state = v_state, begun = (v_state <> 'voided')::int, part = v_op->>'part',
          charged_epsilon = v_epsilon, charged_delta = v_delta, output = v_op->>'output', digest = v_op->>'digest',
          ended_at = v_book.at WHERE ledger = p_ledger AND number = v_number;
        PERFORM expost_charge(v_entry.account, v_entry.epsilon, v_entry.delta, v_epsilon, v_delta);
        v_kind := CASE v_state WHEN 'settled' THEN 'settle' WHEN 'forfeited' THEN 'forfeit' ELSE 'void' END;
      END IF;
    ELSIF v_do = 'recover' THEN
      UPDATE expost_owner SET expired = 1 WHERE ledger = p_ledger AND expired = 0 AND
        ((deadline < v_now AND id <> p_owner) OR id IN (SELECT jsonb_array_elements_text((v_op->>'dead')::jsonb)));
      v_lost := ARRAY(SELECT e.number FROM expost_entry e LEFT JOIN expost_owner o ON o.id = e.owner
        WHERE e.ledger = p_ledger AND e.state = 'reserved' AND (o.expired = 1 OR e.lease_until < v_now)
        ORDER BY e.number);
      v_out := jsonb_build_object('forfeited', cardinality(v_lost));
    ELSIF v_do = 'beat' THEN
      v_out := jsonb_build_object('alive', v_owner.expired = 0);
    ELSIF v_do = 'account' THEN
      INSERT INTO expost_account (ledger, parent, path, epsilon_limit, delta_limit)
        VALUES (p_ledger, (v_op->>'parent')::bigint, v_op->>'path', (v_op->>'epsilon')::bigint, (v_op->>'delta')::bigint)
        ON CONFLICT DO NOTHING;
      IF FOUND THEN v_kind := 'account'; ELSE v_out := '{"exists": true}'; END IF;
    ELSIF v_do = 'limit' THEN
      UPDATE expost_account SET epsilon_limit = (v_op->>'epsilon')::bigint, delta_limit = (v_op->>'delta')::bigint
        WHERE id = (v_op->>'account')::bigint AND epsilon_limit = (v_op->'seen'->>0)::bigint
        AND delta_limit = (v_op->'seen'->>1)::bigint;
      IF FOUND THEN v_kind := 'raise'; ELSE v_out := '{"moved": true}'; END IF;
    ELSIF v_do = 'close' THEN
      UPDATE expost_account SET closed = 1 WHERE id = (v_op->>'account')::bigint;
      v_kind := 'close';
    ELSE
      RAISE EXCEPTION 'expost: no such operation: %', v_do;
    END IF;
    IF v_kind IS NOT NULL THEN
      v_book.sequence := v_book.sequence + 1;
      v_line := '{"at":' || v_book.at || ',"body":' || v_body || ',"entry":' || coalesce(v_number::text, 'null')
        || ',"event":"' || v_kind || '","sequence":' || v_book.sequence || '}';
      v_book.head := encode(sha256(convert_to(v_book.head || E'\n' || v_line, 'UTF8')), 'hex');
      INSERT INTO expost_event VALUES (p_ledger, v_book.sequence, v_line, v_book.head);
    END IF;
    FOREACH v_number IN ARRAY v_lost LOOP
      SELECT account, epsilon, delta INTO v_entry FROM expost_entry WHERE ledger = p_ledger AND number = v_number;
      UPDATE expost_entry SET state = 'forfeited', begun = 1, charged_epsilon = epsilon, charged_delta = delta,
        ended_at = v_book.at WHERE ledger = p_ledger AND number = v_number;
      PERFORM expost_charge(v_entry.account, v_entry.epsilon, v_entry.delta, v_entry.epsilon, v_entry.delta);
      v_book.sequence := v_book.sequence + 1;
      v_line := '{"at":' || v_book.at || ',"body":{"charged":[' || v_entry.epsilon || ',' || v_entry.delta
        || '],"output":null,"part":null},"entry":' || v_number || ',"event":"forfeit","sequence":' || v_book.sequence || '}';
      v_book.head := encode(sha256(convert_to(v_book.head || E'\n' || v_line, 'UTF8')), 'hex');
      INSERT INTO expost_event VALUES (p_ledger, v_book.sequence, v_line, v_book.head);
    END LOOP;
    v_outs := v_outs || jsonb_build_array(coalesce(v_out, jsonb_build_object('at', v_book.at)));
  END LOOP;
  UPDATE expost_ledger SET sequence = v_book.sequence, entries = v_book.entries, at = v_book.at, head = v_book.head
    WHERE id = p_ledger;
  UPDATE expost_owner SET batch = p_batch, outcomes = v_outs,
    deadline = CASE WHEN expired = 1 THEN deadline ELSE greatest(deadline, v_now + p_ttl) END WHERE id = p_owner;
  RETURN v_outs;
END $$;

-- A charge counts at every level: the account's, and all above it.
CREATE FUNCTION expost_charge(p_account BIGINT, p_held BIGINT, p_held_delta BIGINT, p_paid BIGINT, p_paid_delta BIGINT)
RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE v_account BIGINT := p_account;
BEGIN
  WHILE v_account IS NOT NULL LOOP
    UPDATE expost_account SET epsilon_reserved = epsilon_reserved - p_held, delta_reserved = delta_reserved - p_held_delta,
      epsilon_spent = epsilon_spent + p_paid, delta_spent = delta_spent + p_paid_delta
      WHERE id = v_account RETURNING parent INTO v_account;
  END LOOP;
END $$;
