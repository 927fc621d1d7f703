CREATE TABLE expost_ledger (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  accounting TEXT  -- other meters than the basic sum, if there are any
);

-- Of everything that is counted: what the account holds, what was charged, and what is reserved. δ is in units of 10⁻¹⁸,
-- unpriced and foreign in rounds, all else in units of 10⁻¹². A capacity of −1 is that of a meter that the account does
-- not have; capacity_delta is what is left of the limit's δ for rounds.
CREATE TABLE expost_account (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ledger BIGINT NOT NULL REFERENCES expost_ledger,
  parent BIGINT REFERENCES expost_account,
  path TEXT NOT NULL,
  limit_epsilon BIGINT NOT NULL,
  limit_delta BIGINT NOT NULL,
  capacity_delta BIGINT NOT NULL,
  capacity_renyi BIGINT NOT NULL,
  capacity_normal BIGINT NOT NULL,
  capacity_others BIGINT NOT NULL,
  charged_epsilon BIGINT NOT NULL DEFAULT 0,
  charged_delta BIGINT NOT NULL DEFAULT 0,
  charged_renyi BIGINT NOT NULL DEFAULT 0,
  charged_normal BIGINT NOT NULL DEFAULT 0,
  charged_others BIGINT NOT NULL DEFAULT 0,
  charged_unpriced BIGINT NOT NULL DEFAULT 0,
  charged_foreign BIGINT NOT NULL DEFAULT 0,
  reserved_epsilon BIGINT NOT NULL DEFAULT 0,
  reserved_delta BIGINT NOT NULL DEFAULT 0,
  reserved_renyi BIGINT NOT NULL DEFAULT 0,
  reserved_normal BIGINT NOT NULL DEFAULT 0,
  reserved_others BIGINT NOT NULL DEFAULT 0,
  reserved_unpriced BIGINT NOT NULL DEFAULT 0,
  reserved_foreign BIGINT NOT NULL DEFAULT 0,
  closed BIGINT NOT NULL DEFAULT 0,
  line BIGINT NOT NULL,  -- the line of the audit trail that changed it last
  -- of the whole ledger, in its own account's row, which every line of the audit trail changes: one row less to write
  entries BIGINT,
  at BIGINT,  -- the ledger's clock
  head TEXT,
  UNIQUE (ledger, path)
);
-- Balances as arrays, in the order of the columns, for the functions below; and the limit as lines of the audit trail have it.
CREATE VIEW expost_balance AS
SELECT id, ledger, path, closed, line, entries, at, head,
  ARRAY[limit_epsilon, capacity_delta, capacity_renyi, capacity_normal, capacity_others, 0, 0] AS capacity,
  ARRAY[charged_epsilon, charged_delta, charged_renyi, charged_normal,
    charged_others, charged_unpriced, charged_foreign] AS charged,
  ARRAY[reserved_epsilon, reserved_delta, reserved_renyi, reserved_normal,
    reserved_others, reserved_unpriced, reserved_foreign] AS reserved,
  '[' || limit_epsilon || ',' || limit_delta || CASE WHEN capacity_others >= 0 THEN
    ',' || capacity_delta || ',' || capacity_renyi || ',' || capacity_normal || ',' || capacity_others ELSE '' END || ']' AS held
FROM expost_account;
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
  owner TEXT,
  lease expost_lease,  -- microseconds
  lease_until BIGINT,
  begun BIGINT NOT NULL,
  state TEXT NOT NULL DEFAULT 'reserved',
  part TEXT,
  -- the worst case, and what was charged once it has ended, as in expost_account
  reserved_epsilon BIGINT NOT NULL,
  reserved_delta BIGINT NOT NULL,
  reserved_renyi BIGINT NOT NULL,
  reserved_normal BIGINT NOT NULL,
  reserved_others BIGINT NOT NULL,
  reserved_unpriced BIGINT NOT NULL,
  reserved_foreign BIGINT NOT NULL,
  charged_epsilon BIGINT,
  charged_delta BIGINT,
  charged_renyi BIGINT,
  charged_normal BIGINT,
  charged_others BIGINT,
  charged_unpriced BIGINT,
  charged_foreign BIGINT,
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

