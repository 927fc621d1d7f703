CREATE TABLE expost_ledger (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  sequence BIGINT NOT NULL CHECK (sequence >= 0),
  entries BIGINT NOT NULL CHECK (entries >= 0),
  at BIGINT NOT NULL,
  head TEXT NOT NULL CHECK (length(head) = 64)
);

CREATE TABLE expost_account (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ledger BIGINT NOT NULL REFERENCES expost_ledger,
  parent BIGINT REFERENCES expost_account,
  path TEXT NOT NULL,
  epsilon_limit BIGINT NOT NULL CHECK (epsilon_limit >= 0),
  delta_limit BIGINT NOT NULL CHECK (delta_limit BETWEEN 0 AND 1000000000000000000),
  epsilon_spent BIGINT NOT NULL DEFAULT 0 CHECK (epsilon_spent BETWEEN 0 AND epsilon_limit),
  delta_spent BIGINT NOT NULL DEFAULT 0 CHECK (delta_spent BETWEEN 0 AND delta_limit),
  epsilon_reserved BIGINT NOT NULL DEFAULT 0 CHECK (epsilon_reserved BETWEEN 0 AND epsilon_limit - epsilon_spent),
  delta_reserved BIGINT NOT NULL DEFAULT 0 CHECK (delta_reserved BETWEEN 0 AND delta_limit - delta_spent),
  closed BIGINT NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
  UNIQUE (ledger, path)
);

-- A guarantee is kept once, whoever asks for it how often.
CREATE TABLE expost_claim (digest TEXT PRIMARY KEY, json TEXT NOT NULL);

-- No foreign keys from here on: each would be a query at every commit. Only expost_apply writes these, and verify_chain checks.
-- A process at work, and until when it is believed to be alive.
CREATE TABLE expost_owner (
  id TEXT PRIMARY KEY,
  ledger BIGINT NOT NULL,
  identity TEXT NOT NULL,
  deadline BIGINT NOT NULL,
  expired BIGINT NOT NULL DEFAULT 0 CHECK (expired IN (0, 1)),
  batch TEXT NOT NULL,     -- the last batch that this process applied, and what became of it: exactly once
  outcomes JSONB NOT NULL
);

CREATE TABLE expost_entry (
  ledger BIGINT NOT NULL,
  number BIGINT NOT NULL CHECK (number >= 1),
  account BIGINT NOT NULL,
  operation TEXT NOT NULL CHECK (operation IN ('run', 'open', 'reserve')),
  subject TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  claim TEXT NOT NULL,
  label TEXT,
  key TEXT,
  epsilon BIGINT NOT NULL CHECK (epsilon >= 0),
  delta BIGINT NOT NULL CHECK (delta >= 0),
  owner TEXT,
  lease_until BIGINT,
  begun BIGINT NOT NULL CHECK (begun IN (0, 1)),
  state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'settled', 'forfeited', 'voided')),
  part TEXT,
  charged_epsilon BIGINT CHECK (charged_epsilon BETWEEN 0 AND epsilon),
  charged_delta BIGINT CHECK (charged_delta BETWEEN 0 AND delta),
  output TEXT,
  digest TEXT,
  reserved_at BIGINT NOT NULL,
  ended_at BIGINT,
  PRIMARY KEY (ledger, number),
  CHECK ((owner IS NULL) <> (lease_until IS NULL)),
  CHECK (CASE state
    WHEN 'reserved' THEN charged_epsilon IS NULL AND charged_delta IS NULL AND ended_at IS NULL AND part IS NULL
    WHEN 'settled' THEN part IS NOT NULL AND charged_epsilon IS NOT NULL AND charged_delta = delta
    WHEN 'forfeited' THEN charged_epsilon = epsilon AND charged_delta = delta
    ELSE begun = 0 AND charged_epsilon = 0 AND charged_delta = 0 END)
);
CREATE UNIQUE INDEX expost_entry_key ON expost_entry (ledger, key) WHERE key IS NOT NULL;
CREATE INDEX expost_owner_ledger ON expost_owner (ledger) WHERE expired = 0;
CREATE INDEX expost_entry_open ON expost_entry (ledger, owner) WHERE state = 'reserved';

CREATE TABLE expost_event (
  ledger BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  line TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length(hash) = 64),
  PRIMARY KEY (ledger, sequence)
);

-- Rows that change with every commit stay on their page.
ALTER TABLE expost_ledger SET (fillfactor = 10);
ALTER TABLE expost_account SET (fillfactor = 10);
ALTER TABLE expost_owner SET (fillfactor = 10);
ALTER TABLE expost_entry SET (fillfactor = 70);

-- What has happened stays: entries end once, events and claims never change, money never comes back by hand.
CREATE FUNCTION expost_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'expost: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;

CREATE TRIGGER expost_entry_ends_once BEFORE UPDATE ON expost_entry FOR EACH ROW
WHEN (OLD.state <> 'reserved' OR NEW.begun < OLD.begun OR (NEW.state = 'voided' AND OLD.begun = 1)
  OR (NEW.ledger, NEW.number, NEW.account, NEW.operation, NEW.subject, NEW.fingerprint, NEW.claim, NEW.label, NEW.key,
      NEW.epsilon, NEW.delta, NEW.reserved_at, NEW.owner, NEW.lease_until)
  IS DISTINCT FROM
     (OLD.ledger, OLD.number, OLD.account, OLD.operation, OLD.subject, OLD.fingerprint, OLD.claim, OLD.label, OLD.key,
      OLD.epsilon, OLD.delta, OLD.reserved_at, OLD.owner, OLD.lease_until))
EXECUTE FUNCTION expost_refuse('an entry ends once and does not change otherwise');
CREATE TRIGGER expost_entry_starts BEFORE INSERT ON expost_entry FOR EACH ROW WHEN (NEW.state <> 'reserved')
EXECUTE FUNCTION expost_refuse('an entry starts as reserved');
CREATE TRIGGER expost_entry_stays BEFORE DELETE ON expost_entry FOR EACH ROW
EXECUTE FUNCTION expost_refuse('entries are never removed');
CREATE TRIGGER expost_event_fixed BEFORE UPDATE OR DELETE ON expost_event FOR EACH ROW
EXECUTE FUNCTION expost_refuse('the audit trail never changes');
CREATE TRIGGER expost_claim_fixed BEFORE UPDATE OR DELETE ON expost_claim FOR EACH ROW
EXECUTE FUNCTION expost_refuse('claims never change');
CREATE TRIGGER expost_account_grows BEFORE UPDATE ON expost_account FOR EACH ROW
WHEN (NEW.epsilon_limit < OLD.epsilon_limit OR NEW.delta_limit < OLD.delta_limit
  OR NEW.epsilon_spent < OLD.epsilon_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.closed < OLD.closed
  OR (NEW.id, NEW.ledger, NEW.path, NEW.parent) IS DISTINCT FROM (OLD.id, OLD.ledger, OLD.path, OLD.parent))
EXECUTE FUNCTION expost_refuse('what was spent and allowed never goes down');
CREATE TRIGGER expost_account_stays BEFORE DELETE ON expost_account FOR EACH ROW
EXECUTE FUNCTION expost_refuse('accounts are never removed');
CREATE TRIGGER expost_ledger_grows BEFORE UPDATE ON expost_ledger FOR EACH ROW
WHEN (NEW.sequence < OLD.sequence OR NEW.entries < OLD.entries OR NEW.at < OLD.at
  OR (NEW.id, NEW.name, NEW.neighbours, NEW.unit) IS DISTINCT FROM (OLD.id, OLD.name, OLD.neighbours, OLD.unit))
EXECUTE FUNCTION expost_refuse('a ledger only grows');
CREATE TRIGGER expost_ledger_stays BEFORE DELETE ON expost_ledger FOR EACH ROW
EXECUTE FUNCTION expost_refuse('ledgers are never removed');
CREATE TRIGGER expost_owner_expires BEFORE UPDATE ON expost_owner FOR EACH ROW
WHEN (NEW.expired < OLD.expired OR (OLD.expired = 1 AND NEW.deadline > OLD.deadline))
EXECUTE FUNCTION expost_refuse('what has expired stays expired');
DO $$ DECLARE name TEXT; BEGIN
  FOREACH name IN ARRAY ARRAY['ledger', 'account', 'claim', 'entry', 'event'] LOOP
    EXECUTE format('CREATE TRIGGER expost_%s_whole BEFORE TRUNCATE ON expost_%s FOR EACH STATEMENT '
      'EXECUTE FUNCTION expost_refuse(''nothing is ever removed'')', name, name);
  END LOOP;
END $$;
