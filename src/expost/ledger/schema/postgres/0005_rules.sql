-- A rule of a table is read anew by every statement that writes a row: the longer it is, the longer that takes. A function
-- is read once. Together these say what the rules of 0001 said, each by itself.
CREATE FUNCTION expost_account_holds(
  p_limit BIGINT, p_limit_delta BIGINT, p_spent BIGINT, p_spent_delta BIGINT, p_reserved BIGINT, p_reserved_delta BIGINT,
  p_closed BIGINT
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  RETURN p_limit >= 0 AND p_limit_delta BETWEEN 0 AND 1000000000000000000
    AND p_spent BETWEEN 0 AND p_limit AND p_spent_delta BETWEEN 0 AND p_limit_delta
    AND p_reserved BETWEEN 0 AND p_limit - p_spent AND p_reserved_delta BETWEEN 0 AND p_limit_delta - p_spent_delta
    AND p_closed IN (0, 1);
END $$;
CREATE FUNCTION expost_entry_holds(
  p_number BIGINT, p_operation TEXT, p_epsilon BIGINT, p_delta BIGINT, p_owner TEXT, p_lease BIGINT, p_begun BIGINT,
  p_state TEXT, p_part TEXT, p_charged BIGINT, p_charged_delta BIGINT, p_ended BIGINT
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
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
-- By their names, for a custodian may have added rules that stay.
ALTER TABLE expost_account
  DROP CONSTRAINT IF EXISTS expost_account_epsilon_limit_check, DROP CONSTRAINT IF EXISTS expost_account_delta_limit_check,
  DROP CONSTRAINT IF EXISTS expost_account_check, DROP CONSTRAINT IF EXISTS expost_account_check1,
  DROP CONSTRAINT IF EXISTS expost_account_check2, DROP CONSTRAINT IF EXISTS expost_account_check3,
  DROP CONSTRAINT IF EXISTS expost_account_closed_check;
ALTER TABLE expost_entry
  DROP CONSTRAINT IF EXISTS expost_entry_number_check, DROP CONSTRAINT IF EXISTS expost_entry_operation_check,
  DROP CONSTRAINT IF EXISTS expost_entry_epsilon_check, DROP CONSTRAINT IF EXISTS expost_entry_delta_check,
  DROP CONSTRAINT IF EXISTS expost_entry_begun_check, DROP CONSTRAINT IF EXISTS expost_entry_state_check,
  DROP CONSTRAINT IF EXISTS expost_entry_check, DROP CONSTRAINT IF EXISTS expost_entry_check1,
  DROP CONSTRAINT IF EXISTS expost_entry_check2, DROP CONSTRAINT IF EXISTS expost_entry_check3;
ALTER TABLE expost_account ADD CONSTRAINT expost_account_holds CHECK (expost_account_holds(
  epsilon_limit, delta_limit, epsilon_spent, delta_spent, epsilon_reserved, delta_reserved, closed));
ALTER TABLE expost_entry ADD CONSTRAINT expost_entry_holds CHECK (expost_entry_holds(
  number, operation, epsilon, delta, owner, lease_until, begun, state, part, charged_epsilon, charged_delta, ended_at));
