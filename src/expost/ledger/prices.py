"""What a request costs on the meters of its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expost.guarantee import Guarantee
from expost.ledger.entry import Manner

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff


def prices_of(
    meters: LedgerMeters | None, operation: Manner, subject: Any, guarantee: Guarantee, *, simple_alone: bool
) -> Tariff | None:
    """The prices of a mechanism or guarantee; None if the ledger has the simple sum alone.

    Whether the work of a reservation runs in one go is not known, so it is priced like an interaction.
    ``simple_alone`` says that an account on the way has no other meter: then a mechanism takes its δ.
    """
    if meters is None:
        return None
    from expost.accounting.tariff import tariff_of_guarantee, tariff_of_mechanism

    interactive = operation != "run"
    if isinstance(subject, Guarantee):
        return tariff_of_guarantee(guarantee, meters.order, interactive=interactive)
    return tariff_of_mechanism(subject, meters.order, interactive=interactive, simple_alone=simple_alone)
