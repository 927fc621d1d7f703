"""Whose privacy a request is about, compared with its ledger, and written as the ledger calls it."""

from __future__ import annotations

from typing import Any, Protocol

from expost.errors import NeighbourMismatch, UnitMismatch
from expost.guarantee import Guarantee, Neighbours
from expost.ledger.entry import Request
from expost.mechanism import private_data
from expost.unit_names import same_unit


class Protected(Protocol):
    """The neighbours and the unit of a ledger; None until the first guarantee that has one."""

    @property
    def neighbours(self) -> Neighbours | None:
        """Which databases differ by one unit."""

    @property
    def unit(self) -> str | None:
        """Whose privacy is protected."""


def in_books(ledger: Protected, request: Request, data: Any = None) -> Request:
    """The request as the ledger writes it: with the unit of its data, in the ledger's own word for it.

    One word in all entries makes every later check, in databases and in audit trails, a comparison of texts. Raises
    ``UnitMismatch`` if the question, or the data that it runs on, is about another unit than the ledger, and
    ``NeighbourMismatch`` for data of another relation.

    Proof: thm-ledger, prop-one-unit
    """
    if data is None and request.guarantee.unit is None:  # as most reservations are
        return request
    where = f"ledger {request.account[0]!r}"
    for each in private_data(data):
        check_fits(ledger, where, each.relation, each.unit_name)
        if request.guarantee.neighbours not in (None, each.relation):
            raise NeighbourMismatch(str(request.guarantee.neighbours), each.relation, "the data")
        request = request.of_unit(each.unit_name)
    unit = request.guarantee.unit
    check_fits(ledger, where, None, unit)
    return request if unit is None else request.of_unit(ledger.unit)


def check_fits(ledger: Protected, where: str, relation: Neighbours | None, unit: str | None) -> None:
    """Raise if a relation or a unit is not that of a ledger. None fits everywhere."""
    if relation is not None and ledger.neighbours not in (None, relation):
        raise NeighbourMismatch(relation, str(ledger.neighbours), where)
    if unit is not None and ledger.unit is not None and not same_unit(ledger.unit, unit):
        raise UnitMismatch(unit, ledger.unit, where)


def check_plan(ledger: Protected, name: str, guarantees: list[Guarantee]) -> None:
    """Raise if a ledger would refuse one of these guarantees, whatever remains."""
    for guarantee in guarantees:
        check_fits(ledger, f"ledger {name!r}", guarantee.neighbours, guarantee.unit)
