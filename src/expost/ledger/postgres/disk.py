"""What a server shows, and what of it is on its disk."""

from __future__ import annotations

import time

from expost.ledger.engine import Rows

_SHOWN = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END"
_FLUSHED = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint >= ?"
_FLUSH = (
    "SELECT set_config('synchronous_commit', 'on', TRUE), CASE WHEN has_function_privilege("
    "'pg_logical_emit_message(boolean, text, text)', 'EXECUTE') THEN pg_logical_emit_message(TRUE, 'expost', '') END"
)  # a commit flushes the log up to itself, if it wrote to it


def await_disk(shown: Rows, rows: Rows) -> None:
    """Wait until everything is on the disk that a new snapshot shows, or that could be read before: commits can be read
    earlier than that.

    Mostly that is so within milliseconds. Nobody flushes what a failed transaction left behind: then the log is flushed
    from here, outside of the snapshot.
    """
    ((place,),) = shown(_SHOWN)
    for _ in range(5):
        if place is None or shown(_FLUSHED, place)[0][0]:
            return
        time.sleep(0.002)
    rows(_FLUSH)
