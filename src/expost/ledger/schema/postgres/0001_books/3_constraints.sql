-- The rule of every ledger: some meter has room for all that is used, and so have the δ's. What is used also has to leave room
-- for one more in a BIGINT: a meter that has room lets all others run past their limits.
CREATE FUNCTION expost_has_room(p_capacity BIGINT[], p_used BIGINT[]) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  RETURN p_used[2] <= p_capacity[2] AND (p_used[1] <= p_capacity[1] AND p_used[6] <= p_capacity[6]
      OR p_used[3] <= p_capacity[3]
      OR p_used[4] <= p_capacity[4] AND p_used[5] <= p_capacity[5] AND p_used[7] <= p_capacity[7])
    AND greatest(p_used[3], p_used[4], p_used[5], p_used[1] - p_capacity[1]) <= 4611686018427387904;
END $$;
-- Whether it holds after a worst case is reserved.
CREATE FUNCTION expost_fits(p_capacity BIGINT[], p_charged BIGINT[], p_reserved BIGINT[], p_worst BIGINT[]) RETURNS BOOLEAN
IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  IF p_worst[1] > 9223372036854775807 - p_charged[1] - p_reserved[1] THEN RETURN FALSE; END IF;
  RETURN expost_has_room(p_capacity, ARRAY[
    p_charged[1] + p_reserved[1] + p_worst[1], p_charged[2] + p_reserved[2] + p_worst[2],
    p_charged[3] + p_reserved[3] + p_worst[3], p_charged[4] + p_reserved[4] + p_worst[4],
    p_charged[5] + p_reserved[5] + p_worst[5], p_charged[6] + p_reserved[6] + p_worst[6],
    p_charged[7] + p_reserved[7] + p_worst[7]]);
END $$;

-- The constraints of rows. A CHECK is parsed again by every statement that writes a row; a function is parsed once.
CREATE FUNCTION expost_account_holds(
  p_limit_delta BIGINT, p_capacity BIGINT[], p_charged BIGINT[], p_reserved BIGINT[], p_closed BIGINT, p_parent BIGINT,
  p_entries BIGINT, p_at BIGINT, p_head TEXT
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  RETURN num_nonnulls(p_entries, p_at, p_head) = 3 * (p_parent IS NULL)::int
    AND coalesce(p_entries >= 0 AND length(p_head) = 64, TRUE)
    AND p_capacity[1] >= 0 AND p_capacity[2] BETWEEN 0 AND p_limit_delta AND p_limit_delta <= 1000000000000000000
    AND -1 <= ALL (p_capacity) AND 0 <= ALL (p_charged) AND 0 <= ALL (p_reserved) AND p_closed IN (0, 1)
    AND expost_fits(p_capacity, p_charged, p_reserved, '{0,0,0,0,0,0,0}');
END $$;
CREATE FUNCTION expost_entry_holds(
  p_number BIGINT, p_operation TEXT, p_owner TEXT, p_lease BIGINT, p_begun BIGINT, p_state TEXT, p_part TEXT, p_ended BIGINT,
  p_worst BIGINT[], p_paid BIGINT[]
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  RETURN p_number >= 1 AND p_operation IN ('run', 'open', 'reserve') AND 0 <= ALL (p_worst)
    AND (p_owner IS NULL) <> (p_lease IS NULL) AND p_begun IN (0, 1)
    AND coalesce(CASE p_state
      WHEN 'reserved' THEN num_nonnulls(VARIADIC p_paid) = 0 AND p_ended IS NULL AND p_part IS NULL
      WHEN 'settled' THEN p_part IS NOT NULL AND 0 <= ALL (p_paid) AND p_paid[2] = p_worst[2] AND p_paid[1] <= p_worst[1]
        AND p_paid[3] <= p_worst[3] AND p_paid[4] <= p_worst[4] AND p_paid[5] <= p_worst[5] AND p_paid[6] <= p_worst[6]
        AND p_paid[7] <= p_worst[7]
      WHEN 'forfeited' THEN p_paid = p_worst
      WHEN 'voided' THEN p_begun = 0 AND p_paid = '{0,0,0,0,0,0,0}'
      ELSE FALSE END, FALSE);
END $$;
ALTER TABLE expost_account ADD CONSTRAINT expost_account_holds CHECK (expost_account_holds(
  limit_delta, ARRAY[limit_epsilon, capacity_delta, capacity_renyi, capacity_normal, capacity_others, 0, 0],
  ARRAY[charged_epsilon, charged_delta, charged_renyi, charged_normal,
    charged_others, charged_unpriced, charged_foreign],
  ARRAY[reserved_epsilon, reserved_delta, reserved_renyi, reserved_normal,
    reserved_others, reserved_unpriced, reserved_foreign],
  closed, parent, entries, at, head));
ALTER TABLE expost_entry ADD CONSTRAINT expost_entry_holds CHECK (expost_entry_holds(
  number, operation, owner, lease_until, begun, state, part, ended_line,
  ARRAY[reserved_epsilon, reserved_delta, reserved_renyi, reserved_normal,
    reserved_others, reserved_unpriced, reserved_foreign],
  ARRAY[charged_epsilon, charged_delta, charged_renyi, charged_normal,
    charged_others, charged_unpriced, charged_foreign]));

-- The past is immutable: entries end once, lines and guarantees never change, nothing is refunded by hand. Triggers before
-- an update would lock each row once more.
CREATE FUNCTION expost_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'expost: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;

CREATE TRIGGER expost_entry_ends_once AFTER UPDATE OF state, begun, part, digest, ended_line,
  charged_epsilon, charged_delta, charged_renyi, charged_normal,
  charged_others, charged_unpriced, charged_foreign
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
  key, reserved_at, reserved_line, owner, lease, reserved_epsilon, reserved_delta, reserved_renyi, reserved_normal,
  reserved_others, reserved_unpriced, reserved_foreign ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_starts BEFORE INSERT ON expost_entry FOR EACH ROW WHEN (NEW.state <> 'reserved')
EXECUTE FUNCTION expost_refuse('an entry starts as reserved');
CREATE TRIGGER expost_entry_stays BEFORE DELETE ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('entries are never removed');
CREATE TRIGGER expost_event_fixed BEFORE UPDATE OR DELETE ON expost_event FOR EACH ROW
EXECUTE FUNCTION expost_refuse('the audit trail never changes');
CREATE TRIGGER expost_guarantee_fixed BEFORE UPDATE OR DELETE ON expost_guarantee FOR EACH ROW
EXECUTE FUNCTION expost_refuse('guarantees never change');
CREATE TRIGGER expost_account_grows AFTER UPDATE OF limit_epsilon, limit_delta, capacity_delta, capacity_renyi, capacity_normal,
  capacity_others, closed ON expost_account FOR EACH ROW
WHEN (NEW.limit_epsilon < OLD.limit_epsilon OR NEW.limit_delta < OLD.limit_delta OR NEW.capacity_delta < OLD.capacity_delta
  OR NEW.capacity_renyi < OLD.capacity_renyi OR NEW.closed < OLD.closed
  OR NEW.capacity_normal <> OLD.capacity_normal OR NEW.capacity_others <> OLD.capacity_others)  -- fixed when it is made
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_spends AFTER UPDATE OF charged_epsilon, charged_delta, charged_renyi, charged_normal,
  charged_others, charged_unpriced, charged_foreign, line, entries ON expost_account FOR EACH ROW
WHEN (NEW.charged_epsilon < OLD.charged_epsilon OR NEW.charged_delta < OLD.charged_delta OR NEW.charged_renyi < OLD.charged_renyi
  OR NEW.charged_normal < OLD.charged_normal OR NEW.charged_others < OLD.charged_others
  OR NEW.charged_unpriced < OLD.charged_unpriced OR NEW.charged_foreign < OLD.charged_foreign
  OR NEW.line < OLD.line OR NEW.entries < OLD.entries)
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

