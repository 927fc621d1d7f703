-- A key that stands in the audit trail is used, even if its entry was removed by force: nothing is sampled under it again.
CREATE UNIQUE INDEX expost_event_key ON expost_event (ledger, json_extract(line, '$.body.key'))
  WHERE instr(line, '"key":"') > 0;
CREATE TRIGGER expost_event_key_new BEFORE INSERT ON expost_event
WHEN instr(NEW.line, '"key":"') > 0 AND EXISTS (SELECT 1 FROM expost_event WHERE ledger = NEW.ledger
  AND instr(line, '"key":"') > 0 AND json_extract(line, '$.body.key') = json_extract(NEW.line, '$.body.key'))
BEGIN SELECT RAISE(ABORT, 'expost: this key stands in the audit trail already'); END;
