"""Interrupts at any moment. Not measured by coverage, whose own locks an interrupt may strand."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable

import pytest

from expost import Ledger
from faulty import CLAIM, NAME, SOAK, check, make


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of a connection that was interrupted while it was made
def test_interrupts_at_any_moment(new_url: Callable[[], str]) -> None:
    """Ctrl-C, again and again, at random moments: the ledger goes on, and nothing is half done."""
    url = new_url()
    ledger, other = make(url), Ledger.load(url, NAME)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    moments, struck = random.Random(8), 0
    try:
        for _ in range(150 + SOAK):
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 4e-3))
                for _ in range(50):
                    ledger.reserve(CLAIM).settle("small")
            except KeyboardInterrupt:
                struck += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:  # the last one came late
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert struck > 100
    for party in (ledger, other):
        assert party.reserve(CLAIM).settle("small").state == "settled"
    check(ledger, [])
    gc.collect()
