"""What the optimum gains over Lemma 11 and a Rényi filter, against the number of stops; and Table 1 recomputed.

The paper leaves the first question open. Prints Markdown.
"""

from fractions import Fraction
from math import exp, log, sqrt

from expost.accounting import GaussianNoise, compose, kairouz, optimal_delta, plan

STEPS, DELTA = 1000, 1e-5


def response_gain(stops: int) -> tuple[float, float]:
    """δ by Lemma 11 and at the optimum: 0.1-DP steps (δ 10⁻⁶ each) at the E of advanced composition."""
    every = STEPS // stops
    numbers = list(range(every, STEPS + 1, every))
    promised = [min(0.1 * k, sqrt(2 * k * log(1 / DELTA)) * 0.1 + k * 0.1 * (exp(0.1) - 1)) for k in numbers]
    summed = sum(float(kairouz(0.1, 1e-6, k).delta(e).upper) for k, e in zip(numbers, promised, strict=True))
    return summed, optimal_delta([(0.1, 1e-6)] * STEPS, numbers, promised).upper


def training_gain(stops: int) -> tuple[float, ...]:
    """ε at the first stop and at full length, by Lemma 11 and at the optimum: σ = 1, rate 0.01, 2000 steps."""
    loss, every = GaussianNoise(1, 0.01), 2000 // stops
    promise = plan([loss] * 2000, range(every, 2001, every), DELTA, step=2.0**-10)
    first, full = (compose([loss] * k, step=2.0**-11).epsilon(DELTA / stops).upper for k in (every, 2000))
    return first, promise.epsilon_of(every), full, promise.epsilon_of(2000)


def renyi(steps: int) -> float:
    """What a Rényi filter charges, where stopping anywhere is free."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), steps)
    return float(RdpAccountant().compose(event).get_epsilon(DELTA))


def cutoff(digits: int) -> int:
    """Table 1: from how many 0.1-DP mechanisms on optimal composition beats simple composition on its lattice."""
    count = 2
    while kairouz("0.1", 0, count).delta(Fraction(count - 2, 10)).upper > Fraction(1, 10**digits):
        count += 1
    return count


def main() -> None:
    """Print the tables."""
    print("| stops | δ by Lemma 11 | δ at the optimum | gain |\n|---:|---:|---:|---:|")
    for stops in (1, 2, 5, 10, 20, 50, 100, 200):
        summed, best = response_gain(stops)
        print(f"| {stops} | {summed:.3e} | {best:.3e} | {summed / best:.1f} |")
    print("\n| stops | first stop: Lemma 11 | optimum | Rényi | full length: Lemma 11 | optimum | Rényi |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for stops in (1, 5, 20, 100):
        a, b, c, d = training_gain(stops)
        print(f"| {stops} | {a:.3f} | {b:.3f} | {renyi(2000 // stops):.3f} | {c:.3f} | {d:.3f} | {renyi(2000):.3f} |")
    print("\nTable 1:", [cutoff(digits) for digits in range(5, 13)], "(printed: 17, 20, 24, 27, 31, 35, 38, 42)")


if __name__ == "__main__":
    main()
