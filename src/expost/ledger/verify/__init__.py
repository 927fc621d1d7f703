"""Verification of ledgers: an audit trail is replayed by the rules, and compared with the tables."""

from expost.ledger.verify.lines import replay as replay
