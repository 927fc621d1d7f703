CREATE FUNCTION expost_numbers(p_text TEXT) RETURNS BIGINT[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RETURN string_to_array(btrim(p_text, '[]'), ',')::bigint[]; END $$;
-- Whether an amount fits on at least one meter: its ε, and its amounts on the other meters.
CREATE FUNCTION expost_has_room(p_remaining BIGINT, p_counts BIGINT[], p_more BIGINT[]) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_renyi BIGINT := p_counts[5] + p_counts[10] + p_more[1]; v_normal BIGINT := p_counts[6] + p_counts[11] + p_more[2];
  v_others BIGINT := p_counts[7] + p_counts[12] + p_more[3];
BEGIN
  RETURN (p_remaining >= 0 AND p_counts[8] + p_counts[13] + p_more[4] = 0 OR v_renyi <= p_counts[2]
      OR v_normal <= p_counts[3] AND v_others <= p_counts[4] AND p_counts[9] + p_counts[14] + p_more[5] = 0)
    AND greatest(v_renyi, v_normal, v_others, -p_remaining) <= 4611686018427387904;  -- room for one more in a BIGINT
END $$;
CREATE FUNCTION expost_meters_fall(p_old BIGINT[], p_new BIGINT[]) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1 .. 9 LOOP IF p_new[k] < p_old[k] THEN RETURN TRUE; END IF; END LOOP;
  RETURN p_new[3] <> p_old[3] OR p_new[4] <> p_old[4];  -- the Gaussian meter is fixed when the account is made
END $$;

-- The constraints of rows. A CHECK is parsed again by every statement that writes a row; a function is parsed once.
CREATE FUNCTION expost_account_holds(
  p_limit BIGINT, p_limit_delta BIGINT, p_spent BIGINT, p_spent_delta BIGINT, p_reserved BIGINT, p_reserved_delta BIGINT,
  p_closed BIGINT, p_meters TEXT, p_parent BIGINT, p_entries BIGINT, p_at BIGINT, p_head TEXT
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_counts BIGINT[];
BEGIN
  IF num_nonnulls(p_entries, p_at, p_head) <> 3 * (p_parent IS NULL)::int OR p_entries < 0 OR length(p_head) <> 64 THEN
    RETURN FALSE;
  END IF;
  IF p_meters IS NOT NULL THEN
    v_counts := expost_numbers(p_meters);
    RETURN p_limit >= 0 AND p_limit_delta BETWEEN 0 AND 1000000000000000000 AND p_closed IN (0, 1)
      AND p_spent >= 0 AND p_reserved >= 0 AND p_spent_delta >= 0 AND p_reserved_delta >= 0
      AND cardinality(v_counts) = 14 AND 0 <= ALL (v_counts[5:14]) AND v_counts[1] <= p_limit_delta
      AND p_spent_delta + p_reserved_delta <= v_counts[1]
      AND coalesce(expost_has_room(p_limit - p_spent - p_reserved, v_counts, '{0,0,0,0,0}'), FALSE);
  END IF;
  RETURN p_limit >= 0 AND p_limit_delta BETWEEN 0 AND 1000000000000000000
    AND p_spent BETWEEN 0 AND p_limit AND p_spent_delta BETWEEN 0 AND p_limit_delta
    AND p_reserved BETWEEN 0 AND p_limit - p_spent AND p_reserved_delta BETWEEN 0 AND p_limit_delta - p_spent_delta
    AND p_closed IN (0, 1);
END $$;
CREATE FUNCTION expost_entry_holds(
  p_number BIGINT, p_operation TEXT, p_epsilon BIGINT, p_delta BIGINT, p_owner TEXT, p_lease BIGINT, p_begun BIGINT,
  p_state TEXT, p_part TEXT, p_charged BIGINT, p_charged_delta BIGINT, p_ended BIGINT, p_meters TEXT, p_paid TEXT
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_worst BIGINT[]; v_paid BIGINT[];
BEGIN
  IF p_meters IS NOT NULL OR p_paid IS NOT NULL THEN
    v_worst := expost_numbers(p_meters); v_paid := expost_numbers(p_paid);
    IF NOT coalesce(cardinality(v_worst) = 5 AND 0 <= ALL (v_worst) AND CASE p_state
        WHEN 'reserved' THEN p_paid IS NULL
        WHEN 'settled' THEN cardinality(v_paid) = 5 AND 0 <= ALL (v_paid) AND v_paid[1] <= v_worst[1]
          AND v_paid[2] <= v_worst[2] AND v_paid[3] <= v_worst[3] AND v_paid[4] <= v_worst[4] AND v_paid[5] <= v_worst[5]
        WHEN 'forfeited' THEN p_paid = p_meters
        ELSE p_paid = '[0,0,0,0,0]' END, FALSE) THEN
      RETURN FALSE;
    END IF;
  END IF;
  RETURN p_number >= 1 AND p_operation IN ('run', 'open', 'reserve') AND p_epsilon >= 0 AND p_delta >= 0
    AND (p_owner IS NULL) <> (p_lease IS NULL) AND p_begun IN (0, 1)
    AND coalesce(p_charged BETWEEN 0 AND p_epsilon, TRUE) AND coalesce(p_charged_delta BETWEEN 0 AND p_delta, TRUE)
    AND coalesce(CASE p_state
      WHEN 'reserved' THEN p_charged IS NULL AND p_charged_delta IS NULL AND p_ended IS NULL AND p_part IS NULL
      WHEN 'settled' THEN p_part IS NOT NULL AND p_charged IS NOT NULL AND p_charged_delta = p_delta
      WHEN 'forfeited' THEN p_charged = p_epsilon AND p_charged_delta = p_delta
      WHEN 'voided' THEN p_begun = 0 AND p_charged = 0 AND p_charged_delta = 0
      ELSE FALSE END, FALSE);
END $$;
ALTER TABLE expost_account ADD CONSTRAINT expost_account_holds CHECK (expost_account_holds(
  epsilon_limit, delta_limit, epsilon_spent, delta_spent, epsilon_reserved, delta_reserved, closed, meters, parent, entries,
  at, head));
ALTER TABLE expost_entry ADD CONSTRAINT expost_entry_holds CHECK (expost_entry_holds(
  number, operation, epsilon, delta, owner, lease_until, begun, state, part, charged_epsilon, charged_delta, ended_line,
  meters, charged_meters));

-- The past is immutable: entries end once, lines and guarantees never change, nothing is refunded by hand. Triggers before
-- an update would lock each row once more.
CREATE FUNCTION expost_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'expost: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;

CREATE TRIGGER expost_entry_ends_once AFTER UPDATE OF state, begun, part, charged_epsilon, charged_delta, charged_meters, digest, ended_line
ON expost_entry FOR EACH ROW
WHEN (OLD.state <> 'reserved' OR NEW.begun < OLD.begun OR (NEW.state = 'voided' AND OLD.begun = 1))
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_output AFTER UPDATE OF output ON expost_entry FOR EACH ROW
WHEN (OLD.state <> 'reserved' AND NEW.output IS NOT NULL)
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_lease AFTER UPDATE OF lease_until ON expost_entry FOR EACH ROW
WHEN (NEW.lease_until IS NULL OR NEW.lease_until > OLD.lease_until)
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_fixed AFTER UPDATE OF ledger, number, account, below, operation, subject, fingerprint, guarantee, label,
  key, epsilon, delta, meters, reserved_at, reserved_line, owner, lease ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_starts BEFORE INSERT ON expost_entry FOR EACH ROW WHEN (NEW.state <> 'reserved')
EXECUTE FUNCTION expost_refuse('an entry starts as reserved');
CREATE TRIGGER expost_entry_stays BEFORE DELETE ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('entries are never removed');
CREATE TRIGGER expost_event_fixed BEFORE UPDATE OR DELETE ON expost_event FOR EACH ROW
EXECUTE FUNCTION expost_refuse('the audit trail never changes');
CREATE TRIGGER expost_guarantee_fixed BEFORE UPDATE OR DELETE ON expost_guarantee FOR EACH ROW
EXECUTE FUNCTION expost_refuse('guarantees never change');
CREATE TRIGGER expost_account_grows AFTER UPDATE OF epsilon_limit, delta_limit, closed ON expost_account FOR EACH ROW
WHEN (NEW.epsilon_limit < OLD.epsilon_limit OR NEW.delta_limit < OLD.delta_limit OR NEW.closed < OLD.closed)
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_spends AFTER UPDATE OF epsilon_spent, delta_spent, line, entries ON expost_account FOR EACH ROW
WHEN (NEW.epsilon_spent < OLD.epsilon_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.line < OLD.line
  OR NEW.entries < OLD.entries)
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_meters AFTER UPDATE OF meters ON expost_account FOR EACH ROW
WHEN (NEW.meters IS DISTINCT FROM OLD.meters
  AND coalesce(expost_meters_fall(expost_numbers(OLD.meters), expost_numbers(NEW.meters)), TRUE))
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_fixed AFTER UPDATE OF id, ledger, path, parent ON expost_account FOR EACH ROW
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_stays BEFORE DELETE ON expost_account FOR EACH ROW
EXECUTE FUNCTION expost_refuse('accounts are never removed');
CREATE TRIGGER expost_ledger_fixed BEFORE UPDATE ON expost_ledger FOR EACH ROW
EXECUTE FUNCTION expost_refuse('ledgers never change');
CREATE TRIGGER expost_ledger_stays BEFORE DELETE ON expost_ledger FOR EACH ROW
EXECUTE FUNCTION expost_refuse('ledgers are never removed');
CREATE TRIGGER expost_owner_expires AFTER UPDATE OF expired ON expost_owner FOR EACH ROW WHEN (NEW.expired < OLD.expired)
EXECUTE FUNCTION expost_refuse('what has expired stays expired');
DO $$ DECLARE name TEXT; BEGIN
  FOREACH name IN ARRAY ARRAY['ledger', 'account', 'guarantee', 'entry', 'event'] LOOP
    EXECUTE format('CREATE TRIGGER expost_%s_whole BEFORE TRUNCATE ON expost_%s FOR EACH STATEMENT '
      'EXECUTE FUNCTION expost_refuse(''nothing is ever removed'')', name, name);
  END LOOP;
END $$;

-- A key in the audit trail stays used, even if its entry was removed by force: it never samples again. The line is not
-- parsed as JSON: parts in it may contain characters that no text of PostgreSQL can. In strings every quote is escaped, so
-- these marks occur nowhere else; a key is always written the same way, but may be too long for an index.
CREATE FUNCTION expost_key_of(p_line TEXT) RETURNS BYTEA IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RETURN sha256(convert_to(split_part(split_part(p_line, '"key":"', 2), '","label":', 1), 'UTF8')); END $$;
CREATE UNIQUE INDEX expost_event_key ON expost_event (ledger, expost_key_of(line)) WHERE strpos(line, '"key":"') > 0;

