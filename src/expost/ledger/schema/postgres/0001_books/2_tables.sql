CREATE TABLE expost_ledger (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  accounting TEXT  -- other meters than the basic sum, if there are any
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
  -- on other meters than the basic sum: capacities (δ of rounds, Rényi prices, μ², others), then what was charged and what
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
CREATE TABLE expost_guarantee (
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

-- Texts and leases are as long as the library lets them be at most: a caller of expost_spend may be anybody. (Types are
-- checked faster than constraints.)
CREATE DOMAIN expost_lease AS BIGINT CHECK (VALUE BETWEEN 1 AND 1000000000000000);
CREATE TABLE expost_entry (
  ledger BIGINT NOT NULL,
  number BIGINT NOT NULL,
  account BIGINT NOT NULL,
  below BIGINT NOT NULL,  -- whether the account is below the ledger's own
  operation TEXT NOT NULL,
  subject VARCHAR(1000000) NOT NULL,
  fingerprint VARCHAR(500) NOT NULL,
  guarantee TEXT NOT NULL,
  label VARCHAR(10000),
  key VARCHAR(500),
  epsilon BIGINT NOT NULL,
  delta BIGINT NOT NULL,
  owner TEXT,
  lease expost_lease,  -- microseconds
  lease_until BIGINT,
  begun BIGINT NOT NULL,
  state TEXT NOT NULL DEFAULT 'reserved',
  part TEXT,
  charged_epsilon BIGINT,
  charged_delta BIGINT,
  meters TEXT,  -- the worst case on other meters than the basic sum
  charged_meters TEXT,
  output TEXT,
  digest TEXT,
  reserved_at BIGINT NOT NULL,
  reserved_line BIGINT NOT NULL,
  ended_line BIGINT,
  PRIMARY KEY (ledger, number)
);
CREATE UNIQUE INDEX expost_entry_key ON expost_entry (ledger, key) WHERE key IS NOT NULL;
CREATE INDEX expost_owner_ledger ON expost_owner (ledger);  -- no column that changes with a commit
CREATE INDEX expost_entry_open ON expost_entry (ledger, number) WHERE state = 'reserved';
CREATE INDEX expost_entry_account ON expost_entry (account, number) WHERE below = 1;  -- of the others, all are asked for
CREATE INDEX expost_entry_ended ON expost_entry (ledger, number) WHERE state IN ('forfeited', 'voided');

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

