"""Balances to try things out on agree with what a ledger then does."""

from __future__ import annotations

from math import inf

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.ledger.imagined import Imagined

LIMIT = Cost(1, delta="1e-6")
INTERACTION = Guarantee({"worst": "0.3", "best": "0.1"})
NOISE = xp.Gaussian(epsilon=0.1, delta=1e-7, sensitivity=1)


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_what_has_room_is_admitted_and_leaves_what_was_imagined(accounting: str) -> None:
    ledger = Ledger(LIMIT, accounting=accounting)  # type: ignore[arg-type]
    account = ledger.create_account("a", Cost("0.9", "1e-6"))
    imagined = Imagined.of(account)
    for part in ("best", "worst", "best", "worst", "best", "best"):
        worst, best = imagined.charges(INTERACTION, part)
        after = imagined.after(best) if imagined.after(worst) else None
        if after is None:
            with pytest.raises(xp.BudgetExceeded):
                account.reserve(INTERACTION)
            break
        account.reserve(INTERACTION).settle(part)
        imagined = after
        assert imagined.remaining == account.remaining
    else:
        raise AssertionError("the limit was never reached")
    assert imagined.unspent().remaining.exact_epsilon == Cost("0.9").exact_epsilon
    assert imagined.emptied().remaining == Cost(0)
    assert imagined.emptied().after(imagined.charges(Guarantee.uniform(0))[0]) is None


def test_the_share_that_is_taken_is_that_of_the_meter_that_holds_most() -> None:
    basic, metered = (Imagined.of(Ledger(LIMIT, accounting=each)) for each in ("basic", "renyi"))  # type: ignore[arg-type]
    large, small = Guarantee.uniform("0.5"), Guarantee.uniform("0.001")
    assert basic.taken(basic.charges(large)[0]) == metered.taken(metered.charges(large)[0]) == 0.5
    assert basic.taken(basic.charges(small)[0]) == 0.001
    assert 0 < metered.taken(metered.charges(small)[0]) < 0.0001
    assert metered.taken(metered.charges(NOISE)[0]) < 0.012 < basic.taken(basic.charges(NOISE)[0]) == 0.1
    assert Imagined.of(Ledger(1)).taken(basic.charges(NOISE)[0]) == inf


def test_normal_noise_is_shown_by_its_rho() -> None:
    basic, metered = (Imagined.of(Ledger(LIMIT, accounting=each)) for each in ("basic", "renyi"))  # type: ignore[arg-type]
    assert str(metered.shown(metered.charges(NOISE)[0])).startswith("ρ 0.000")
    assert basic.shown(basic.charges(NOISE)[0]) == Cost("0.1", "1e-7")
