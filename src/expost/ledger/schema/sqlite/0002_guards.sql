-- A key that stands in the audit trail is used, even if its entry was removed by force: nothing is sampled under it again.
CREATE UNIQUE INDEX expost_event_key ON expost_event (ledger, json_extract(line, '$.body.key'))
  WHERE instr(line, '"key":"') > 0;
