ALTER TABLE expost_job ADD COLUMN dropped BIGINT NOT NULL DEFAULT 0;
CREATE INDEX expost_job_kept ON expost_job (delivered_at) WHERE delivered_at IS NOT NULL AND dropped = 0
