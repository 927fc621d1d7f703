-- Apply a batch of spending steps, exactly once. What needs no lock is computed first: the costs of a guarantee, and the
-- parts of an entry that never change. Then the ledger's row, which never changes, is locked, so that only the next waiter
-- is woken: batches on one ledger run one after the other, and nothing that is read from then on changes meanwhile. A step
-- that the rules reject changes nothing. The caller is not trusted with amounts, accounts above its own, or lines: they
-- follow from the tables.
CREATE FUNCTION expost_spend(
  p_ledger BIGINT, p_owner TEXT, p_identity TEXT, p_batch TEXT, p_before JSONB, p_known BIGINT, p_steps JSONB
) RETURNS JSONB LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  v_now BIGINT := expost_now();
  v_user TEXT;
  v_book RECORD; v_entry RECORD; v_row RECORD; v_step JSONB;
  v_of BIGINT; v_role TEXT; v_batch TEXT; v_outcomes JSONB; v_expired BIGINT;  -- this process
  v_state TEXT; v_begun BIGINT;  -- of an entry
  v_holder TEXT; v_holder_role TEXT; v_home BIGINT; v_home_path TEXT; v_guarantee TEXT;  -- what was looked up last, for the next step
  v_sequence BIGINT; v_entries BIGINT; v_had BIGINT; v_at BIGINT; v_head TEXT;
  v_do TEXT; v_kind TEXT; v_name TEXT; v_levels TEXT; v_line TEXT; v_place INT;
  v_steps INT := jsonb_array_length(p_steps);
  v_prices JSONB; v_fresh BOOLEAN; v_part TEXT; v_output TEXT; v_digest TEXT; v_accounts BIGINT[];
  v_ok BOOLEAN; v_number BIGINT; v_account BIGINT; v_path TEXT; v_names TEXT[]; v_places INT[];
  v_worst BIGINT[];  -- what its entry reserves at most, and what is charged of it; all amounts are arrays of seven
  v_paid BIGINT[];
  v_sign INT;  -- whether that is reserved (1), released (-1), or stays as it is (0)
  v_size INT;  -- how many of the seven this ledger counts
  v_body TEXT; v_rest TEXT;  -- what a line says of a step, before and behind the text of a new guarantee
  -- the accounts of this batch, as they are now, the ledger's own first
  v_paths TEXT[]; v_ids BIGINT[]; v_count INT := 1; v_held TEXT[]; v_closed BIGINT[]; v_lines_of BIGINT[];
  v_capacity BIGINT[]; v_charged BIGINT[]; v_reserved BIGINT[];  -- seven of each, behind one another
  v_before INT;  -- where those of an account begin
  -- what is to be written
  v_numbers BIGINT[]; v_sequences BIGINT[]; v_lines TEXT[]; v_hashes TEXT[];
  v_ended BIGINT[]; v_keys TEXT[]; v_outs JSONB := '[]'; v_first BIGINT; v_beats INT := 0; v_lost BIGINT[];
  v_amounts BIGINT[]; v_forget BOOLEAN := FALSE;
BEGIN
  v_ok := expost_is_own_schema() AND expost_is_durable();  -- an assignment takes less than a query
  v_user := expost_user();
  IF v_steps = 0 THEN
    RAISE EXCEPTION 'expost: expost_spend takes at least one step' USING ERRCODE = 'EX001';
  END IF;
  SELECT name, neighbours, expost_text(unit) AS unit, accounting INTO STRICT v_book FROM expost_ledger WHERE id = p_ledger;
  v_size := CASE WHEN v_book.accounting IS NULL THEN 2 ELSE 7 END;

  FOR i IN 1 .. v_steps LOOP
    v_step := p_steps->(i - 1);
    v_do := v_step->>'do'; v_lost := '{}'; v_part := NULL; v_output := NULL; v_digest := NULL;
    IF v_steps > 1 THEN  -- all of them begin at 1, also if nothing comes of the first steps: they are read side by side
      v_sequences[i] := NULL; v_numbers[i] := NULL; v_accounts[i] := NULL;
    END IF;
    IF v_do IS NULL OR v_do NOT IN ('beat', 'recover', 'reserve', 'begin', 'settle', 'forfeit', 'void') THEN
      RAISE EXCEPTION 'expost: % is not a step of expost_spend: it takes beat, recover, reserve, begin, settle, forfeit, void',
        v_do USING ERRCODE = 'EX001';
    END IF;

    -- what it would be
    IF v_do = 'reserve' THEN
      v_path := coalesce(v_step->>'account', ''); v_number := NULL;
      v_fresh := FALSE;
      IF v_guarantee IS NULL OR v_step->>'guarantee_digest' IS DISTINCT FROM v_guarantee THEN
        SELECT prices, digest INTO v_prices, v_guarantee FROM expost_guarantee WHERE ledger = p_ledger AND digest = v_step->>'guarantee_digest';
        v_fresh := NOT FOUND;
        IF v_fresh AND v_step->>'guarantee_digest' = encode(sha256(convert_to(v_step->>'guarantee_text', 'UTF8')), 'hex') THEN
          v_prices := expost_prices(v_step->>'guarantee_text');
        END IF;
      END IF;
      IF v_prices IS NULL THEN
        RAISE EXCEPTION 'expost: no guarantee is known under the digest %, and none of that digest was given: send its canonical text',
          v_step->>'guarantee_digest' USING ERRCODE = 'EX001';
      END IF;
      IF (v_prices ? 'metered') <> (v_book.accounting IS NOT NULL) THEN
        RAISE EXCEPTION 'expost: the request''s prices do not fit the meters of its ledger: make the request again'
          USING ERRCODE = 'EX001';
      END IF;
      v_worst := (v_prices->>'worst')::bigint[]; v_sign := 1;
      v_body := '{"account":' || expost_text(v_path) || ',"begun":' || (v_step->>'begun')::boolean::text
        || ',"fingerprint":' || expost_text(v_step->>'fingerprint');
      v_rest := ',"guarantee_digest":"' || (v_step->>'guarantee_digest') || '","key":' || expost_text(v_step->>'key')
        || ',"label":' || expost_text(v_step->>'label')
        || ',"operation":' || expost_text(v_step->>'operation') || ',"subject":' || expost_text(v_step->>'subject')
        || ',"worst":[' || array_to_string(v_worst[1:v_size], ',') || ']}';
      v_kind := 'reserve';
    ELSIF v_do NOT IN ('beat', 'recover') THEN
      v_number := (v_step->>'entry')::bigint;
      -- single queries, most of which the step before has asked already, take less than a join
      SELECT state, begun, operation, key, lease, owner, account, guarantee,
          ARRAY[reserved_epsilon, reserved_delta, reserved_renyi, reserved_normal,
            reserved_others, reserved_unpriced, reserved_foreign] AS worst
        INTO v_entry FROM expost_entry WHERE ledger = p_ledger AND number = v_number;
      IF v_entry.owner IS DISTINCT FROM v_holder THEN
        v_holder := v_entry.owner;
        SELECT role INTO v_holder_role FROM expost_owner WHERE id = v_holder;
      END IF;
      IF v_entry.account IS DISTINCT FROM v_home THEN
        v_home := v_entry.account;
        SELECT path INTO v_home_path FROM expost_account WHERE id = v_home;
      END IF;
      v_state := v_entry.state; v_begun := v_entry.begun; v_path := v_home_path; v_fresh := FALSE; v_rest := ''; v_kind := v_do;
      v_worst := v_entry.worst;
      IF v_do = 'begin' THEN
        v_sign := 0; v_body := '{}';
      ELSE
        v_sign := -1; v_paid := v_worst;
        IF v_do = 'void' THEN
          v_paid := '{0,0,0,0,0,0,0}';
        ELSIF v_do = 'settle' THEN
          v_part := v_step->>'part'; v_output := v_step->>'output'; v_digest := v_step->>'digest';
          IF v_guarantee IS NULL OR v_entry.guarantee IS DISTINCT FROM v_guarantee THEN
            SELECT prices, digest INTO v_prices, v_guarantee FROM expost_guarantee WHERE ledger = p_ledger AND digest = v_entry.guarantee;
          END IF;
          v_paid := CASE WHEN expost_is_label(v_part, 32) AND v_part::json IS NOT NULL THEN
            coalesce(v_prices->>v_part, v_prices->>'')::bigint[] END;
        END IF;
        v_body := '{"charged":[' || array_to_string(v_paid[1:v_size], ',') || '],"output":'
          || coalesce('"' || v_digest || '"', 'null') || ',"part":' || coalesce(v_part, 'null') || '}';
      END IF;
    END IF;

    -- from here on, batches run one after the other
    IF i = 1 THEN
      PERFORM 1 FROM expost_ledger WHERE id = p_ledger FOR UPDATE;
      SELECT ARRAY[a.path], ARRAY[a.id], ARRAY[a.held], a.capacity, a.charged, a.reserved, ARRAY[a.closed], ARRAY[a.line],
          a.line, a.entries, a.at, a.head, e.state, e.begun, o.ledger, o.role, o.batch, o.outcomes, o.expired
        INTO STRICT v_paths, v_ids, v_held, v_capacity, v_charged, v_reserved, v_closed, v_lines_of,
          v_sequence, v_entries, v_at, v_head, v_state, v_begun, v_of, v_role, v_batch, v_outcomes, v_expired
        FROM expost_balance a LEFT JOIN expost_owner o ON o.id = p_owner
          LEFT JOIN expost_entry e ON e.ledger = p_ledger AND e.number = v_number
        WHERE a.ledger = p_ledger AND a.path = v_book.name;
      v_first := v_sequence; v_had := v_entries;
      IF v_first < p_known THEN
        RAISE EXCEPTION 'expost: the audit trail ends at line %, but line % was acknowledged: lines are lost, so nothing can be reserved; restore the database',
          v_first, p_known USING ERRCODE = 'EX002';
      END IF;
      IF v_of IS NULL THEN
        INSERT INTO expost_owner (id, ledger, identity, seen, batch, outcomes)
          VALUES (p_owner, p_ledger, p_identity, v_now, '', '[]');
      ELSIF v_role <> session_user OR v_of <> p_ledger THEN
        RAISE EXCEPTION 'expost: % is the name of a process of the role % for ledger %: write under a name of your own',
          p_owner, v_role, v_of USING ERRCODE = 'EX001';
      ELSIF v_batch = p_batch THEN
        RETURN v_outcomes;  -- it was applied, and only the answer was lost
      ELSIF NOT p_before ? v_batch THEN
        RETURN '{"stale": true}';
      END IF;
      IF v_fresh THEN
        PERFORM 1 FROM expost_guarantee WHERE ledger = p_ledger AND digest = v_step->>'guarantee_digest';
        v_fresh := NOT FOUND;
      END IF;
    END IF;

    IF v_do = 'beat' THEN
      v_beats := v_beats + 1;
      v_outs := v_outs || '[{}]';
      CONTINUE;
    END IF;
    IF v_do = 'recover' THEN
      -- the database decides about processes of other roles: they are given up if they wrote nothing for a minute before
      -- this transaction, which may have kept them waiting
      UPDATE expost_owner SET expired = 1 WHERE ledger = p_ledger AND expired = 0 AND v_step->'dead' ? id
        AND (role = session_user OR seen < (extract(epoch FROM now()) * 1000000)::bigint - 60000000 OR expost_governs());
      -- leases from before the ledger's clock was set back
      UPDATE expost_entry SET lease_until = v_now + lease
        WHERE ledger = p_ledger AND state = 'reserved' AND lease_until > v_now + lease
          AND lease_until - lease >= v_at + 3600000000;
      v_lost := ARRAY(SELECT e.number FROM expost_entry e LEFT JOIN expost_owner o ON o.id = e.owner
        WHERE e.ledger = p_ledger AND e.state = 'reserved' AND NOT e.number = ANY (coalesce(v_ended, '{}'))
          AND (o.expired = 1 OR e.lease_until < v_now AND v_now - v_at <= 31622400000000)
        ORDER BY e.number);
      v_forget := TRUE;
      v_outs := v_outs || jsonb_build_array(jsonb_build_object('forfeited', cardinality(v_lost)));
    END IF;
    FOR j IN 1 .. CASE WHEN v_do = 'recover' THEN cardinality(v_lost) ELSE 1 END LOOP
      v_ok := TRUE;
      IF v_do = 'recover' THEN
        v_number := v_lost[j]; v_kind := 'forfeit'; v_fresh := FALSE; v_rest := '';
        SELECT a.path, ARRAY[e.reserved_epsilon, e.reserved_delta, e.reserved_renyi, e.reserved_normal,
            e.reserved_others, e.reserved_unpriced, e.reserved_foreign] AS worst
          INTO v_row FROM expost_entry e LEFT JOIN expost_account a ON a.id = e.account
          WHERE e.ledger = p_ledger AND e.number = v_number;
        v_path := v_row.path; v_worst := v_row.worst; v_paid := v_worst; v_sign := -1;
        v_body := '{"charged":[' || array_to_string(v_paid[1:v_size], ',') || '],"output":null,"part":null}';
      ELSIF v_do = 'reserve' THEN
        v_number := v_entries + 1;
        v_ok := coalesce(v_prices->>'neighbours' = v_book.neighbours, TRUE) AND coalesce(v_prices->>'unit' = v_book.unit, TRUE);
      ELSIF v_state IS NULL OR v_path IS NULL THEN
        IF v_state IS NULL AND v_number BETWEEN 1 AND v_had THEN
          RAISE EXCEPTION 'expost: entry % was removed', v_number USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        v_ok := FALSE;
      ELSE
        v_ok := v_state = 'reserved' AND NOT v_number = ANY (coalesce(v_ended, '{}'))
          AND NOT (v_do = 'void' AND v_begun = 1);
        IF v_ok AND v_entry.lease IS NULL AND v_holder_role IS DISTINCT FROM session_user::text
          AND NOT (v_do = 'forfeit' AND expost_governs()) THEN
          v_outs := v_outs || jsonb_build_array(jsonb_build_object('denied', v_holder_role));
          EXIT;
        END IF;
        IF v_ok AND v_do = 'begin' AND v_begun = 1 THEN
          v_outs := v_outs || '[{}]';
          EXIT;
        END IF;
        IF v_ok AND v_do = 'settle' THEN
          IF v_paid IS NULL THEN
            RAISE EXCEPTION 'expost: entry % has no part %: settle it with a part of its guarantee, as canonical JSON',
              v_number, v_part USING ERRCODE = 'EX001';
          END IF;
          IF v_digest !~ '^[0-9a-f]{64}$' OR v_output IS NOT NULL AND (v_entry.key IS NULL OR v_entry.operation = 'reserve'
            OR v_digest IS DISTINCT FROM encode(sha256(convert_to(v_output, 'UTF8')), 'hex')) THEN
            RAISE EXCEPTION 'expost: the output of entry % cannot be stored: an output needs its SHA-256 as digest, and is stored only for runs with a key',
              v_number USING ERRCODE = 'EX001';
          END IF;
        END IF;
      END IF;
      -- which accounts
      IF v_ok AND v_path = v_book.name THEN
        v_places := '{1}'; v_place := 1; v_account := v_ids[1];
      ELSIF v_ok THEN
        v_names := expost_accounts(v_path); v_places := '{}';
        v_ok := cardinality(v_names) > 0;
        FOREACH v_name IN ARRAY v_names LOOP
          v_place := array_position(v_paths, v_name);
          IF v_place IS NULL THEN
            SELECT * INTO v_row FROM expost_balance WHERE ledger = p_ledger AND path = v_name;
            IF NOT FOUND THEN v_ok := FALSE; EXIT; END IF;
            v_count := v_count + 1; v_place := v_count;
            v_paths[v_place] := v_name; v_ids[v_place] := v_row.id; v_held[v_place] := v_row.held;
            v_closed[v_place] := v_row.closed; v_lines_of[v_place] := v_row.line; v_capacity := v_capacity || v_row.capacity;
            v_charged := v_charged || v_row.charged; v_reserved := v_reserved || v_row.reserved;
          END IF;
          v_places := v_places || v_place;
        END LOOP;
        v_account := v_ids[v_place];
      END IF;
      -- may it be?
      IF v_ok AND v_do = 'reserve' THEN
        FOREACH v_place IN ARRAY v_places LOOP
          v_before := 7 * v_place - 7;
          v_ok := v_ok AND v_closed[v_place] = 0 AND expost_has_room(v_capacity[v_before + 1 : v_before + 7],
            v_charged[v_before + 1 : v_before + 7], v_reserved[v_before + 1 : v_before + 7], v_worst);
        END LOOP;
        IF v_ok AND v_step->>'key' IS NOT NULL THEN
          PERFORM 1 FROM expost_entry WHERE ledger = p_ledger AND key = v_step->>'key';
          v_ok := NOT FOUND AND NOT v_step->>'key' = ANY (coalesce(v_keys, '{}'));
          v_keys := v_keys || (v_step->>'key');
        END IF;
        IF v_ok AND v_expired = 1 AND v_step->>'lease' IS NULL THEN
          v_outs := v_outs || '[{"expired": true}]';
          EXIT;
        END IF;
      END IF;
      IF v_ok IS NOT TRUE THEN
        v_outs := v_outs || '[{"refused": true}]';
        EXIT;
      END IF;
      -- it happens
      IF v_do = 'reserve' THEN
        v_at := expost_tick(v_at, v_now);
        v_entries := v_number;
        IF v_fresh THEN
          INSERT INTO expost_guarantee VALUES (p_ledger, v_step->>'guarantee_digest', v_step->>'guarantee_text');
          v_body := v_body || ',"guarantee":' || (v_step->>'guarantee_text');
        END IF;
      ELSIF v_do = 'begin' THEN
        UPDATE expost_entry SET begun = 1 WHERE ledger = p_ledger AND number = v_number;
      ELSIF v_steps > 1 THEN
        v_ended := v_ended || v_number;
      END IF;
      v_sequence := v_sequence + 1;
      v_levels := '';
      FOREACH v_place IN ARRAY v_places LOOP
        v_before := 7 * v_place - 7;
        FOR k IN 1 .. v_size LOOP
          v_reserved[v_before + k] := v_reserved[v_before + k] + v_sign * v_worst[k];
          IF v_sign < 0 THEN v_charged[v_before + k] := v_charged[v_before + k] + v_paid[k]; END IF;
        END LOOP;
        v_levels := v_levels || ',[' || v_held[v_place]
          || ',[' || array_to_string(v_charged[v_before + 1 : v_before + v_size], ',')
          || '],[' || array_to_string(v_reserved[v_before + 1 : v_before + v_size], ',')
          || '],' || v_closed[v_place] || ',' || v_lines_of[v_place] || ']';
        v_lines_of[v_place] := v_sequence;
      END LOOP;
      v_line := expost_line(v_at, v_body || v_rest, v_number, v_kind, substr(v_levels, 2), v_sequence, v_user);
      v_head := expost_link(v_head, v_line);
      -- one step of one account, as most are, is written by one statement
      IF v_steps = 1 AND v_count = 1 AND v_do = 'reserve' THEN
        v_outs := jsonb_build_object('sequence', v_sequence, 'outcomes',
          jsonb_build_array(jsonb_build_object('entry', v_number, 'at', v_at)));
        WITH entry AS (
          INSERT INTO expost_entry (ledger, number, account, below, operation, subject, fingerprint, guarantee, label, key,
            owner, lease, lease_until, begun, reserved_at, reserved_line, reserved_epsilon, reserved_delta, reserved_renyi,
            reserved_normal, reserved_others, reserved_unpriced, reserved_foreign)
          VALUES (p_ledger, v_number, v_account, 0, v_step->>'operation', v_step->>'subject', v_step->>'fingerprint',
            v_step->>'guarantee_digest', v_step->>'label', v_step->>'key',
            CASE WHEN v_step->>'lease' IS NULL THEN p_owner END, (v_step->>'lease')::bigint,
            v_now + (v_step->>'lease')::bigint, (v_step->>'begun')::boolean::int, v_at, v_sequence,
            v_worst[1], v_worst[2], v_worst[3], v_worst[4], v_worst[5], v_worst[6], v_worst[7])
        ), event AS (
          INSERT INTO expost_event VALUES (p_ledger, v_sequence, v_line, v_head)
        ), owner AS (
          UPDATE expost_owner SET batch = p_batch, outcomes = v_outs, seen = v_now WHERE id = p_owner
        )
        UPDATE expost_account SET reserved_epsilon = v_reserved[1], reserved_delta = v_reserved[2], reserved_renyi = v_reserved[3], reserved_normal = v_reserved[4],
          reserved_others = v_reserved[5], reserved_unpriced = v_reserved[6], reserved_foreign = v_reserved[7],
          line = v_sequence, entries = v_entries, at = v_at, head = v_head WHERE id = v_account;
        RETURN v_outs;
      ELSIF v_steps = 1 AND v_count = 1 AND v_do NOT IN ('begin', 'recover') THEN
        v_outs := jsonb_build_object('sequence', v_sequence, 'outcomes', '[{}]'::jsonb);
        WITH entry AS (
          UPDATE expost_entry SET state = CASE v_do WHEN 'settle' THEN 'settled' WHEN 'forfeit' THEN 'forfeited' ELSE 'voided' END,
            begun = (v_do <> 'void')::int, part = v_part, output = v_output, digest = v_digest, ended_line = v_sequence,
            charged_epsilon = v_paid[1], charged_delta = v_paid[2], charged_renyi = v_paid[3], charged_normal = v_paid[4],
            charged_others = v_paid[5], charged_unpriced = v_paid[6], charged_foreign = v_paid[7]
          WHERE ledger = p_ledger AND number = v_number
        ), event AS (
          INSERT INTO expost_event VALUES (p_ledger, v_sequence, v_line, v_head)
        ), owner AS (
          UPDATE expost_owner SET batch = p_batch, outcomes = v_outs, seen = v_now WHERE id = p_owner
        )
        UPDATE expost_account SET charged_epsilon = v_charged[1], charged_delta = v_charged[2], charged_renyi = v_charged[3], charged_normal = v_charged[4],
          charged_others = v_charged[5], charged_unpriced = v_charged[6], charged_foreign = v_charged[7],
          reserved_epsilon = v_reserved[1], reserved_delta = v_reserved[2], reserved_renyi = v_reserved[3], reserved_normal = v_reserved[4],
          reserved_others = v_reserved[5], reserved_unpriced = v_reserved[6], reserved_foreign = v_reserved[7],
          line = v_sequence, head = v_head WHERE id = v_account;
        RETURN v_outs;
      END IF;
      v_lines[v_sequence - v_first] := v_line;
      v_hashes[v_sequence - v_first] := v_head;
      IF v_do = 'recover' THEN
        UPDATE expost_entry SET state = 'forfeited', begun = 1, ended_line = v_sequence,
          charged_epsilon = v_paid[1], charged_delta = v_paid[2], charged_renyi = v_paid[3], charged_normal = v_paid[4],
          charged_others = v_paid[5], charged_unpriced = v_paid[6], charged_foreign = v_paid[7]
          WHERE ledger = p_ledger AND number = v_number;
        CONTINUE;
      END IF;
      v_numbers[i] := v_number;
      v_sequences[i] := v_sequence;
      v_accounts[i] := v_account;
      IF v_do = 'reserve' THEN v_paid := v_worst; END IF;
      FOR k IN 1 .. 7 LOOP v_amounts[7 * i - 7 + k] := v_paid[k]; END LOOP;
      v_outs := v_outs || CASE WHEN v_do = 'reserve' THEN jsonb_build_array(jsonb_build_object('entry', v_number, 'at', v_at))
        ELSE '[{}]' END;
    END LOOP;
  END LOOP;

  IF v_forget THEN PERFORM expost_forget(p_ledger, p_owner); END IF;
  v_outs := jsonb_build_object('sequence', v_sequence, 'outcomes', v_outs);
  IF v_sequence > v_first THEN
    WITH step AS MATERIALIZED (
      SELECT p_ledger AS ledger, * FROM ROWS FROM (jsonb_to_recordset(p_steps) AS (
        "do" TEXT, operation TEXT, subject TEXT, fingerprint TEXT, guarantee_digest TEXT,
        label TEXT, key TEXT, lease BIGINT, begun BOOLEAN, part TEXT, output TEXT, digest TEXT),
        unnest(v_numbers), unnest(v_sequences), unnest(v_accounts)) WITH ORDINALITY AS step(
        "do", operation, subject, fingerprint, guarantee, label, key, lease, begun, part, output, digest, number, sequence,
        account, place)
    ), ended AS (
      UPDATE expost_entry entry SET part = CASE step.do WHEN 'settle' THEN step.part END,
        output = CASE step.do WHEN 'settle' THEN step.output END, digest = CASE step.do WHEN 'settle' THEN step.digest END,
        state = CASE step.do WHEN 'settle' THEN 'settled' WHEN 'forfeit' THEN 'forfeited' ELSE 'voided' END,
        begun = (step.do <> 'void')::int, ended_line = step.sequence,
        charged_epsilon = v_amounts[7 * place - 6], charged_delta = v_amounts[7 * place - 5], charged_renyi = v_amounts[7 * place - 4],
        charged_normal = v_amounts[7 * place - 3], charged_others = v_amounts[7 * place - 2],
        charged_unpriced = v_amounts[7 * place - 1], charged_foreign = v_amounts[7 * place]
      FROM step WHERE step.sequence IS NOT NULL AND step.do IN ('settle', 'forfeit', 'void')
        AND entry.ledger = step.ledger AND entry.number = step.number
    ), event AS (
      INSERT INTO expost_event SELECT p_ledger, v_first + place, line, hash
      FROM unnest(v_lines, v_hashes) WITH ORDINALITY AS written(line, hash, place)
    ), account AS (
      UPDATE expost_account account SET charged_epsilon = v_charged[7 * place - 6], charged_delta = v_charged[7 * place - 5], charged_renyi = v_charged[7 * place - 4],
        charged_normal = v_charged[7 * place - 3], charged_others = v_charged[7 * place - 2],
        charged_unpriced = v_charged[7 * place - 1], charged_foreign = v_charged[7 * place],
        reserved_epsilon = v_reserved[7 * place - 6], reserved_delta = v_reserved[7 * place - 5], reserved_renyi = v_reserved[7 * place - 4],
        reserved_normal = v_reserved[7 * place - 3], reserved_others = v_reserved[7 * place - 2],
        reserved_unpriced = v_reserved[7 * place - 1], reserved_foreign = v_reserved[7 * place],
        line = changed.line, entries = CASE place WHEN 1 THEN v_entries END, at = CASE place WHEN 1 THEN v_at END,
        head = CASE place WHEN 1 THEN v_head END
      FROM unnest(v_ids, v_lines_of) WITH ORDINALITY AS changed(id, line, place)
      WHERE account.id = changed.id AND changed.line > v_first
    )
    INSERT INTO expost_entry (ledger, number, account, below, operation, subject, fingerprint, guarantee, label, key, owner,
      lease, lease_until, begun, reserved_at, reserved_line, reserved_epsilon, reserved_delta, reserved_renyi,
      reserved_normal, reserved_others, reserved_unpriced, reserved_foreign)
    SELECT step.ledger, number, account, (account <> v_ids[1])::int, operation, subject, fingerprint, guarantee, label, key,
      CASE WHEN lease IS NULL THEN p_owner END, lease, v_now + lease, begun::int, v_at, step.sequence,
      v_amounts[7 * place - 6], v_amounts[7 * place - 5], v_amounts[7 * place - 4], v_amounts[7 * place - 3],
      v_amounts[7 * place - 2], v_amounts[7 * place - 1], v_amounts[7 * place]
    FROM step WHERE step.sequence IS NOT NULL AND "do" = 'reserve';
  END IF;
  UPDATE expost_owner SET batch = p_batch, outcomes = v_outs, seen = v_now, beats = beats + v_beats WHERE id = p_owner;
  RETURN v_outs;
END $$;

-- expost_spend, for sessions that are not in a transaction. The lock of the ledger is released before the disk is waited for,
-- so that the next batch does not wait for it, too; the answer is sent once everything is on the disk: the last commit
-- flushes the log up to itself, and waits for synchronous standbys. A batch that follows has a later place in the log, so it
-- is never on the disk without those that it builds on. Who may not write to the log waits with the lock.
CREATE PROCEDURE expost_commit(
  p_ledger BIGINT, p_owner TEXT, p_identity TEXT, p_batch TEXT, p_before JSONB, p_known BIGINT, p_steps JSONB,
  INOUT p_outcomes JSONB
) LANGUAGE plpgsql AS $$
BEGIN
  p_outcomes := expost_spend(p_ledger, p_owner, p_identity, p_batch, p_before, p_known, p_steps);
  p_outcomes := p_outcomes || jsonb_build_object('head', (SELECT hash FROM expost_event
    WHERE ledger = p_ledger AND sequence = (p_outcomes->>'sequence')::bigint));  -- clients note it
  IF has_function_privilege('pg_logical_emit_message(boolean, text, text)', 'EXECUTE') THEN
    PERFORM set_config('synchronous_commit', 'off', TRUE);  -- of this transaction
    COMMIT;
    PERFORM pg_logical_emit_message(TRUE, 'expost', '');  -- a commit that wrote nothing would not flush
  END IF;
END $$;

