CREATE TABLE IF NOT EXISTS expost_token (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('custodian', 'analyst', 'auditor', 'engine')),
    account TEXT NOT NULL,
    name TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS expost_session (
    digest TEXT PRIMARY KEY,
    token TEXT NOT NULL REFERENCES expost_token (id),
    expires_at BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS expost_job (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    definition TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('review', 'accepted', 'done')),
    owner TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    result TEXT,
    delivered_at BIGINT,
    decision TEXT,
    UNIQUE (account, key),
    CHECK ((state = 'done') = (result IS NOT NULL)),
    CHECK (delivered_at IS NULL OR state = 'done')
);
CREATE INDEX IF NOT EXISTS expost_job_waiting ON expost_job (account, number) WHERE delivered_at IS NULL;
CREATE INDEX IF NOT EXISTS expost_job_delivered ON expost_job (delivered_at) WHERE delivered_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS expost_server (
    name TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
)
