import numpy as np
import pytest

import expost as xp
from paper.range_in_two import interquartile_range_in_two

DATA = np.random.default_rng(0).normal(10, 2, size=20_000)


def seeded(epsilon: float = 4, seed: int = 1) -> xp.Ledger:
    return xp.Ledger(epsilon=epsilon, delta=1e-5, noise=xp.SeededNoise(seed))


def test_two_mechanisms_charge_two_three_or_two() -> None:
    """The paper's three cases, by the ledger: (2ε, δ), (3ε, 2δ), (2ε, 2δ); and both orders occur."""
    unstable = np.array([0.0, 1.0] * 7)
    edge = np.linspace(0, 2, 4001)  # its range, 1, is on an edge of the first scale
    seen = set()
    for seed in range(12):
        for data in (DATA, unstable, edge):
            found = interquartile_range_in_two(seeded(40, seed), data, epsilon=1, delta=1e-6)
            case = (len(found.legs), found.value is xp.WITHHELD)
            seen.add(case)
            expected = {(1, False): (2, 1), (2, False): (3, 2), (2, True): (2, 2)}[case]
            assert found.charged == xp.Cost(expected[0], delta=expected[1] * 1e-6)
    assert seen == {(1, False), (2, False), (2, True)}


def test_what_cannot_be_paid_is_refused_before_anything_is_charged() -> None:
    poor = xp.Ledger(epsilon=2, delta=0.1)
    with pytest.raises(xp.BudgetExceeded):
        interquartile_range_in_two(poor, on=np.array([1.0, 2.0, 3.0, 4.0]), epsilon=1, delta=1e-6)
    with pytest.raises(xp.InvalidValue):
        interquartile_range_in_two(poor, on=np.zeros((2, 2)), epsilon="0.1", delta=1e-6)
    assert not poor.spent
