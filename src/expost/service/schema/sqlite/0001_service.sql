CREATE TABLE expost_token (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('custodian', 'analyst', 'auditor', 'engine')),
    account TEXT NOT NULL,
    name TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0,
    maker TEXT REFERENCES expost_token (id)
) STRICT;
CREATE INDEX expost_token_maker ON expost_token (maker);
CREATE TABLE expost_session (
    digest TEXT PRIMARY KEY,
    token TEXT NOT NULL REFERENCES expost_token (id),
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE expost_job (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    definition TEXT NOT NULL,
    body TEXT NOT NULL,
    questions INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('review', 'accepted', 'ready', 'done')),
    owner TEXT NOT NULL,
    accepted_at INTEGER NOT NULL,
    lane INTEGER NOT NULL DEFAULT 0,
    starts_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    charge TEXT,
    held TEXT,
    begun INTEGER NOT NULL DEFAULT 0,
    postings TEXT,
    result TEXT,
    delivered_at INTEGER,
    decision TEXT,
    plan TEXT,
    dropped INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account, key),
    CHECK ((state IN ('ready', 'done')) = (result IS NOT NULL)),
    CHECK (delivered_at IS NULL OR state = 'done')
) STRICT;
CREATE INDEX expost_job_waiting ON expost_job (account, number) WHERE delivered_at IS NULL;
CREATE INDEX expost_job_charge ON expost_job (account, charge) WHERE delivered_at IS NULL AND charge IS NOT NULL;
CREATE INDEX expost_job_delivered ON expost_job (delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX expost_job_kept ON expost_job (delivered_at) WHERE delivered_at IS NOT NULL AND dropped = 0;
CREATE TABLE expost_server (
    name TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT
