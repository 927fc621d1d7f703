CREATE TABLE expost_ledger (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  accounting TEXT  -- other meters than the basic sum, if there are any
) STRICT;

-- Of everything that is counted: what the account holds, what was charged, and what is reserved. δ is in units of 10⁻¹⁸,
-- unpriced and foreign in rounds, all else in units of 10⁻¹². A capacity of −1 is that of a meter that the account does
-- not have; capacity_delta is what is left of the limit's δ for rounds.
CREATE TABLE expost_account (
  id INTEGER PRIMARY KEY,
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  parent INTEGER REFERENCES expost_account,
  path TEXT NOT NULL,
  limit_epsilon INTEGER NOT NULL CHECK (limit_epsilon >= 0),
  limit_delta INTEGER NOT NULL CHECK (limit_delta BETWEEN 0 AND 1000000000000000000),
  capacity_delta INTEGER NOT NULL CHECK (capacity_delta BETWEEN 0 AND limit_delta),
  capacity_renyi INTEGER NOT NULL CHECK (capacity_renyi >= -1),
  capacity_normal INTEGER NOT NULL CHECK (capacity_normal >= -1),
  capacity_others INTEGER NOT NULL CHECK (capacity_others >= -1),
  charged_epsilon INTEGER NOT NULL DEFAULT 0 CHECK (charged_epsilon >= 0),
  charged_delta INTEGER NOT NULL DEFAULT 0 CHECK (charged_delta >= 0),
  charged_renyi INTEGER NOT NULL DEFAULT 0 CHECK (charged_renyi >= 0),
  charged_normal INTEGER NOT NULL DEFAULT 0 CHECK (charged_normal >= 0),
  charged_others INTEGER NOT NULL DEFAULT 0 CHECK (charged_others >= 0),
  charged_unpriced INTEGER NOT NULL DEFAULT 0 CHECK (charged_unpriced >= 0),
  charged_foreign INTEGER NOT NULL DEFAULT 0 CHECK (charged_foreign >= 0),
  reserved_epsilon INTEGER NOT NULL DEFAULT 0 CHECK (reserved_epsilon >= 0),
  reserved_delta INTEGER NOT NULL DEFAULT 0 CHECK (reserved_delta >= 0),
  reserved_renyi INTEGER NOT NULL DEFAULT 0 CHECK (reserved_renyi >= 0),
  reserved_normal INTEGER NOT NULL DEFAULT 0 CHECK (reserved_normal >= 0),
  reserved_others INTEGER NOT NULL DEFAULT 0 CHECK (reserved_others >= 0),
  reserved_unpriced INTEGER NOT NULL DEFAULT 0 CHECK (reserved_unpriced >= 0),
  reserved_foreign INTEGER NOT NULL DEFAULT 0 CHECK (reserved_foreign >= 0),
  closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
  line INTEGER NOT NULL CHECK (line >= 1),  -- the line of the audit trail that changed it last
  -- of the whole ledger, in its own account's row, which every line of the audit trail changes: one row less to write
  entries INTEGER CHECK (entries >= 0),
  at INTEGER,  -- the ledger's clock
  head TEXT CHECK (length(head) = 64),
  open TEXT NOT NULL DEFAULT '[]' CHECK (parent IS NULL OR open = '[]'),  -- the numbers of a few open entries
  UNIQUE (ledger, path),
  CHECK ((parent IS NULL) = (entries IS NOT NULL) AND (parent IS NULL) = (at IS NOT NULL)
    AND (parent IS NULL) = (head IS NOT NULL)),
  -- the rule of every ledger: some meter has room for all that is used, and so have the δ's
  CHECK (charged_delta + reserved_delta <= capacity_delta
    AND (charged_epsilon + reserved_epsilon <= limit_epsilon AND charged_unpriced + reserved_unpriced = 0
      OR charged_renyi + reserved_renyi <= capacity_renyi
      OR charged_normal + reserved_normal <= capacity_normal AND charged_others + reserved_others <= capacity_others
        AND charged_foreign + reserved_foreign = 0))
) STRICT;

CREATE VIEW expost_books AS
SELECT l.id, l.name, l.neighbours, l.unit, l.accounting, a.line AS sequence, a.entries, a.at, a.head, a.open
FROM expost_ledger l JOIN expost_account a ON a.ledger = l.id AND a.path = l.name;

-- Since which line the heads of a ledger are noted outside of its books: then books without a noted head may be an old backup.
CREATE TABLE expost_noted (
  ledger INTEGER PRIMARY KEY REFERENCES expost_ledger,
  since INTEGER NOT NULL CHECK (since >= 1)
) STRICT;

-- A guarantee is stored once per ledger, with the first line about it.
CREATE TABLE expost_guarantee (
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  digest TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (ledger, digest)
) STRICT, WITHOUT ROWID;

-- A process that reserves. It is alive as long as it sends heartbeats.
CREATE TABLE expost_owner (
  id TEXT PRIMARY KEY,
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  identity TEXT NOT NULL,
  beats INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0 CHECK (expired IN (0, 1)),
  seen INTEGER NOT NULL  -- the time of its last heartbeat
) STRICT, WITHOUT ROWID;

CREATE TABLE expost_entry (
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  number INTEGER NOT NULL CHECK (number >= 1),
  account INTEGER NOT NULL REFERENCES expost_account,
  below INTEGER NOT NULL CHECK (below IN (0, 1)),  -- whether the account is below the ledger's own
  operation TEXT NOT NULL CHECK (operation IN ('run', 'open', 'reserve')),
  subject TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  guarantee TEXT NOT NULL,
  label TEXT,
  key TEXT,
  owner TEXT,  -- the process (expost_owner), if it has no lease
  lease INTEGER CHECK (lease > 0),  -- microseconds
  lease_until INTEGER,
  begun INTEGER NOT NULL CHECK (begun IN (0, 1)),
  listed INTEGER NOT NULL DEFAULT 0 CHECK (listed IN (0, 1)),  -- whether the ledger's own account lists it while it is open
  state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'settled', 'forfeited', 'voided')),
  part TEXT,
  -- the worst case, and what was charged once it has ended, as in expost_account
  reserved_epsilon INTEGER NOT NULL CHECK (reserved_epsilon >= 0),
  reserved_delta INTEGER NOT NULL CHECK (reserved_delta >= 0),
  reserved_renyi INTEGER NOT NULL CHECK (reserved_renyi >= 0),
  reserved_normal INTEGER NOT NULL CHECK (reserved_normal >= 0),
  reserved_others INTEGER NOT NULL CHECK (reserved_others >= 0),
  reserved_unpriced INTEGER NOT NULL CHECK (reserved_unpriced >= 0),
  reserved_foreign INTEGER NOT NULL CHECK (reserved_foreign >= 0),
  charged_epsilon INTEGER CHECK (charged_epsilon BETWEEN 0 AND reserved_epsilon),
  charged_delta INTEGER CHECK (charged_delta BETWEEN 0 AND reserved_delta),
  charged_renyi INTEGER CHECK (charged_renyi BETWEEN 0 AND reserved_renyi),
  charged_normal INTEGER CHECK (charged_normal BETWEEN 0 AND reserved_normal),
  charged_others INTEGER CHECK (charged_others BETWEEN 0 AND reserved_others),
  charged_unpriced INTEGER CHECK (charged_unpriced BETWEEN 0 AND reserved_unpriced),
  charged_foreign INTEGER CHECK (charged_foreign BETWEEN 0 AND reserved_foreign),
  output TEXT,
  digest TEXT,
  reserved_at INTEGER NOT NULL,
  reserved_line INTEGER NOT NULL,
  ended_line INTEGER,
  PRIMARY KEY (ledger, number),
  FOREIGN KEY (ledger, guarantee) REFERENCES expost_guarantee,
  CHECK ((owner IS NULL) <> (lease_until IS NULL) AND (lease IS NULL) = (lease_until IS NULL)),
  CHECK (CASE state
    WHEN 'reserved' THEN ended_line IS NULL AND part IS NULL AND coalesce(charged_epsilon, charged_delta, charged_renyi, charged_normal,
      charged_others, charged_unpriced, charged_foreign) IS NULL
    WHEN 'settled' THEN part IS NOT NULL AND charged_delta = reserved_delta
    WHEN 'forfeited' THEN (charged_epsilon, charged_delta, charged_renyi, charged_normal,
      charged_others, charged_unpriced, charged_foreign)
      = (reserved_epsilon, reserved_delta, reserved_renyi, reserved_normal,
      reserved_others, reserved_unpriced, reserved_foreign)
    ELSE begun = 0 AND (charged_epsilon, charged_delta, charged_renyi, charged_normal,
      charged_others, charged_unpriced, charged_foreign) = (0, 0, 0, 0, 0, 0, 0) END),
  CHECK (state = 'reserved' OR charged_epsilon + charged_delta + charged_renyi + charged_normal + charged_others
    + charged_unpriced + charged_foreign IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX expost_entry_key ON expost_entry (ledger, key) WHERE key IS NOT NULL;
CREATE INDEX expost_owner_ledger ON expost_owner (ledger, seen);
CREATE INDEX expost_entry_open ON expost_entry (ledger, number) WHERE state = 'reserved' AND listed = 0;
CREATE INDEX expost_entry_account ON expost_entry (account, number) WHERE below = 1;  -- of the others, all are asked for
CREATE INDEX expost_entry_ended ON expost_entry (ledger, number) WHERE state IN ('forfeited', 'voided');

-- The first entries that are open are kept in the ledger's own row, which every line changes: to write an index for them, too,
-- would take a page more with every commit.
CREATE VIEW expost_open AS
SELECT e.* FROM expost_books l CROSS JOIN json_each(iif(json_valid(l.open), l.open, '[]')) o
  CROSS JOIN expost_entry e ON e.ledger = l.id AND e.number = o.value
WHERE e.state = 'reserved' AND e.listed = 1
UNION ALL
SELECT e.* FROM expost_entry e INDEXED BY expost_entry_open WHERE e.state = 'reserved' AND e.listed = 0;

-- Ledger and sequence are one integer: SQLite appends to a table by an integer key with fewer pages than to any other.
CREATE TABLE expost_event (
  id INTEGER PRIMARY KEY CHECK (id > 1 << 40 AND id & ((1 << 40) - 1) > 0),
  ledger INTEGER NOT NULL GENERATED ALWAYS AS (id >> 40) REFERENCES expost_ledger,
  sequence INTEGER NOT NULL GENERATED ALWAYS AS (id & ((1 << 40) - 1)),
  line TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

