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
-- What each part of a guarantee costs, under its label; every other part, under ''; and the worst case: amounts of everything
-- that is counted (see expost_account), as the text of an array. With prices on several meters it is marked as metered. NULL
-- if the text is not that of a guarantee.
CREATE FUNCTION expost_metered(p_labels TEXT[], p_epsilons BIGINT[], p_delta BIGINT, p_prices TEXT) RETURNS JSONB
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  v_prices JSONB; v_takes BOOLEAN; v_normal BOOLEAN; v_zcdp BOOLEAN; v_unpriced BIGINT; v_foreign BIGINT; v_rows JSONB;
  v_worst TEXT; v_largest BIGINT;
BEGIN
  IF p_prices !~ '^[{](?:"concentrated":true,)?"delta":(?:true|false),"normal":(?:null|[[][0-9]+(?:,[0-9]+)*[]]),"renyi":[[][0-9]+(?:,[0-9]+)*[]][}]$' THEN
    RETURN NULL;
  END IF;
  v_prices := p_prices::jsonb;
  v_takes := (v_prices->>'delta')::boolean; v_normal := jsonb_typeof(v_prices->'normal') = 'array'; v_zcdp := v_prices ? 'concentrated';
  IF v_zcdp AND (v_takes OR NOT v_normal) THEN RETURN NULL; END IF;
  v_unpriced := (NOT v_takes)::int;
  v_foreign := CASE WHEN v_zcdp THEN 4294967296 ELSE (NOT v_takes AND NOT v_normal)::int END;
  IF jsonb_array_length(v_prices->'renyi') <> cardinality(p_labels)
    OR v_normal AND jsonb_array_length(v_prices->'normal') <> cardinality(p_labels) THEN
    RETURN NULL;
  END IF;
  SELECT jsonb_object_agg(label, ARRAY[e, d, r, n, o, v_unpriced, v_foreign]::text),
      ARRAY[max(e), max(d), max(r), max(n), max(o), v_unpriced, v_foreign]::text, greatest(max(r), max(n))
    INTO v_rows, v_worst, v_largest
    FROM (SELECT label, CASE WHEN v_takes THEN epsilon ELSE 0 END AS e, CASE WHEN v_takes THEN p_delta ELSE 0 END AS d,
        (v_prices->'renyi'->>(place - 1))::bigint AS r,
        CASE WHEN v_normal THEN (v_prices->'normal'->>(place - 1))::bigint ELSE 0 END AS n,
        CASE WHEN v_takes AND NOT v_normal THEN epsilon ELSE 0 END AS o
      FROM unnest(p_labels, p_epsilons) WITH ORDINALITY AS one(label, epsilon, number),
        LATERAL (SELECT number::int AS place) AS at) AS priced;
  RETURN CASE WHEN v_largest < 4611686018427387904 THEN v_rows || jsonb_build_object('worst', v_worst, 'metered', TRUE) END;
END $$;
CREATE FUNCTION expost_prices(p_guarantee TEXT) RETURNS JSONB IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  -- prices come after the parts, and the unit last; in strings every quote is escaped, so these names are nowhere else
  v_unit_at INT := strpos(p_guarantee, ',"unit":"');
  v_unit TEXT := CASE WHEN v_unit_at > 0 THEN substr(p_guarantee, v_unit_at + 8, length(p_guarantee) - v_unit_at - 8) END;
  v_rest_text TEXT := CASE WHEN v_unit_at > 0 THEN left(p_guarantee, v_unit_at - 1) || '}' ELSE p_guarantee END;
  v_at INT := strpos(v_rest_text, ',"prices":{');
  v_prices_text TEXT := CASE WHEN v_at > 0 THEN substr(v_rest_text, v_at + 10, length(v_rest_text) - v_at - 10) END;
  v_text TEXT := CASE WHEN v_at > 0 THEN left(v_rest_text, v_at - 1) || '}' ELSE v_rest_text END;
  v_fields TEXT[] := regexp_match(v_text,
    '^[{]"delta":"([0-9.e-]+)","neighbours":(null|"add-remove"|"substitute"),"otherwise":(?:null|"([0-9.e-]+)"),"parts":([[].*)[}]$');
  v_delta BIGINT; v_rest BIGINT; v_labels TEXT[]; v_epsilons BIGINT[]; v_prices JSONB; v_sorted TEXT; v_parts INT;
BEGIN
  IF v_fields IS NULL OR NOT expost_is_label(v_fields[4], 34) OR v_at > 0 AND right(v_rest_text, 1) <> '}'
    OR v_unit_at > 0 AND (right(p_guarantee, 1) <> '}' OR v_unit !~ '^"(?:[^"\\]|\\.)+"\Z' OR NOT expost_is_label(v_unit, 0)) THEN
    RETURN NULL;
  END IF;
  v_delta := ceil(v_fields[1]::numeric * 1000000000000000000);
  v_rest := ceil(v_fields[3]::numeric * 1000000000000);
  -- read as JSON, not JSONB, so that a label stays as it is written: it may hold what no text of PostgreSQL can
  SELECT coalesce(array_agg(label ORDER BY place), '{}'), coalesce(array_agg(epsilon ORDER BY place), '{}'), count(DISTINCT label),
      coalesce(string_agg('[' || label || ',"' || expost_decimal(epsilon, 12) || '"]', ',' ORDER BY pair::text COLLATE "C"), '')
    INTO v_labels, v_epsilons, v_parts, v_sorted
    FROM (SELECT pair, place, fields[1]::json::text AS label, ceil(fields[2]::numeric * 1000000000000)::bigint AS epsilon
      FROM json_array_elements(v_fields[4]::json) WITH ORDINALITY AS parts(pair, place),
        regexp_match(pair::text, '^[[](.*),"([0-9.e-]+)"[]]$') AS fields) AS part;
  -- each part once, at least one price, δ at most 1, and no other text for the same
  IF v_parts <> cardinality(v_labels) OR v_parts + num_nonnulls(v_rest) = 0 OR v_delta > 1000000000000000000
    OR v_text IS DISTINCT FROM '{"delta":"' || expost_decimal(v_delta, 18) || '","neighbours":' || v_fields[2]
      || ',"otherwise":' || coalesce('"' || expost_decimal(v_rest, 12) || '"', 'null') || ',"parts":[' || v_sorted || ']}' THEN
    RETURN NULL;
  END IF;
  IF v_rest IS NOT NULL THEN v_labels := v_labels || ''::text; v_epsilons := v_epsilons || v_rest; END IF;
  IF v_at > 0 THEN
    v_prices := expost_metered(v_labels, v_epsilons, v_delta, v_prices_text);
  ELSE
    SELECT jsonb_object_agg(label, ARRAY[epsilon, v_delta, 0, 0, 0, 0, 0]::text)
        || jsonb_build_object('worst', ARRAY[max(epsilon), v_delta, 0, 0, 0, 0, 0]::text)
      INTO v_prices FROM unnest(v_labels, v_epsilons) AS one(label, epsilon);
  END IF;
  RETURN v_prices || jsonb_build_object('neighbours', v_fields[2]::jsonb, 'unit', v_unit);
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

