-- The rule of every ledger: with something more, some meter has room for all that is used, and so have the δ's. What is used also
-- has to leave room for one more in a BIGINT: a meter that has room lets all others run past their limits.
CREATE FUNCTION expost_has_room(p_capacity BIGINT[], p_charged BIGINT[], p_reserved BIGINT[], p_more BIGINT[]) RETURNS BOOLEAN
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_used BIGINT[];
BEGIN
  IF p_more[1] > 9223372036854775807 - p_charged[1] - p_reserved[1] THEN RETURN FALSE; END IF;
  v_used := ARRAY[
    p_charged[1] + p_reserved[1] + p_more[1], p_charged[2] + p_reserved[2] + p_more[2],
    p_charged[3] + p_reserved[3] + p_more[3], p_charged[4] + p_reserved[4] + p_more[4],
    p_charged[5] + p_reserved[5] + p_more[5], p_charged[6] + p_reserved[6] + p_more[6],
    p_charged[7] + p_reserved[7] + p_more[7]];
  RETURN v_used[2] <= p_capacity[2] AND (v_used[1] <= p_capacity[1] AND v_used[6] <= p_capacity[6]
      OR v_used[3] <= p_capacity[3]
      OR v_used[4] <= p_capacity[4] AND v_used[5] <= p_capacity[5] AND v_used[7] <= p_capacity[7])
    AND greatest(v_used[3], v_used[4], v_used[5], v_used[1] - p_capacity[1]) <= 4611686018427387904;
END $$;

-- The constraints of rows. A CHECK is parsed again by every statement that writes a row, column by column; a function is parsed
-- once, and takes the row as a whole.
CREATE FUNCTION expost_account_holds(p expost_account) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_capacity BIGINT[] := ARRAY[p.limit_epsilon, p.capacity_delta, p.capacity_renyi, p.capacity_normal, p.capacity_others, 0, 0];
  v_charged BIGINT[] := ARRAY[p.charged_epsilon, p.charged_delta, p.charged_renyi, p.charged_normal, p.charged_others,
    p.charged_unpriced, p.charged_foreign];
  v_reserved BIGINT[] := ARRAY[p.reserved_epsilon, p.reserved_delta, p.reserved_renyi, p.reserved_normal, p.reserved_others,
    p.reserved_unpriced, p.reserved_foreign];
BEGIN
  RETURN num_nonnulls(p.entries, p.at, p.head) = 3 * (p.parent IS NULL)::int
    AND coalesce(p.entries >= 0 AND length(p.head) = 64, TRUE)
    AND p.limit_epsilon >= 0 AND p.capacity_delta BETWEEN 0 AND p.limit_delta AND p.limit_delta <= 1000000000000000000
    AND -1 <= ALL (v_capacity) AND 0 <= ALL (v_charged) AND 0 <= ALL (v_reserved) AND p.closed IN (0, 1)
    AND expost_has_room(v_capacity, v_charged, v_reserved, '{0,0,0,0,0,0,0}');
END $$;
CREATE FUNCTION expost_account_falls(p_old expost_account, p_new expost_account) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  RETURN p_new.charged_epsilon < p_old.charged_epsilon OR p_new.charged_delta < p_old.charged_delta
    OR p_new.charged_renyi < p_old.charged_renyi OR p_new.charged_normal < p_old.charged_normal
    OR p_new.charged_others < p_old.charged_others OR p_new.charged_unpriced < p_old.charged_unpriced
    OR p_new.charged_foreign < p_old.charged_foreign OR p_new.line < p_old.line OR p_new.entries < p_old.entries;
END $$;
CREATE FUNCTION expost_entry_holds(p expost_entry) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_worst BIGINT[] := ARRAY[p.reserved_epsilon, p.reserved_delta, p.reserved_renyi, p.reserved_normal, p.reserved_others,
    p.reserved_unpriced, p.reserved_foreign];
  v_paid BIGINT[] := ARRAY[p.charged_epsilon, p.charged_delta, p.charged_renyi, p.charged_normal, p.charged_others,
    p.charged_unpriced, p.charged_foreign];
BEGIN
  RETURN p.number >= 1 AND p.operation IN ('run', 'open', 'reserve') AND 0 <= ALL (v_worst)
    AND (p.owner IS NULL) <> (p.lease_until IS NULL) AND p.begun IN (0, 1)
    AND coalesce(CASE p.state
      WHEN 'reserved' THEN num_nonnulls(VARIADIC v_paid) = 0 AND p.ended_line IS NULL AND p.part IS NULL
      WHEN 'settled' THEN p.part IS NOT NULL AND 0 <= ALL (v_paid) AND v_paid[2] = v_worst[2] AND v_paid[1] <= v_worst[1]
        AND v_paid[3] <= v_worst[3] AND v_paid[4] <= v_worst[4] AND v_paid[5] <= v_worst[5] AND v_paid[6] <= v_worst[6]
        AND v_paid[7] <= v_worst[7]
      WHEN 'forfeited' THEN v_paid = v_worst
      WHEN 'voided' THEN p.begun = 0 AND v_paid = '{0,0,0,0,0,0,0}'
      ELSE FALSE END, FALSE);
END $$;
ALTER TABLE expost_account ADD CONSTRAINT expost_account_holds CHECK (expost_account_holds(expost_account));
ALTER TABLE expost_entry ADD CONSTRAINT expost_entry_holds CHECK (expost_entry_holds(expost_entry));

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
WHEN (expost_account_falls(OLD, NEW))
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

