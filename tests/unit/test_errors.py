import pickle

import pytest

import expost as xp
from expost import errors
from expost.ledger import Entry, Request


def entry(state: str = "settled") -> Entry:
    claim = xp.Guarantee({"a": 1})
    request = Request("reserve", ("ledger",), claim, claim, None, "k")
    return Entry(1, request, state, True, "a", xp.Cost(1), 0.0)


EXAMPLES = [
    xp.InvalidValue("ε must be a number"),
    xp.NeighbourMismatch("add-remove", "substitute", "ledger 'l'"),
    xp.NeighbourMismatch("substitute", "add-remove", "ledger 'l'"),
    xp.UnknownPart("b", xp.Guarantee({"a": 1})),
    xp.UnknownEntry("no entry 7"),
    xp.BudgetExceeded(xp.Cost(2, delta=0.1), xp.Cost(1), "ledger"),
    xp.BudgetExceeded(xp.Cost(2, delta=0.1), xp.Cost(1), "ledger/alice", xp.Cost(0.5)),
    xp.AlreadyReserved(entry()),
    xp.AlreadyReserved(entry("reserved")),
    xp.KeyConflict("k", "label", entry()),
    xp.KeyConflict("k", "account"),
    xp.ReservationClosed(entry(), "void"),
    xp.ReservationClosed(entry("reserved"), "void"),
    xp.InteractionClosed("closed"),
    xp.EngineFailed("IOException"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: xp.ExpostError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_every_error_is_drawn_in_the_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) >= 10
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")
        assert hasattr(xp, kind.__name__)


def test_an_over_ask_says_what_is_short() -> None:
    error = xp.BudgetExceeded(xp.Cost(2, delta=0.1), xp.Cost(1), "study/alice")
    assert error.short == ("epsilon", "delta")
    assert error.affordable_epsilon == 1
    assert str(error) == (
        "asked for ε 2, δ 0.1, but 'study/alice' has ε 1 left (short of ε and δ): "
        "the largest affordable ε is 1; nothing was charged"
    )
    assert xp.BudgetExceeded(xp.Cost(1, delta=0.1), xp.Cost(1), "l").short == ("delta",)


def test_a_mismatch_names_the_conversion() -> None:
    assert "guarantee.under('substitute')" in str(EXAMPLES[1])
    assert "under(" not in str(EXAMPLES[2])
