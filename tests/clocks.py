"""Clocks that tests set, on every store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from expost import Ledger
from expost.ledger import Settings


class Clock:
    """Microseconds since 1970, and seconds that only go on; both move when a test says so."""

    def __init__(self) -> None:
        self.at = time.time_ns() // 1000
        self.seconds = 0.0

    def __call__(self) -> int:
        return self.at

    def timer(self) -> float:
        return self.seconds

    def pause(self, seconds: float) -> None:
        """Wait, so that patience ends."""
        time.sleep(seconds)
        self.seconds += seconds

    def settings(self, **others: Any) -> Settings:
        """Settings of a ledger that goes by this clock. Its heart does not beat by itself."""
        return Settings(**{"clock": self, "timer": self.timer, "pause": self.pause, "beat": 10**6, **others})

    def set_on(self, ledger: Ledger) -> Callable[[int], None]:
        """Sets the clock, in microseconds since 1970, that a store goes by."""
        address = ledger._store.address
        if address is None or address[0].startswith("sqlite"):
            return self.set

        def turn(at: int) -> None:
            self.set(at)
            with psycopg.connect(address[0], autocommit=True) as connection:
                connection.execute(
                    f"CREATE OR REPLACE FUNCTION expost_now() RETURNS BIGINT LANGUAGE sql AS $$ SELECT {at}::bigint $$"
                )

        return turn

    def set(self, at: int) -> None:
        self.at = at
