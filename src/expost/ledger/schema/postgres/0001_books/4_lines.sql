-- ---- the rules

CREATE FUNCTION expost_now() RETURNS BIGINT LANGUAGE sql AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The ledger's clock, in full hours. A server's clock that is more than 366 days ahead has to be confirmed.
CREATE FUNCTION expost_tick(p_at BIGINT, p_now BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
  IF p_now - p_at > 31622400000000 THEN
    RAISE EXCEPTION 'expost: the server''s clock shows %, more than a year after the last line of the audit trail, of %: correct the clock or, if it is right, confirm it with `expost ledger clock`',
      to_char(to_timestamp(p_now / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD'),
      to_char(to_timestamp(p_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD') USING ERRCODE = 'EX001';
  END IF;
  RETURN greatest(p_at, p_now - p_now % 3600000000);
END $$;

-- What an entry of an account is charged to: all of these accounts, or it is refused. The ledger's own is first, and with each
-- account all above it are among them.
CREATE FUNCTION expost_accounts(p_path TEXT) RETURNS TEXT[] IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_found TEXT[] := '{}'; v_path TEXT; v_name TEXT;
BEGIN
  FOREACH v_name IN ARRAY string_to_array(p_path, '/') LOOP
    v_path := coalesce(v_path || '/', '') || v_name;
    v_found := v_found || v_path;
  END LOOP;
  RETURN v_found;
END $$;

CREATE FUNCTION expost_line(
  p_at BIGINT, p_body TEXT, p_entry BIGINT, p_kind TEXT, p_levels TEXT, p_sequence BIGINT, p_user TEXT
) RETURNS TEXT LANGUAGE sql AS $$
  SELECT '{"at":' || p_at || ',"body":' || p_body || ',"entry":' || coalesce(p_entry::text, 'null') || ',"event":"' || p_kind
    || '","levels":[' || p_levels || '],"sequence":' || p_sequence || ',"user":' || p_user || '}' $$;
CREATE FUNCTION expost_link(p_head TEXT, p_line TEXT) RETURNS TEXT LANGUAGE sql AS
$$ SELECT encode(sha256(convert_to(p_head || E'\n' || p_line, 'UTF8')), 'hex') $$;
-- The user of the session, as the server knows it, in JSON.
CREATE FUNCTION expost_user() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN RETURN to_json(regexp_replace(session_user::text, '[^ -~]', '?', 'g'))::text; END $$;
CREATE FUNCTION expost_is_durable() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off' OR current_setting('fsync') = 'off'
    OR current_setting('full_page_writes') = 'off' THEN
    RAISE EXCEPTION 'expost: fsync, full_page_writes or synchronous_commit is off, so a commit could be lost: turn it on'
      USING ERRCODE = 'EX001';
  END IF;
  -- what a session or a role may want: SET expost.standby = on
  IF current_setting('expost.standby', TRUE) = 'on'
    AND (current_setting('synchronous_standby_names') = '' OR current_setting('synchronous_commit') = 'local') THEN
    RAISE EXCEPTION 'expost: nothing is spent without a synchronous standby (expost.standby is on), and commits wait for none: set synchronous_standby_names, and synchronous_commit to on'
      USING ERRCODE = 'EX001';
  END IF;
  RETURN TRUE;
END $$;

-- The functions below run with the rights of the tables' owner, and look up functions and operators in the schema of the
-- tables, so nobody else may create any there. Every name in this function is qualified.
CREATE FUNCTION expost_is_own_schema() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.has_schema_privilege('public'::pg_catalog.name, pg_catalog.current_schema()::pg_catalog.text, 'CREATE') THEN
    RAISE EXCEPTION 'expost: everybody may create functions in the schema of the tables, and so change what is charged: REVOKE CREATE ON SCHEMA % FROM PUBLIC',
      pg_catalog.current_schema() USING ERRCODE = 'EX001';
  END IF;
  RETURN TRUE;
END $$;
-- Whether the session's own role may administer ledgers.
CREATE FUNCTION expost_governs() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN RETURN has_function_privilege(session_user, 'expost_govern(bigint, text, text, jsonb)', 'EXECUTE'); END $$;

