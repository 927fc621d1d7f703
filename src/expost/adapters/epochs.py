"""Which epochs of a training have begun, in whichever process: entries of the ledger that cost nothing.

Every epoch is begun once. Who resumes counts those begun before as taken, also if their work was lost; and of two
processes that resume at once only one goes on.
"""

from __future__ import annotations

from expost.errors import AlreadyReserved, InteractionClosed, UnknownEntry
from expost.guarantee import Guarantee
from expost.ledger import Ledger

_FREE = Guarantee.uniform(0)


class EpochMarks:
    """The marks of one training, by its key."""

    def __init__(self, ledger: Ledger, key: str) -> None:
        self._ledger, self._key = ledger, key
        self.begun = 0
        """The last epoch that has begun, as far as this process knows."""
        while self._is_taken(self._name(self.begun + 1)):
            self.begun += 1

    def begin(self, epoch: int) -> None:
        """Begin an epoch. Raises ``InteractionClosed`` if somebody else has, or has ended the training."""
        if not self._take(self._name(epoch)) or self._is_taken(self._end):
            raise InteractionClosed(
                f"epoch {epoch} of {self._key!r} belongs to another process, which goes on with this training or has "
                "ended it: resume only what nobody else runs"
            )
        self.begun = epoch

    def end(self) -> bool:
        """Let nobody begin another epoch. False if somebody has, or has ended the training."""
        return self._take(self._end) and not self._is_taken(self._name(self.begun + 1))

    @property
    def _end(self) -> str:
        return f"{self._key} · end"

    def _name(self, epoch: int) -> str:
        return f"{self._key} · epoch {epoch}"

    def _take(self, name: str) -> bool:
        try:
            with self._ledger.reserve(_FREE, label=name, key=name) as mark:
                mark.settle("begun")
        except AlreadyReserved:
            return False
        return True

    def _is_taken(self, name: str) -> bool:
        try:
            self._ledger.reservation(name)
        except UnknownEntry:
            return False
        return True
