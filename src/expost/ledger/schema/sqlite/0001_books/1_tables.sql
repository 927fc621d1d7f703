CREATE TABLE expost_ledger (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  accounting TEXT  -- other meters than the basic sum, if there are any
) STRICT;

CREATE TABLE expost_account (
  id INTEGER PRIMARY KEY,
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  parent INTEGER REFERENCES expost_account,
  path TEXT NOT NULL,
  epsilon_limit INTEGER NOT NULL CHECK (epsilon_limit >= 0),
  delta_limit INTEGER NOT NULL CHECK (delta_limit BETWEEN 0 AND 1000000000000000000),
  epsilon_spent INTEGER NOT NULL DEFAULT 0 CHECK (epsilon_spent >= 0),
  delta_spent INTEGER NOT NULL DEFAULT 0 CHECK (delta_spent BETWEEN 0 AND delta_limit),
  epsilon_reserved INTEGER NOT NULL DEFAULT 0 CHECK (epsilon_reserved >= 0),
  delta_reserved INTEGER NOT NULL DEFAULT 0 CHECK (delta_reserved BETWEEN 0 AND delta_limit - delta_spent),
  closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
  line INTEGER NOT NULL CHECK (line >= 1),  -- the line of the audit trail that changed it last
  -- on other meters than the basic sum: capacities (δ of rounds, Rényi prices, μ², others), then what was charged and what
  -- is reserved (Rényi prices, μ², others, entries without ε, entries without ε and μ)
  meters TEXT,
  -- of the whole ledger, in its own account's row, which every line of the audit trail changes: one row less to write
  entries INTEGER CHECK (entries >= 0),
  at INTEGER,  -- the ledger's clock
  head TEXT CHECK (length(head) = 64),
  open TEXT NOT NULL DEFAULT '[]' CHECK (parent IS NULL OR open = '[]'),  -- the numbers of a few open entries
  UNIQUE (ledger, path),
  CHECK ((parent IS NULL) = (entries IS NOT NULL) AND (parent IS NULL) = (at IS NOT NULL)
    AND (parent IS NULL) = (head IS NOT NULL)),
  -- at least one meter is within its capacity
  CHECK (CASE WHEN meters IS NULL THEN epsilon_reserved <= epsilon_limit - epsilon_spent
    ELSE coalesce(json_array_length(meters) = 14
      AND delta_spent + delta_reserved <= meters->>0 AND meters->>0 <= delta_limit
      AND meters->>4 >= 0 AND meters->>5 >= 0 AND meters->>6 >= 0 AND meters->>7 >= 0 AND meters->>8 >= 0
      AND meters->>9 >= 0 AND meters->>10 >= 0 AND meters->>11 >= 0 AND meters->>12 >= 0 AND meters->>13 >= 0
      AND (epsilon_spent + epsilon_reserved <= epsilon_limit AND meters->>7 + meters->>12 = 0
        OR meters->>4 + meters->>9 <= meters->>1
        OR meters->>5 + meters->>10 <= meters->>2 AND meters->>6 + meters->>11 <= meters->>3
          AND meters->>8 + meters->>13 = 0), FALSE) END)
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
  epsilon INTEGER NOT NULL CHECK (epsilon >= 0),
  delta INTEGER NOT NULL CHECK (delta >= 0),
  owner TEXT,  -- the process (expost_owner), if it has no lease
  lease INTEGER CHECK (lease > 0),  -- microseconds
  lease_until INTEGER,
  begun INTEGER NOT NULL CHECK (begun IN (0, 1)),
  listed INTEGER NOT NULL DEFAULT 0 CHECK (listed IN (0, 1)),  -- whether the ledger's own account lists it while it is open
  state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'settled', 'forfeited', 'voided')),
  part TEXT,
  charged_epsilon INTEGER CHECK (charged_epsilon BETWEEN 0 AND epsilon),
  charged_delta INTEGER CHECK (charged_delta BETWEEN 0 AND delta),
  meters TEXT,  -- the worst case on other meters than the basic sum
  charged_meters TEXT,
  output TEXT,
  digest TEXT,
  reserved_at INTEGER NOT NULL,
  reserved_line INTEGER NOT NULL,
  ended_line INTEGER,
  PRIMARY KEY (ledger, number),
  FOREIGN KEY (ledger, guarantee) REFERENCES expost_guarantee,
  CHECK ((owner IS NULL) <> (lease_until IS NULL) AND (lease IS NULL) = (lease_until IS NULL)),
  CHECK (CASE state
    WHEN 'reserved' THEN charged_epsilon IS NULL AND charged_delta IS NULL AND ended_line IS NULL AND part IS NULL
    WHEN 'settled' THEN part IS NOT NULL AND charged_epsilon IS NOT NULL AND charged_delta = delta
    WHEN 'forfeited' THEN charged_epsilon = epsilon AND charged_delta = delta
    ELSE begun = 0 AND charged_epsilon = 0 AND charged_delta = 0 END),
  CHECK (meters IS NULL AND charged_meters IS NULL OR coalesce(json_array_length(meters) = 5 AND CASE state
    WHEN 'reserved' THEN charged_meters IS NULL
    WHEN 'settled' THEN json_array_length(charged_meters) = 5
      AND charged_meters->>0 BETWEEN 0 AND meters->>0 AND charged_meters->>1 BETWEEN 0 AND meters->>1
      AND charged_meters->>2 BETWEEN 0 AND meters->>2 AND charged_meters->>3 BETWEEN 0 AND meters->>3
      AND charged_meters->>4 BETWEEN 0 AND meters->>4
    WHEN 'forfeited' THEN charged_meters = meters
    ELSE charged_meters = '[0,0,0,0,0]' END, FALSE))
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

