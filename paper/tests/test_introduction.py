"""The paper's introduction: flip a coin; heads, a noisy answer; tails, nothing."""

import expost as xp
from expost import Cost


def test_after_nothing_a_second_answer_is_affordable_and_after_an_answer_it_is_not() -> None:
    """With a budget of ε, ⊥ allows another ε-mechanism and an answer does not."""
    seen = set()
    for seed in range(20):
        ledger = xp.Ledger(epsilon=1, noise=xp.SeededNoise(seed))
        first = ledger.run(xp.mechanisms.Coin(epsilon=1, sensitivity=1), on=100)
        seen.add(first.withheld)
        second = xp.Guarantee.uniform(1)
        assert ledger.quote([second]).fits == first.withheld
        assert first.charged == (Cost(0) if first.withheld else Cost(1))
    assert seen == {True, False}


def test_the_guarantee_of_the_example() -> None:
    """P₁ = the answers with E = ε, P₂ = {⊥} with E = 0, δ = 0."""
    guarantee = xp.mechanisms.Coin(epsilon=0.7, sensitivity=1).guarantee
    assert guarantee.cost_of("answered") == Cost(0.7)
    assert guarantee.cost_of("nothing") == Cost(0)
    assert guarantee.worst_case == Cost(0.7)


def test_twice_as_many_coins_as_a_classic_accountant_allows() -> None:
    """A limit of 10 buys ten coins at their worst case, and about twenty at what they leaked."""
    coins = []
    for seed in range(200):
        ledger = xp.Ledger(epsilon=10, noise=xp.SeededNoise(seed))
        tries = 0
        while ledger.remaining >= Cost(1):
            ledger.run(xp.mechanisms.Coin(epsilon=1, sensitivity=1), on=0)
            tries += 1
        coins.append(tries)
    assert 19 < sum(coins) / len(coins) < 21
    assert min(coins) >= 10
