"""The prices of a request on the meters of its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expost.guarantee import Guarantee
from expost.ledger.entry import Manner
from expost.mechanism import Mechanism

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.accounting.tariff import Tariff


def prices_of(
    meters: LedgerMeters, operation: Manner, subject: Any, guarantee: Guarantee, *, basic_alone: bool
) -> Tariff:
    """The prices of a mechanism or guarantee.

    A reservation may be for an interaction, so it is priced like one. ``basic_alone`` means that the account, or one
    above it, has only the basic sum: then a mechanism takes its δ.
    """
    interactive = operation != "run"
    if type(subject) is Guarantee or _has_no_prices_of_its_own(type(subject)):
        return meters.tariff_of_guarantee(guarantee, interactive=interactive)
    return meters.tariff_of_mechanism(subject, interactive=interactive, basic_alone=basic_alone)


def _has_no_prices_of_its_own(kind: type) -> bool:
    """Whether a mechanism's prices follow from its guarantee: those are cached."""
    return (
        getattr(kind, "renyi_prices", None) is Mechanism.renyi_prices
        and getattr(kind, "gaussian_prices", None) is Mechanism.gaussian_prices
    )
