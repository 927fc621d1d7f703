-- Delete processes that were silent for a month and have no open entries. (If one of them woke up and sent its last batch
-- again, a reservation could be made twice: more would be charged, never less.)
CREATE FUNCTION expost_forget(p_ledger BIGINT, p_owner TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM expost_owner owner WHERE ledger = p_ledger AND id <> p_owner
    AND seen < expost_now() - 30 * 86400000000
    AND NOT EXISTS (SELECT 1 FROM expost_entry entry
      WHERE entry.ledger = p_ledger AND entry.state = 'reserved' AND entry.owner = owner.id);
END $$;

-- Administration of ledgers: new ledgers and accounts, limits, closing, remarks, the clock, dropped outputs. FALSE if the state is
-- no longer the one that p_values have. Of the line that is written, only names and reasons come from the caller.
CREATE FUNCTION expost_govern(p_ledger BIGINT, p_kind TEXT, p_path TEXT, p_values JSONB) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  v_book RECORD;
  v_now BIGINT := expost_now();
  v_names TEXT[]; v_paths TEXT[];
  v_body TEXT; v_levels TEXT; v_line TEXT; v_parent BIGINT;
  v_account TEXT := '"account":' || expost_text(p_path);
  v_note TEXT := '"by":' || expost_text(p_values->>'by');
  v_reason TEXT := '"reason":' || expost_text(p_values->>'reason');
  v_upto BIGINT := (p_values->>'upto')::bigint;
  v_epsilon BIGINT := (p_values->>'epsilon')::bigint;
  v_delta BIGINT := (p_values->>'delta')::bigint;
  v_meters JSONB := p_values->'accounting';
  v_accounting TEXT := '{"delta":' || (v_meters->>'delta')::bigint || ',"gaussian":' || (v_meters->>'gaussian')::bigint
    || ',"order":' || expost_text(v_meters->>'order') || ',"others":' || (v_meters->>'others')::bigint || ',"renyi":'
    || (v_meters->>'renyi')::bigint || '}';
  v_capacity BIGINT[] := (SELECT array_agg(value::bigint ORDER BY place)
    FROM jsonb_array_elements_text(p_values->'capacity') WITH ORDINALITY AS one(value, place));
  v_size INT;  -- how many of the seven amounts this ledger counts
BEGIN
  PERFORM expost_is_own_schema() AND expost_is_durable();
  v_names := string_to_array(p_path, '/');
  IF p_path IS NULL OR '' = ANY (v_names) OR (p_kind = 'create') <> (p_ledger = 0) OR p_kind = 'create' AND cardinality(v_names) > 1 THEN
    RAISE EXCEPTION 'expost: % is not the name of a ledger or an account', p_path USING ERRCODE = 'EX001';
  END IF;
  IF (p_kind NOT IN ('create', 'account') OR p_values->>'by' IS NOT NULL) AND (coalesce(p_values->>'by', '') = '' OR coalesce(p_values->>'reason', '') = '') THEN
    RAISE EXCEPTION 'expost: expost_govern needs who ordered it, and why: pass by and reason' USING ERRCODE = 'EX001';
  END IF;
  v_body := CASE p_kind
    WHEN 'create' THEN '{' || coalesce('"accounting":' || v_accounting || ',', '') || coalesce('"drawn":"' || (p_values->>'drawn') || '",', '') || '"limit":[' || v_epsilon || ',' || v_delta || '],"name":' || expost_text(p_path) || ',"neighbours":'
      || expost_text(p_values->>'neighbours') || ',"unit":' || expost_text(p_values->>'unit') || '}'
    WHEN 'account' THEN '{' || v_account || CASE WHEN p_values->>'by' IS NOT NULL THEN ',' || v_note ELSE '' END || ',"limit":[' || v_epsilon || ',' || v_delta || ']'
      || CASE WHEN p_values->>'by' IS NOT NULL THEN ',' || v_reason ELSE '' END || '}'
    WHEN 'raise' THEN '{' || v_account || ',' || v_note || ',"limit":[' || v_epsilon || ',' || v_delta || '],' || v_reason || '}'
    WHEN 'close' THEN '{' || v_account || ',' || v_note || ',' || v_reason
      || CASE WHEN p_values->>'to' IS NOT NULL THEN ',"to":' || expost_text(p_values->>'to') ELSE '' END || '}'
    WHEN 'remark' THEN '{' || v_account || ',' || v_note || ',' || v_reason || '}'
    WHEN 'clock' THEN '{' || v_note || ',' || v_reason || '}'
    WHEN 'drop' THEN '{' || v_note || ',' || v_reason || ',"upto":' || v_upto || '}' END;
  IF p_kind = 'create' AND p_values->>'drawn' !~ '^[0-9a-f]{32}$' THEN
    RAISE EXCEPTION 'expost: drawn is 32 hexadecimal digits' USING ERRCODE = 'EX001';
  END IF;
  IF v_body IS NULL OR v_upto < 1 THEN
    RAISE EXCEPTION 'expost: % is not a step of expost_govern, or lacks its limit or its entry number', p_kind USING ERRCODE = 'EX001';
  END IF;
  v_paths := expost_accounts(p_path);
  IF p_kind = 'create' THEN
    INSERT INTO expost_ledger (name, neighbours, unit, accounting)
      VALUES (p_path, p_values->>'neighbours', p_values->>'unit', v_accounting)
      ON CONFLICT (name) DO NOTHING
      RETURNING id, name, accounting, 0::bigint AS sequence, 0::bigint AS entries, v_now - v_now % 3600000000 AS at,
        repeat('0', 64) AS head INTO v_book;
    IF NOT FOUND THEN RETURN FALSE; END IF;
    p_ledger := v_book.id;
  ELSE
    PERFORM 1 FROM expost_ledger WHERE id = p_ledger FOR UPDATE;
    SELECT id, name, accounting, sequence, entries, at, head INTO STRICT v_book FROM expost_books WHERE id = p_ledger;
    IF p_kind IN ('clock', 'drop') THEN v_paths := ARRAY[v_book.name]; END IF;
    v_book.at := CASE WHEN p_kind = 'clock' THEN v_now - v_now % 3600000000
      WHEN p_kind = 'close' AND v_now - v_book.at > 31622400000000 THEN v_book.at  -- closing is always possible
      ELSE expost_tick(v_book.at, v_now) END;
  END IF;
  IF p_kind IN ('create', 'account', 'raise') AND coalesce(cardinality(v_capacity), 0) <> 4 * (v_book.accounting IS NOT NULL)::int THEN
    RAISE EXCEPTION 'expost: a limit needs its capacity on the meters of its ledger, and on no others' USING ERRCODE = 'EX001';
  END IF;
  v_capacity := coalesce(v_capacity, ARRAY[v_delta, -1, -1, -1]);
  v_size := CASE WHEN v_book.accounting IS NULL THEN 2 ELSE 7 END;
  v_book.sequence := v_book.sequence + 1;
  IF p_kind IN ('create', 'account') THEN
    SELECT id INTO v_parent FROM expost_account WHERE ledger = p_ledger AND path = v_paths[cardinality(v_paths) - 1];
    IF NOT FOUND AND p_kind = 'account' THEN RETURN FALSE; END IF;
    INSERT INTO expost_account (ledger, parent, path, limit_epsilon, limit_delta, capacity_delta, capacity_renyi,
        capacity_normal, capacity_others, line, entries, at, head)
      VALUES (p_ledger, v_parent, p_path, v_epsilon, v_delta, v_capacity[1], v_capacity[2], v_capacity[3], v_capacity[4], 0,
        CASE WHEN v_parent IS NULL THEN 0 END, CASE WHEN v_parent IS NULL THEN v_book.at END,
        CASE WHEN v_parent IS NULL THEN v_book.head END) ON CONFLICT (ledger, path) DO NOTHING;
  ELSIF p_kind = 'raise' THEN
    UPDATE expost_account SET limit_epsilon = v_epsilon, limit_delta = v_delta, capacity_delta = v_capacity[1],
      capacity_renyi = v_capacity[2], capacity_normal = v_capacity[3], capacity_others = v_capacity[4]
      WHERE ledger = p_ledger AND path = p_path
      AND limit_epsilon = (p_values->'seen'->>0)::bigint AND limit_delta = (p_values->'seen'->>1)::bigint;
  ELSIF p_kind = 'close' THEN
    UPDATE expost_account SET closed = 1 WHERE ledger = p_ledger AND path = p_path
      AND (p_values->>'to' IS NULL OR parent IS NULL AND closed = 0);  -- a ledger goes on in one place only
  ELSIF p_kind = 'remark' THEN
    PERFORM 1 FROM expost_account WHERE ledger = p_ledger AND path = p_path;
  ELSIF p_kind = 'drop' THEN
    UPDATE expost_entry SET output = NULL
      WHERE ledger = p_ledger AND number <= v_upto AND output IS NOT NULL;
  END IF;
  IF NOT FOUND AND p_kind NOT IN ('drop', 'clock') THEN RETURN FALSE; END IF;
  SELECT string_agg('[' || held || ',[' || array_to_string(charged[1:v_size], ',') || '],['
      || array_to_string(reserved[1:v_size], ',') || '],' || closed || ',' || line || ']', ',' ORDER BY id)
    INTO v_levels FROM expost_balance WHERE ledger = p_ledger AND path = ANY (v_paths);
  UPDATE expost_account SET line = v_book.sequence WHERE ledger = p_ledger AND path = ANY (v_paths);
  v_line := expost_line(v_book.at, v_body, NULL, p_kind, v_levels, v_book.sequence, expost_user());
  v_book.head := expost_link(v_book.head, v_line);
  INSERT INTO expost_event VALUES (p_ledger, v_book.sequence, v_line, v_book.head);
  UPDATE expost_account SET at = v_book.at, head = v_book.head WHERE ledger = p_ledger AND path = v_book.name;
  RETURN TRUE;
END $$;

-- A process of this role ends. Where no process has anything open it is forgotten at once; otherwise later ones may count on
-- when it wrote last, to give up others. Nobody waits for the disk.
CREATE FUNCTION expost_leave(p_ledger BIGINT, p_owner TEXT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM expost_is_own_schema(), set_config('synchronous_commit', 'off', TRUE);
  DELETE FROM expost_owner WHERE id = p_owner AND ledger = p_ledger AND role = session_user
    AND NOT EXISTS (SELECT 1 FROM expost_entry entry
      WHERE entry.ledger = p_ledger AND entry.state = 'reserved' AND entry.owner IS NOT NULL);
END $$;
DO $$ BEGIN EXECUTE format('ALTER FUNCTION expost_leave(BIGINT, TEXT) SET search_path = %I, pg_temp', current_schema()); END $$;

-- Only the first two functions write the books. Only their owner, and roles to whom the owner grants it, may call them:
-- docs/ledger-databases.md has the grants for readers, spenders and governors.
DO $$ DECLARE v_function TEXT; BEGIN
  FOREACH v_function IN ARRAY ARRAY[
    'expost_spend(BIGINT, TEXT, TEXT, TEXT, JSONB, BIGINT, JSONB)', 'expost_govern(BIGINT, TEXT, TEXT, JSONB)'] LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_function);
  END LOOP;
  IF has_schema_privilege('public', current_schema(), 'CREATE') THEN  -- the default up to PostgreSQL 14
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
  END IF;
END $$;
