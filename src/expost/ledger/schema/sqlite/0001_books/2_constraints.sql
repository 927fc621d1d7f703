-- The past is immutable: entries end once, lines and guarantees never change, nothing is refunded by hand.
-- (A lease may be shortened, and the output of a settled entry may be dropped.)
CREATE TRIGGER expost_entry_ends_once BEFORE UPDATE ON expost_entry
WHEN NEW.begun < OLD.begun OR (NEW.state = 'voided' AND OLD.begun = 1)
  OR NEW.ledger <> OLD.ledger OR NEW.number <> OLD.number OR NEW.account <> OLD.account OR NEW.below <> OLD.below
  OR NEW.listed <> OLD.listed
  OR NEW.operation <> OLD.operation OR NEW.subject <> OLD.subject OR NEW.fingerprint <> OLD.fingerprint
  OR NEW.guarantee <> OLD.guarantee OR NEW.label IS NOT OLD.label OR NEW.key IS NOT OLD.key
  OR (NEW.reserved_epsilon, NEW.reserved_delta, NEW.reserved_renyi, NEW.reserved_normal,
      NEW.reserved_others, NEW.reserved_unpriced, NEW.reserved_foreign)
    <> (OLD.reserved_epsilon, OLD.reserved_delta, OLD.reserved_renyi, OLD.reserved_normal,
      OLD.reserved_others, OLD.reserved_unpriced, OLD.reserved_foreign)
  OR NEW.reserved_at <> OLD.reserved_at
  OR NEW.reserved_line <> OLD.reserved_line OR NEW.owner IS NOT OLD.owner OR NEW.lease IS NOT OLD.lease
  OR NEW.lease_until > OLD.lease_until OR (NEW.lease_until IS NULL) <> (OLD.lease_until IS NULL)
  OR (OLD.state <> 'reserved' AND (NEW.state <> OLD.state OR NEW.begun <> OLD.begun OR NEW.part IS NOT OLD.part
    OR (NEW.charged_epsilon, NEW.charged_delta, NEW.charged_renyi, NEW.charged_normal,
      NEW.charged_others, NEW.charged_unpriced, NEW.charged_foreign)
      IS NOT (OLD.charged_epsilon, OLD.charged_delta, OLD.charged_renyi, OLD.charged_normal,
      OLD.charged_others, OLD.charged_unpriced, OLD.charged_foreign)
    OR NEW.digest IS NOT OLD.digest OR NEW.ended_line <> OLD.ended_line OR NEW.output IS NOT NULL))
BEGIN SELECT RAISE(ABORT, 'expost: an entry ends once and does not change otherwise'); END;
CREATE TRIGGER expost_entry_stays BEFORE DELETE ON expost_entry
BEGIN SELECT RAISE(ABORT, 'expost: entries are never removed'); END;
CREATE TRIGGER expost_event_fixed BEFORE UPDATE ON expost_event
BEGIN SELECT RAISE(ABORT, 'expost: the audit trail never changes'); END;
CREATE TRIGGER expost_event_stays BEFORE DELETE ON expost_event
BEGIN SELECT RAISE(ABORT, 'expost: the audit trail never changes'); END;
CREATE TRIGGER expost_guarantee_fixed BEFORE UPDATE ON expost_guarantee
BEGIN SELECT RAISE(ABORT, 'expost: guarantees never change'); END;
CREATE TRIGGER expost_guarantee_stays BEFORE DELETE ON expost_guarantee
BEGIN SELECT RAISE(ABORT, 'expost: guarantees never change'); END;
CREATE TRIGGER expost_account_grows BEFORE UPDATE ON expost_account
WHEN NEW.limit_epsilon < OLD.limit_epsilon OR NEW.limit_delta < OLD.limit_delta
  OR NEW.capacity_delta < OLD.capacity_delta OR NEW.capacity_renyi < OLD.capacity_renyi
  OR NEW.capacity_normal <> OLD.capacity_normal OR NEW.capacity_others <> OLD.capacity_others  -- fixed when it is made
  OR NEW.charged_epsilon < OLD.charged_epsilon OR NEW.charged_delta < OLD.charged_delta OR NEW.charged_renyi < OLD.charged_renyi
  OR NEW.charged_normal < OLD.charged_normal OR NEW.charged_others < OLD.charged_others
  OR NEW.charged_unpriced < OLD.charged_unpriced OR NEW.charged_foreign < OLD.charged_foreign
  OR NEW.closed < OLD.closed OR NEW.line < OLD.line OR NEW.entries < OLD.entries
  OR NEW.id <> OLD.id OR NEW.ledger <> OLD.ledger OR NEW.path <> OLD.path OR NEW.parent IS NOT OLD.parent
BEGIN SELECT RAISE(ABORT, 'expost: what was spent and allowed never goes down'); END;
CREATE TRIGGER expost_account_stays BEFORE DELETE ON expost_account
BEGIN SELECT RAISE(ABORT, 'expost: accounts are never removed'); END;
CREATE TRIGGER expost_ledger_stays BEFORE DELETE ON expost_ledger
BEGIN SELECT RAISE(ABORT, 'expost: ledgers are never removed'); END;
CREATE TRIGGER expost_ledger_fixed BEFORE UPDATE ON expost_ledger
BEGIN SELECT RAISE(ABORT, 'expost: ledgers never change'); END;
CREATE TRIGGER expost_noted_stays BEFORE DELETE ON expost_noted
BEGIN SELECT RAISE(ABORT, 'expost: heads that are kept are kept for ever'); END;
CREATE TRIGGER expost_noted_grows BEFORE UPDATE ON expost_noted WHEN NEW.ledger <> OLD.ledger OR NEW.since < OLD.since
BEGIN SELECT RAISE(ABORT, 'expost: heads that are kept are kept for ever'); END;
-- INSERT OR REPLACE removes rows without firing the triggers above.
CREATE TRIGGER expost_ledger_new BEFORE INSERT ON expost_ledger
WHEN EXISTS (SELECT 1 FROM expost_ledger WHERE id = NEW.id OR name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'expost: ledgers are never replaced'); END;
CREATE TRIGGER expost_account_new BEFORE INSERT ON expost_account
WHEN EXISTS (SELECT 1 FROM expost_account WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM expost_account WHERE ledger = NEW.ledger AND path = NEW.path)
BEGIN SELECT RAISE(ABORT, 'expost: accounts are never replaced'); END;
CREATE TRIGGER expost_guarantee_new BEFORE INSERT ON expost_guarantee
WHEN EXISTS (SELECT 1 FROM expost_guarantee WHERE ledger = NEW.ledger AND digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'expost: guarantees never change'); END;
CREATE TRIGGER expost_entry_new BEFORE INSERT ON expost_entry
WHEN NEW.state <> 'reserved' OR EXISTS (SELECT 1 FROM expost_entry WHERE ledger = NEW.ledger AND number = NEW.number)
  OR (NEW.key IS NOT NULL AND EXISTS (SELECT 1 FROM expost_entry WHERE ledger = NEW.ledger AND key = NEW.key))
BEGIN SELECT RAISE(ABORT, 'expost: an entry starts as reserved, and entries are never replaced'); END;
CREATE TRIGGER expost_event_new BEFORE INSERT ON expost_event
WHEN NEW.id < 0  -- not given: SQLite chooses one later, and of which ledger is not known yet
  OR EXISTS (SELECT 1 FROM expost_event WHERE id = NEW.id)
  OR instr(NEW.line, '"key":"') > 0 AND EXISTS (SELECT 1 FROM expost_event WHERE ledger = NEW.id >> 40
    AND instr(line, '"key":"') > 0 AND json_extract(line, '$.body.key') = json_extract(NEW.line, '$.body.key'))
BEGIN SELECT RAISE(ABORT, 'expost: the audit trail never changes, and has each key once'); END;
CREATE TRIGGER expost_owner_expires BEFORE UPDATE ON expost_owner
WHEN NEW.expired < OLD.expired OR (OLD.expired = 1 AND NEW.beats > OLD.beats)
BEGIN SELECT RAISE(ABORT, 'expost: what has expired stays expired'); END;
-- A key in the audit trail stays used, even if its entry was removed by force: it never samples again.
CREATE UNIQUE INDEX expost_event_key ON expost_event (ledger, json_extract(line, '$.body.key'))
  WHERE instr(line, '"key":"') > 0;
