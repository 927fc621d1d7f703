-- ---- guarantees and labels as text

-- Integers of up to 1,000 digits, strings, and lists of these, nested up to a depth, in canonical JSON: ASCII, no spaces, one
-- way to write each character. (Brackets and commas may still be in the wrong place.)
CREATE FUNCTION expost_is_label(p_text TEXT, p_deepest INT) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_bare TEXT;
BEGIN
  IF p_text ~ '[^ -~]' OR p_text !~ ($re$^(?:"(?:[^"\\]|\\["\\bfnrt]|\\u(?:00(?:0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])$re$
    || $re$|(?:0[1-9a-f]|[1-9a-f][0-9a-f])[0-9a-f]{2}))*"|-?[1-9][0-9]*|0|[][,])+\Z$re$) THEN
    RETURN FALSE;
  END IF;
  IF length(p_text) <= p_deepest THEN RETURN TRUE; END IF;
  v_bare := regexp_replace(p_text, '"(?:[^"\\]|\\.)*"', '', 'g');
  IF v_bare ~ '(?:[0-9]{250}){4}[0-9]' THEN RETURN FALSE; END IF;
  FOR i IN 1 .. p_deepest LOOP
    EXIT WHEN strpos(v_bare, '[') = 0;
    v_bare := regexp_replace(v_bare, '[[][^][]*[]]', '', 'g');
  END LOOP;
  RETURN strpos(v_bare, '[') = 0;
END $$;
-- A number of units, 10^places to one, as canonical text; NULL if it is negative.
CREATE FUNCTION expost_decimal(p_units BIGINT, p_places INT) RETURNS TEXT IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_digits TEXT := rtrim(p_units::text, '0'); v_exponent INT := length(p_units::text) - 1 - p_places;
BEGIN
  IF p_units <= 0 THEN RETURN CASE p_units WHEN 0 THEN '0' END; END IF;
  IF v_exponent < -4 THEN
    RETURN left(v_digits, 1) || coalesce('.' || nullif(substr(v_digits, 2), ''), '') || 'e' || v_exponent;
  END IF;
  RETURN trim_scale(p_units * ('1e-' || p_places)::numeric)::text;
END $$;
-- What each part of a guarantee costs, under its label; every other part, under ''; and the worst case, in units. With
-- prices on several meters, each is a list: ε, Rényi price, μ², others, and counts of what has no ε, and no μ as well. NULL
-- if the text is not that of a guarantee.
CREATE FUNCTION expost_metered(p_simple JSONB, p_labels TEXT[], p_epsilons BIGINT[], p_prices TEXT) RETURNS JSONB
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_prices JSONB; v_takes BOOLEAN; v_normal BOOLEAN; v_rows JSONB; v_worst JSONB; v_largest BIGINT;
BEGIN
  IF p_prices !~ '^[{]"delta":(?:true|false),"normal":(?:null|[[][0-9]+(?:,[0-9]+)*[]]),"renyi":[[][0-9]+(?:,[0-9]+)*[]][}]$' THEN
    RETURN NULL;
  END IF;
  v_prices := p_prices::jsonb;
  v_takes := (v_prices->>'delta')::boolean; v_normal := jsonb_typeof(v_prices->'normal') = 'array';
  IF jsonb_array_length(v_prices->'renyi') <> cardinality(p_labels)
    OR v_normal AND jsonb_array_length(v_prices->'normal') <> cardinality(p_labels) THEN
    RETURN NULL;
  END IF;
  SELECT jsonb_object_agg(label, jsonb_build_array(e, r, m, o, (NOT v_takes)::int, (NOT v_takes AND NOT v_normal)::int)),
      jsonb_build_array(max(e), max(r), max(m), max(o), (NOT v_takes)::int, (NOT v_takes AND NOT v_normal)::int),
      greatest(max(r), max(m))
    INTO v_rows, v_worst, v_largest
    FROM (SELECT label, CASE WHEN v_takes THEN epsilon ELSE 0 END AS e, (v_prices->'renyi'->>(place - 1))::bigint AS r,
        CASE WHEN v_normal THEN (v_prices->'normal'->>(place - 1))::bigint ELSE 0 END AS m,
        CASE WHEN v_takes AND NOT v_normal THEN epsilon ELSE 0 END AS o
      FROM unnest(p_labels, p_epsilons) WITH ORDINALITY AS one(label, epsilon, number),
        LATERAL (SELECT number::int AS place) AS at) AS priced;
  IF v_largest >= 4611686018427387904 THEN RETURN NULL; END IF;
  RETURN v_rows || jsonb_build_object('worst', v_worst, 'neighbours', p_simple->'neighbours', 'metered', TRUE,
    'delta', CASE WHEN v_takes THEN (p_simple->>'delta')::bigint ELSE 0 END);
END $$;
CREATE FUNCTION expost_prices(p_claim TEXT) RETURNS JSONB IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_at INT := strpos(p_claim, ',"prices":{');  -- in strings every quote is escaped, so this is nowhere else
  v_prices_text TEXT := CASE WHEN v_at > 0 THEN substr(p_claim, v_at + 10, length(p_claim) - v_at - 10) END;
  v_text TEXT := CASE WHEN v_at > 0 THEN left(p_claim, v_at - 1) || '}' ELSE p_claim END;
  v_fields TEXT[] := regexp_match(v_text,
    '^[{]"delta":"([0-9.e-]+)","neighbours":(null|"add-remove"|"substitute"),"otherwise":(?:null|"([0-9.e-]+)"),"parts":([[].*)[}]$');
  v_delta BIGINT; v_rest BIGINT; v_labels TEXT[]; v_epsilons BIGINT[]; v_prices JSONB; v_sorted TEXT;
BEGIN
  IF v_fields IS NULL OR NOT expost_is_label(v_fields[4], 34) OR v_at > 0 AND right(p_claim, 1) <> '}' THEN RETURN NULL; END IF;
  v_delta := ceil(v_fields[1]::numeric * 1000000000000000000);
  v_rest := ceil(v_fields[3]::numeric * 1000000000000);
  -- read as JSON, not JSONB, so that a label stays as it is written: it may hold what no text of PostgreSQL can
  SELECT array_agg(label ORDER BY place), array_agg(epsilon ORDER BY place), coalesce(jsonb_object_agg(label, epsilon), '{}'),
      string_agg('[' || label || ',"' || expost_decimal(epsilon, 12) || '"]', ',' ORDER BY pair::text COLLATE "C")
    INTO v_labels, v_epsilons, v_prices, v_sorted
    FROM (SELECT pair, place, fields[1]::json::text AS label, ceil(fields[2]::numeric * 1000000000000)::bigint AS epsilon
      FROM json_array_elements(v_fields[4]::json) WITH ORDINALITY AS parts(pair, place),
        regexp_match(pair::text, '^[[](.*),"([0-9.e-]+)"[]]$') AS fields) AS part;
  -- each part once, at least one price, δ at most 1, and no other text for the same
  IF (SELECT count(*) FROM jsonb_object_keys(v_prices)) <> coalesce(cardinality(v_labels), 0)
    OR coalesce(cardinality(v_labels), 0) + num_nonnulls(v_rest) = 0 OR v_delta > 1000000000000000000
    OR v_text IS DISTINCT FROM '{"delta":"' || expost_decimal(v_delta, 18) || '","neighbours":' || v_fields[2]
      || ',"otherwise":' || coalesce('"' || expost_decimal(v_rest, 12) || '"', 'null')
      || ',"parts":[' || coalesce(v_sorted, '') || ']}' THEN
    RETURN NULL;
  END IF;
  v_prices := v_prices || jsonb_build_object('', v_rest, 'worst', (SELECT max(e) FROM unnest(v_epsilons || v_rest) AS e),
    'neighbours', v_fields[2]::jsonb, 'delta', v_delta);
  IF v_rest IS NOT NULL THEN v_labels := v_labels || ''::text; v_epsilons := v_epsilons || v_rest; END IF;
  RETURN CASE WHEN v_at > 0 THEN expost_metered(v_prices, v_labels, v_epsilons, v_prices_text) ELSE v_prices END;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END $$;
CREATE FUNCTION expost_unicode(p_text TEXT) RETURNS TEXT IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'expost: % is not ASCII, and the database''s encoding is not UTF8: use a database in UTF8', p_text
      USING ERRCODE = 'EX001';
  END IF;
  RETURN (SELECT '"' || string_agg(CASE
      WHEN code BETWEEN 32 AND 126 OR code IN (8, 9, 10, 12, 13) THEN substr(json, 2, length(json) - 2)
      WHEN code < 65536 THEN $re$\u$re$ || lpad(to_hex(code), 4, '0')
      ELSE $re$\u$re$ || to_hex(55296 + (code - 65536) / 1024) || $re$\u$re$ || to_hex(56320 + (code - 65536) % 1024)
    END, '' ORDER BY place) || '"'
    FROM (SELECT ascii(letter) AS code, to_json(letter)::text AS json, place
      FROM regexp_split_to_table(p_text, '') WITH ORDINALITY AS letters(letter, place)) AS letters);
END $$;
-- A text as canonical JSON. Functions in SQL are inlined into the expressions that call them.
CREATE FUNCTION expost_text(p_text TEXT) RETURNS TEXT LANGUAGE sql AS $$
  SELECT CASE WHEN p_text IS NULL THEN 'null' WHEN p_text ~ '[^ -~]' THEN expost_unicode(p_text) ELSE to_json(p_text)::text END $$;

CREATE TABLE expost_ledger (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  accounting TEXT  -- other meters than the simple sum, if there are any
);

CREATE TABLE expost_account (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ledger BIGINT NOT NULL REFERENCES expost_ledger,
  parent BIGINT REFERENCES expost_account,
  path TEXT NOT NULL,
  epsilon_limit BIGINT NOT NULL,
  delta_limit BIGINT NOT NULL,
  epsilon_spent BIGINT NOT NULL DEFAULT 0,
  delta_spent BIGINT NOT NULL DEFAULT 0,
  epsilon_reserved BIGINT NOT NULL DEFAULT 0,
  delta_reserved BIGINT NOT NULL DEFAULT 0,
  closed BIGINT NOT NULL DEFAULT 0,
  line BIGINT NOT NULL,  -- the line of the audit trail that changed it last
  -- on other meters than the simple sum: capacities (δ of rounds, Rényi prices, μ², others), then what was charged and what
  -- is reserved (Rényi prices, μ², others, entries without ε, entries without ε and μ)
  meters TEXT,
  -- of the whole ledger, in its own account's row, which every line of the audit trail changes: one row less to write
  entries BIGINT,
  at BIGINT,  -- the ledger's clock
  head TEXT,
  UNIQUE (ledger, path)
);
CREATE VIEW expost_books AS
SELECT l.id, l.name, l.neighbours, l.unit, l.accounting, a.line AS sequence, a.entries, a.at, a.head
FROM expost_ledger l JOIN expost_account a ON a.ledger = l.id AND a.path = l.name;

-- No foreign keys from here on: each would be a query at every commit. Only the functions below write these tables, and
-- verify() checks them. A guarantee is stored once per ledger, with the first line about it.
CREATE TABLE expost_claim (
  ledger BIGINT NOT NULL,
  digest TEXT NOT NULL,
  json TEXT NOT NULL,
  prices JSONB GENERATED ALWAYS AS (expost_prices(json)) STORED,
  PRIMARY KEY (ledger, digest)
);

-- A process that reserves. It is alive as long as it sends heartbeats. Only sessions of its role can write under its name,
-- and end what it reserved.
CREATE TABLE expost_owner (
  id TEXT PRIMARY KEY,
  ledger BIGINT NOT NULL,
  role TEXT NOT NULL DEFAULT session_user,
  identity TEXT NOT NULL,
  beats BIGINT NOT NULL DEFAULT 0,
  expired BIGINT NOT NULL DEFAULT 0 CHECK (expired IN (0, 1)),
  seen BIGINT NOT NULL,    -- when it wrote last
  batch TEXT NOT NULL,     -- the last batch that was applied, and its outcomes, so that a batch is applied exactly once
  outcomes JSONB NOT NULL
);

CREATE TABLE expost_entry (
  ledger BIGINT NOT NULL,
  number BIGINT NOT NULL,
  account BIGINT NOT NULL,
  below BIGINT NOT NULL,  -- whether the account is below the ledger's own
  operation TEXT NOT NULL,
  subject TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  claim TEXT NOT NULL,
  label TEXT,
  key TEXT,
  epsilon BIGINT NOT NULL,
  delta BIGINT NOT NULL,
  owner TEXT,
  lease BIGINT,  -- microseconds
  lease_until BIGINT,
  begun BIGINT NOT NULL,
  state TEXT NOT NULL DEFAULT 'reserved',
  part TEXT,
  charged_epsilon BIGINT,
  charged_delta BIGINT,
  meters TEXT,  -- the worst case on other meters than the simple sum
  charged_meters TEXT,
  output TEXT,
  digest TEXT,
  reserved_at BIGINT NOT NULL,
  reserved_line BIGINT NOT NULL,
  ended_line BIGINT,
  PRIMARY KEY (ledger, number)
);
CREATE UNIQUE INDEX expost_entry_key ON expost_entry (ledger, key) WHERE key IS NOT NULL;
CREATE INDEX expost_owner_ledger ON expost_owner (ledger) WHERE expired = 0;
CREATE INDEX expost_owner_expired ON expost_owner (ledger) WHERE expired = 1;  -- no column that changes with a commit
CREATE INDEX expost_entry_open ON expost_entry (ledger, number) WHERE state = 'reserved';
CREATE INDEX expost_entry_account ON expost_entry (account, number) WHERE below = 1;  -- of the others, all are asked for

CREATE TABLE expost_event (
  ledger BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  line TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length(hash) = 64),
  PRIMARY KEY (ledger, sequence)
);

-- Rows that change with every commit stay on their page, which is pruned now and then.
ALTER TABLE expost_account SET (fillfactor = 50);
ALTER TABLE expost_owner SET (fillfactor = 50);
ALTER TABLE expost_entry SET (fillfactor = 70);

CREATE FUNCTION expost_numbers(p_text TEXT) RETURNS BIGINT[] IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RETURN string_to_array(btrim(p_text, '[]'), ',')::bigint[]; END $$;
-- Whether an amount fits on at least one meter: its ε, and its amounts on the other meters.
CREATE FUNCTION expost_has_room(p_left BIGINT, p_held BIGINT[], p_more BIGINT[]) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_renyi BIGINT := p_held[5] + p_held[10] + p_more[1]; v_normal BIGINT := p_held[6] + p_held[11] + p_more[2];
  v_others BIGINT := p_held[7] + p_held[12] + p_more[3];
BEGIN
  RETURN (p_left >= 0 AND p_held[8] + p_held[13] + p_more[4] = 0 OR v_renyi <= p_held[2]
      OR v_normal <= p_held[3] AND v_others <= p_held[4] AND p_held[9] + p_held[14] + p_more[5] = 0)
    AND greatest(v_renyi, v_normal, v_others, -p_left) <= 4611686018427387904;  -- room for one more in a BIGINT
END $$;
CREATE FUNCTION expost_meters_fall(p_old BIGINT[], p_new BIGINT[]) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1 .. 9 LOOP IF p_new[k] < p_old[k] THEN RETURN TRUE; END IF; END LOOP;
  RETURN p_new[4] <> p_old[4];
END $$;

-- The constraints of rows. A CHECK is parsed again by every statement that writes a row; a function is parsed once.
CREATE FUNCTION expost_account_holds(
  p_limit BIGINT, p_limit_delta BIGINT, p_spent BIGINT, p_spent_delta BIGINT, p_reserved BIGINT, p_reserved_delta BIGINT,
  p_closed BIGINT, p_meters TEXT, p_parent BIGINT, p_entries BIGINT, p_at BIGINT, p_head TEXT
) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE v_held BIGINT[];
BEGIN
  IF num_nonnulls(p_entries, p_at, p_head) <> 3 * (p_parent IS NULL)::int OR p_entries < 0 OR length(p_head) <> 64 THEN
    RETURN FALSE;
  END IF;
  IF p_meters IS NOT NULL THEN
    v_held := expost_numbers(p_meters);
    RETURN p_limit >= 0 AND p_limit_delta BETWEEN 0 AND 1000000000000000000 AND p_closed IN (0, 1)
      AND p_spent >= 0 AND p_reserved >= 0 AND p_spent_delta >= 0 AND p_reserved_delta >= 0
      AND cardinality(v_held) = 14 AND 0 <= ALL (v_held[5:14]) AND v_held[1] <= p_limit_delta
      AND p_spent_delta + p_reserved_delta <= v_held[1]
      AND coalesce(expost_has_room(p_limit - p_spent - p_reserved, v_held, '{0,0,0,0,0}'), FALSE);
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
CREATE TRIGGER expost_entry_fixed AFTER UPDATE OF ledger, number, account, below, operation, subject, fingerprint, claim, label,
  key, epsilon, delta, meters, reserved_at, reserved_line, owner, lease ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_starts BEFORE INSERT ON expost_entry FOR EACH ROW WHEN (NEW.state <> 'reserved')
EXECUTE FUNCTION expost_refuse('an entry starts as reserved');
CREATE TRIGGER expost_entry_stays BEFORE DELETE ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('entries are never removed');
CREATE TRIGGER expost_event_fixed BEFORE UPDATE OR DELETE ON expost_event FOR EACH ROW
EXECUTE FUNCTION expost_refuse('the audit trail never changes');
CREATE TRIGGER expost_claim_fixed BEFORE UPDATE OR DELETE ON expost_claim FOR EACH ROW
EXECUTE FUNCTION expost_refuse('claims never change');
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
  FOREACH name IN ARRAY ARRAY['ledger', 'account', 'claim', 'entry', 'event'] LOOP
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
  v_holder TEXT; v_holder_role TEXT; v_home BIGINT; v_home_path TEXT; v_claim TEXT;  -- what was looked up last, for the next step
  v_sequence BIGINT; v_entries BIGINT; v_had BIGINT; v_at BIGINT; v_head TEXT;
  v_do TEXT; v_kind TEXT; v_name TEXT; v_levels TEXT; v_line TEXT; v_place INT;
  v_steps INT := jsonb_array_length(p_steps);
  v_prices JSONB; v_fresh BOOLEAN; v_part TEXT; v_output TEXT; v_digest TEXT; v_accounts BIGINT[]; v_epsilons BIGINT[];
  v_deltas BIGINT[];
  v_ok BOOLEAN; v_number BIGINT; v_epsilon BIGINT; v_delta BIGINT; v_held BIGINT; v_held_delta BIGINT; v_account BIGINT;
  v_path TEXT; v_names TEXT[]; v_places INT[];
  v_body TEXT; v_rest TEXT;  -- what a line says of a step, before and behind the text of a new guarantee
  -- the accounts of this batch, as they are now, the ledger's own first
  v_paths TEXT[]; v_ids BIGINT[]; v_count INT := 1; v_limit BIGINT[]; v_limit_delta BIGINT[]; v_spent BIGINT[];
  v_spent_delta BIGINT[]; v_reserved BIGINT[]; v_reserved_delta BIGINT[];
  v_closed BIGINT[]; v_lines_of BIGINT[];
  -- what is to be written
  v_numbers BIGINT[]; v_sequences BIGINT[]; v_lines TEXT[]; v_hashes TEXT[];
  v_ended BIGINT[]; v_keys TEXT[]; v_outs JSONB := '[]'; v_first BIGINT; v_beats INT := 0; v_lost BIGINT[];
  v_forget BOOLEAN := FALSE;
  -- on several meters: what each account counts, 14 numbers each, what this step adds to what is charged and reserved, and
  -- what its entry is charged or reserves
  v_counts BIGINT[]; v_worst BIGINT[]; v_paid BIGINT[]; v_kept BIGINT[]; v_amounts TEXT; v_price JSONB;
  v_others TEXT := ''; v_all_amounts TEXT[]; v_texts TEXT[];
BEGIN
  v_ok := expost_is_own_schema() AND expost_is_durable();  -- an assignment takes less than a query
  v_user := expost_user();
  IF v_steps = 0 THEN
    RAISE EXCEPTION 'expost: expost_spend takes at least one step' USING ERRCODE = 'EX001';
  END IF;
  SELECT name, neighbours, accounting INTO STRICT v_book FROM expost_ledger WHERE id = p_ledger;

  FOR i IN 1 .. v_steps LOOP
    v_step := p_steps->(i - 1);
    v_do := v_step->>'do'; v_lost := '{}'; v_part := NULL; v_output := NULL; v_digest := NULL;
    IF v_steps > 1 THEN  -- all of them begin at 1, also if nothing comes of the first steps: they are read side by side
      v_sequences[i] := NULL; v_numbers[i] := NULL; v_accounts[i] := NULL; v_epsilons[i] := NULL; v_deltas[i] := NULL;
      v_all_amounts[i] := NULL;
    END IF;
    IF v_do IS NULL OR v_do NOT IN ('beat', 'recover', 'reserve', 'begin', 'settle', 'forfeit', 'void') THEN
      RAISE EXCEPTION 'expost: % is not a step of expost_spend: it takes beat, recover, reserve, begin, settle, forfeit, void',
        v_do USING ERRCODE = 'EX001';
    END IF;

    -- what it would be
    IF v_do = 'reserve' THEN
      v_path := coalesce(v_step->>'account', ''); v_number := NULL;
      v_fresh := FALSE;
      IF v_claim IS NULL OR v_step->>'claim' IS DISTINCT FROM v_claim THEN
        SELECT prices, digest INTO v_prices, v_claim FROM expost_claim WHERE ledger = p_ledger AND digest = v_step->>'claim';
        v_fresh := NOT FOUND;
        IF v_fresh AND v_step->>'claim' = encode(sha256(convert_to(v_step->>'claim_text', 'UTF8')), 'hex') THEN
          v_prices := expost_prices(v_step->>'claim_text');
        END IF;
      END IF;
      IF v_prices IS NULL THEN
        RAISE EXCEPTION 'expost: no guarantee is known under the digest %, and none of that digest was given: send its canonical text',
          v_step->>'claim' USING ERRCODE = 'EX001';
      END IF;
      IF (v_prices ? 'metered') <> (v_book.accounting IS NOT NULL) THEN
        RAISE EXCEPTION 'expost: the request''s prices do not fit the meters of its ledger: make the request again'
          USING ERRCODE = 'EX001';
      END IF;
      IF v_book.accounting IS NULL THEN
        v_held := (v_prices->>'worst')::bigint;
      ELSE
        v_price := v_prices->'worst';
        v_held := (v_price->>0)::bigint;
        v_kept := ARRAY[v_price->>1, v_price->>2, v_price->>3, v_price->>4, v_price->>5]::bigint[];
        v_paid := '{0,0,0,0,0}';
        v_amounts := '[' || array_to_string(v_kept, ',') || ']';
      END IF;
      v_held_delta := (v_prices->>'delta')::bigint;
      v_body := '{"account":' || expost_text(v_path) || ',"begun":' || (v_step->>'begun')::boolean::text
        || ',"claim":"' || (v_step->>'claim') || '","fingerprint":' || expost_text(v_step->>'fingerprint');
      v_rest := ',"key":' || expost_text(v_step->>'key') || ',"label":' || expost_text(v_step->>'label')
        || ',"operation":' || expost_text(v_step->>'operation') || ',"subject":' || expost_text(v_step->>'subject')
        || ',"worst":[' || v_held || ',' || v_held_delta || coalesce(',' || btrim(v_amounts, '[]'), '') || ']}';
      v_epsilon := 0; v_delta := 0; v_kind := 'reserve';
    ELSIF v_do NOT IN ('beat', 'recover') THEN
      v_number := (v_step->>'entry')::bigint;
      -- single queries, most of which the step before has asked already, take less than a join
      SELECT state, begun, epsilon, delta, meters, operation, key, lease, owner, account, claim INTO v_entry
        FROM expost_entry WHERE ledger = p_ledger AND number = v_number;
      IF v_entry.owner IS DISTINCT FROM v_holder THEN
        v_holder := v_entry.owner;
        SELECT role INTO v_holder_role FROM expost_owner WHERE id = v_holder;
      END IF;
      IF v_entry.account IS DISTINCT FROM v_home THEN
        v_home := v_entry.account;
        SELECT path INTO v_home_path FROM expost_account WHERE id = v_home;
      END IF;
      v_state := v_entry.state; v_begun := v_entry.begun; v_path := v_home_path; v_fresh := FALSE; v_rest := ''; v_kind := v_do;
      IF v_do = 'begin' THEN
        v_held := 0; v_held_delta := 0; v_epsilon := 0; v_delta := 0; v_body := '{}';
        v_kept := '{0,0,0,0,0}'; v_paid := v_kept; v_amounts := NULL;
      ELSE
        v_held := -v_entry.epsilon; v_held_delta := -v_entry.delta;
        v_amounts := v_entry.meters;
        v_epsilon := CASE WHEN v_do = 'void' THEN 0 ELSE v_entry.epsilon END;
        v_delta := CASE WHEN v_do = 'void' THEN 0 ELSE v_entry.delta END;
        IF v_do = 'settle' THEN
          v_part := v_step->>'part'; v_output := v_step->>'output'; v_digest := v_step->>'digest';
          IF v_claim IS NULL OR v_entry.claim IS DISTINCT FROM v_claim THEN
            SELECT prices, digest INTO v_prices, v_claim FROM expost_claim WHERE ledger = p_ledger AND digest = v_entry.claim;
          END IF;
          v_price := CASE WHEN expost_is_label(v_part, 32) AND v_part::json IS NOT NULL THEN
            coalesce(v_prices->v_part, v_prices->'') END;
          IF v_entry.meters IS NULL THEN
            v_epsilon := (v_price #>> '{}')::bigint;
          ELSE
            v_epsilon := (v_price->>0)::bigint;
            v_amounts := '[' || (v_price->>1) || ',' || (v_price->>2) || ',' || (v_price->>3) || ',' || (v_price->>4) || ','
              || (v_price->>5) || ']';
          END IF;
        ELSIF v_do = 'void' AND v_entry.meters IS NOT NULL THEN
          v_amounts := '[0,0,0,0,0]';
        END IF;
        IF v_entry.meters IS NOT NULL THEN
          v_worst := expost_numbers(v_entry.meters); v_paid := expost_numbers(v_amounts);
          v_kept := ARRAY[-v_worst[1], -v_worst[2], -v_worst[3], -v_worst[4], -v_worst[5]];
        END IF;
        v_body := '{"charged":[' || v_epsilon || ',' || v_delta || coalesce(',' || btrim(v_amounts, '[]'), '')
          || '],"output":' || coalesce('"' || v_digest || '"', 'null') || ',"part":' || coalesce(v_part, 'null') || '}';
      END IF;
    END IF;

    -- from here on, batches run one after the other
    IF i = 1 THEN
      PERFORM 1 FROM expost_ledger WHERE id = p_ledger FOR UPDATE;
      SELECT ARRAY[a.path], ARRAY[a.id], ARRAY[a.epsilon_limit], ARRAY[a.delta_limit], ARRAY[a.epsilon_spent],
          ARRAY[a.delta_spent], ARRAY[a.epsilon_reserved], ARRAY[a.delta_reserved], ARRAY[a.closed], ARRAY[a.line],
          ARRAY[a.meters], a.line, a.entries, a.at, a.head, e.state, e.begun, o.ledger, o.role, o.batch, o.outcomes, o.expired
        INTO STRICT v_paths, v_ids, v_limit, v_limit_delta, v_spent, v_spent_delta, v_reserved, v_reserved_delta, v_closed,
          v_lines_of, v_texts, v_sequence, v_entries, v_at, v_head, v_state, v_begun, v_of, v_role, v_batch, v_outcomes,
          v_expired
        FROM expost_account a LEFT JOIN expost_owner o ON o.id = p_owner
          LEFT JOIN expost_entry e ON e.ledger = p_ledger AND e.number = v_number
        WHERE a.ledger = p_ledger AND a.path = v_book.name;
      v_first := v_sequence; v_had := v_entries;
      IF v_first < p_known THEN
        RAISE EXCEPTION 'expost: the audit trail ends at line %, but line % was acknowledged: lines are lost, so nothing can be reserved; restore the database',
          v_first, p_known USING ERRCODE = 'EX002';
      END IF;
      IF v_book.accounting IS NOT NULL THEN v_counts := expost_numbers(v_texts[1]); END IF;
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
        PERFORM 1 FROM expost_claim WHERE ledger = p_ledger AND digest = v_step->>'claim';
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
        SELECT e.epsilon, e.delta, e.meters, a.path INTO v_row
          FROM expost_entry e LEFT JOIN expost_account a ON a.id = e.account WHERE e.ledger = p_ledger AND e.number = v_number;
        v_path := v_row.path; v_amounts := v_row.meters;
        v_epsilon := v_row.epsilon; v_delta := v_row.delta; v_held := -v_epsilon; v_held_delta := -v_delta;
        IF v_amounts IS NOT NULL THEN
          v_paid := expost_numbers(v_amounts);
          v_kept := ARRAY[-v_paid[1], -v_paid[2], -v_paid[3], -v_paid[4], -v_paid[5]];
        END IF;
        v_body := '{"charged":[' || v_epsilon || ',' || v_delta || coalesce(',' || btrim(v_amounts, '[]'), '')
          || '],"output":null,"part":null}';
      ELSIF v_do = 'reserve' THEN
        v_number := v_entries + 1;
        v_ok := coalesce(v_prices->>'neighbours' = v_book.neighbours, TRUE);
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
          IF v_epsilon IS NULL THEN
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
        v_names := string_to_array(v_path, '/'); v_places := '{}';
        v_ok := cardinality(v_names) > 0;
        FOR depth IN 1 .. cardinality(v_names) LOOP
          v_name := CASE WHEN depth = 1 THEN v_names[1] ELSE v_name || '/' || v_names[depth] END;
          v_place := array_position(v_paths, v_name);
          IF v_place IS NULL THEN
            SELECT * INTO v_row FROM expost_account WHERE ledger = p_ledger AND path = v_name;
            IF NOT FOUND THEN v_ok := FALSE; EXIT; END IF;
            v_count := v_count + 1; v_place := v_count;
            v_paths[v_place] := v_name; v_ids[v_place] := v_row.id;
            v_limit[v_place] := v_row.epsilon_limit; v_limit_delta[v_place] := v_row.delta_limit;
            v_spent[v_place] := v_row.epsilon_spent; v_spent_delta[v_place] := v_row.delta_spent;
            v_reserved[v_place] := v_row.epsilon_reserved; v_reserved_delta[v_place] := v_row.delta_reserved;
            v_closed[v_place] := v_row.closed; v_lines_of[v_place] := v_row.line;
            v_texts[v_place] := v_row.meters;
            IF v_book.accounting IS NOT NULL THEN v_counts := v_counts || expost_numbers(v_row.meters); END IF;
          END IF;
          v_places := v_places || v_place;
        END LOOP;
        v_account := v_ids[v_place];
      END IF;
      -- may it be?
      IF v_ok AND v_do = 'reserve' THEN
        FOREACH v_place IN ARRAY v_places LOOP
          IF v_book.accounting IS NULL THEN
            v_ok := v_ok AND v_closed[v_place] = 0
              AND v_held <= v_limit[v_place] - v_spent[v_place] - v_reserved[v_place]
              AND v_held_delta <= v_limit_delta[v_place] - v_spent_delta[v_place] - v_reserved_delta[v_place];
          ELSE
            v_ok := v_ok AND v_closed[v_place] = 0
              AND v_held_delta <= v_counts[v_place * 14 - 13] - v_spent_delta[v_place] - v_reserved_delta[v_place]
              AND CASE WHEN v_spent[v_place]::numeric + v_reserved[v_place] + v_held < 9223372036854775808 THEN
                expost_has_room(v_limit[v_place] - v_spent[v_place] - v_reserved[v_place] - v_held,
                  v_counts[v_place * 14 - 13 : v_place * 14], v_kept) ELSE FALSE END;
          END IF;
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
          INSERT INTO expost_claim VALUES (p_ledger, v_step->>'claim', v_step->>'claim_text');
          v_body := v_body || ',"guarantee":' || (v_step->>'claim_text');
        END IF;
      ELSIF v_do = 'begin' THEN
        UPDATE expost_entry SET begun = 1 WHERE ledger = p_ledger AND number = v_number;
      ELSIF v_steps > 1 THEN
        v_ended := v_ended || v_number;
      END IF;
      v_sequence := v_sequence + 1;
      v_levels := '';
      FOREACH v_place IN ARRAY v_places LOOP
        v_reserved[v_place] := v_reserved[v_place] + v_held;
        v_reserved_delta[v_place] := v_reserved_delta[v_place] + v_held_delta;
        v_spent[v_place] := v_spent[v_place] + v_epsilon;
        v_spent_delta[v_place] := v_spent_delta[v_place] + v_delta;
        IF v_book.accounting IS NOT NULL THEN
          FOR k IN 1 .. 5 LOOP
            v_counts[v_place * 14 - 10 + k] := v_counts[v_place * 14 - 10 + k] + v_paid[k];
            v_counts[v_place * 14 - 5 + k] := v_counts[v_place * 14 - 5 + k] + v_kept[k];
          END LOOP;
          v_others := ',' || array_to_string(v_counts[v_place * 14 - 13 : v_place * 14], ',');
          v_texts[v_place] := '[' || substr(v_others, 2) || ']';
        END IF;
        v_levels := v_levels || ',[' || v_limit[v_place] || ',' || v_limit_delta[v_place] || ',' || v_spent[v_place] || ','
          || v_spent_delta[v_place] || ',' || v_reserved[v_place] || ',' || v_reserved_delta[v_place] || ','
          || v_closed[v_place] || ',' || v_lines_of[v_place] || v_others || ']';
        v_lines_of[v_place] := v_sequence;
      END LOOP;
      v_line := expost_line(v_at, v_body || v_rest, v_number, v_kind, substr(v_levels, 2), v_sequence, v_user);
      v_head := expost_link(v_head, v_line);
      -- one step of one account, as most are, is written by one statement
      IF v_steps = 1 AND v_count = 1 AND v_do = 'reserve' THEN
        v_outs := jsonb_build_object('sequence', v_sequence, 'outcomes',
          jsonb_build_array(jsonb_build_object('entry', v_number, 'at', v_at)));
        WITH entry AS (
          INSERT INTO expost_entry (ledger, number, account, below, operation, subject, fingerprint, claim, label, key,
            epsilon, delta, meters, owner, lease, lease_until, begun, reserved_at, reserved_line)
          VALUES (p_ledger, v_number, v_account, 0, v_step->>'operation', v_step->>'subject', v_step->>'fingerprint',
            v_step->>'claim', v_step->>'label', v_step->>'key', v_held, v_held_delta, v_amounts,
            CASE WHEN v_step->>'lease' IS NULL THEN p_owner END, (v_step->>'lease')::bigint,
            v_now + (v_step->>'lease')::bigint, (v_step->>'begun')::boolean::int, v_at, v_sequence)
        ), event AS (
          INSERT INTO expost_event VALUES (p_ledger, v_sequence, v_line, v_head)
        ), owner AS (
          UPDATE expost_owner SET batch = p_batch, outcomes = v_outs, seen = v_now WHERE id = p_owner
        )
        UPDATE expost_account SET epsilon_reserved = v_reserved[1], delta_reserved = v_reserved_delta[1], line = v_sequence,
          meters = v_texts[1], entries = v_entries, at = v_at, head = v_head WHERE id = v_account;
        RETURN v_outs;
      ELSIF v_steps = 1 AND v_count = 1 AND v_do NOT IN ('begin', 'recover') THEN
        v_outs := jsonb_build_object('sequence', v_sequence, 'outcomes', '[{}]'::jsonb);
        WITH entry AS (
          UPDATE expost_entry SET state = CASE v_do WHEN 'settle' THEN 'settled' WHEN 'forfeit' THEN 'forfeited' ELSE 'voided' END,
            begun = (v_do <> 'void')::int, part = v_part, charged_epsilon = v_epsilon, charged_delta = v_delta,
            charged_meters = v_amounts, output = v_output, digest = v_digest, ended_line = v_sequence
          WHERE ledger = p_ledger AND number = v_number
        ), event AS (
          INSERT INTO expost_event VALUES (p_ledger, v_sequence, v_line, v_head)
        ), owner AS (
          UPDATE expost_owner SET batch = p_batch, outcomes = v_outs, seen = v_now WHERE id = p_owner
        )
        UPDATE expost_account SET epsilon_spent = v_spent[1], delta_spent = v_spent_delta[1],
          epsilon_reserved = v_reserved[1], delta_reserved = v_reserved_delta[1], line = v_sequence, meters = v_texts[1],
          head = v_head WHERE id = v_account;
        RETURN v_outs;
      END IF;
      v_lines[v_sequence - v_first] := v_line;
      v_hashes[v_sequence - v_first] := v_head;
      IF v_do = 'recover' THEN
        UPDATE expost_entry SET state = 'forfeited', begun = 1, charged_epsilon = v_epsilon, charged_delta = v_delta,
          charged_meters = v_amounts, ended_line = v_sequence WHERE ledger = p_ledger AND number = v_number;
        CONTINUE;
      END IF;
      v_numbers[i] := v_number;
      v_sequences[i] := v_sequence;
      v_accounts[i] := v_account;
      v_epsilons[i] := CASE WHEN v_do = 'reserve' THEN v_held ELSE v_epsilon END;
      v_deltas[i] := CASE WHEN v_do = 'reserve' THEN v_held_delta ELSE v_delta END;
      v_all_amounts[i] := v_amounts;
      v_outs := v_outs || CASE WHEN v_do = 'reserve' THEN jsonb_build_array(jsonb_build_object('entry', v_number, 'at', v_at))
        ELSE '[{}]' END;
    END LOOP;
  END LOOP;

  IF v_forget THEN PERFORM expost_forget(p_ledger, p_owner); END IF;
  v_outs := jsonb_build_object('sequence', v_sequence, 'outcomes', v_outs);
  IF v_sequence > v_first THEN
    WITH step AS MATERIALIZED (
      SELECT p_ledger AS ledger, * FROM ROWS FROM (jsonb_to_recordset(p_steps) AS (
        "do" TEXT, operation TEXT, subject TEXT, fingerprint TEXT, claim TEXT,
        label TEXT, key TEXT, lease BIGINT, begun BOOLEAN, part TEXT, output TEXT, digest TEXT),
        unnest(v_numbers), unnest(v_sequences), unnest(v_accounts), unnest(v_epsilons), unnest(v_deltas),
        unnest(v_all_amounts)) AS step(
        "do", operation, subject, fingerprint, claim, label, key, lease, begun, part, output, digest, number, sequence,
        account, epsilon, delta, amounts)
    ), ended AS (
      UPDATE expost_entry entry SET part = CASE step.do WHEN 'settle' THEN step.part END,
        output = CASE step.do WHEN 'settle' THEN step.output END, digest = CASE step.do WHEN 'settle' THEN step.digest END,
        state = CASE step.do WHEN 'settle' THEN 'settled' WHEN 'forfeit' THEN 'forfeited' ELSE 'voided' END,
        begun = (step.do <> 'void')::int, charged_epsilon = step.epsilon, charged_delta = step.delta,
        charged_meters = step.amounts,
        ended_line = step.sequence
      FROM step WHERE step.sequence IS NOT NULL AND step.do IN ('settle', 'forfeit', 'void')
        AND entry.ledger = step.ledger AND entry.number = step.number
    ), event AS (
      INSERT INTO expost_event SELECT p_ledger, v_first + place, line, hash
      FROM unnest(v_lines, v_hashes) WITH ORDINALITY AS written(line, hash, place)
    ), account AS (
      UPDATE expost_account account SET epsilon_spent = changed.spent, delta_spent = changed.spent_delta,
        epsilon_reserved = changed.reserved, delta_reserved = changed.reserved_delta, line = changed.line,
        meters = changed.meters, entries = CASE place WHEN 1 THEN v_entries END, at = CASE place WHEN 1 THEN v_at END,
        head = CASE place WHEN 1 THEN v_head END
      FROM unnest(v_ids, v_spent, v_spent_delta, v_reserved, v_reserved_delta, v_lines_of, v_texts) WITH ORDINALITY
        AS changed(id, spent, spent_delta, reserved, reserved_delta, line, meters, place)
      WHERE account.id = changed.id AND changed.line > v_first
    )
    INSERT INTO expost_entry (ledger, number, account, below, operation, subject, fingerprint, claim, label, key, epsilon,
      delta, meters, owner, lease, lease_until, begun, reserved_at, reserved_line)
    SELECT step.ledger, number, account, (account <> v_ids[1])::int, operation, subject, fingerprint, claim, label, key, epsilon, delta, amounts, CASE WHEN lease IS NULL THEN p_owner END, lease,
      v_now + lease, begun::int, v_at, step.sequence
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
  IF has_function_privilege('pg_logical_emit_message(boolean, text, text)', 'EXECUTE') THEN
    PERFORM set_config('synchronous_commit', 'off', TRUE);  -- of this transaction
    COMMIT;
    PERFORM pg_logical_emit_message(TRUE, 'expost', '');  -- a commit that wrote nothing would not flush
  END IF;
END $$;

-- Delete processes that were silent for a month and have no open entries. (If one of them woke up and sent its last batch
-- again, a reservation could be made twice: more would be charged, never less.)
CREATE FUNCTION expost_forget(p_ledger BIGINT, p_owner TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM expost_owner owner WHERE ledger = p_ledger AND expired = 1 AND id <> p_owner
    AND seen < expost_now() - 30 * 86400000000
    AND NOT EXISTS (SELECT 1 FROM expost_entry entry
      WHERE entry.ledger = p_ledger AND entry.state = 'reserved' AND entry.owner = owner.id);
END $$;

-- Administration of ledgers: new ledgers and accounts, limits, closing, the clock, dropped outputs. FALSE if the state is
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
  v_capacity TEXT := (SELECT string_agg(value, ',' ORDER BY place)
    FROM jsonb_array_elements_text(p_values->'capacity') WITH ORDINALITY AS one(value, place));
BEGIN
  PERFORM expost_is_own_schema() AND expost_is_durable();
  v_names := string_to_array(p_path, '/');
  IF p_path IS NULL OR '' = ANY (v_names) OR (p_kind = 'create') <> (p_ledger = 0) OR p_kind = 'create' AND cardinality(v_names) > 1 THEN
    RAISE EXCEPTION 'expost: % is not the name of a ledger or an account', p_path USING ERRCODE = 'EX001';
  END IF;
  IF p_kind NOT IN ('create', 'account') AND (coalesce(p_values->>'by', '') = '' OR coalesce(p_values->>'reason', '') = '') THEN
    RAISE EXCEPTION 'expost: expost_govern needs who ordered it, and why: pass by and reason' USING ERRCODE = 'EX001';
  END IF;
  v_body := CASE p_kind
    WHEN 'create' THEN '{' || coalesce('"accounting":' || v_accounting || ',', '') || '"limit":[' || v_epsilon || ',' || v_delta || '],"name":' || expost_text(p_path) || ',"neighbours":'
      || expost_text(p_values->>'neighbours') || ',"unit":' || expost_text(p_values->>'unit') || '}'
    WHEN 'account' THEN '{' || v_account || ',"limit":[' || v_epsilon || ',' || v_delta || ']}'
    WHEN 'raise' THEN '{' || v_account || ',' || v_note || ',"limit":[' || v_epsilon || ',' || v_delta || '],' || v_reason || '}'
    WHEN 'close' THEN '{' || v_account || ',' || v_note || ',' || v_reason || '}'
    WHEN 'clock' THEN '{' || v_note || ',' || v_reason || '}'
    WHEN 'drop' THEN '{' || v_note || ',' || v_reason || ',"upto":' || v_upto || '}' END;
  IF v_body IS NULL OR v_upto < 1 THEN
    RAISE EXCEPTION 'expost: % is not a step of expost_govern, or lacks its limit or its entry number', p_kind USING ERRCODE = 'EX001';
  END IF;
  v_paths := ARRAY(SELECT array_to_string(v_names[1:n], '/') FROM generate_series(1, cardinality(v_names)) n);
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
  IF p_kind IN ('create', 'account', 'raise') AND (v_book.accounting IS NULL) <> (v_capacity IS NULL) THEN
    RAISE EXCEPTION 'expost: a limit needs its capacity on the meters of its ledger, and on no others' USING ERRCODE = 'EX001';
  END IF;
  v_book.sequence := v_book.sequence + 1;
  IF p_kind IN ('create', 'account') THEN
    SELECT id INTO v_parent FROM expost_account WHERE ledger = p_ledger AND path = v_paths[cardinality(v_paths) - 1];
    IF NOT FOUND AND p_kind = 'account' THEN RETURN FALSE; END IF;
    INSERT INTO expost_account (ledger, parent, path, epsilon_limit, delta_limit, line, meters, entries, at, head)
      VALUES (p_ledger, v_parent, p_path, v_epsilon, v_delta, 0, '[' || v_capacity || repeat(',0', 10) || ']',
        CASE WHEN v_parent IS NULL THEN 0 END, CASE WHEN v_parent IS NULL THEN v_book.at END,
        CASE WHEN v_parent IS NULL THEN v_book.head END) ON CONFLICT (ledger, path) DO NOTHING;
  ELSIF p_kind = 'raise' THEN
    UPDATE expost_account SET epsilon_limit = v_epsilon, delta_limit = v_delta,
      meters = '[' || v_capacity || ',' || array_to_string((expost_numbers(meters))[5:14], ',') || ']' WHERE ledger = p_ledger AND path = p_path
      AND epsilon_limit = (p_values->'seen'->>0)::bigint AND delta_limit = (p_values->'seen'->>1)::bigint;
  ELSIF p_kind = 'close' THEN
    UPDATE expost_account SET closed = 1 WHERE ledger = p_ledger AND path = p_path;
  ELSIF p_kind = 'drop' THEN
    UPDATE expost_entry SET output = NULL
      WHERE ledger = p_ledger AND number <= v_upto AND output IS NOT NULL;
  END IF;
  IF NOT FOUND AND p_kind NOT IN ('drop', 'clock') THEN RETURN FALSE; END IF;
  SELECT string_agg('[' || epsilon_limit || ',' || delta_limit || ',' || epsilon_spent || ',' || delta_spent || ','
      || epsilon_reserved || ',' || delta_reserved || ',' || closed || ',' || line || coalesce(',' || btrim(meters, '[]'), '')
      || ']', ',' ORDER BY id)
    INTO v_levels FROM expost_account WHERE ledger = p_ledger AND path = ANY (v_paths);
  UPDATE expost_account SET line = v_book.sequence WHERE ledger = p_ledger AND path = ANY (v_paths);
  v_line := expost_line(v_book.at, v_body, NULL, p_kind, v_levels, v_book.sequence, expost_user());
  v_book.head := expost_link(v_book.head, v_line);
  INSERT INTO expost_event VALUES (p_ledger, v_book.sequence, v_line, v_book.head);
  UPDATE expost_account SET at = v_book.at, head = v_book.head WHERE ledger = p_ledger AND path = v_book.name;
  RETURN TRUE;
END $$;

-- Only these two functions write the tables. Only their owner, and roles to whom the owner grants it, may call them:
-- docs/ledger.md has the grants for readers, spenders and governors.
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
