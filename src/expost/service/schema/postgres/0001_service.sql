CREATE TABLE expost_token (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('custodian', 'analyst', 'auditor', 'engine')),
    account TEXT NOT NULL,
    name TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked BIGINT NOT NULL DEFAULT 0,
    maker TEXT REFERENCES expost_token (id)
);
CREATE INDEX expost_token_maker ON expost_token (maker);
CREATE TABLE expost_session (
    digest TEXT PRIMARY KEY,
    token TEXT NOT NULL REFERENCES expost_token (id),
    expires_at BIGINT NOT NULL
);
CREATE TABLE expost_job (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    definition TEXT NOT NULL,
    body TEXT NOT NULL,
    questions BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('review', 'accepted', 'ready', 'done')),
    owner TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    lane BIGINT NOT NULL DEFAULT 0,
    starts_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    charge TEXT,
    held TEXT,
    begun BIGINT NOT NULL DEFAULT 0,
    postings TEXT,
    result TEXT,
    delivered_at BIGINT,
    decision TEXT,
    plan TEXT,
    dropped BIGINT NOT NULL DEFAULT 0,
    UNIQUE (account, key),
    CHECK ((state IN ('ready', 'done')) = (result IS NOT NULL)),
    CHECK (delivered_at IS NULL OR state = 'done')
);
CREATE INDEX expost_job_waiting ON expost_job (account, number) WHERE delivered_at IS NULL;
CREATE INDEX expost_job_charge ON expost_job (account, charge) WHERE delivered_at IS NULL AND charge IS NOT NULL;
CREATE INDEX expost_job_delivered ON expost_job (delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX expost_job_kept ON expost_job (delivered_at) WHERE delivered_at IS NOT NULL AND dropped = 0;
CREATE TABLE expost_server (
    name TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
)
