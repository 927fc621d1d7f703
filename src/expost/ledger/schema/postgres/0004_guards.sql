-- A key that stands in the audit trail is used, even if its entry was removed by force: nothing is sampled under it again.
-- The line is not taken for JSON: parts in it may hold what no text of PostgreSQL can. In strings every quote is escaped, so
-- these marks stand nowhere else; a key is always written alike, but may be longer than what an index can hold.
CREATE FUNCTION expost_key_of(p_line TEXT) RETURNS BYTEA IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RETURN sha256(convert_to(split_part(split_part(p_line, '"key":"', 2), '","label":', 1), 'UTF8')); END $$;
CREATE UNIQUE INDEX expost_event_key ON expost_event (ledger, expost_key_of(line)) WHERE strpos(line, '"key":"') > 0;

-- What a trigger has to look at is read anew by every statement: each looks only at the columns that a statement sets.
DROP TRIGGER expost_entry_ends_once ON expost_entry;
CREATE TRIGGER expost_entry_ends_once BEFORE UPDATE ON expost_entry FOR EACH ROW
WHEN (OLD.state <> 'reserved' OR NEW.begun < OLD.begun OR (NEW.state = 'voided' AND OLD.begun = 1))
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_fixed BEFORE UPDATE OF ledger, number, account, operation, subject, fingerprint, claim, label,
  key, epsilon, delta, reserved_at, owner, lease_until ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
DROP TRIGGER expost_account_grows ON expost_account;
CREATE TRIGGER expost_account_grows BEFORE UPDATE OF epsilon_limit, delta_limit, closed ON expost_account FOR EACH ROW
WHEN (NEW.epsilon_limit < OLD.epsilon_limit OR NEW.delta_limit < OLD.delta_limit OR NEW.closed < OLD.closed)
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_spends BEFORE UPDATE OF epsilon_spent, delta_spent ON expost_account FOR EACH ROW
WHEN (NEW.epsilon_spent < OLD.epsilon_spent OR NEW.delta_spent < OLD.delta_spent)
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_fixed BEFORE UPDATE OF id, ledger, path, parent ON expost_account FOR EACH ROW
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
DROP TRIGGER expost_ledger_grows ON expost_ledger;
CREATE TRIGGER expost_ledger_grows BEFORE UPDATE ON expost_ledger FOR EACH ROW
WHEN (NEW.sequence < OLD.sequence OR NEW.entries < OLD.entries OR NEW.at < OLD.at)
EXECUTE FUNCTION expost_refuse('a ledger only grows');
CREATE TRIGGER expost_ledger_fixed BEFORE UPDATE OF id, name, neighbours, unit ON expost_ledger FOR EACH ROW
EXECUTE FUNCTION expost_refuse('a ledger only grows');
DROP TRIGGER expost_owner_expires ON expost_owner;
CREATE TRIGGER expost_owner_expires BEFORE UPDATE OF expired ON expost_owner FOR EACH ROW WHEN (NEW.expired < OLD.expired)
EXECUTE FUNCTION expost_refuse('what has expired stays expired');
