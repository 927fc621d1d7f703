from fractions import Fraction
from functools import partial

import pytest

import expost as xp
from expost import WITHHELD, Guarantee
from expost.noise import bernoulli, bernoulli_exp, discrete_laplace, geometric
from expost.verify import check, law, tabulate

pytestmark = pytest.mark.slow
ONE = Fraction(1)


def test_finite_draws_are_complete() -> None:
    assert law(lambda source: bernoulli(source, Fraction(2, 7))) == {False: Fraction(5, 7), True: Fraction(2, 7)}
    assert law(lambda source: "constant") == {"constant": ONE}


def test_bernoulli_exp_is_e_to_the_minus_rate() -> None:
    for rate in (Fraction(0), Fraction(1, 2), ONE, Fraction(5, 3)):
        found = law(partial(bernoulli_exp, rate=rate), missing=Fraction(1, 10**9))
        e = xp.bracket.exp(-rate)
        assert found[True] <= e.upper
        assert found[True] >= e.lower - Fraction(1, 10**9)


def test_geometric_and_laplace_weights_fall_by_e() -> None:
    one_sided = law(lambda source: geometric(source, ONE), missing=Fraction(1, 10**3))
    two_sided = law(lambda source: discrete_laplace(source, ONE), missing=Fraction(1, 10**2))
    fall = float(xp.bracket.exp(-ONE).upper)
    for k in range(3):
        assert float(one_sided[k + 1] / one_sided[k]) == pytest.approx(fall, rel=0.02)
        assert float(two_sided[k + 1] / two_sided[k]) == pytest.approx(fall, rel=0.05)
    assert float(one_sided[0]) == pytest.approx(1 - fall, abs=1e-3)


def test_the_coins_own_code_keeps_its_guarantee_and_not_half_of_it() -> None:
    coin = xp.mechanisms.Coin(epsilon=1, sensitivity=1)
    table = tabulate(coin, {"seven": 7, "eight": 8}, [("seven", "eight")], missing=Fraction(1, 100))
    assert table.laws["seven"][WITHHELD] == table.laws["eight"][WITHHELD] == Fraction(1, 2)
    assert check(table, Guarantee({"answered": 1, "nothing": 0}, delta="0.02")).holds is True
    assert check(table, Guarantee({"answered": 0.5, "nothing": 0}, delta="0.02")).holds is False


def test_draws_with_too_many_branches() -> None:
    with pytest.raises(xp.InvalidValue, match="too many branches"):
        law(lambda source: source.below(10**6))


def test_only_scalar_draws_can_be_enumerated() -> None:
    with pytest.raises(xp.InvalidValue, match="only code that draws by below"):
        law(lambda source: source.bytes(1))
