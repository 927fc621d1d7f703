"""An audit of the coin by its frequencies alone, with a coin that has too little noise as negative control.

For an event S and neighbours x, x', the guarantee says Pr[M(x) ∈ S] ≤ e^E · Pr[M(x') ∈ S]. Hoeffding's bound turns
frequencies into a statement that is wrong with probability at most 10⁻⁶.
"""

from math import exp, log, sqrt

import expost as xp

RUNS = 20_000
SLACK = sqrt(log(2 / 1e-6) / (2 * RUNS))


def refuted(coin: xp.mechanisms.Coin, epsilon: float) -> bool:
    """Whether frequencies show that answers ≤ 100 are more than e^ε times as likely on 100 as on 101."""
    noise = xp.noise.SystemNoise()
    on_100, on_101 = (
        sum(not isinstance(out := coin.sample(data, noise), xp.mechanism.Withheld) and out <= 100 for _ in range(RUNS))
        / RUNS
        for data in (100, 101)
    )
    return on_100 - SLACK > exp(epsilon) * (on_101 + SLACK)


def test_the_coin_keeps_its_guarantee() -> None:
    assert not refuted(xp.mechanisms.Coin(epsilon=1, sensitivity=1), 1)


def test_a_coin_with_too_little_noise_is_caught() -> None:
    assert refuted(xp.mechanisms.Coin(epsilon=2, sensitivity=1), 1)


def test_nothing_is_as_likely_on_both() -> None:
    coin, noise = xp.mechanisms.Coin(epsilon=3, sensitivity=1, heads="1/4"), xp.noise.SystemNoise()
    shares = [sum(coin.sample(data, noise) is xp.WITHHELD for _ in range(RUNS)) / RUNS for data in (0, 1)]
    assert all(abs(share - 0.75) < SLACK for share in shares)
